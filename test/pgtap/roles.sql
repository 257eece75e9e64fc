-- Who may do what (I1-I3): every function, procedure, table and view is tried as a
-- role of each bundle, as roles of two, as one that had a bundle, and as nobody.
--
-- Fails when: a role can do more or less than bundles() says, bundles() says more or
-- less than I1 does, a new function or view is in no bundle, or a call needs more than
-- EXECUTE.

-- maintain() ends transactions, so it runs before the one that holds the rest.
CREATE ROLE limitledger_test_sweeper;
SELECT * FROM limitledger.grant_bundle('limitledger_test_sweeper', 'operator') \gset sweeper_
SET ROLE limitledger_test_sweeper;
CALL limitledger.maintain() \gset sweeper_
RESET ROLE;
SELECT * FROM limitledger.revoke_bundle('limitledger_test_sweeper', 'operator') \gset sweeper_
DROP ROLE limitledger_test_sweeper;

BEGIN;
\ir helpers.psql

-- ---- Everything that can be granted -----------------------------------------
CREATE VIEW helpers.object AS
SELECT 'schema' AS kind, n.oid, n.nspname::text AS name, ARRAY['USAGE', 'CREATE'] AS privileges
FROM pg_namespace n WHERE n.nspname = 'limitledger'
UNION ALL
SELECT CASE p.prokind WHEN 'p' THEN 'procedure' ELSE 'function' END, p.oid, p.proname::text, ARRAY['EXECUTE']
FROM pg_proc p WHERE p.pronamespace = 'limitledger'::regnamespace
UNION ALL
SELECT CASE c.relkind WHEN 'v' THEN 'view' ELSE 'table' END, c.oid, c.relname::text,
       ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']
FROM pg_class c WHERE c.relnamespace = 'limitledger'::regnamespace AND c.relkind NOT IN ('i', 'I', 'c', 't');

-- may asks the server, about every column where there are columns.
CREATE FUNCTION helpers.may(role_name name, kind text, object oid, privilege text) RETURNS boolean
LANGUAGE sql AS $$
  SELECT CASE
    WHEN kind = 'schema' THEN has_schema_privilege(role_name, object, privilege)
    WHEN kind IN ('function', 'procedure') THEN has_function_privilege(role_name, object, privilege)
    WHEN privilege IN ('SELECT', 'INSERT', 'UPDATE', 'REFERENCES') THEN
      has_table_privilege(role_name, object, privilege) OR has_any_column_privilege(role_name, object, privilege)
    ELSE has_table_privilege(role_name, object, privilege) END
$$;

-- holds is all that a role may do to one object; says is what its bundles give.
CREATE FUNCTION helpers.holds(role_name name, kind text, object oid, privileges text[]) RETURNS text
LANGUAGE sql AS $$
  SELECT string_agg(p, ', ' ORDER BY n) FROM unnest(privileges) WITH ORDINALITY AS u (p, n) WHERE may(role_name, kind, object, p)
$$;
CREATE TEMP TABLE said ON COMMIT DROP AS
SELECT b.bundle, b.object_kind, CASE b.object_kind
    WHEN 'schema' THEN b.signature::regnamespace::oid WHEN 'view' THEN b.signature::regclass::oid
    ELSE b.signature::regprocedure::oid END AS oid
FROM limitledger.bundles() b;
CREATE FUNCTION helpers.says(bundles text[], kind text, object oid) RETURNS text
LANGUAGE sql AS $$
  SELECT DISTINCT CASE kind WHEN 'schema' THEN 'USAGE' WHEN 'view' THEN 'SELECT' ELSE 'EXECUTE' END
  FROM said s WHERE s.bundle = ANY (bundles) AND s.object_kind = kind AND s.oid = object
$$;

-- A role for each bundle and for each two; `gone` had two and lost the first of them.
CREATE TEMP TABLE cast_of_roles (role_name name, had text[], lost text) ON COMMIT DROP;
INSERT INTO cast_of_roles
SELECT 'limitledger_test_' || b, ARRAY[b], NULL FROM (SELECT DISTINCT bundle FROM said) d (b)
UNION ALL SELECT format('limitledger_test_%s_and_%s', a, b), ARRAY[a, b], NULL
  FROM (SELECT DISTINCT bundle FROM said) d (a), (SELECT DISTINCT bundle FROM said) e (b) WHERE a < b
UNION ALL SELECT format('limitledger_test_%s_not_%s', a, b), ARRAY[a, b], b
  FROM (SELECT DISTINCT bundle FROM said) d (a), (SELECT DISTINCT bundle FROM said) e (b) WHERE a <> b
