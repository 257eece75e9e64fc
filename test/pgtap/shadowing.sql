-- Names that a caller puts in the way (I2): a plain role that may call everything makes
-- temporary tables named like each table of the ledger, of the catalogue and like the
-- built-in types, and functions and operators like those that the ledger's functions use.
-- Its path finds them first.  Every call answers as if they were not there.
--
-- A shadow raises an error, or lacks the columns asked for: whatever meets one says so.
-- The calls run twice from the same state, with the shadows and without, and every
-- column of every answer is compared.
--
-- Fails when: a function has no fixed path, or one that does not end in pg_temp; a name
-- in C or in maintain() is looked up by the path; a function that is not for callers has
-- its owner's rights; or the plain role reaches a table but through a call.

CREATE ROLE limitledger_test_caller;
CREATE ROLE limitledger_test_other LOGIN;
CREATE SCHEMA shadow;

-- allow grants all that can be granted, and the right to make things.
CREATE FUNCTION shadow.allow() RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  view text;
BEGIN
  GRANT CREATE ON SCHEMA public TO limitledger_test_caller;
  GRANT USAGE ON SCHEMA shadow TO limitledger_test_caller;
  GRANT SELECT ON ALL TABLES IN SCHEMA shadow TO limitledger_test_caller;
  GRANT USAGE ON SCHEMA limitledger TO limitledger_test_caller WITH GRANT OPTION;
  GRANT EXECUTE ON ALL ROUTINES IN SCHEMA limitledger TO limitledger_test_caller WITH GRANT OPTION;
  FOR view IN SELECT DISTINCT b.signature FROM limitledger.bundles() b WHERE b.object_kind = 'view' LOOP
    EXECUTE format('GRANT SELECT ON %s TO limitledger_test_caller WITH GRANT OPTION', view);
  END LOOP;
END $$;

-- Every word of the ledger's functions.
CREATE TABLE shadow.word AS
SELECT DISTINCT m[1] AS word FROM pg_proc q, regexp_matches(q.prosrc, '\m[a-z_0-9]+', 'g') m WHERE q.pronamespace = 'limitledger'::regnamespace;

-- in_public and in_temp make the shadows, as whoever calls them.
CREATE FUNCTION shadow.in_public() RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET check_function_bodies = off AS $$
DECLARE
  one record;
  body CONSTANT text := 'LANGUAGE plpgsql AS $b$BEGIN RAISE EXCEPTION ''a shadow was met''; END$b$';
  types CONSTANT oid[] := '{bool,int4,int8,float8,numeric,text,name,bytea,json,jsonb,timestamp,timestamptz,interval,oid,regclass,"\"char\"",_text,_bytea}'::regtype[];
BEGIN
  -- Operators between the types that the ledger has to do with.
  FOR one IN
    SELECT o.oprname, o.oprleft::regtype AS l, o.oprright::regtype AS r, o.oprresult::regtype AS result, format('public.shadow_%s', o.oid) AS name
    FROM pg_operator o
    WHERE o.oprnamespace = 'pg_catalog'::regnamespace AND o.oprleft = ANY (types) AND o.oprright = ANY (types)
  LOOP
    EXECUTE format('CREATE FUNCTION %s(%s, %s) RETURNS %s %s', one.name, one.l, one.r, one.result, body);
    EXECUTE format('CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = %s)', one.oprname, one.l, one.r, one.name);
  END LOOP;

  -- Functions that the ledger's functions name; one for an exact type is found before
  -- a VARIADIC "any" or another that would need a cast.
  FOR one IN
    SELECT p.proname, array_to_string(p.proargtypes::regtype[], ', ') AS arguments, format_type(p.prorettype, NULL) AS result
    FROM pg_proc p
    WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND NOT p.proretset AND p.prorettype = ANY (types) AND p.proargtypes::oid[] <@ types
    UNION
    SELECT v.name, concat_ws(', ', v.first, nullif(array_to_string(array_fill(t.type, ARRAY[n]), ', '), '')), result
    FROM (VALUES ('format', 'text', 'text', 1), ('concat_ws', 'text', 'text', 1), ('jsonb_build_object', NULL, 'jsonb', 2), ('jsonb_build_array', NULL, 'jsonb', 1))
      v (name, first, result, least), unnest(ARRAY['text', 'bigint', 'integer', 'name', 'jsonb']) t (type), generate_series(v.least, 6) n
  LOOP
    CONTINUE WHEN NOT EXISTS (SELECT FROM shadow.word w WHERE w.word = one.proname);
    EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS %s %s', one.proname, one.arguments, one.result, body);
  END LOOP;
