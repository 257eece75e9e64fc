-- Logins that are bound to subjects (I1): to them every other subject is as if it were
-- not there, whether it has anything or not.  Each function with an argument `subject`
-- or `subjects` is tried, out of the catalogue, in nine cases of what is stored.
--
-- Fails when: a call tells a foreign subject that has something from one that has
-- nothing, answers otherwise than where nothing is, writes, or stops a login from its
-- own; when a new function has no answer to who may call it; when the last unbinding,
-- SET ROLE or a function with its owner's rights opens what a binding shut.

BEGIN;
\ir helpers.psql

-- ---- Two subjects with the same things, and a third with nothing ---------------
SELECT at('10:00:00');
CREATE FUNCTION helpers.furnish(of_subject text) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM publish(of_subject, 'chat', continuous(1, '1 second', 1000) || '{"emergencyMode": "enabled", "emergencyShare": 50, "shardTtl": "1 hour"}');
  PERFORM publish(of_subject, 'embed', '{"hardExecutionLimit": 10}');
  RETURN concat_ws(', ',
    reserve(of_subject, 'chat', 'held', 200), reserve(of_subject, 'chat', 'run', 200, 'o run'),
    reserve(of_subject, 'chat', 'unknown', 50, 'o unknown'), report_unknown(of_subject, 'unknown', 'o unknown'),
    reserve(of_subject, 'chat', 'done', 50, 'o done'), settle(of_subject, 'done', 'o done', 40),
    reserve(of_subject, 'chat', 'back', 50), release(of_subject, 'back'), resolve(of_subject, 'fence'),
    reserve(of_subject, 'embed', 'over', 20, 'o over'), settle(of_subject, 'over', 'o over', 1200),
    (SELECT outcome FROM limitledger.record_usage(of_subject, 'chat', 'o ran', 1)),
    (SELECT outcome FROM limitledger.extend_reservation(of_subject, 'held', 'e', 1)),
    (SELECT outcome FROM limitledger.grant_capacity(of_subject, 'embed', 'g', 1, 'because')),
    reserve(of_subject, 'wild', 'tame', 1),
    accepted(of_subject, 's', 'chat', 1000) > 0,
    shard_reserve(of_subject, 'chat', 'held', 100), shard_reserve(of_subject, 'chat', 'run', 100, 'o run'),
    shard_reserve(of_subject, 'chat', 'unknown', 50, 'o unknown'), shard_unknown(of_subject, 'unknown', 'o unknown'),
    shard_reserve(of_subject, 'chat', 'done', 50, 'o done'), shard_settle(of_subject, 'done', 'o done', 40),
    shard_reserve(of_subject, 'chat', 'back', 50), shard_release(of_subject, 'back'),
    (SELECT outcome FROM limitledger.cut_shard_report(of_subject, 's')),
    (SELECT outcome FROM limitledger.issue_emergency_shard(of_subject, 'chat', 's', 'gw', 10)),
    (SELECT outcome FROM limitledger.grant_legacy_share(of_subject, 'chat', 'share', 10, 'because')));
END $$;
SELECT publish('*', 'wild');
SELECT original();
SELECT limitledger.open_gateway('gw');
INSERT INTO limitledger.gateway (gateway, registered_at, actor) VALUES ('gw', now(), 'test');
SELECT limitledger.announce_boot('gw', boot_epoch) FROM limitledger.local_gateway;
SELECT furnish('mine') AS mine \gset
SELECT furnish('foreign') AS foreign \gset

CREATE ROLE limitledger_test_bound LOGIN;
CREATE ROLE limitledger_test_free LOGIN;
CREATE ROLE limitledger_test_group;
SELECT limitledger.grant_bundle(r, b) FROM unnest(ARRAY['limitledger_test_bound', 'limitledger_test_free']) r, unnest(ARRAY['gateway', 'executor', 'operator', 'auditor']) b;