UNION ALL SELECT format('limitledger_test_not_%s', a), ARRAY[a], a FROM (SELECT DISTINCT bundle FROM said) d (a)
UNION ALL SELECT 'limitledger_test_nobody', '{}', NULL;
CREATE TEMP TABLE tried ON COMMIT DROP AS SELECT c.*, o.* FROM cast_of_roles c, object o;

SELECT plan(127 + (SELECT count(*)::int FROM tried) + 3 * (SELECT count(DISTINCT bundle)::int FROM said)
  + (SELECT sum(cardinality(had))::int + count(lost)::int FROM cast_of_roles));

SELECT is(:'sweeper_claimed'::bigint + :'sweeper_debtors', 0::bigint, 'an operator runs maintain()');
SELECT is(:'sweeper_granted'::bigint, :'sweeper_revoked'::bigint, 'and lost its bundle, so that the role could be dropped');

-- ---- What the bundles are -----------------------------------------------------
SELECT is((SELECT array_agg(DISTINCT bundle ORDER BY bundle) FROM said), '{auditor,executor,gateway,operator}', 'four bundles (I1)');
SELECT is((SELECT count(*) FROM said), (SELECT count(*) FROM (SELECT DISTINCT * FROM said) d), 'nothing is in a bundle twice');
SELECT is_empty($$SELECT bundle, object_kind, oid FROM said s WHERE NOT EXISTS (SELECT FROM object o WHERE (o.kind, o.oid) = (s.object_kind, s.oid))$$, 'all of it exists');
-- What is inside, and what hands out the bundles themselves, is in none.
SELECT is_empty($$SELECT o.kind, o.name FROM object o LEFT JOIN pg_proc p ON p.oid = o.oid AND o.kind IN ('function', 'procedure')
                  WHERE o.kind <> 'table' AND NOT EXISTS (SELECT FROM said s WHERE (s.object_kind, s.oid) = (o.kind, o.oid))
                    AND NOT coalesce(p.prorettype = 'trigger'::regtype OR p.proname ~ '^(policy|binding|envelope|recovery|local)_' OR p.proname IN ('grant_bundle', 'revoke_bundle', 'open_emergency_shard', 'seal_emergency_shard', 'seal_shard_report'), false)$$,
  'every function, procedure and view is in a bundle: name a new one in bundles()');
SELECT is_empty($$SELECT p.oid::regprocedure FROM said s JOIN pg_proc p USING (oid)
                  WHERE p.prorettype = 'trigger'::regtype OR p.proname ~ '^(policy|binding|envelope|recovery|local)_' AND p.proname NOT IN ('policy_diff', 'recovery_status')
                    OR p.proname IN ('grant_bundle', 'revoke_bundle', 'open_emergency_shard', 'seal_emergency_shard', 'seal_shard_report')$$,
  'and nothing of the inside is');
SELECT isnt((SELECT count(*) FROM said s WHERE s.bundle = b.bundle AND NOT EXISTS (SELECT FROM said o WHERE o.oid = s.oid AND o.bundle <> s.bundle)),
  0::bigint, b.bundle || ' has something of its own, by which revoke_bundle knows it')
FROM (SELECT DISTINCT bundle FROM said ORDER BY 1) b;

-- I1's own words, by hand, so that bundles() is not its own witness.
CREATE FUNCTION helpers.who(function_name text) RETURNS text
LANGUAGE sql AS $$
  SELECT string_agg(s.bundle, ' ' ORDER BY s.bundle) FROM said s JOIN object o ON (o.kind, o.oid) = (s.object_kind, s.oid) WHERE o.name = function_name
$$;
SELECT is(who(name), bundles, format('%s: %s', name, bundles)) FROM (VALUES
  ('reserve_capacity', 'gateway'), ('reserve_capacity_batch', 'gateway'), ('release_reservation', 'gateway'), ('release_reservation_batch', 'gateway'), ('resolve_reservation', 'gateway'),
  ('start_reservation', 'executor'), ('start_reservation_batch', 'executor'), ('report_usage_unknown', 'executor'),
  ('settle_usage', 'executor operator'), ('settle_usage_batch', 'executor operator'),
  ('publish_policy', 'operator'), ('activate_policy', 'operator'), ('unfreeze', 'operator'), ('repay_debt', 'operator'), ('maintain', 'operator'), ('expire_reservations', 'operator'),
  ('drain_policy', 'operator'), ('retire_policy', 'operator'), ('rollback_policy', 'operator'), ('policy_diff', 'operator'), ('freeze', 'operator'), ('grant_capacity', 'operator'),
  ('bind_subject', 'operator'), ('unbind_subject', 'operator'), ('free_role', 'operator'), ('acknowledge_recovery', 'operator'), ('recovery_status', 'auditor operator'), ('subject_bindings', 'auditor'),
  ('trust_key', 'operator'), ('distrust_key', 'operator'), ('signing_key_id', 'operator'), ('trusted_keys', 'auditor'),
  ('record_usage', 'executor'), ('report_progress', 'executor'), ('extend_reservation', 'executor gateway'), ('http_headers', 'gateway'),
  ('verify_conservation', 'auditor'), ('budgets', 'auditor'), ('reservations', 'auditor'), ('policies', 'auditor'), ('operator_actions', 'auditor'),
  ('get_budget', 'auditor gateway operator'), ('get_reservation', 'auditor executor gateway operator')) v (name, bundles);

