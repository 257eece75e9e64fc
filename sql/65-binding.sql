-- Bindings: a login that may name some subjects, and no other (I1).
--
-- A role is bound by any row of it that was not freed, also by that of a subject
-- that was taken from it again: the last unbinding leaves it nothing, not everything.
-- Only free_role() opens it.  Every call about a subject asks src/store/binding.c,
-- which goes by the session user and keeps what it read until this table is written.
--
-- regrole is dumped as a name, and follows RENAME.  A role that was dropped leaves
-- its rows; they bind nobody, and the next call here removes them.

CREATE TABLE subject_binding (
  role       regrole     NOT NULL,
  subject    text        COLLATE "C" NOT NULL CHECK (octet_length(subject) BETWEEN 1 AND 256 AND subject <> '*'),
  state      text        COLLATE "C" NOT NULL CHECK (state IN ('bound', 'unbound', 'freed')),
  changed_at timestamptz NOT NULL,
  actor      text        NOT NULL,
  PRIMARY KEY (role, subject)
);
SELECT pg_catalog.pg_extension_config_dump('subject_binding', '');

-- Tells every backend to look again, and makes the change as durable as a call.
CREATE TRIGGER binding_changed AFTER INSERT OR UPDATE OR DELETE ON subject_binding
  FOR EACH ROW EXECUTE FUNCTION @extschema@.policy_changed();
CREATE TRIGGER binding_changed_truncate AFTER TRUNCATE ON subject_binding
  FOR EACH STATEMENT EXECUTE FUNCTION @extschema@.policy_changed();
-- Whoever writes, a replication worker included: a cache that missed it is wrong.
ALTER TABLE subject_binding ENABLE ALWAYS TRIGGER binding_changed;
ALTER TABLE subject_binding ENABLE ALWAYS TRIGGER binding_changed_truncate;

CREATE VIEW subject_bindings AS
SELECT r.rolname AS role_name, b.subject, b.state,
       EXISTS (SELECT FROM pg_catalog.pg_roles m          -- as itself, or after SET ROLE
               WHERE pg_catalog.pg_has_role(b.role, m.oid, 'MEMBER')
                 AND pg_catalog.has_table_privilege(m.oid, '@extschema@.reservations'::pg_catalog.regclass, 'SELECT')) AS reads_all,
       b.changed_at, b.actor
FROM subject_binding b LEFT JOIN pg_catalog.pg_roles r ON r.oid = b.role
ORDER BY r.rolname, b.subject;

-- ---- Steps ------------------------------------------------------------------

-- binding_refuse raises 42501 if the login is bound: for calls that are about the
-- ledger as a whole, and so about subjects that a bound login can't name.
CREATE FUNCTION binding_refuse(call text) RETURNS void
LANGUAGE C VOLATILE STRICT
AS 'MODULE_PATHNAME', 'limitledger_binding_refuse';

-- binding_check demands a role that exists and, if it is to be bound, one that a binding
-- would hold: that logs in itself, and is no superuser, as sweeping workers are.
CREATE FUNCTION binding_check(role_name name, to_bind boolean) RETURNS regrole
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  found record;
BEGIN
  IF role_name IS NULL THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL101', MESSAGE = 'role_name must not be null',
      DETAIL = 'A binding belongs to one role.',
      HINT = 'Give the name of the role that logs in.';
  END IF;
  SELECT r.oid, r.rolcanlogin, r.rolsuper INTO found FROM pg_roles AS r WHERE r.rolname = role_name;
  IF found.oid IS NULL THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL106', MESSAGE = 'role_name is not a role',
      DETAIL = format('There is no role %I in this cluster.', role_name),
      HINT = 'Create it first. Names are taken as they are written, upper case included.';
  END IF;
  IF to_bind AND NOT found.rolcanlogin THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL106', MESSAGE = 'role_name is a role that cannot log in',
      DETAIL = 'A binding holds for the role that a session logged in as, not for roles that it is a member of.',
      HINT = 'Bind each login, or ALTER ROLE ... LOGIN first.';
  END IF;
  IF to_bind AND found.rolsuper THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL106', MESSAGE = 'role_name is a superuser',
      DETAIL = 'Nothing holds a superuser: it may read every table, and pose as any login.',
      HINT = 'Let the tenant log in as a role of its own.';
  END IF;
  RETURN found.oid::regrole;
END;
$$;

-- binding_check_subject demands a subject, as src/api/args.c does.
CREATE FUNCTION binding_check_subject(subject text) RETURNS void
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
BEGIN
  IF subject IS NULL THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL101', MESSAGE = 'subject must not be null',
      DETAIL = 'NULL is neither zero nor a default here.',
      HINT = 'Pass a value for it.';
  END IF;
  IF octet_length(subject) NOT BETWEEN 1 AND 256 OR subject = '*' THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL102', MESSAGE = 'subject must have 1 to 256 bytes, and not be "*"',
      DETAIL = format('It has %s.', octet_length(subject)),
      HINT = 'A role that is to reach every subject is one that is not bound.';
  END IF;