END $$;

-- Relations of the ledger and of the catalogue, and types: a relation is a type, too.
CREATE FUNCTION shadow.in_temp() RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET check_function_bodies = off AS $$
DECLARE
  one record;
BEGIN
  FOR one IN
    SELECT c.relname AS name FROM pg_class c
    WHERE c.relkind IN ('r', 'v') AND (c.relnamespace = 'limitledger'::regnamespace OR c.relnamespace = 'pg_catalog'::regnamespace
      AND (c.relname IN ('pg_class', 'pg_proc', 'pg_policy', 'pg_authid') OR c.relname IN (SELECT w.word FROM shadow.word w)))
    UNION
    SELECT t.typname FROM pg_type t WHERE t.oid = ANY ('{bool,int4,int8,float8,numeric,text,name,bytea,json,jsonb,timestamp,timestamptz,interval,oid,record,regclass,regproc,regprocedure,regnamespace}'::regtype[])
  LOOP
    EXECUTE format('CREATE TEMPORARY TABLE %I (shadow integer)', one.name);
  END LOOP;
END $$;

-- ---- The calls --------------------------------------------------------------------------
CREATE FUNCTION shadow.document(route text, fields jsonb DEFAULT '{}') RETURNS jsonb LANGUAGE sql
SET search_path = pg_catalog, pg_temp AS $$
  SELECT jsonb_build_object('schema', 'admissionBudget.v1', 'subject', 't', 'route', route, 'region', '*', 'unit', 'tokens',
    'refill', '{"kind": "continuous", "units": 10, "interval": "1 second"}'::jsonb, 'burst', 1000, 'epoch', '{"calendar": "day", "timeZone": "Europe/Berlin"}'::jsonb,
    'estimatorDigests', '["sha256:0000000000000000000000000000000000000000000000000000000000000002"]'::jsonb,
    'largestReservation', 1000, 'holdTtl', '30 seconds', 'executionTtl', '30 seconds', 'hardExecutionLimit', 1000000,
    'maximumOverdraft', 5000, 'priority', 0, 'weight', 1, 'fairnessBudget', 0, 'retention', '1 day') || fields
$$;
\set d 'sha256:0000000000000000000000000000000000000000000000000000000000000001'
\set e 'sha256:0000000000000000000000000000000000000000000000000000000000000002'