-- ---- Everything, as everybody -----------------------------------------------
CREATE FUNCTION helpers.here() RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM pg_roles $$;
SELECT here() AS before \gset
SELECT format('CREATE ROLE %I', role_name) FROM cast_of_roles \gexec
SELECT is(here(), :before + (SELECT count(*) FROM cast_of_roles), 'the roles are those that were made here');
SELECT is_empty($$SELECT role_name, name FROM tried WHERE holds(role_name, kind, oid, privileges) IS NOT NULL$$, 'a new role may do nothing at all: nothing is for PUBLIC');

SELECT cmp_ok((SELECT granted FROM limitledger.grant_bundle(c.role_name, b)), '>', 0::bigint, format('%s gets %s', c.role_name, b))
FROM cast_of_roles c, unnest(c.had) WITH ORDINALITY AS u (b, n) ORDER BY c.role_name, n;
SELECT cmp_ok((SELECT revoked FROM limitledger.revoke_bundle(c.role_name, c.lost)), '>', 0::bigint, format('%s loses %s', c.role_name, c.lost))
FROM cast_of_roles c WHERE c.lost IS NOT NULL;
SELECT is(here(), :before + (SELECT count(*) FROM cast_of_roles), 'and no call makes a role (I3)');

SELECT is(holds(role_name, kind, oid, privileges), says(array_remove(had, lost), kind, oid), format('%s: %s %s', role_name, kind, name)) FROM tried;

-- Again, and none of it changes anything.
SELECT is((SELECT granted FROM limitledger.grant_bundle('limitledger_test_' || bundle, bundle)), 0::bigint, bundle || ': a second grant has nothing left to grant')
FROM (SELECT DISTINCT bundle FROM said ORDER BY 1) b;
SELECT is((SELECT revoked FROM limitledger.revoke_bundle('limitledger_test_nobody', bundle)), 0::bigint, bundle || ': nobody has nothing to lose')
FROM (SELECT DISTINCT bundle FROM said ORDER BY 1) b;
SELECT is_empty($$SELECT role_name, kind, name FROM tried WHERE holds(role_name, kind, oid, privileges) IS DISTINCT FROM says(array_remove(had, lost), kind, oid)$$, 'everything stands as it did');

-- ---- Real calls, with EXECUTE alone ---------------------------------------------
SELECT at('10:00:00');
GRANT USAGE ON SCHEMA helpers TO limitledger_test_gateway, limitledger_test_executor, limitledger_test_operator, limitledger_test_auditor, limitledger_test_nobody;

SET LOCAL ROLE limitledger_test_operator;
SELECT isnt(publish('t', 'chat', continuous(10, '1 second', 100)), NULL, 'an operator publishes');
SELECT throws_ok($$SELECT reserve('t', 'chat', 'r', 1)$$, '42501', NULL, 'and does not reserve');
SELECT throws_ok($$SELECT start('t', 'r', 'o')$$, '42501', NULL, 'nor start');
SELECT throws_ok($$SELECT * FROM limitledger.reservations$$, '42501', NULL, 'nor read what all have');
SELECT throws_ok($$UPDATE limitledger.policy SET stage = 'retired'$$, '42501', NULL, 'nor write a table');
SELECT throws_ok($$SHOW limitledger.signing_key_file$$, '42501', NULL, 'nor see where the signing key is');

