-- Who may do what: four bundles of privileges, and the calls that grant them (I1).
--
-- No role is created here, and none is remembered: roles belong to the cluster,
-- and GRANT alone, which a dump carries, says who has what (I3).
--
-- GRANT takes no parameters, so the two calls at the end have to put statements
-- together.  Nothing that a caller wrote becomes a part of one: the object comes
-- out of the catalogue by its oid, which regprocedure, regclass and regnamespace
-- print qualified and quoted, the privilege from a list of three words, and the
-- role is one that exists, quoted by %I.

-- bundles() is the only place that says what belongs to which bundle.  What is
-- named here and does not exist is left out; what exists and is not named here is
-- in no bundle, which test/pgtap/roles.sql reports by name.
CREATE FUNCTION bundles(OUT bundle text, OUT object_kind text, OUT signature text)
RETURNS SETOF record LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
WITH said (bundles, names) AS (VALUES
  -- admits requests, gives back what was not started, tells the caller in HTTP
  ('{gateway}', '{reserve_capacity, reserve_capacity_batch, release_reservation, release_reservation_batch,
    resolve_reservation,
    shard_reserve, shard_reserve_batch, shard_release,
    http_headers, rate_limit, rate_limit_policy, retry_after, problem_details, structured_string}'),
  -- runs what was admitted, and says what it used
  ('{executor}', '{start_reservation, start_reservation_batch, report_progress, report_usage_unknown,
    record_usage, record_usage_batch, claim_unknown_usage, shard_start, shard_report_unknown}'),
  -- sets the rules, stops and opens pairs, sweeps
  ('{operator}', '{publish_policy, activate_policy, shadow_policy, canary_policy, drain_policy, retire_policy, rollback_policy, policy_diff,
    bind_subject, unbind_subject, free_role, trust_key, distrust_key, signing_key_id, acknowledge_recovery,
    freeze, unfreeze, freeze_route, unfreeze_route, grant_capacity, import_usage, import_usage_batch, repay_debt,
    register_gateway, announce_boot, issue_emergency_shard, sign_emergency_shard, reconcile_emergency_shard, write_off_shard,
    grant_legacy_share, report_legacy_share,
    maintain, expire_reservations, claim_expiring, finish_expiring, expire_executions, repay_debtors,
    purge_reservations, purge_usage, purge_budgets,
    open_gateway, renew_boot, accept_emergency_shard, seal_shard, cut_shard_report, report_shard, sweep_shards}'),
  -- reads everything and proves it
  ('{auditor}', '{verify_conservation, verify_subjects, bundle_privileges, worker_status, workers,
    policies, rollout_status, budgets, reservations, unreserved_usage, capacity_grants, operator_actions, subject_bindings, trusted_keys,
    open_reservations, unknown_usage, expired_unstarted, frozen_pairs, frozen_routes, pairs_in_debt,
    gateways, emergency_shards, shard_reports, shard_receipts,
    local_shards, shard_reservations, local_reports,
    ledger_totals, rollout_totals, unknown_usage_convergence, decision_counters, count_decisions}'),

  ('{gateway,executor}', '{extend_reservation, request_digest, canonical_json}'),
  -- the operator as the last resort for a usage that is unknown (D10)
  ('{executor,operator}', '{settle_usage, settle_usage_batch, shard_settle, shard_settle_batch}'),
  ('{gateway,operator,auditor}', '{get_budget}'),
  ('{operator,auditor}', '{recovery_status}'),
  ('{gateway,executor,operator,auditor}', '{get_reservation,get_reservation_document}'),
  -- what shows no row of the ledger
  ('{gateway,executor,operator,auditor}', '{ledger_clock, transitions, outcomes, sqlstates, bundles}')),
existing (name, object_kind, signature) AS (
  SELECT p.proname, CASE p.prokind WHEN 'p' THEN 'procedure' ELSE 'function' END, p.oid::regprocedure::text
  FROM pg_proc p WHERE p.pronamespace = '@extschema@'::regnamespace
  UNION ALL
  SELECT c.relname, 'view', c.oid::regclass::text
  FROM pg_class c WHERE c.relnamespace = '@extschema@'::regnamespace AND c.relkind = 'v')