-- Each answers, or says the error that its line ends with.  @d and @e are digests, and
-- @chat and the like the documents of a route.
CREATE TABLE shadow.call (n integer GENERATED ALWAYS AS IDENTITY, clock text, call text, error text);
INSERT INTO shadow.call (clock, call, error)
SELECT '2030-01-01 ' || clock || '+00', replace(replace(call, '@d', :'d'), '@e', :'e'), error FROM (VALUES
  ('10:00:00', $$publish_policy('@chat', false)$$, NULL),
  ('10:00:00', $$shadow_policy(3, 'try it')$$, NULL),
  ('10:00:00', $$canary_policy(3, 10, 'try it', 'pair')$$, NULL),
  ('10:00:00', $$canary_policy(3, 100, 'try it')$$, 'LL106 percent must be between 1 and 99'),
  ('10:00:00', $$activate_policy(3)$$, NULL),
  ('10:00:00', $$publish_policy('@chat')$$, NULL),
  ('10:00:00', $$policy_diff('@more')$$, NULL),
  ('10:00:00', $$publish_policy('@more')$$, NULL),
  ('10:00:00', $$rollback_policy(3, 'better')$$, NULL),
  ('10:00:00', $$publish_policy('@gone')$$, NULL),
  ('10:00:00', $$drain_policy(6, 'unused')$$, NULL),
  ('10:00:00', $$retire_policy(6)$$, NULL),
  ('10:00:00', $$publish_policy('{"schema": "admissionBudget.v1", "burst": 1}')$$, 'LL201 policy field subject is missing'),
  ('10:00:00', $$publish_policy('{"schema": "admissionBudget.v2"}')$$, 'LL203 policy field schema must be "admissionBudget.v1"'),
  ('10:00:00', $$drain_policy(99, 'none')$$, 'LL206 generation 99 does not exist'),
  ('10:00:00', $$reserve_capacity('t', 'chat', 'r1', 100, '@d', 'eu', '@e', '2030-01-01 10:00:01+00', 3)$$, NULL),
  ('10:00:00', $$reserve_capacity('t', 'chat', 'r1', 100, '@d', 'eu', '@e')$$, NULL),
  ('10:00:00', $$reserve_capacity('t', 'chat', 'r1', 101, '@d', 'eu', '@e')$$, NULL),
  ('10:00:00', $$reserve_capacity('t', 'chat', 'r2', 100, '@d', 'eu', '@e', start_operation => 'o2')$$, NULL),
  ('10:00:00', $$reserve_capacity('t', 'chat', 'r3', 100, '@d', 'eu', '@e')$$, NULL),
  ('10:00:00', $$reserve_capacity('t', 'chat', 'r4', 100, '@d', 'eu', '@e', start_operation => 'o4')$$, NULL),
  ('10:00:00', $$reserve_capacity('t', 'chat', 'r5', 900, '@d', 'eu', '@e')$$, NULL),
  ('10:00:00', $$reserve_capacity('t', 'chat', 'r5', -1, '@d', 'eu', '@e')$$, 'LL103 units must be at least 1'),
  ('10:00:00', $$reserve_capacity_batch('{t,t,t}', '{chat,chat,chat}', '{b1,b2,b3}', '{10,10,10}', '{@d,@d,@d}', NULL, '{@e,@e,@e}')$$, NULL),
  ('10:00:00', $$start_reservation('t', 'r1', 'o1')$$, NULL),
  ('10:00:00', $$start_reservation_batch('{t,t}', '{b1,b2}', '{ob1,ob2}')$$, NULL),
  ('10:00:00', $$extend_reservation('t', 'r1', 'e1', 5)$$, NULL),
  ('10:00:00', $$report_progress('t', 'r1', 'o1', 50)$$, NULL),
  ('10:00:00', $$report_usage_unknown('t', 'r1', 'o1')$$, NULL),
  ('10:00:00', $$settle_usage('t', 'r1', 'o1', 60, '@d', 'executor')$$, NULL),
  ('10:00:00', $$settle_usage_batch('{t,t}', '{b1,b2}', '{ob1,ob2}', '{5,15}')$$, NULL),
  ('10:00:00', $$release_reservation_batch('{t}', '{b3}')$$, NULL),
  ('10:00:00', $$resolve_reservation('t', 'lost', '@d')$$, NULL),
  ('10:00:00', $$get_reservation('t', 'r1')$$, NULL),
  ('10:00:00', $$get_reservation_document('t', 'r1')$$, NULL),
  ('10:00:00', $$get_budget('t', 'chat')$$, NULL),
  ('10:00:00', $$record_usage('t', 'chat', 'ran unreserved', 800)$$, NULL),
  ('10:00:00', $$record_usage_batch('{t}', '{chat}', '{ran as well}', '{1}')$$, NULL),
  ('10:00:00', $$import_usage('t', 'chat', 'late', 1)$$, NULL),
  ('10:00:00', $$import_usage_batch('{t,t}', '{swept,owing}', '{ran before,late as well}', '{5,6}')$$, NULL),
  ('10:00:00', $$freeze_route('chat', 'stop')$$, NULL),
  ('10:00:00', $$unfreeze_route('chat', 'go on')$$, NULL),
  ('10:00:00', $$freeze_route('chat', NULL)$$, 'LL101 reason must not be null'),
  ('10:00:00', $$freeze('t', 'chat', 'look')$$, NULL),
  ('10:00:01', $$repay_debt('t', 'chat')$$, NULL),
  ('10:00:01', $$grant_capacity('t', 'chat', 'g1', 500, 'more')$$, NULL),
  ('10:00:01', $$unfreeze('t', 'chat', 'seen')$$, NULL),
  ('10:00:01', $$reserve_capacity('t', 'chat', 'r6', 100, '@d', 'eu', '@e')$$, NULL),
  ('10:00:01', $$release_reservation('t', 'r6')$$, NULL),
  ('10:00:01', $$reserve_capacity('t', 'chat', 'r7', 100, '@d', 'eu', '@e')$$, NULL),
  ('10:00:31', $$claim_expiring(1)$$, NULL),
  ('10:00:31', $$finish_expiring(1)$$, NULL),
  ('10:00:31', $$expire_reservations()$$, NULL),
  ('10:00:31', $$expire_executions(10)$$, NULL),
  ('10:00:31', $$record_usage('t', 'chat', 'ran again', 3000)$$, NULL),
  ('10:00:32', $$repay_debtors(10, '', '')$$, NULL),
  ('10:00:32', $$claim_unknown_usage(1, '1 minute', 'a')$$, NULL),
  ('10:00:32', $$claim_unknown_usage()$$, NULL),
  ('10:00:32', $$count_decisions()$$, NULL),
  ('10:00:32', $$purge_reservations(10, 0, '-infinity')$$, NULL),
  ('10:00:32', $$purge_usage(10, 0, '-infinity')$$, NULL),
  ('10:00:32', $$purge_budgets(10, 0, '-infinity')$$, NULL),
  ('10:00:32', $$verify_conservation()$$, NULL),
  ('10:00:32', $$verify_subjects('a', 'z')$$, NULL),
  ('10:00:32', $$worker_status()$$, NULL),
  ('10:00:32', $$bundles()$$, NULL),
  ('10:00:32', $$bundle_privileges('limitledger_test_other', 'gateway')$$, NULL),
  ('10:00:32', $$grant_bundle('limitledger_test_other', 'gateway')$$, NULL),
  ('10:00:32', $$bundle_privileges('limitledger_test_other', 'gateway')$$, NULL),
  ('10:00:32', $$revoke_bundle('limitledger_test_other', 'gateway')$$, NULL),
  ('10:00:32', $$grant_bundle('limitledger_test_other', 'owner')$$, 'LL106 bundle is not known'),
  ('10:00:32', $$bind_subject('limitledger_test_other', 't')$$, NULL),
  ('10:00:32', $$bind_subject('limitledger_test_other', 'u')$$, NULL),
  ('10:00:32', $$bind_subject('limitledger_test_other', '*')$$, 'LL102 subject must have 1 to 256 bytes, and not be "*"'),
  ('10:00:32', $$bind_subject('limitledger_test_missing', 't')$$, 'LL106 role_name is not a role'),
  ('10:00:32', $$unbind_subject('limitledger_test_other', 't')$$, NULL),
  ('10:00:32', $$subject_bindings$$, NULL),
  ('10:00:32', $$free_role('limitledger_test_other')$$, NULL),
  ('10:00:32', $$open_gateway('gw')$$, NULL),
  ('10:00:32', $$open_gateway('other')$$, 'LL404 gateway is not the one that this database is already'),
  ('10:00:32', $$accept_emergency_shard('no envelope')$$, NULL),
  ('10:00:32', $$shard_reserve('t', 'away', 'a1', 10, '@d', start_operation => 'oa1')$$, NULL),
  ('10:00:32', $$shard_reserve('t', 'away', 'a2', 10, '@d')$$, NULL),
  ('10:00:32', $$shard_reserve_batch('{t,t,u}', '{away,away,away}', '{a3,a4,a5}', '{10,10000,10}', '{@d,@d,@d}')$$, NULL),
  ('10:00:32', $$shard_start('t', 'a2', 'oa2')$$, NULL),
  ('10:00:32', $$shard_report_unknown('t', 'a2', 'oa2')$$, NULL),
  ('10:00:32', $$shard_settle('t', 'a1', 'oa1', 15, '@d', 'operator')$$, NULL),
  ('10:00:32', $$shard_settle_batch('{t,t}', '{a1,a2}', '{oa1,oa2}', '{15,5}')$$, NULL),
  ('10:00:32', $$shard_release('t', 'a3')$$, NULL),
  ('10:00:32', $$cut_shard_report('t', 'away')$$, NULL),
  ('10:00:32', $$cut_shard_report('t', 'away')$$, NULL),
  ('10:00:32', $$report_shard('t', 'away')$$, NULL),
  ('10:00:32', $$sweep_shards(10)$$, NULL),
  ('10:00:32', $$seal_shard('t', 'away')$$, NULL),
  ('10:00:32', $$renew_boot('a drill') b, LATERAL (SELECT b.outcome, b.sealed, b.unknown)$$, NULL),
  ('10:00:32', $$local_shards$$, NULL),
  ('10:00:32', $$shard_reservations$$, NULL),
  ('10:00:32', $$local_reports$$, NULL),
  ('10:00:32', $$register_gateway('gw', 'limitledger-ed25519-public-v1 gw.a PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw')$$, NULL),
  ('10:00:32', $$announce_boot('gw', '00000000-0000-4000-8000-00000000000a')$$, NULL),
  ('10:00:32', $$announce_boot('gw', '00000000-0000-4000-8000-00000000000b')$$, NULL),
  ('10:00:32', $$issue_emergency_shard('t', 'chat', 'sh', 'gw', 1)$$, NULL),
  ('10:00:32', $$sign_emergency_shard('t', 'sh')$$, NULL),
  ('10:00:32', $$reconcile_emergency_shard('t', 'no envelope')$$, NULL),
  ('10:00:32', $$grant_legacy_share('t', 'chat', 'share', 1, 'because')$$, NULL),
  ('10:00:32', $$report_legacy_share('t', 'share', '{a}', '{1}', '{1}')$$, NULL),
  ('10:00:32', $$write_off_shard('t', 'share', 'because')$$, NULL),
  ('10:00:32', $$gateways$$, NULL),
  ('10:00:32', $$emergency_shards$$, NULL),
  ('10:00:32', $$shard_reports$$, NULL),
  ('10:00:32', $$shard_receipts$$, NULL),
  ('10:00:32', $$recovery_status()$$, NULL),
  ('10:00:32', $$acknowledge_recovery('because')$$, 'LL403 limitledger.witness_file is not set'),
  ('10:00:32', $$trust_key('limitledger-ed25519-public-v1 a 11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo', 'gw')$$, NULL),
  ('10:00:32', $$trust_key('limitledger-ed25519-public-v1 a 11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo', 'gw')$$, NULL),
  ('10:00:32', $$trust_key('limitledger-ed25519-public-v1 b 11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo', 'gw')$$, 'LL402 public_key has another id already'),
  ('10:00:32', $$distrust_key('a', 'because')$$, NULL),
  ('10:00:32', $$distrust_key('b', 'because')$$, 'LL106 kid is not the id of a key'),
  ('10:00:32', $$trusted_keys$$, NULL),
  ('10:00:32', $$signing_key_id()$$, 'LL401 limitledger.signing_key_file is not set'),
  ('10:00:32', $$open_emergency_shard('a.b.c')$$, NULL),
  ('10:00:32', $$seal_shard_report('t', 's', 1)$$, '42501 permission denied for table local_report'),
  ('10:00:32', $$ledger_clock()$$, NULL),
  ('10:00:32', $$transitions()$$, NULL),
  ('10:00:32', $$outcomes()$$, NULL),
  ('10:00:32', $$sqlstates()$$, NULL),
  ('10:00:32', $$canonical_json('{"b": [1, 1.50, "é"], "a": null}')$$, NULL),
  ('10:00:32', $$request_digest('{"b": 1, "a": 2}')$$, NULL),
  ('10:00:32', $$structured_string('a "route" é')$$, NULL),
  ('10:00:32', $$retry_after(1500)$$, NULL),
  ('10:00:32', $$rate_limit('chat', 10, '2030-01-01 10:00:10+00', '2030-01-01 10:00:00+00', 1500)$$, NULL),
  ('10:00:32', $$rate_limit_policy('chat', 1000, 'tokens', 60)$$, NULL),
  ('10:00:32', $$http_headers('chat', 10, 1000, '2030-01-01 10:00:10+00', '2030-01-01 10:00:00+00', 1500, 'tokens', 60, 'openai')$$, NULL),
  ('10:00:32', $$http_headers('chat', 10, 1000, '2030-01-01 10:00:10+00', '2030-01-01 10:00:00+00', 1500, 'tokens', 60, 'anthropic')$$, NULL),
  ('10:00:32', $$problem_details('REFUSED', 'available', 1500, 'refill', 5, 'chat')$$, NULL),
  ('10:00:32', $$policies$$, NULL),
  ('10:00:32', $$rollout_status$$, NULL),
  ('10:00:32', $$rollout_totals$$, NULL),
  ('10:00:32', $$budgets$$, NULL),
  ('10:00:32', $$reservations$$, NULL),
  ('10:00:32', $$unreserved_usage$$, NULL),
  ('10:00:32', $$capacity_grants$$, NULL),
  ('10:00:32', $$operator_actions$$, NULL),
  ('10:00:32', $$open_reservations$$, NULL),
  ('10:00:32', $$unknown_usage$$, NULL),
  ('10:00:32', $$expired_unstarted$$, NULL),
  ('10:00:32', $$frozen_pairs$$, NULL),
  ('10:00:32', $$frozen_routes$$, NULL),
  ('10:00:32', $$pairs_in_debt$$, NULL),
  ('10:00:32', $$ledger_totals$$, NULL),
  ('10:00:32', $$unknown_usage_convergence$$, NULL),
  ('10:00:32', $$decision_counters$$, NULL),
  ('10:00:32', $$workers$$, NULL)
  ) v (clock, call, error);
