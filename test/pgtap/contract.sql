-- The contract: each public function with its arguments and columns, what PUBLIC may
-- do, and what bad input gets: an ERROR with a SQLSTATE of its own, the field's name, a
-- detail and a hint, and no row written (J1-J3, I1, A1, A2, A5).
--
-- Fails when: a signature, a volatility or a privilege changes, or bad input is let
-- through, answered as a refusal or reported without its field.

BEGIN;
\ir helpers.psql
SELECT plan(1023);

-- ---- Signatures -----------------------------------------------------------
CREATE TEMP TABLE receipt (columns text) ON COMMIT DROP;
INSERT INTO receipt VALUES ('outcome text, dimension text, state text, replayed boolean, generation bigint, epoch timestamp with time zone, '
  'reserved_units bigint, actual_units bigint, operation text, expires_at timestamp with time zone, ledger_at timestamp with time zone, '
  'available bigint, cap bigint, reset_at timestamp with time zone, retry_after_ms bigint, retry_kind text, hard_limit bigint, '
  'excess_units bigint, excess_generation bigint, excess_epoch timestamp with time zone');
CREATE TEMP TABLE contract (name text, arguments text, columns text, many boolean, volatile "char") ON COMMIT DROP;
INSERT INTO contract VALUES
  ('publish_policy', 'document jsonb, activate boolean DEFAULT true', 'generation bigint, stage text, already_published boolean, active_at timestamp with time zone', false, 'v'),
  ('activate_policy', 'generation bigint', 'generation bigint, stage text, already_published boolean, active_at timestamp with time zone', false, 'v'),
  ('reserve_capacity', 'subject text, route text, reservation_id text, units bigint, digest bytea, region text DEFAULT NULL::text, estimator_digest bytea DEFAULT NULL::bytea, '
    'deadline timestamp with time zone DEFAULT NULL::timestamp with time zone, priority integer DEFAULT NULL::integer, start_operation text DEFAULT NULL::text', '@', false, 'v'),
  ('start_reservation', 'subject text, reservation_id text, operation_id text', '@', false, 'v'),
  ('settle_usage', 'subject text, reservation_id text, operation_id text, actual bigint, receipt_digest bytea DEFAULT NULL::bytea, source text DEFAULT ''executor''::text', '@', false, 'v'),
  ('release_reservation', 'subject text, reservation_id text', '@', false, 'v'),
  ('report_usage_unknown', 'subject text, reservation_id text, operation_id text', '@', false, 'v'),
  ('report_progress', 'subject text, reservation_id text, operation_id text, units bigint', '@', false, 'v'),
  ('extend_reservation', 'subject text, reservation_id text, extension_id text, units bigint DEFAULT 0, until timestamp with time zone DEFAULT NULL::timestamp with time zone', '@', false, 'v'),
  ('record_usage', 'subject text, route text, operation_id text, units bigint', '@', false, 'v'),
  ('import_usage', 'subject text, route text, operation_id text, units bigint', '@', false, 'v'),
  ('record_usage_batch', 'subjects text[], routes text[], operation_ids text[], units bigint[]', 'element integer, @', true, 'v'),
  ('import_usage_batch', 'subjects text[], routes text[], operation_ids text[], units bigint[]', 'element integer, @', true, 'v'),
  ('shadow_policy', 'generation bigint, reason text', 'generation bigint, stage text, already_shadow boolean', false, 'v'),
  ('canary_policy', 'generation bigint, percent integer, reason text, pick_by text DEFAULT NULL::text', 'generation bigint, percent integer, pick_by text, stage text, already_in boolean, since timestamp with time zone', false, 'v'),
  ('freeze_route', 'route text, reason text', 'route text, outcome text, already_frozen boolean, frozen_at timestamp with time zone', false, 'v'),
  ('unfreeze_route', 'route text, reason text', 'route text, outcome text, was_frozen boolean', false, 'v'),
  ('get_reservation', 'subject text, reservation_id text', '@', false, 's'),
  ('get_reservation_document', 'subject text, reservation_id text', NULL, false, 's'),
  ('resolve_reservation', 'subject text, reservation_id text, digest bytea', '@', false, 'v'),
  ('reserve_capacity_batch', 'subjects text[], routes text[], reservation_ids text[], units bigint[], digests bytea[], regions text[] DEFAULT NULL::text[], '
    'estimator_digests bytea[] DEFAULT NULL::bytea[], deadlines timestamp with time zone[] DEFAULT NULL::timestamp with time zone[], '
    'priorities integer[] DEFAULT NULL::integer[], start_operations text[] DEFAULT NULL::text[], require_all boolean DEFAULT false', 'element integer, @', true, 'v'),
  ('start_reservation_batch', 'subjects text[], reservation_ids text[], operation_ids text[]', 'element integer, @', true, 'v'),
  ('settle_usage_batch', 'subjects text[], reservation_ids text[], operation_ids text[], actuals bigint[], receipt_digests bytea[] DEFAULT NULL::bytea[], '
    'sources text[] DEFAULT NULL::text[]', 'element integer, @', true, 'v'),
  ('release_reservation_batch', 'subjects text[], reservation_ids text[]', 'element integer, @', true, 'v'),
  ('get_budget', 'subject text, route text', 'generation bigint, epoch timestamp with time zone, refill_kind text, cap bigint, opening bigint, minted bigint, '
    'overdraft_issued bigint, available bigint, reserved bigint, spent bigint, retired_for_emergency bigint, overdraft_repaid bigint, burned bigint, deficit bigint, '
    'debt bigint, outstanding bigint, due_units bigint, admission text, frozen_reason text, reset_at timestamp with time zone, ledger_at timestamp with time zone', true, 's'),
  ('repay_debt', 'subject text, route text', 'outcome text, dimension text, repaid_units bigint, debt bigint, available bigint, admission text, ledger_at timestamp with time zone', false, 'v'),
  ('grant_capacity', 'subject text, route text, grant_id text, units bigint, reason text', 'outcome text, dimension text, replayed boolean, granted_units bigint, '
    'debt bigint, available bigint, admission text, ledger_at timestamp with time zone', false, 'v'),
  ('freeze', 'subject text, route text, reason text', 'outcome text, dimension text, debt bigint, available bigint, admission text, ledger_at timestamp with time zone', false, 'v'),
  ('unfreeze', 'subject text, route text, reason text', 'outcome text, dimension text, debt bigint, available bigint, admission text, ledger_at timestamp with time zone', false, 'v'),
  ('bind_subject', 'role_name name, subject text', 'already_bound boolean, bound_subjects bigint', false, 'v'),
  ('unbind_subject', 'role_name name, subject text', 'already_unbound boolean, bound_subjects bigint', false, 'v'),
  ('free_role', 'role_name name', 'already_free boolean', false, 'v'),
  ('trust_key', 'public_key text, gateway text DEFAULT NULL::text, trusted_until timestamp with time zone DEFAULT NULL::timestamp with time zone', 'outcome text, kid text, already_trusted boolean', false, 'v'),
  ('distrust_key', 'kid text, reason text', 'outcome text, already_distrusted boolean, trusted_until timestamp with time zone', false, 'v'),
  ('signing_key_id', '', 'kid text, public_key text', false, 'v'),
  ('recovery_status', '', 'status text, detail text, incarnation uuid, timeline integer, acknowledged_at timestamp with time zone', false, 's'),
  ('acknowledge_recovery', 'reason text', 'outcome text, status_before text, incarnation uuid', false, 'v'),
  ('claim_expiring', 'batch_limit integer', 'claimed bigint', false, 'v'),
  ('finish_expiring', 'batch_limit integer', 'expired bigint, expired_units bigint', false, 'v'),
  ('expire_reservations', 'batch_limit integer DEFAULT 1000', 'claimed bigint, expired bigint, expired_units bigint', false, 'v'),
  ('expire_executions', 'batch_limit integer', 'unknown bigint', false, 'v'),
  ('repay_debtors', 'batch_limit integer, after_subject text, after_route text', 'pairs bigint, repaid_units bigint, last_subject text, last_route text', false, 'v'),
  ('purge_reservations', 'batch_limit integer, from_generation bigint, from_instant timestamp with time zone', 'purged bigint, purged_units bigint, next_generation bigint, next_instant timestamp with time zone', false, 'v'),
  ('purge_usage', 'batch_limit integer, from_generation bigint, from_instant timestamp with time zone', 'purged bigint, purged_units bigint, next_generation bigint, next_instant timestamp with time zone', false, 'v'),
  ('purge_budgets', 'batch_limit integer, from_generation bigint, from_instant timestamp with time zone', 'purged bigint, purged_units bigint, next_generation bigint, next_instant timestamp with time zone', false, 'v'),
  ('maintain', 'batch_limit integer DEFAULT 1000, time_limit interval DEFAULT ''00:00:10''::interval, claimed bigint DEFAULT 0, expired bigint DEFAULT 0, unknown bigint DEFAULT 0, '
    'debtors bigint DEFAULT 0, repaid_units bigint DEFAULT 0, purged bigint DEFAULT 0, purged_budgets bigint DEFAULT 0', 'claimed bigint, expired bigint, unknown bigint, debtors bigint, repaid_units bigint, purged bigint, purged_budgets bigint', false, 'v'),
  ('claim_unknown_usage', 'batch_limit integer DEFAULT 100, lease interval DEFAULT ''00:02:00''::interval, reconciler text DEFAULT NULL::text',
    'subject text, reservation_id text, route text, operation_id text, reserved_units bigint, progress_units bigint, hard_limit bigint, '
    'unknown_at timestamp with time zone, claimed_until timestamp with time zone', true, 'v'),
  ('register_gateway', 'gateway text, public_key text', 'outcome text, already_registered boolean, kid text', false, 'v'),
  ('announce_boot', 'gateway text, boot_epoch uuid', 'outcome text, dimension text, already_announced boolean', false, 'v'),
  ('issue_emergency_shard', 'subject text, route text, shard_id text, gateway text, units bigint', 'outcome text, dimension text, replayed boolean, generation bigint, epoch timestamp with time zone, fence bigint, issued_at timestamp with time zone, expires_at timestamp with time zone, debt bigint, available bigint, admission text, ledger_at timestamp with time zone', false, 'v'),
  ('sign_emergency_shard', 'subject text, shard_id text', 'outcome text, dimension text, kid text, envelope text', false, 'v'),
  ('reconcile_emergency_shard', 'subject text, report text', 'outcome text, dimension text, replayed boolean, detail text, shard_id text, sequence bigint, excess_units bigint, confirmed_units bigint, reminted_units bigint, settled boolean, debt bigint, available bigint, admission text, ledger_at timestamp with time zone', false, 'v'),
  ('write_off_shard', 'subject text, shard_id text, reason text', 'outcome text, dimension text, replayed boolean, lost_units bigint, written_off_at timestamp with time zone', false, 'v'),
  ('grant_legacy_share', 'subject text, route text, share_id text, units bigint, reason text', 'outcome text, dimension text, replayed boolean, generation bigint, epoch timestamp with time zone, debt bigint, available bigint, admission text, ledger_at timestamp with time zone', false, 'v'),
  ('report_legacy_share', 'subject text, share_id text, operation_ids text[], reserved_units bigint[], actual_units bigint[]', 'outcome text, dimension text, replayed boolean, excess_units bigint, confirmed_units bigint, reminted_units bigint, settled boolean, debt bigint, available bigint, admission text, ledger_at timestamp with time zone', false, 'v'),
  ('open_gateway', 'gateway text', 'outcome text, already_open boolean, boot_epoch uuid', false, 'v'),
  ('renew_boot', 'reason text', 'outcome text, boot_epoch uuid, sealed bigint, unknown bigint', false, 'v'),
  ('accept_emergency_shard', 'envelope text', 'outcome text, dimension text, detail text, replayed boolean, shard_id text, subject text, route text, units bigint, fence bigint, '
    'expires_at timestamp with time zone', false, 'v'),
  ('shard_reserve', 'subject text, route text, reservation_id text, units bigint, digest bytea, '
    'deadline timestamp with time zone DEFAULT NULL::timestamp with time zone, start_operation text DEFAULT NULL::text', '@', false, 'v'),
  ('shard_reserve_batch', 'subjects text[], routes text[], reservation_ids text[], units bigint[], digests bytea[], '
    'deadlines timestamp with time zone[] DEFAULT NULL::timestamp with time zone[], start_operations text[] DEFAULT NULL::text[]', 'element integer, @', true, 'v'),
  ('shard_start', 'subject text, reservation_id text, operation_id text', '@', false, 'v'),
  ('shard_settle', 'subject text, reservation_id text, operation_id text, actual bigint, receipt_digest bytea DEFAULT NULL::bytea, source text DEFAULT ''executor''::text', '@', false, 'v'),
  ('shard_settle_batch', 'subjects text[], reservation_ids text[], operation_ids text[], actuals bigint[], receipt_digests bytea[] DEFAULT NULL::bytea[], '
    'sources text[] DEFAULT NULL::text[]', 'element integer, @', true, 'v'),
  ('shard_release', 'subject text, reservation_id text', '@', false, 'v'),
  ('shard_report_unknown', 'subject text, reservation_id text, operation_id text', '@', false, 'v'),
  ('seal_shard', 'subject text, shard_id text', 'outcome text, dimension text, replayed boolean, retired_units bigint, local_reserved bigint, sealed_by text, '
    'sealed_at timestamp with time zone', false, 'v'),
  ('cut_shard_report', 'subject text, shard_id text', 'outcome text, dimension text, replayed boolean, sequence bigint, receipts bigint, more boolean, sealed boolean', false, 'v'),
  ('report_shard', 'subject text, shard_id text, sequence bigint DEFAULT NULL::bigint', 'sequence bigint, outcome text, dimension text, kid text, envelope text', false, 'v'),
  ('sweep_shards', 'batch_limit integer', 'expired bigint, unknown bigint, sealed bigint', false, 'v'),
  ('count_decisions', '', 'call text, outcome text, dimension text, replayed boolean, answers bigint, since timestamp with time zone', true, 'v'),
  ('transitions', '', 'state text, event text, outcome text, dimension text, next_state text, next_state_with_debt text, rule text', true, 'i'),
  ('outcomes', '', 'outcome text, dimension text, retry_kind text, rule text, meaning text', true, 'i'),
  ('sqlstates', '', 'sqlstate text, name text, meaning text', true, 'i'),
  ('verify_conservation', '', 'rule text, subject text, route text, generation bigint, epoch timestamp with time zone, detail text', true, 's'),
  ('verify_subjects', 'after_subject text DEFAULT NULL::text, last_subject text DEFAULT NULL::text',
    'rule text, subject text, route text, generation bigint, epoch timestamp with time zone, detail text', true, 's'),
  ('worker_status', '', 'job text, backend_type text, pid integer, status text, next_at timestamp with time zone, last_run_at timestamp with time zone, last_rows bigint, '
    'total_rows bigint, lag interval, failures integer, last_error text, last_error_at timestamp with time zone', true, 'v'),
  ('request_digest', 'request jsonb', NULL, false, 'i'),
  ('canonical_json', 'request jsonb', NULL, false, 'i'),
  ('structured_string', 'value text', NULL, false, 'i'),
  ('retry_after', 'retry_after_ms bigint', NULL, false, 'i'),
  ('rate_limit', 'route text, available bigint, reset_at timestamp with time zone, ledger_at timestamp with time zone, retry_after_ms bigint DEFAULT NULL::bigint', NULL, false, 'i'),
  ('rate_limit_policy', 'route text, cap bigint, unit text DEFAULT NULL::text, window_seconds bigint DEFAULT NULL::bigint', NULL, false, 'i'),
  ('http_headers', 'route text, available bigint, cap bigint, reset_at timestamp with time zone, ledger_at timestamp with time zone, retry_after_ms bigint DEFAULT NULL::bigint, '
    'unit text DEFAULT NULL::text, window_seconds bigint DEFAULT NULL::bigint, dialect text DEFAULT NULL::text', 'name text, value text', true, 'i'),
  ('problem_details', 'outcome text, dimension text, retry_after_ms bigint, retry_kind text, generation bigint, route text DEFAULT NULL::text', NULL, false, 'i'),
  ('ledger_clock', '', NULL, false, 'v');