SET LOCAL ROLE limitledger_test_gateway;
SELECT is(reserve('t', 'chat', 'r1', 60), 'ACCEPTED RESERVED', 'a gateway reserves');
SELECT is(reserve('t', 'chat', 'r2', 60), 'REFUSED available', 'is refused');
SELECT is(reserve('t', 'chat', 'r3', 20), 'ACCEPTED RESERVED', 'reserves again');
SELECT is(release('t', 'r3'), 'ACCEPTED RELEASED', 'and releases');
SELECT is(resolve('t', 'r1'), 'ACCEPTED RESERVED replayed', 'asks what became of a call');
SELECT is(state('t', 'r1'), 'RESERVED', 'and of a reservation');
SELECT is(available('t', 'chat'), 40::bigint, 'and looks at its pair');
SELECT throws_ok($$SELECT settle('t', 'r1', 'o1', 1)$$, '42501', NULL, 'it does not settle');
SELECT throws_ok($$SELECT start('t', 'r1', 'o1')$$, '42501', NULL, 'nor start what it holds');
SELECT throws_ok($$SELECT * FROM limitledger.unfreeze('t', 'chat', 'because')$$, '42501', NULL, 'nor open a pair');
SELECT throws_ok($$SELECT publish('t', 'chat')$$, '42501', NULL, 'nor set its own limit');
SELECT throws_ok($$SELECT * FROM limitledger.reservations$$, '42501', NULL, 'nor read what others hold');
SELECT throws_ok($$SELECT * FROM limitledger.head_budget$$, '42501', NULL, 'nor read a table');
SELECT throws_ok($$SELECT * FROM limitledger.grant_bundle('limitledger_test_gateway', 'operator')$$, '42501', NULL, 'nor promote itself');
SELECT throws_ok($$SELECT * FROM limitledger.policy_read('{}')$$, '42501', NULL, 'nor call what is inside');
SELECT throws_ok($$SELECT * FROM limitledger.open_emergency_shard('x')$$, '42501', NULL, 'such as what opens envelopes');

SET LOCAL ROLE limitledger_test_executor;
SELECT is(start('t', 'r1', 'o1'), 'ACCEPTED STARTED', 'an executor starts');
SELECT is(report_unknown('t', 'r1', 'o1'), 'ACCEPTED USAGE_UNKNOWN', 'loses sight of it');
SELECT is(settle('t', 'r1', 'o1', 200), 'ACCEPTED SETTLED_WITH_DEBT', 'and settles');
SELECT throws_ok($$SELECT reserve('t', 'chat', 'r4', 1)$$, '42501', NULL, 'it does not reserve');
SELECT throws_ok($$SELECT release('t', 'r1')$$, '42501', NULL, 'nor release');
SELECT throws_ok($$SELECT * FROM limitledger.repay_debt('t', 'chat')$$, '42501', NULL, 'nor see to debts');
SELECT throws_ok($$SELECT * FROM limitledger.budgets$$, '42501', NULL, 'nor read balances');

SET LOCAL ROLE limitledger_test_auditor;
SELECT isnt((SELECT count(*) FROM limitledger.reservations), 0::bigint, 'an auditor reads reservations');
SELECT is((SELECT debt FROM limitledger.pairs_in_debt), 100::bigint, 'and who owes, by a view that calls');
SELECT is_empty($$SELECT * FROM limitledger.verify_conservation()$$, 'proves the books');
SELECT isnt((SELECT count(*) FROM limitledger.bundle_privileges('limitledger_test_gateway', 'gateway') WHERE granted), 0::bigint, 'and sees who may do what');
SELECT throws_ok($$DELETE FROM limitledger.reservations$$, '42501', NULL, 'it does not write through a view');
SELECT throws_ok($$UPDATE limitledger.head_budget SET available = 0$$, '42501', NULL, 'nor to a table');
SELECT throws_ok($$SELECT reserve('t', 'chat', 'r4', 1)$$, '42501', NULL, 'nor by a call');

SET LOCAL ROLE limitledger_test_operator;
SELECT is((SELECT outcome FROM limitledger.repay_debt('t', 'chat')), 'ACCEPTED', 'an operator sees to debts');
SELECT is((SELECT outcome FROM limitledger.unfreeze('t', 'chat', 'because')), 'ACCEPTED', 'opens pairs');
SELECT is((SELECT claimed FROM limitledger.expire_reservations()), 0::bigint, 'and sweeps');

SET LOCAL ROLE limitledger_test_nobody;
SELECT throws_ok($$SELECT state('t', 'r1')$$, '42501', NULL, 'nobody sees nothing');
RESET ROLE;
SELECT sound('after all of that');