UPDATE shadow.call SET call = replace(replace(replace(call, '@chat', shadow.document('chat')::text), '@more', shadow.document('chat', '{"burst": 2000}')::text),
  '@gone', shadow.document('gone')::text);

-- set_clock moves on to another instant, where what was drained counts as another
-- transaction's draining.
CREATE FUNCTION shadow.set_clock(instant text) RETURNS void LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
  UPDATE limitledger.policy SET drained_by = NULL WHERE drained_by IS NOT NULL;
  SELECT set_config('limitledger.clock_override', instant, true);
$$;

-- meet runs a call by a path, and returns all that it says.
CREATE FUNCTION shadow.meet(call text, path text) RETURNS text LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  statement CONSTANT text := 'SELECT pg_catalog.json_agg(r ORDER BY r::pg_catalog.text COLLATE pg_catalog."C")::pg_catalog.text FROM limitledger.' || call || ' r';
  said text;
BEGIN
  PERFORM set_config('search_path', path, true);
  EXECUTE statement INTO said;
  PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
  RETURN said;
EXCEPTION WHEN OTHERS THEN
  RETURN 'error ' || SQLSTATE || ' ' || SQLERRM;
END $$;

CREATE FUNCTION shadow.meet_all(path text) RETURNS jsonb LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  one record;
  said jsonb := '{}';