UPDATE contract SET columns = replace(contract.columns, '@', receipt.columns) FROM receipt;

CREATE VIEW helpers.declared AS
SELECT p.proname AS name, p.oid, p.provolatile, p.proretset,
  (SELECT string_agg(concat_ws(' ', a.name, format_type(a.type, NULL),
            CASE WHEN d.default_text IS NOT NULL THEN 'DEFAULT ' || d.default_text END), ', ' ORDER BY a.n)
   FROM (SELECT row_number() OVER (ORDER BY n) AS n, name, type FROM unnest(coalesce(p.proallargtypes, p.proargtypes::oid[]), p.proargmodes, p.proargnames) WITH ORDINALITY AS u (type, mode, name, n)
         WHERE coalesce(mode, 'i') IN ('i', 'b')) a,
        LATERAL (SELECT pg_get_function_arg_default(p.oid, a.n::int)) d (default_text)) AS arguments,
  (SELECT string_agg(concat_ws(' ', name, format_type(type, NULL)), ', ' ORDER BY n)
   FROM unnest(p.proallargtypes, p.proargmodes, p.proargnames) WITH ORDINALITY AS u (type, mode, name, n) WHERE mode IN ('o', 'b', 't')) AS columns
FROM pg_proc p WHERE p.pronamespace = 'limitledger'::regnamespace;