-- ---- Bad input, bad names, others who grant -----------------------------------------
SELECT is_misuse(format('%s(%s)', f, args), code, field, format('%s(%s)', f, args))
FROM unnest(ARRAY['grant_bundle', 'revoke_bundle', 'bundle_privileges']) f, (VALUES
  ('NULL, ''gateway''', 'LL101', 'role_name'), ('''postgres'', NULL', 'LL101', 'bundle'),
  ('''limitledger_test_missing'', ''gateway''', 'LL106', 'role_name'), ('''public'', ''gateway''', 'LL106', 'role_name'),
  ('''limitledger_test_nobody'', ''Gateway''', 'LL106', 'bundle'), ('''limitledger_test_nobody'', ''''', 'LL106', 'bundle')) v (args, code, field);

CREATE ROLE "limitledger_test ""x"" TO PUBLIC; --";
SELECT is((SELECT granted FROM limitledger.grant_bundle('limitledger_test "x" TO PUBLIC; --', 'gateway')),
  (SELECT count(*) FROM said WHERE bundle = 'gateway'), 'a name is a name, whatever it holds');
SELECT is_empty($$SELECT name FROM tried WHERE role_name = 'limitledger_test_nobody' AND holds(role_name, kind, oid, privileges) IS NOT NULL$$, 'and not a statement');
SELECT is((SELECT granted FROM limitledger.grant_bundle(current_user, 'gateway')), 0::bigint, 'the owner needs no grant');
SELECT is((SELECT revoked FROM limitledger.revoke_bundle(current_user, 'gateway')), 0::bigint, 'and loses nothing');

-- A delegate hands on what it was given for that, and no more.
CREATE ROLE limitledger_test_delegate;
SELECT format('GRANT %s ON %s %s TO limitledger_test_delegate WITH GRANT OPTION', p.privilege,
  CASE p.object_kind WHEN 'schema' THEN 'SCHEMA' WHEN 'view' THEN 'TABLE' ELSE 'ROUTINE' END, p.signature)
FROM limitledger.bundle_privileges('limitledger_test_delegate', 'executor') p \gexec
GRANT EXECUTE ON FUNCTION limitledger.grant_bundle, limitledger.revoke_bundle, limitledger.bundle_privileges TO limitledger_test_delegate;
GRANT USAGE ON SCHEMA helpers TO limitledger_test_delegate;
SET LOCAL ROLE limitledger_test_delegate;
SELECT isnt((SELECT granted FROM limitledger.grant_bundle('limitledger_test_nobody', 'executor')), 0::bigint, 'a delegate grants a bundle');
SELECT throws_ok($$SELECT * FROM limitledger.grant_bundle('limitledger_test_nobody', 'operator')$$, '42501', NULL, 'but not one that it may not hand on');
RESET ROLE;
SELECT throws_ok($$SELECT * FROM limitledger.revoke_bundle('limitledger_test_nobody', 'executor')$$, '42501', NULL, 'what another role granted does not seem revoked when it is not');
SET LOCAL ROLE limitledger_test_delegate;
SELECT isnt((SELECT revoked FROM limitledger.revoke_bundle('limitledger_test_nobody', 'executor')), 0::bigint, 'the delegate takes it back');
RESET ROLE;
SELECT is_empty($$SELECT name FROM tried WHERE role_name = 'limitledger_test_nobody' AND holds(role_name, kind, oid, privileges) IS NOT NULL$$, 'all of it');
-- Where the caller has the privilege without the option, GRANT would only warn.
GRANT EXECUTE ON FUNCTION limitledger.grant_bundle, limitledger.bundle_privileges TO limitledger_test_gateway;
SET LOCAL client_min_messages = error;
SET LOCAL ROLE limitledger_test_gateway;
SELECT throws_ok($$SELECT * FROM limitledger.grant_bundle('limitledger_test_nobody', 'gateway')$$, '42501', 'bundle cannot be granted to role limitledger_test_nobody', 'nor does a grant seem made when it is not');
RESET ROLE;

-- ---- Their own contract -------------------------------------------------------------
SELECT is((SELECT concat_ws(' ', pg_get_function_arguments(p.oid), p.provolatile, p.proparallel, p.prosecdef) FROM pg_proc p
           WHERE p.pronamespace = 'limitledger'::regnamespace AND p.proname = name), contract, name || ': signature, volatility, caller''s rights')
FROM (VALUES
  ('bundles', 'OUT bundle text, OUT object_kind text, OUT signature text s s f'),
  ('bundle_privileges', 'role_name name, bundle text, OUT object_kind text, OUT signature text, OUT privilege text, OUT granted boolean, OUT other_bundle text s s f'),
  ('grant_bundle', 'role_name name, bundle text, OUT granted bigint v u f'),
  ('revoke_bundle', 'role_name name, bundle text, OUT revoked bigint v u f')) v (name, contract);

SELECT * FROM finish();
ROLLBACK;