BEGIN
  FOR one IN SELECT * FROM shadow.call ORDER BY n LOOP
    PERFORM shadow.set_clock(one.clock);
    said := said || jsonb_build_object(one.n, shadow.meet(one.call, path));
  END LOOP;
  RETURN said;
END $$;

-- ---- maintain() ends transactions, so it comes before the one that holds the rest --------
SELECT shadow.allow() \gset
SELECT shadow.document('swept', '{"estimatorDigests": []}') AS swept, shadow.document('owing') AS owing \gset
\set hostile 'pg_temp, public, pg_catalog'
DO 'BEGIN PERFORM limitledger.ledger_clock(); END';   -- the library, and so its settings
SET limitledger.clock_override = '2030-01-01 10:00:00+00';
SET ROLE limitledger_test_caller;
SELECT shadow.in_public(), shadow.in_temp() \gset
SET search_path = :hostile;
SELECT generation FROM limitledger.publish_policy(:'swept') \gset
SELECT generation FROM limitledger.publish_policy(:'owing') \gset
SELECT outcome FROM limitledger.reserve_capacity('t', 'swept', 'held', 10, :'d') \gset
SELECT outcome FROM limitledger.reserve_capacity('t', 'swept', 'ran', 10, :'d', start_operation => 'ran') \gset
SELECT outcome FROM limitledger.record_usage('t', 'owing', 'owed', 3000) \gset
RESET ROLE;
SET limitledger.clock_override = '2030-01-01 10:01:00+00';
SET ROLE limitledger_test_caller;
\set ON_ERROR_STOP off
\set maintain_claimed -
CALL limitledger.maintain() \gset maintain_
\set maintain_said :LAST_ERROR_MESSAGE
\set ON_ERROR_STOP on
RESET ROLE;
SET search_path = pg_catalog, pg_temp;
DISCARD TEMP;
DROP OWNED BY limitledger_test_caller;
RESET search_path;
RESET limitledger.clock_override;