SELECT is(coalesce(d.arguments, ''), c.arguments, c.name || ': arguments') FROM contract c LEFT JOIN declared d USING (name);
SELECT is(d.columns, c.columns, c.name || ': columns') FROM contract c LEFT JOIN declared d USING (name);
SELECT is(d.proretset, c.many, c.name || ': rows') FROM contract c LEFT JOIN declared d USING (name);
SELECT is(d.provolatile, c.volatile, c.name || ': volatility') FROM contract c LEFT JOIN declared d USING (name);
SELECT is((SELECT count(*) FROM declared d WHERE d.name = c.name), 1::bigint, c.name || ': one name, one arity') FROM contract c;
SELECT is((SELECT proparallel FROM pg_proc WHERE oid = d.oid), 'u'::"char", d.name || ': parallel unsafe')
FROM declared d JOIN contract c USING (name) WHERE c.volatile = 'v' AND d.name <> 'ledger_clock';
SELECT is_empty($$SELECT name FROM declared GROUP BY name HAVING count(*) > 1$$, 'no function is overloaded');
SELECT is((SELECT prokind FROM pg_proc p JOIN declared d USING (oid) WHERE d.name = 'maintain'), 'p'::"char", 'maintain is a procedure');

-- ---- Privileges -------------------------------------------------------------
SELECT is_empty($$SELECT p.oid::regprocedure FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
                  WHERE p.pronamespace = 'limitledger'::regnamespace AND a.grantee = 0$$, 'PUBLIC may execute nothing');