SELECT b.name, 'schema', '@extschema@'
FROM unnest('{gateway,executor,operator,auditor}'::text[]) AS b (name)
UNION ALL
SELECT b.name, e.object_kind, e.signature
FROM said s, unnest(s.bundles::text[]) AS b (name), unnest(s.names::text[]) AS n (name)
JOIN existing e ON e.name = n.name
ORDER BY 1, 2, 3
$$;

-- bundle_privileges() compares a bundle with what its role has been granted.
--
-- A role has another bundle too if it holds anything that belongs to that one
-- alone; each bundle has such objects.
CREATE FUNCTION bundle_privileges(
  role_name name, bundle text,
  OUT object_kind text, OUT signature text,
  OUT privilege text,                -- USAGE, EXECUTE or SELECT
  OUT granted boolean,               -- to this role itself, by whomever
  OUT other_bundle text              -- that the role has and that gives the same; NULL: none
) RETURNS SETOF record LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  missing CONSTANT text := CASE WHEN role_name IS NULL THEN 'role_name' WHEN bundle IS NULL THEN 'bundle' END;
  known   CONSTANT text[] := ARRAY(SELECT DISTINCT b.bundle FROM @extschema@.bundles() b ORDER BY 1);
  held_by oid;
BEGIN
  IF missing IS NOT NULL THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL101', MESSAGE = format('%s must not be null', missing),
      DETAIL = 'A bundle is granted to one role.',
      HINT = 'Give the name of a role and of a bundle.';
  END IF;
  IF bundle <> ALL (known) THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL106', MESSAGE = 'bundle is not known',
      DETAIL = format('The bundles are %s.', array_to_string(known, ', ')),
      HINT = 'SELECT * FROM @extschema@.bundles() shows what is in them.';
  END IF;
  SELECT r.oid INTO held_by FROM pg_roles r WHERE r.rolname = role_name;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL106', MESSAGE = 'role_name is not a role',
      DETAIL = format('There is no role %I in this cluster.', role_name),
      HINT = 'Create it first. Names are taken as they are written, upper case included.';
  END IF;

  RETURN QUERY
  WITH object AS (
    SELECT b.bundle, b.object_kind, b.signature,
           CASE b.object_kind WHEN 'schema' THEN 'USAGE' WHEN 'view' THEN 'SELECT' ELSE 'EXECUTE' END AS privilege,
           count(*) OVER (PARTITION BY b.object_kind, b.signature) AS sharers
    FROM @extschema@.bundles() b),
  held AS (
    SELECT o.*, a.owner = held_by AS owned,
           EXISTS (SELECT FROM aclexplode(a.acl) x
                   WHERE x.grantee = held_by AND x.privilege_type = o.privilege) AS granted
    FROM object o,
      LATERAL (SELECT n.nspowner, n.nspacl FROM pg_namespace n
               WHERE o.object_kind = 'schema' AND n.oid = o.signature::regnamespace
               UNION ALL
               SELECT c.relowner, c.relacl FROM pg_class c
               WHERE o.object_kind = 'view' AND c.oid = o.signature::regclass
               UNION ALL
               SELECT p.proowner, p.proacl FROM pg_proc p
               WHERE o.object_kind IN ('function', 'procedure') AND p.oid = o.signature::regprocedure) AS a (owner, acl))
  SELECT h.object_kind, h.signature, h.privilege, h.granted,
         (SELECT min(same.bundle) FROM held same
          WHERE (same.object_kind, same.signature) = (h.object_kind, h.signature) AND same.bundle <> h.bundle
            AND EXISTS (SELECT FROM held own
                        WHERE own.bundle = same.bundle AND own.sharers = 1 AND own.granted))
  FROM held h
  WHERE h.bundle = bundle_privileges.bundle AND NOT h.owned
  ORDER BY 1, 2;
END;
$$;