BEGIN;
\ir helpers.psql
SELECT * FROM no_plan();

SELECT is(:'maintain_claimed'::text, '1', 'maintain() claims what has run out: ' || :'maintain_said');
SELECT is((SELECT string_agg(reservation_id || ' ' || state, ', ' ORDER BY 1) FROM limitledger.reservations), 'held EXPIRED, ran USAGE_UNKNOWN', 'ends it, and what ran too long');
SELECT is((SELECT overdraft_repaid FROM limitledger.head_budget WHERE route = 'owing'), 600::bigint, 'and repays');

-- ---- With the shadows and without -------------------------------------------------------
-- A gateway, whose boot is the same each time.
DO $$ BEGIN
  IF to_regproc('limitledger.open_emergency_shard') IS NULL THEN
    CREATE FUNCTION limitledger.open_emergency_shard(envelope text, OUT problem text, OUT member text) LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS 'SELECT ''parts''::text, NULL::text';
  END IF;
END $$;
SELECT at('10:00:00') \gset
SELECT limitledger.open_gateway('gw') \gset
SELECT accepted('t', 'away', 'away') \gset
SELECT shadow.allow() \gset
SAVEPOINT before;
SET LOCAL ROLE limitledger_test_caller;
SELECT shadow.in_public(), shadow.in_temp() \gset
SELECT shadow.meet_all(:'hostile') AS shadowed \gset
ROLLBACK TO before;