SELECT is_empty($$SELECT c.oid::regclass, a.privilege_type FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a
                  WHERE c.relnamespace = 'limitledger'::regnamespace AND c.relkind IN ('r', 'v', 'm', 'p', 'f', 'S') AND a.grantee = 0$$, 'PUBLIC may read nothing');
SELECT is_empty($$SELECT a.privilege_type FROM pg_namespace n, aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a
                  WHERE n.nspname = 'limitledger' AND a.grantee = 0$$, 'PUBLIC may not even look into the schema');
SELECT is_empty($$SELECT p.oid::regprocedure FROM pg_proc p WHERE p.pronamespace = 'limitledger'::regnamespace AND p.prosecdef
                  AND NOT coalesce(array_to_string(p.proconfig, ' ') ~ 'search_path=.*pg_temp$', false)$$,
  'a function with its owner''s rights has a path that ends in pg_temp (I2)');
SELECT is_empty($$SELECT c.relname FROM pg_class c JOIN pg_extension e ON e.extname = 'limitledger'
                  WHERE c.relnamespace = 'limitledger'::regnamespace AND c.relkind IN ('r', 'S') AND NOT c.oid = ANY (e.extconfig)$$,
  'every table is in the extension''s dump (J5)');
SELECT is_empty($$SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'limitledger'::regnamespace AND c.relkind = 'S'$$, 'no sequence is part of a key (A1)');
SELECT is_empty($$SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
                  WHERE c.relnamespace = 'limitledger'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND a.attcollation NOT IN (0, '"C"'::regcollation)
                  AND a.attname IN ('subject', 'route', 'reservation_id', 'operation_id')$$, 'keys are compared byte for byte (A1)');