-- grant_bundle() grants what the role does not hold yet.
CREATE FUNCTION grant_bundle(role_name name, bundle text, OUT granted bigint)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  one record;
BEGIN
  granted := 0;
  FOR one IN
    SELECT p.* FROM @extschema@.bundle_privileges(role_name, bundle) p WHERE NOT p.granted
  LOOP
    EXECUTE CASE one.object_kind
      WHEN 'schema' THEN format('GRANT USAGE ON SCHEMA %s TO %I', one.signature::regnamespace, role_name)
      WHEN 'view' THEN format('GRANT SELECT ON TABLE %s TO %I', one.signature::regclass, role_name)
      ELSE format('GRANT EXECUTE ON ROUTINE %s TO %I', one.signature::regprocedure, role_name) END;
    granted := granted + 1;
  END LOOP;

  -- Without the right to grant, GRANT only warns.
  SELECT p.* INTO one FROM @extschema@.bundle_privileges(role_name, bundle) p WHERE NOT p.granted LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING
      ERRCODE = 'insufficient_privilege', MESSAGE = format('bundle cannot be granted to role %I', role_name),
      DETAIL = format('%s on %s was not granted; nothing was.', one.privilege, one.signature),
      HINT = 'Call it as the owner of the extension, or with the grant option on all of the bundle.';
  END IF;
END;
$$;

-- revoke_bundle() takes away what no other bundle of the role gives.
CREATE FUNCTION revoke_bundle(role_name name, bundle text, OUT revoked bigint)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  one record;
BEGIN
  revoked := 0;
  FOR one IN
    SELECT p.* FROM @extschema@.bundle_privileges(role_name, bundle) p
    WHERE p.granted AND p.other_bundle IS NULL
  LOOP
    EXECUTE CASE one.object_kind
      WHEN 'schema' THEN format('REVOKE USAGE ON SCHEMA %s FROM %I', one.signature::regnamespace, role_name)
      WHEN 'view' THEN format('REVOKE SELECT ON TABLE %s FROM %I', one.signature::regclass, role_name)
      ELSE format('REVOKE EXECUTE ON ROUTINE %s FROM %I', one.signature::regprocedure, role_name) END;
    revoked := revoked + 1;
  END LOOP;

  -- REVOKE takes back what its caller granted, and says nothing of what others did.
  SELECT p.* INTO one FROM @extschema@.bundle_privileges(role_name, bundle) p
  WHERE p.granted AND p.other_bundle IS NULL LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING
      ERRCODE = 'insufficient_privilege', MESSAGE = format('bundle cannot be revoked from role %I', role_name),
      DETAIL = format('It still holds %s on %s, which another role granted; nothing was revoked.',
                      one.privilege, one.signature),
      HINT = 'Call it as that role; \dp and \df+ show who granted what.';
  END IF;
END;
$$;

COMMENT ON FUNCTION bundles IS
$$Prints the four bundles of privileges, gateway, executor, operator and auditor: what each of them may call and read (I1).

object_kind: schema, function, procedure or view. signature: the object, qualified; it can be cast to regprocedure or regclass, or given to has_function_privilege and its like. A bundle gives USAGE on the schema, EXECUTE on functions and procedures, SELECT on views, and nothing on a table. grant_bundle and revoke_bundle are in none of them.$$;

COMMENT ON FUNCTION bundle_privileges IS
$$Shows what a bundle gives, and which of it has been granted to a role (I1, I3).

role_name: a role of the cluster. bundle: gateway, executor, operator or auditor. granted: true if the role itself holds the privilege, by whomever it was granted; what it has through another role does not count. other_bundle: another bundle that the role has and that gives the same, so that revoke_bundle leaves it. A role has a bundle if it holds something that belongs to that bundle alone. What the role owns is left out.

Errors: LL101, LL106 for a bundle or a role that does not exist.$$;

COMMENT ON FUNCTION grant_bundle IS
$$Grants all of a bundle to a role that exists, and returns how many privileges it lacked (I1, I3).

Runs with the rights of its caller: the owner of the extension, a superuser, or whoever has the grant option on all of it. Repeated, it grants what is missing: nothing, or what an update of the extension has added. To a role that owns the extension's objects there is nothing to grant.

Errors: LL101; LL106 for a bundle or a role that does not exist; 42501 if the caller may not grant it. An error grants nothing.$$;

COMMENT ON FUNCTION revoke_bundle IS
$$Revokes a bundle from a role, but for what another bundle of that role gives as well, and returns how many privileges it took (I1, I3).

Runs with the rights of its caller. Repeated, it takes nothing. The schema goes with the last bundle.

Errors: LL101; LL106 for a bundle or a role that does not exist; 42501 if another role granted a part of it; 2BP01 if the role has handed a part of it on. An error revokes nothing.$$;