-- as_login makes a call as a login and says what it answered: rows, or the error.
-- Unless it is to be kept, what it did is undone.
CREATE FUNCTION helpers.as_login(login name, call text, keep boolean DEFAULT true) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  said text; code text; problem text; info text;
BEGIN
  EXECUTE format('SET LOCAL SESSION AUTHORIZATION %I', login);
  IF call LIKE 'CALL %' THEN
    EXECUTE call;
  ELSE
    EXECUTE format('SELECT string_agg(to_jsonb(t)::text, E''\n'') FROM limitledger.%s AS t', call) INTO said;
  END IF;
  said := coalesce(said, 'no row');
  RESET SESSION AUTHORIZATION;
  IF NOT keep THEN
    RAISE EXCEPTION USING ERRCODE = 'ZZ000', MESSAGE = said;
  END IF;
  RETURN said;
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, problem = MESSAGE_TEXT, info = PG_EXCEPTION_DETAIL;
  RETURN CASE code WHEN 'ZZ000' THEN problem ELSE concat_ws(' | ', code, problem, info) END;
END $$;

-- ---- Every function about a subject ----------------------------------------------
CREATE VIEW helpers.about AS
SELECT p.oid, p.proname::text AS name, a.arguments, 'route' = ANY (a.arguments) OR 'routes' = ANY (a.arguments) AS has_route, a.types
FROM pg_proc p, LATERAL (
  SELECT array_agg(u.name ORDER BY n) AS arguments, array_agg(u.type ORDER BY n) AS types
  FROM unnest(p.proargnames, coalesce(p.proallargtypes, p.proargtypes::oid[]), p.proargmodes) WITH ORDINALITY u (name, type, mode, n)
  WHERE coalesce(u.mode, 'i') IN ('i', 'b')) a
WHERE p.pronamespace = 'limitledger'::regnamespace AND p.proname !~ '^(policy|binding|envelope|local)_'
  AND p.proname NOT IN ('seal_emergency_shard', 'seal_shard_report') AND a.arguments && ARRAY['subject', 'subjects'];