CREATE ROLE limitledger_test_plain LOGIN;
GRANT USAGE ON SCHEMA helpers TO limitledger_test_plain;
SET LOCAL ROLE limitledger_test_plain;
SELECT throws_ok($$SELECT * FROM limitledger.reserve_capacity('t', 'chat', 'r', 1, sha256('r'))$$, '42501', NULL, 'a plain role may not reserve');
SELECT throws_ok($$SELECT * FROM limitledger.verify_conservation()$$, '42501', NULL, 'nor verify');
SELECT throws_ok($$SELECT * FROM limitledger.head_budget$$, '42501', NULL, 'nor read a table');
SELECT throws_ok($$UPDATE limitledger.head_budget SET available = 0$$, '42501', NULL, 'nor write one');
SELECT throws_ok($$SET limitledger.clock_override = '2030-01-01 00:00:00Z'$$, '42501', NULL, 'nor replace the clock');
RESET ROLE;

-- ---- Bad input ----------------------------------------------------------------
SELECT at('10:00:00');
SELECT publish('t', 'chat');
SELECT is(reserve('t', 'chat', 'r', 100), 'ACCEPTED RESERVED', 'a hold');
SELECT is(reserve('t', 'chat', 's', 100, 'o'), 'ACCEPTED STARTED', 'an execution');

SELECT is((SELECT outcome FROM limitledger.trust_key('limitledger-ed25519-public-v1 old PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw')), 'ACCEPTED', 'a key');