-- A path that does not name pg_temp is searched there first for relations and types.
SET LOCAL ROLE limitledger_test_caller;
SELECT shadow.in_temp() \gset
SELECT shadow.meet_all('public') AS implicit \gset
ROLLBACK TO before;

SET LOCAL ROLE limitledger_test_caller;
SELECT shadow.meet_all('pg_catalog') AS clear \gset
RESET ROLE;

SELECT is(:'shadowed'::jsonb ->> n::text, :'clear'::jsonb ->> n::text, 'all shadows first: ' || call) FROM shadow.call ORDER BY n;
SELECT is(:'implicit'::jsonb ->> n::text, :'clear'::jsonb ->> n::text, 'temporary ones first: ' || call) FROM shadow.call ORDER BY n;
SELECT is(substring(:'clear'::jsonb ->> n::text FROM '^error (.*)'), error, 'as it should be: ' || call) FROM shadow.call ORDER BY n;
SELECT is_empty($$SELECT b.signature FROM (SELECT signature, substring(signature FROM '^limitledger\.(\w+)') AS name FROM limitledger.bundles() WHERE object_kind <> 'schema') b
  WHERE b.name NOT IN ('maintain', 'signing_key_id', 'acknowledge_recovery') AND NOT EXISTS (SELECT FROM shadow.call c WHERE c.error IS NULL AND c.call ~ ('^' || b.name || '\M'))$$, 'nothing that a bundle gives is left out');