-- call_about writes a call of such a function.
CREATE FUNCTION helpers.call_about(f helpers.about, subject text, route text, id text, operation text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  argument text;
  value text;
  words text[] := '{}';
BEGIN
  FOR i IN 1 .. cardinality(f.arguments) LOOP
    argument := f.arguments[i];
    value := CASE
      WHEN argument IN ('subject', 'subjects') THEN quote_literal(subject)
      WHEN argument IN ('route', 'routes') THEN quote_literal(route)
      WHEN argument IN ('reservation_id', 'reservation_ids') THEN quote_literal(id)
      WHEN argument IN ('operation_id', 'operation_ids', 'start_operations', 'start_operation') THEN quote_literal(operation)
      WHEN argument IN ('digest', 'digests') THEN format('sha256(%L)', id)
      WHEN argument = 'units' THEN '1'
      WHEN argument IN ('actual', 'actuals') THEN '40'
      WHEN argument = 'extension_id' THEN '''e'''
      WHEN argument = 'shard_id' THEN '''s'''
      WHEN argument = 'share_id' THEN '''share'''
      WHEN argument = 'gateway' THEN '''gw'''
      WHEN argument = 'report' THEN '''no envelope'''
      WHEN argument IN ('reserved_units', 'actual_units') THEN '1'
      WHEN argument = 'grant_id' THEN '''g'''
      WHEN argument = 'reason' THEN '''because'''
      WHEN argument = 'role_name' THEN '''limitledger_test_free'''
      WHEN argument = 'require_all' THEN 'false'
      WHEN argument IN ('region', 'regions', 'estimator_digest', 'estimator_digests', 'deadline', 'deadlines', 'priority', 'priorities',
                        'receipt_digest', 'receipt_digests', 'source', 'sources', 'until', 'sequence') THEN 'NULL' END;
    IF value IS NULL THEN
      RAISE EXCEPTION 'say here which value % of %() shall have', argument, f.name;
    END IF;
    words := words || CASE WHEN f.types[i]::regtype::text LIKE '%[]' THEN format('ARRAY[%s]::%s', value, f.types[i]::regtype) ELSE format('%s::%s', value, f.types[i]::regtype) END;
  END LOOP;
  RETURN format('%s(%s)', f.name, array_to_string(words, ', '));
END $$;

CREATE TEMP TABLE example (route text, id text, operation text) ON COMMIT DROP;
INSERT INTO example VALUES ('chat', 'held', 'o held'), ('chat', 'run', 'o run'), ('chat', 'unknown', 'o unknown'), ('chat', 'done', 'o done'), ('chat', 'back', 'o back'),
  ('chat', 'fence', 'o fence'), ('chat', 'never', 'o never'), ('embed', 'over', 'o ran'), ('wild', 'tame', 'o tame');

SELECT limitledger.bind_subject('limitledger_test_bound', 'mine');

-- What the bound login gets, of the subject that has all and of the one that has
-- nothing; what is answered where nothing is; and what both logins get of its own.
-- A subject that a call gives back is written as #.
CREATE TEMP TABLE told ON COMMIT DROP AS
SELECT f.name, e.*, replace(as_login('limitledger_test_bound', call_about(f, 'foreign', e.route, e.id, e.operation)), '"foreign"', '"#"') AS foreign_one,
  replace(as_login('limitledger_test_bound', call_about(f, 'missing', e.route, e.id, e.operation)), '"missing"', '"#"') AS missing_one,
  replace(as_login('limitledger_test_free', call_about(CASE WHEN f.name = 'resolve_reservation' THEN g ELSE f END, 'missing', 'nowhere', 'never', e.operation), false), '"missing"', '"#"') AS nothing,
  replace(as_login('limitledger_test_free', call_about(f, 'foreign', e.route, e.id, e.operation), false), '"foreign"', '"#"') AS all_of_it,
  as_login('limitledger_test_bound', call_about(f, 'mine', e.route, e.id, e.operation), false) AS own,
  as_login('limitledger_test_free', call_about(f, 'mine', e.route, e.id, e.operation), false) AS own_unbound
FROM about f, about g, example e WHERE g.name = 'get_reservation' AND f.name NOT IN ('bind_subject', 'unbind_subject');

SELECT plan(50 + 5 * (SELECT count(DISTINCT name)::int FROM told));

SELECT is(:'mine'::text, :'foreign'::text, 'the two have the same');
SELECT unalike(:'mine'::text, '%REFUSED%', 'and nothing of it was refused');
SELECT cmp_ok((SELECT count(DISTINCT name) FROM told), '>=', 20::bigint, 'the functions about a subject');

SELECT is_empty(format('SELECT route, id, foreign_one, missing_one FROM told WHERE name = %L AND foreign_one IS DISTINCT FROM missing_one', name),
  name || ': what a foreign subject has makes no difference') FROM (SELECT DISTINCT name FROM told ORDER BY 1) d;
-- The id is the one that was asked for, in a document; a digest names nothing.
SELECT is_empty(format('SELECT route, id, foreign_one, nothing FROM told WHERE name = %L AND replace(foreign_one, '': '' || to_json(id), '': "never"'') IS DISTINCT FROM nothing', name),
  name || ': it answers as where nothing is') FROM (SELECT DISTINCT name FROM told ORDER BY 1) d;
-- An envelope that does not open tells nothing of anybody's shard.
SELECT isnt_empty(format('SELECT FROM told WHERE name = %L AND all_of_it <> foreign_one', name),
  name || ': there was something to be told') FROM (SELECT DISTINCT name FROM told WHERE name <> 'reconcile_emergency_shard' ORDER BY 1) d;
SELECT is_empty(format('SELECT route, id, own, own_unbound FROM told WHERE name = %L AND own IS DISTINCT FROM own_unbound', name),
  name || ': of its own subject a login is told all') FROM (SELECT DISTINCT name FROM told ORDER BY 1) d;

-- Nothing is written, not even a fence or a first row, and no row locked: each call
-- once more, beside a picture of all rows and of what has locked them.
CREATE FUNCTION helpers.locks() RETURNS text
LANGUAGE sql AS $$
  SELECT md5(string_agg(l, ' ' ORDER BY l)) FROM (
    SELECT concat_ws(',', tableoid, ctid, xmin, xmax, cmax) FROM limitledger.head_budget UNION ALL
    SELECT concat_ws(',', tableoid, ctid, xmin, xmax, cmax) FROM limitledger.closed_budget UNION ALL
    SELECT concat_ws(',', tableoid, ctid, xmin, xmax, cmax) FROM limitledger.reservation UNION ALL
    SELECT concat_ws(',', tableoid, ctid, xmin, xmax, cmax) FROM limitledger.operation UNION ALL
    SELECT concat_ws(',', tableoid, ctid, xmin, xmax, cmax) FROM limitledger.local_gateway UNION ALL
    SELECT concat_ws(',', tableoid, ctid, xmin, xmax, cmax) FROM limitledger.local_shard UNION ALL
    SELECT concat_ws(',', tableoid, ctid, xmin, xmax, cmax) FROM limitledger.shard_reservation) r (l)
$$;
CREATE FUNCTION helpers.leaves_no_mark(f helpers.about) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  before CONSTANT text := image() || locks();
  one record;
BEGIN
  FOR one IN SELECT * FROM example, unnest(ARRAY['foreign', 'missing']) s (subject) LOOP
    PERFORM as_login('limitledger_test_bound', call_about(f, one.subject, one.route, one.id, one.operation));
    IF image() || locks() <> before THEN
      RETURN format('%s %s of %s', one.route, one.id, one.subject);
    END IF;
  END LOOP;
  RETURN NULL;
END $$;
SELECT locks() AS unlocked \gset
SAVEPOINT lock;
SELECT count(*) FROM limitledger.repay_debt('foreign', 'chat') \gset
SELECT isnt(locks(), :'unlocked', 'a lock is seen');
ROLLBACK TO lock;
SELECT is(leaves_no_mark(f), NULL, f.name || ': it writes nothing') FROM about f WHERE name IN (SELECT name FROM told) ORDER BY name;

SELECT is(split_part(as_login('limitledger_test_bound', call), ' | ', 1), 'LL101', 'a bad argument is told as ever: ' || call)
FROM unnest(ARRAY[$$reserve_capacity('foreign', 'chat', 'r', NULL, sha256('r'))$$, $$settle_usage('foreign', 'run', 'o run', NULL)$$, $$freeze('foreign', 'chat', NULL)$$]) call;
SELECT is(as_login('limitledger_test_bound', $$settle_usage('foreign', 'held', 'o', 1)$$) LIKE '%"UNKNOWN"%', true, 'and that a foreign hold was not started is not told at all');

-- ---- Batches: element by element ---------------------------------------------------
CREATE FUNCTION helpers.batch(call text) RETURNS text
LANGUAGE sql AS $$
  SELECT string_agg(answer(j ->> 'outcome', j ->> 'dimension', j ->> 'state', (j ->> 'replayed')::boolean), ', ' ORDER BY (j ->> 'element')::int)
  FROM regexp_split_to_table(as_login('limitledger_test_bound', call, false), E'\n') line, LATERAL (SELECT line::jsonb WHERE line <> 'no row') t (j)
$$;
SELECT is(batch($$reserve_capacity_batch(ARRAY['foreign', 'mine', 'missing', 'foreign'], ARRAY['chat', 'chat', 'wild', 'chat'], ARRAY['held', 'new', 'held', 'held'],
  ARRAY[200, 1, 1, 200]::bigint[], ARRAY[sha256('held'), sha256('n'), sha256('m'), sha256('x')])$$),
  'REFUSED no_policy, ACCEPTED RESERVED, REFUSED no_policy, REFUSED no_policy', 'reserve: a foreign element is refused, the others go on');
SELECT is(batch($$reserve_capacity_batch(ARRAY['mine', 'foreign'], ARRAY['chat', 'wild'], ARRAY['new', 'new'], ARRAY[1, 1]::bigint[], ARRAY[sha256('n'), sha256('n')], require_all => true)$$),
  'REFUSED require_all, REFUSED no_policy', 'reserve: required together, it stops all');
SELECT is(batch($$start_reservation_batch(ARRAY['foreign', 'mine', 'missing'], ARRAY['held', 'held', 'held'], ARRAY['o', 'o', 'o'])$$),
  'UNKNOWN reservation, ACCEPTED STARTED, UNKNOWN reservation', 'start');
SELECT is(batch($$settle_usage_batch(ARRAY['foreign', 'mine', 'foreign'], ARRAY['run', 'run', 'done'], ARRAY['o run', 'o run', 'o done'], ARRAY[1, 1, 41]::bigint[])$$),
  'UNKNOWN reservation, ACCEPTED SETTLED, UNKNOWN reservation', 'settle');
SELECT is(batch($$release_reservation_batch(ARRAY['mine', 'foreign'], ARRAY['held', 'held'])$$), 'ACCEPTED RELEASED, UNKNOWN reservation', 'release');
SELECT is(batch($$release_reservation_batch('{}', '{}')$$), NULL, 'an empty batch is one');

-- ---- Functions about no one subject -------------------------------------------------
-- In the bundles of gateways and executors there are none but those that read nothing, and the
-- claims of reconcilers, which pass other subjects by.
SELECT is((SELECT string_agg(DISTINCT p.proname, ' ' ORDER BY p.proname) FROM limitledger.bundles() b JOIN pg_proc p ON b.object_kind IN ('function', 'procedure') AND p.oid = b.signature::regprocedure
           WHERE b.bundle IN ('gateway', 'executor') AND NOT EXISTS (SELECT FROM about a WHERE a.oid = p.oid)),
  'bundles canonical_json claim_unknown_usage http_headers ledger_clock outcomes problem_details rate_limit rate_limit_policy request_digest retry_after sqlstates structured_string transitions',
  'what a gateway or an executor may call takes a subject, or reads nothing: say here if a new function does');
SELECT is_empty($$SELECT b.signature FROM limitledger.bundles() b WHERE b.bundle IN ('gateway', 'executor') AND b.object_kind = 'view'$$, 'and they read no view');
SELECT is((SELECT string_agg(r.claim ->> 'subject', ' ' ORDER BY r.claim ->> 'subject') FROM string_to_table(as_login('limitledger_test_free', 'claim_unknown_usage(10, ''1 second'')', false), E'\n') c (said), LATERAL (SELECT c.said::jsonb) r (claim)),
  'foreign mine', 'an unbound reconciler claims what is unknown of both');
SELECT is((SELECT string_agg(r.claim ->> 'subject', ' ') FROM string_to_table(as_login('limitledger_test_bound', 'claim_unknown_usage(10)'), E'\n') c (said), LATERAL (SELECT c.said::jsonb) r (claim)),
  'mine', 'a bound one that of its own subject');
SELECT at('12:00:00');
SELECT is((SELECT string_agg(r.claim ->> 'subject', ' ') FROM string_to_table(as_login('limitledger_test_bound', 'claim_unknown_usage(10)', false), E'\n') c (said), LATERAL (SELECT c.said::jsonb) r (claim)),
  'mine', 'when its lease has lapsed as well');
SELECT at('10:00:00');

-- An operator's are refused, whatever the arguments: the first line of each is
-- binding_refuse(), or ll_refuse_bound().
CREATE TEMP TABLE whole ON COMMIT DROP AS
SELECT p.proname::text AS name, as_login('limitledger_test_bound', CASE p.prokind WHEN 'p' THEN format('CALL limitledger.%s()', p.proname)
  ELSE format('%s(%s)', p.proname, (SELECT string_agg('NULL::' || format_type(t, NULL), ', ') FROM unnest(p.proargtypes) t)) END) AS answer
FROM pg_proc p WHERE p.oid IN (
  SELECT b.signature::regprocedure FROM limitledger.bundles() b WHERE b.bundle = 'operator' AND b.object_kind IN ('function', 'procedure')
  EXCEPT SELECT b.signature::regprocedure FROM limitledger.bundles() b WHERE b.bundle IN ('gateway', 'executor') AND b.object_kind IN ('function', 'procedure'))
  AND p.proname <> 'recovery_status'               -- tells of no subject, and is asked by calls about one
  AND (p.proname IN ('bind_subject', 'unbind_subject') OR NOT EXISTS (SELECT FROM about a WHERE a.oid = p.oid));
SELECT cmp_ok((SELECT count(*) FROM whole), '>=', 14::bigint, 'the operator''s calls about the ledger as a whole');
SELECT is_empty($$SELECT * FROM whole WHERE answer NOT LIKE '42501 | %() is not for a login that is bound to subjects | It is about the ledger as a whole.'$$,
  'are refused to a bound login, before anything else');
SELECT is((SELECT string_agg(DISTINCT split_part(as_login('limitledger_test_bound', call), ' | ', 2), ', ') FROM unnest(ARRAY['bind_subject(''limitledger_test_bound'', ''foreign'')', 'free_role(''limitledger_test_bound'')']) call),
  'bind_subject() is not for a login that is bound to subjects, free_role() is not for a login that is bound to subjects', 'a bound operator does not free itself');
SELECT is(split_part(as_login('limitledger_test_free', 'claim_expiring(1)', false), ' | ', 1), '0', 'a login that is not bound sweeps');

-- ---- No way around ---------------------------------------------------------------------
CREATE FUNCTION helpers.sees(login name, subject text) RETURNS boolean
LANGUAGE sql AS $$ SELECT as_login(login, format('get_reservation(%L, ''held'')', subject)) LIKE '%"RESERVED"%' $$;
SELECT is(sees('limitledger_test_bound', 'mine'), true, 'its own subject');
SELECT is_empty($$SELECT s FROM unnest(ARRAY['foreign', 'Mine', 'mine ', ' mine', 'min', 'mine2', 'mïne']) s WHERE sees('limitledger_test_bound', s)$$, 'and no name that is like it (A1)');

GRANT limitledger_test_free, postgres TO limitledger_test_bound;
CREATE FUNCTION helpers.after_set_role(role_name name) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE said text;
BEGIN
  SET LOCAL SESSION AUTHORIZATION limitledger_test_bound;
  EXECUTE format('SET LOCAL ROLE %I', role_name);
  SELECT concat_ws(' ', current_user, g.state, (SELECT count(*) FROM limitledger.get_budget('foreign', 'chat'))) INTO said FROM limitledger.get_reservation('foreign', 'held') g;
  RESET SESSION AUTHORIZATION;
  RETURN said;
END $$;
SELECT is(after_set_role('limitledger_test_free'), 'limitledger_test_free RESERVATION_UNKNOWN 0', 'SET ROLE to a login that is not bound');
SELECT is(after_set_role('postgres'), 'postgres RESERVATION_UNKNOWN 0', 'SET ROLE to a superuser, for calls');
SELECT is((SELECT reads_all FROM limitledger.subject_bindings), true, 'though such a role, or the bundle auditor, reads all, and the list of bindings says so');
REVOKE limitledger_test_free, postgres FROM limitledger_test_bound;
SELECT limitledger.revoke_bundle('limitledger_test_bound', 'auditor');
SELECT is((SELECT reads_all FROM limitledger.subject_bindings), false, 'or that it does not');

CREATE FUNCTION limitledger.wrapped() RETURNS text LANGUAGE sql SECURITY DEFINER
AS $$ SELECT g.state FROM limitledger.get_reservation('foreign', 'held') g $$;
GRANT EXECUTE ON FUNCTION limitledger.wrapped TO PUBLIC;
SELECT is(as_login('limitledger_test_bound', 'wrapped()'), '"RESERVATION_UNKNOWN"', 'a function with its owner''s rights');
SELECT is(as_login('limitledger_test_free', 'wrapped()'), '"RESERVED"', 'which does tell others');
DROP FUNCTION limitledger.wrapped();

-- ---- Binding and unbinding ---------------------------------------------------------------
SELECT is((SELECT concat_ws(' ', role_name, subject, state, changed_at, actor) FROM limitledger.subject_bindings), 'limitledger_test_bound mine bound 2030-01-01 10:00:00+00 postgres', 'the list');
SELECT is((SELECT b::text FROM limitledger.bind_subject('limitledger_test_bound', 'foreign') b), '(f,2)', 'a second subject');
SELECT is((SELECT b::text FROM limitledger.bind_subject('limitledger_test_bound', 'foreign') b), '(t,2)', 'again: nothing changes');
SELECT is(sees('limitledger_test_bound', 'mine') AND sees('limitledger_test_bound', 'foreign'), true, 'both are there');
SELECT is((SELECT b::text FROM limitledger.unbind_subject('limitledger_test_bound', 'foreign') b), '(f,1)', 'taken away');
SELECT is(sees('limitledger_test_bound', 'foreign'), false, 'it is gone');
SELECT is((SELECT b::text FROM limitledger.unbind_subject('limitledger_test_bound', 'never') b), '(t,1)', 'what it was not bound to can''t be taken');
SELECT is((SELECT b::text FROM limitledger.unbind_subject('limitledger_test_bound', 'mine') b), '(f,0)', 'the last one');
SELECT is(sees('limitledger_test_bound', 'mine') OR sees('limitledger_test_bound', 'foreign'), false, 'leaves nothing, not everything');
SELECT is((SELECT b::text FROM limitledger.unbind_subject('limitledger_test_free', 'mine') b), '(t,)', 'a login that is not bound stays so');
SELECT is((SELECT concat_ws(' ', limitledger.free_role('limitledger_test_bound'), limitledger.free_role('limitledger_test_bound'))), 'f t', 'freed, once');
SELECT is(sees('limitledger_test_bound', 'mine') AND sees('limitledger_test_bound', 'foreign'), true, 'it reaches all');
SELECT is((SELECT string_agg(concat_ws(' ', subject, state), ', ') FROM limitledger.subject_bindings), 'foreign freed, mine freed', 'and what was is still listed');

SAVEPOINT one;
SELECT limitledger.bind_subject('limitledger_test_bound', 'mine');
SELECT sees('limitledger_test_bound', 'foreign') AS inside \gset
ROLLBACK TO one;
SELECT is((:'inside'::boolean, sees('limitledger_test_bound', 'foreign')), (false, true), 'a binding that is rolled back is none');

SELECT count(*) FROM generate_series(10, 60, 2) n, limitledger.bind_subject('limitledger_test_bound', 's' || n) \gset
SELECT is((SELECT string_agg(n::text, ' ' ORDER BY n) FROM generate_series(9, 61) n WHERE as_login('limitledger_test_bound', format('resolve_reservation(''s%s'', ''r'', sha256(''r''))', n), false) LIKE '%ACCEPTED%'),
  (SELECT string_agg(n::text, ' ' ORDER BY n) FROM generate_series(10, 60, 2) n), 'of many subjects each is found');
SELECT is_misuse('bind_subject(''limitledger_test_group'', ''mine'')', 'LL106', 'role_name', 'a role that can''t log in is not bound');
SELECT is_misuse('bind_subject(''postgres'', ''mine'')', 'LL106', 'role_name', 'nor is a superuser');
DROP OWNED BY limitledger_test_bound;
DROP ROLE limitledger_test_bound;
SELECT is((SELECT concat_ws(' ', count(*), count(role_name)) FROM limitledger.subject_bindings), '28 0', 'a role that is dropped leaves its rows');
SELECT limitledger.bind_subject('limitledger_test_free', 'mine');
SELECT is((SELECT string_agg(coalesce(role_name, 'nobody'), ' ') FROM limitledger.subject_bindings), 'limitledger_test_free', 'until the next call');
SELECT sound('at the end');

SELECT * FROM finish();
ROLLBACK;