-- Each argument of each call, with good values for the others.
CREATE TEMP TABLE good (call text, n int, field text, value text, kind text) ON COMMIT DROP;
INSERT INTO good VALUES
  ('reserve_capacity', 1, 'subject', '''t''', 'subject'), ('reserve_capacity', 2, 'route', '''chat''', 'id'), ('reserve_capacity', 3, 'reservation_id', '''new''', 'id'),
  ('reserve_capacity', 4, 'units', '1', 'units'), ('reserve_capacity', 5, 'digest', 'sha256(''d'')', 'digest'), ('reserve_capacity', 6, 'region', '''eu''', 'optional'),
  ('reserve_capacity', 7, 'estimator_digest', 'sha256(''e'')', 'optional digest'), ('reserve_capacity', 8, 'deadline', 'NULL', ''), ('reserve_capacity', 9, 'priority', 'NULL', ''),
  ('reserve_capacity', 10, 'start_operation', '''o new''', 'optional'),
  ('start_reservation', 1, 'subject', '''t''', 'subject'), ('start_reservation', 2, 'reservation_id', '''r''', 'id'), ('start_reservation', 3, 'operation_id', '''o2''', 'id'),
  ('settle_usage', 1, 'subject', '''t''', 'subject'), ('settle_usage', 2, 'reservation_id', '''s''', 'id'), ('settle_usage', 3, 'operation_id', '''o''', 'id'),
  ('settle_usage', 4, 'actual', '1', 'actual'), ('settle_usage', 5, 'receipt_digest', 'sha256(''x'')', 'optional digest'), ('settle_usage', 6, 'source', '''operator''', 'source'),
  ('release_reservation', 1, 'subject', '''t''', 'subject'), ('release_reservation', 2, 'reservation_id', '''r''', 'id'),
  ('report_usage_unknown', 1, 'subject', '''t''', 'subject'), ('report_usage_unknown', 2, 'reservation_id', '''s''', 'id'), ('report_usage_unknown', 3, 'operation_id', '''o''', 'id'),
  ('report_progress', 1, 'subject', '''t''', 'subject'), ('report_progress', 2, 'reservation_id', '''s''', 'id'), ('report_progress', 3, 'operation_id', '''o''', 'id'),
  ('report_progress', 4, 'units', '1', 'actual'),
  ('extend_reservation', 1, 'subject', '''t''', 'subject'), ('extend_reservation', 2, 'reservation_id', '''r''', 'id'), ('extend_reservation', 3, 'extension_id', '''e''', 'id'),
  ('extend_reservation', 4, 'units', '1', 'actual'), ('extend_reservation', 5, 'until', '''2030-01-01 10:00:30+00''', ''),
  ('record_usage', 1, 'subject', '''t''', 'subject'), ('record_usage', 2, 'route', '''chat''', 'id'), ('record_usage', 3, 'operation_id', '''o ran''', 'id'),
  ('record_usage', 4, 'units', '1', 'actual'),
  ('import_usage', 1, 'subject', '''t''', 'subject'), ('import_usage', 2, 'route', '''chat''', 'id'), ('import_usage', 3, 'operation_id', '''o came''', 'id'),
  ('import_usage', 4, 'units', '1', 'actual'),
  ('freeze_route', 1, 'route', '''other''', 'id'), ('freeze_route', 2, 'reason', '''because''', 'reason'),
  ('unfreeze_route', 1, 'route', '''other''', 'id'), ('unfreeze_route', 2, 'reason', '''because''', 'reason'),
  ('get_reservation', 1, 'subject', '''t''', 'subject'), ('get_reservation', 2, 'reservation_id', '''r''', 'id'),
  ('resolve_reservation', 1, 'subject', '''t''', 'subject'), ('resolve_reservation', 2, 'reservation_id', '''lost''', 'id'), ('resolve_reservation', 3, 'digest', 'sha256(''d'')', 'digest'),
  ('get_budget', 1, 'subject', '''t''', 'subject'), ('get_budget', 2, 'route', '''chat''', 'id'),
  ('repay_debt', 1, 'subject', '''t''', 'subject'), ('repay_debt', 2, 'route', '''chat''', 'id'),
  ('grant_capacity', 1, 'subject', '''t''', 'subject'), ('grant_capacity', 2, 'route', '''chat''', 'id'), ('grant_capacity', 3, 'grant_id', '''g''', 'id'),
  ('grant_capacity', 4, 'units', '1', 'units'), ('grant_capacity', 5, 'reason', '''because''', 'reason'),
  ('freeze', 1, 'subject', '''t''', 'subject'), ('freeze', 2, 'route', '''chat''', 'id'), ('freeze', 3, 'reason', '''because''', 'reason'),
  ('unfreeze', 1, 'subject', '''t''', 'subject'), ('unfreeze', 2, 'route', '''chat''', 'id'), ('unfreeze', 3, 'reason', '''because''', 'reason'),
  ('acknowledge_recovery', 1, 'reason', '''because''', 'reason'),
  ('bind_subject', 1, 'role_name', '''limitledger_test_plain''', 'role'), ('bind_subject', 2, 'subject', '''t''', 'subject'),
  ('unbind_subject', 1, 'role_name', '''limitledger_test_plain''', 'role'), ('unbind_subject', 2, 'subject', '''t''', 'subject'), ('free_role', 1, 'role_name', '''limitledger_test_plain''', 'role'),
  ('trust_key', 1, 'public_key', '''limitledger-ed25519-public-v1 new 11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo''', 'line'), ('trust_key', 2, 'gateway', '''gw''', 'optional'),
  ('trust_key', 3, 'trusted_until', 'NULL', 'life'), ('distrust_key', 1, 'kid', '''old''', 'kid'), ('distrust_key', 2, 'reason', '''because''', 'reason'),
  ('purge_reservations', 1, 'batch_limit', '10', 'limit'), ('purge_reservations', 2, 'from_generation', '0', ''), ('purge_reservations', 3, 'from_instant', 'NULL', ''),
  ('purge_usage', 1, 'batch_limit', '10', 'limit'), ('purge_usage', 2, 'from_generation', '0', ''), ('purge_usage', 3, 'from_instant', 'NULL', ''),
  ('purge_budgets', 1, 'batch_limit', '10', 'limit'), ('purge_budgets', 2, 'from_generation', '0', ''), ('purge_budgets', 3, 'from_instant', 'NULL', ''),
  ('open_gateway', 1, 'gateway', '''gw''', 'id'), ('renew_boot', 1, 'reason', '''because''', 'reason'),
  ('shard_reserve', 1, 'subject', '''t''', 'subject'), ('shard_reserve', 2, 'route', '''chat''', 'id'), ('shard_reserve', 3, 'reservation_id', '''new''', 'id'),
  ('shard_reserve', 4, 'units', '1', 'units'), ('shard_reserve', 5, 'digest', 'sha256(''d'')', 'digest'), ('shard_reserve', 6, 'deadline', 'NULL', ''),
  ('shard_reserve', 7, 'start_operation', '''o new''', 'optional'),
  ('shard_start', 1, 'subject', '''t''', 'subject'), ('shard_start', 2, 'reservation_id', '''r''', 'id'), ('shard_start', 3, 'operation_id', '''o2''', 'id'),
  ('shard_settle', 1, 'subject', '''t''', 'subject'), ('shard_settle', 2, 'reservation_id', '''s''', 'id'), ('shard_settle', 3, 'operation_id', '''o''', 'id'),
  ('shard_settle', 4, 'actual', '1', 'actual'), ('shard_settle', 5, 'receipt_digest', 'sha256(''x'')', 'optional digest'), ('shard_settle', 6, 'source', '''operator''', 'source'),
  ('shard_release', 1, 'subject', '''t''', 'subject'), ('shard_release', 2, 'reservation_id', '''r''', 'id'),
  ('shard_report_unknown', 1, 'subject', '''t''', 'subject'), ('shard_report_unknown', 2, 'reservation_id', '''s''', 'id'), ('shard_report_unknown', 3, 'operation_id', '''o''', 'id'),
  ('seal_shard', 1, 'subject', '''t''', 'subject'), ('seal_shard', 2, 'shard_id', '''s''', 'id'),
  ('cut_shard_report', 1, 'subject', '''t''', 'subject'), ('cut_shard_report', 2, 'shard_id', '''s''', 'id'),
  ('report_shard', 1, 'subject', '''t''', 'subject'), ('report_shard', 2, 'shard_id', '''s''', 'id'), ('report_shard', 3, 'sequence', 'NULL', ''),
  ('sweep_shards', 1, 'batch_limit', '10', 'limit'),
  ('claim_expiring', 1, 'batch_limit', '10', 'limit'), ('finish_expiring', 1, 'batch_limit', '10', 'limit'), ('expire_reservations', 1, 'batch_limit', '10', 'limit'),
  ('claim_unknown_usage', 1, 'batch_limit', '10', 'limit'), ('claim_unknown_usage', 2, 'lease', '''1 minute''', ''), ('claim_unknown_usage', 3, 'reconciler', '''me''', 'optional'),
  ('expire_executions', 1, 'batch_limit', '10', 'limit'), ('repay_debtors', 1, 'batch_limit', '10', 'limit'), ('repay_debtors', 2, 'after_subject', '''''', ''), ('repay_debtors', 3, 'after_route', '''''', '');