END;
$$;

-- binding_reach counts the subjects that a role is bound to; NULL: it is not bound.
-- On the way it forgets roles that are gone: a dump would carry their numbers, which
-- may stand for others where it is restored.
CREATE FUNCTION binding_reach(of_role regrole) RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  subjects bigint;
BEGIN
  DELETE FROM @extschema@.subject_binding AS b
  WHERE NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.oid = b.role);

  SELECT CASE WHEN count(*) > 0 THEN count(*) FILTER (WHERE b.state = 'bound') END INTO subjects
  FROM @extschema@.subject_binding AS b WHERE b.role = of_role AND b.state <> 'freed';
  RETURN subjects;
END;
$$;

-- ---- The calls --------------------------------------------------------------

CREATE FUNCTION bind_subject(
  role_name name, subject text,
  OUT already_bound boolean,         -- true: nothing has changed
  OUT bound_subjects bigint          -- that the role is bound to now
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  bound_role regrole;
BEGIN
  PERFORM @extschema@.binding_refuse('bind_subject()');
  bound_role := @extschema@.binding_check(role_name, true);
  PERFORM @extschema@.binding_check_subject(subject);

  INSERT INTO @extschema@.subject_binding AS b (role, subject, state, changed_at, actor)
  VALUES (bound_role, subject, 'bound', @extschema@.ledger_clock(), @extschema@.policy_actor())
  ON CONFLICT ON CONSTRAINT subject_binding_pkey DO UPDATE
  SET state = excluded.state, changed_at = excluded.changed_at, actor = excluded.actor
  WHERE b.state <> 'bound';
  already_bound := NOT FOUND;
  bound_subjects := @extschema@.binding_reach(bound_role);
END;
$$;

CREATE FUNCTION unbind_subject(
  role_name name, subject text,
  OUT already_unbound boolean,       -- true: nothing has changed
  OUT bound_subjects bigint          -- that the role is bound to now; NULL: it is not bound, and reaches all
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  bound_role regrole;
BEGIN
  PERFORM @extschema@.binding_refuse('unbind_subject()');
  bound_role := @extschema@.binding_check(role_name, false);
  PERFORM @extschema@.binding_check_subject(subject);

  UPDATE @extschema@.subject_binding AS b
  SET state = 'unbound', changed_at = @extschema@.ledger_clock(), actor = @extschema@.policy_actor()
  WHERE b.role = bound_role AND b.subject = unbind_subject.subject AND b.state = 'bound';
  already_unbound := NOT FOUND;
  bound_subjects := @extschema@.binding_reach(bound_role);
END;
$$;

CREATE FUNCTION free_role(
  role_name name,
  OUT already_free boolean           -- true: nothing has changed
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  bound_role regrole;
BEGIN
  PERFORM @extschema@.binding_refuse('free_role()');
  bound_role := @extschema@.binding_check(role_name, false);

  UPDATE @extschema@.subject_binding AS b
  SET state = 'freed', changed_at = @extschema@.ledger_clock(), actor = @extschema@.policy_actor()
  WHERE b.role = bound_role AND b.state <> 'freed';
  already_free := NOT FOUND;
  PERFORM @extschema@.binding_reach(bound_role);
END;
$$;

COMMENT ON FUNCTION bind_subject IS
$$Binds a login to a subject: it may name that one and those that it was bound to before, and to it every other is as if it were not there (I1).

role_name: a role that can log in; the binding holds for sessions that logged in as it, whatever they SET ROLE to. subject: 1 to 256 bytes, never "*". The first binding of a role is what shuts it off from all other subjects. bound_subjects counts what it is bound to now. It holds from the next call of each session on; a call that is under way came before. Repeated, it changes nothing.

Errors: LL101, LL102; LL106 there is no such role, or it can't log in, or is a superuser; 42501 if the caller is bound itself.$$;

COMMENT ON FUNCTION unbind_subject IS
$$Takes a subject from a login that is bound; without its last one it reaches none, until free_role opens it (I1).

role_name, subject: as in bind_subject. bound_subjects counts what the role is bound to now: 0 is none at all, NULL means that it is not bound and reaches every subject. Repeated, or for a subject that the role was not bound to, it changes nothing.

Errors: LL101, LL102; LL106 there is no such role; 42501 if the caller is bound itself.$$;

COMMENT ON FUNCTION free_role IS
$$Frees a login from all of its bindings: it reaches every subject again (I1).

role_name: a role of the cluster. The rows stay, as freed, with when and by whom. Repeated, it changes nothing. Errors: LL101; LL106 there is no such role; 42501 if the caller is bound itself.$$;

COMMENT ON VIEW subject_bindings IS
'Which login is bound to which subject, since when and by whom; and whether it reads all the same, by the views of the ledger (I1).';