-- The shadows do shadow: the same calls, said without a schema, meet them.
SAVEPOINT proof;
SET LOCAL ROLE limitledger_test_caller;
SELECT shadow.in_public(), shadow.in_temp() \gset
SET LOCAL search_path = pg_temp, public, pg_catalog;
\set ON_ERROR_STOP off
SAVEPOINT one;
SELECT pg_catalog.count(shadow) AS met_relation FROM pg_class \gset
SELECT 1 = 1 AS never \gset
\set met_operator_by_path :LAST_ERROR_MESSAGE
ROLLBACK TO one;
SELECT octet_length('A'::pg_catalog.text) AS never \gset
\set met_function :LAST_ERROR_MESSAGE
ROLLBACK TO one;
SELECT '2030-01-01'::timestamptz AS never \gset
\set met_type :LAST_ERROR_MESSAGE
\set ON_ERROR_STOP on
ROLLBACK TO proof;
SELECT is(:'met_relation'::text, '0', 'a relation is found first');
SELECT is(:'met_operator_by_path'::text, 'a shadow was met', 'so is an operator');
SELECT is(:'met_function'::text, 'a shadow was met', 'and a function');
SELECT matches(:'met_type'::text, '^malformed record literal', 'and a type');

-- ---- What is fixed -----------------------------------------------------------------------
SELECT ok(array_to_string(p.proconfig, '; ') IN ('search_path=pg_catalog, limitledger, pg_temp', 'search_path=pg_catalog, pg_temp'), p.proname || ' has a fixed path, pg_temp last')
FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
WHERE p.pronamespace = 'limitledger'::regnamespace AND (p.prosecdef OR l.lanname <> 'c') AND p.prokind = 'f' ORDER BY p.proname;

-- ---- By no other way ------------------------------------------------------------------------
GRANT USAGE ON SCHEMA helpers TO limitledger_test_caller;
CREATE VIEW helpers.target AS
SELECT c.relname AS name, (SELECT attname FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 ORDER BY a.attnum LIMIT 1) AS field
FROM pg_class c WHERE c.relnamespace = 'limitledger'::regnamespace AND c.relkind = 'r';
GRANT SELECT ON helpers.target TO limitledger_test_caller;
SET LOCAL ROLE limitledger_test_caller;
SELECT throws_ok(format(statement, name, field), '42501', NULL, format(statement, name, field))
FROM target, unnest(ARRAY['SELECT FROM limitledger.%1$I', 'SELECT %2$I FROM limitledger.%1$I', 'INSERT INTO limitledger.%1$I (%2$I) VALUES (DEFAULT)',
  'UPDATE limitledger.%1$I SET %2$I = DEFAULT', 'DELETE FROM limitledger.%1$I', 'TRUNCATE limitledger.%1$I',
  'LOCK TABLE limitledger.%1$I IN SHARE MODE', 'SELECT FROM limitledger.%1$I FOR UPDATE']) statement
ORDER BY name, statement;
-- What the calls are made of has the rights of its caller.
SELECT throws_ok('SELECT limitledger.' || call, '42501', NULL, call || ' opens nothing')
FROM unnest(ARRAY[$$policy_lock(1, 'me')$$, $$policy_touch('chat')$$, $$policy_instant(NULL)$$, $$policy_in_force('t', 'chat')$$, $$policy_left(NULL)$$,
  $$policy_overtaken_by(NULL)$$, $$policy_record('grant', NULL, 'me')$$, $$policy_add(limitledger.policy_read(shadow.document('mine')))$$,
  $$policy_activate(limitledger.policy_read(shadow.document('mine')))$$]) call;
RESET ROLE;
SELECT sound('after all of that');

SELECT * FROM finish();
ROLLBACK;
DROP OWNED BY limitledger_test_caller, limitledger_test_other;
DROP ROLE limitledger_test_caller, limitledger_test_other;