CREATE TEMP TABLE bad (kind text, value text, code text, what text) ON COMMIT DROP;
INSERT INTO bad VALUES
  ('subject', 'NULL', 'LL101', 'NULL'), ('subject', '''''', 'LL102', 'empty'), ('subject', 'repeat(''x'', 257)', 'LL102', '257 bytes'), ('subject', 'repeat(''ä'', 129)', 'LL102', '258 bytes'), ('subject', '''*''', 'LL102', 'reserved'),
  ('id', 'NULL', 'LL101', 'NULL'), ('id', '''''', 'LL102', 'empty'), ('id', 'repeat(''x'', 257)', 'LL102', '257 bytes'), ('id', 'repeat(''ä'', 129)', 'LL102', '258 bytes'),
  ('optional', '''''', 'LL102', 'empty'), ('optional', 'repeat(''x'', 257)', 'LL102', '257 bytes'),
  ('units', 'NULL', 'LL101', 'NULL'), ('units', '0', 'LL103', 'zero'), ('units', '-1', 'LL103', 'negative'), ('units', '-9223372036854775808', 'LL103', 'the most negative'),
  ('actual', 'NULL', 'LL101', 'NULL'), ('actual', '-1', 'LL103', 'negative'), ('actual', '-9223372036854775808', 'LL103', 'the most negative'),
  ('digest', 'NULL', 'LL101', 'NULL'),
  ('source', '''''', 'LL106', 'empty'), ('source', '''nobody''', 'LL106', 'nobody'),
  ('role', 'NULL', 'LL101', 'NULL'), ('role', '''limitledger_test_missing''', 'LL106', 'missing'), ('role', '''public''', 'LL106', 'PUBLIC'),
  ('line', 'NULL', 'LL101', 'NULL'), ('line', '''''', 'LL402', 'empty'), ('line', '''limitledger-ed25519-public-v1 new''', 'LL402', 'short'),
  ('line', '''limitledger-ed25519-public-v1 new PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw''', 'LL402', 'a key with another id'),
  ('life', '''2030-01-01 10:00:00+00''', 'LL106', 'now'), ('life', '''-infinity''', 'LL106', 'long past'),
  ('kid', 'NULL', 'LL101', 'NULL'), ('kid', '''''', 'LL106', 'empty'), ('kid', '''OLD''', 'LL106', 'in another case'),
  ('reason', 'NULL', 'LL101', 'NULL'), ('reason', '''''', 'LL106', 'empty'),
  ('limit', 'NULL', 'LL101', 'NULL'), ('limit', '0', 'LL106', 'zero'), ('limit', '-1', 'LL106', 'negative');
INSERT INTO bad SELECT kind, value, 'LL104', what FROM unnest(ARRAY['digest', 'optional digest']) kind,
  (VALUES ('''''', 'empty'), ('''\x00''', 'one byte'), ('substr(sha256(''d''), 2)', '31 bytes'), ('sha256(''d'') || ''x''', '33 bytes'), ('''sha256:12''', 'short text'),
          ('convert_to(''sha256:'' || repeat(''g'', 64), ''UTF8'')', 'no hexadecimal text'), ('convert_to(''sha512:'' || repeat(''a'', 64), ''UTF8'')', 'another hash')) v (value, what);

SELECT is_misuse(format('%s(%s)', g.call, (SELECT string_agg(CASE WHEN o.n = g.n THEN b.value ELSE o.value END, ', ' ORDER BY o.n) FROM good o WHERE o.call = g.call)),
  b.code, g.field, format('%s: %s is %s', g.call, g.field, b.what))
FROM good g JOIN bad b USING (kind);

SELECT is_misuse('maintain(NULL)', 'LL101', 'batch_limit', 'maintain: batch_limit is NULL');
SELECT is_misuse('maintain(0)', 'LL106', 'batch_limit', 'maintain: batch_limit is zero');
SELECT is_misuse('maintain(10, NULL)', 'LL101', 'time_limit', 'maintain: time_limit is NULL');
SELECT is_misuse('maintain(10, ''-1 second'')', 'LL106', 'time_limit', 'maintain: time_limit is negative');

SELECT is_misuse('accept_emergency_shard(NULL)', 'LL101', 'envelope', 'accept_emergency_shard: envelope is NULL');
SELECT is_misuse('accept_emergency_shard(''x'')', 'LL404', 'gateway', 'accept_emergency_shard: no gateway');
SELECT is_misuse('renew_boot(''because'')', 'LL404', 'gateway', 'renew_boot: no gateway');

SELECT is_misuse('extend_reservation(''t'', ''r'', ''e'')', 'LL106', 'units', 'extend_reservation: nothing to extend');
SELECT is_misuse('extend_reservation(''t'', ''r'', ''e'', 0, NULL)', 'LL106', 'until', 'extend_reservation: no units, no deadline');

-- With nothing bad they all work, so that it was the bad value.
SELECT lives_ok(format('SELECT * FROM limitledger.%s(%s)', call, string_agg(value, ', ' ORDER BY n)), call || ': good values')
FROM good WHERE call NOT IN ('reserve_capacity', 'settle_usage', 'release_reservation', 'acknowledge_recovery') GROUP BY call ORDER BY call;
SELECT is_misuse('open_gateway(''another'')', 'LL404', 'gateway', 'open_gateway: another one');
SELECT lives_ok($$SELECT * FROM limitledger.reserve_capacity('t', 'chat', 'new', 1, sha256('d'), 'eu', sha256('e'), NULL, NULL, 'o new')$$, 'reserve_capacity: good values');

-- Texts as long as they may be, in bytes.
SELECT is((SELECT outcome FROM limitledger.reserve_capacity('t', 'chat', repeat('x', 256), 1, sha256('d'), start_operation => repeat('y', 256))), 'ACCEPTED', '256 bytes');
SELECT is((SELECT outcome FROM limitledger.reserve_capacity('t', 'chat', repeat('ä', 128), 1, sha256('d'))), 'ACCEPTED', '128 characters of two bytes');
SELECT is((SELECT outcome FROM limitledger.settle_usage('t', repeat('x', 256), repeat('y', 256), 0)), 'ACCEPTED', 'zero is a figure');

-- Digests in both forms are one.
SELECT is((SELECT replayed FROM limitledger.reserve_capacity('t', 'chat', 'r', 100, convert_to('sha256:' || upper(encode(sha256('r'), 'hex')), 'UTF8'))), true, 'a digest in its text form');
SELECT is(limitledger.request_digest('{"b": 1, "a": "x"}'), sha256('{"a":"x","b":1}'), 'request_digest hashes the canonical form');
SELECT throws_ok($$SELECT limitledger.request_digest('{"n": 9007199254740993}')$$, 'LL108', NULL, 'a number that is no double');

-- Misuse of the order of calls.
SELECT is(reserve('t', 'chat', 'fresh', 1), 'ACCEPTED RESERVED', 'a hold');
SELECT is_misuse($$settle_usage('t', 'fresh', 'o3', 1)$$, 'LL301', 'reservation', 'settle_usage of what was not started');
SELECT is((SELECT state FROM limitledger.get_reservation('t', 'fresh')), 'RESERVED', 'leaves it as it was');
SELECT is_misuse($$acknowledge_recovery('because')$$, 'LL403', 'limitledger.witness_file', 'acknowledge_recovery without a witness file');

-- The clock for tests.
SELECT throws_ok($$SET LOCAL limitledger.clock_override = '2030-01-01 00:00:00'$$, '22023', NULL, 'a clock without an offset');
SELECT throws_ok($$SET LOCAL limitledger.clock_override = 'tomorrow'$$, '22023', NULL, 'a clock that is no instant');
SELECT is(limitledger.ledger_clock(), '2030-01-01 10:00:00+00'::timestamptz, 'the clock that was set');
SET LOCAL limitledger.clock_override = '';
SELECT ok(abs(extract(epoch FROM clock_timestamp() - limitledger.ledger_clock())) < 5, 'and the server''s');

-- Lists that the documentation prints.
SELECT is((SELECT count(*) FROM limitledger.sqlstates() WHERE sqlstate !~ '^LL[0-9]{3}$' OR name IS NULL OR meaning IS NULL), 0::bigint, 'sqlstates() names each of class LL');
SELECT results_eq($$SELECT sqlstate FROM limitledger.sqlstates() ORDER BY 1$$,
  ARRAY['LL101', 'LL102', 'LL103', 'LL104', 'LL105', 'LL106', 'LL107', 'LL108', 'LL201', 'LL202', 'LL203', 'LL204', 'LL205', 'LL206', 'LL301', 'LL302', 'LL401', 'LL402', 'LL403', 'LL404', 'LL901', 'LL902'], 'and no other');
SELECT results_eq($$SELECT DISTINCT outcome FROM limitledger.outcomes() ORDER BY 1$$, ARRAY['ACCEPTED', 'CONFLICT', 'REFUSED', 'UNENFORCED', 'UNKNOWN'], 'five outcomes');
SELECT is_empty($$SELECT t.outcome, t.dimension FROM limitledger.transitions() t EXCEPT SELECT o.outcome, o.dimension FROM limitledger.outcomes() o$$, 'transitions() uses the words of outcomes()');
SELECT is_empty($$SELECT outcome, dimension FROM limitledger.repay_debt('nobody', 'nowhere') UNION SELECT outcome, dimension FROM limitledger.unfreeze('nobody', 'nowhere', 'why')
                  UNION SELECT outcome, dimension FROM limitledger.freeze('nobody', 'nowhere', 'why') UNION SELECT outcome, dimension FROM limitledger.grant_capacity('nobody', 'nowhere', 'g', 1, 'why')
                  EXCEPT SELECT outcome, dimension FROM limitledger.outcomes()$$, 'and so do the calls about a pair');
SELECT sound('at the end');

SELECT * FROM finish();
ROLLBACK;
