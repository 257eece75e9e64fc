-- drain_policy, retire_policy, rollback_policy, policy_diff: how a generation goes out
-- of force, what its subjects fall to, and that none of it is free capacity (B4, B5, B6).
--
-- Fails when: a generation retires while its budgets hold or owe anything, a subject
-- falls to a wildcard that was published before, or at another instant than that of
-- the retirement, a rollback gives back what was used, or a difference is not shown.

BEGIN;
\ir helpers.psql
SELECT plan(256);

-- What a call says, in one line.
CREATE FUNCTION helpers.drain(generation bigint) RETURNS text LANGUAGE sql AS $$
  SELECT concat_ws(' ', d.stage, CASE WHEN d.already_draining THEN 'already' END)
  FROM limitledger.drain_policy(generation, 'a test') d
$$;
-- All of this file is one transaction, so a draining is made to look like another's.
CREATE FUNCTION helpers.retire(generation bigint) RETURNS text LANGUAGE sql AS $$
  UPDATE limitledger.policy p SET drained_by = NULL WHERE p.generation = retire.generation;
  SELECT format('%s %s: %s reserved, %s unknown, %s owed by %s pairs', r.outcome, r.stage,
    r.left_reserved, r.left_unknown, r.left_debt, r.pairs)
  FROM limitledger.retire_policy(generation) r
$$;
CREATE FUNCTION helpers.diff(document jsonb) RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(format('%s: %s -> %s', d.field, coalesce(d.in_force, 'NULL'), coalesce(d.proposed, 'NULL')), ', ' ORDER BY n)
  FROM limitledger.policy_diff(document) WITH ORDINALITY AS d (field, in_force, proposed, n)
$$;
CREATE FUNCTION helpers.generation(subject text, route text) RETURNS bigint LANGUAGE sql AS $$
  SELECT b.generation FROM limitledger.get_budget(subject, route) b
$$;
\set nothing_left '''ACCEPTED retired: 0 reserved, 0 unknown, 0 owed by 0 pairs'''

-- ---- What the calls look like (J1, J3, I1, I2) ---------------------------------

SELECT results_eq(
  $$SELECT p.oid::regprocedure::text, p.provolatile::text, p.proparallel::text, p.prosecdef, p.proretset,
           regexp_replace(pg_get_function_result(p.oid), 'timestamp with time zone', 'timestamptz')
    FROM pg_proc p WHERE p.pronamespace = 'limitledger'::regnamespace
      AND p.proname IN ('drain_policy', 'retire_policy', 'rollback_policy', 'policy_diff') ORDER BY p.proname COLLATE "C"$$,
  $$VALUES
    ('limitledger.drain_policy(bigint,text)', 'v', 'u', true, false, 'record'),
    ('limitledger.policy_diff(jsonb)', 's', 'u', true, true, 'SETOF record'),
    ('limitledger.retire_policy(bigint)', 'v', 'u', true, false, 'record'),
    ('limitledger.rollback_policy(bigint,text)', 'v', 'u', true, false, 'record')$$, 'signatures');
SELECT is(pg_get_function_arguments(call::regprocedure), arguments, call)
FROM (VALUES
  ('limitledger.drain_policy(bigint,text)', 'INOUT generation bigint, reason text, OUT stage text, OUT already_draining boolean'),
  ('limitledger.policy_diff(jsonb)', 'document jsonb, OUT field text, OUT in_force text, OUT proposed text'),
  ('limitledger.retire_policy(bigint)', 'INOUT generation bigint, OUT outcome text, OUT stage text, OUT retired_at timestamp with time zone, '
    'OUT left_reserved bigint, OUT left_unknown bigint, OUT left_debt bigint, OUT pairs bigint, OUT left_shards bigint'),
  ('limitledger.rollback_policy(bigint,text)', 'INOUT generation bigint, reason text, OUT rolled_back_from bigint, OUT content_of bigint')
) AS c (call, arguments);
SELECT is_empty($$
  SELECT p.oid::regprocedure FROM pg_proc AS p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a
  WHERE p.pronamespace = 'limitledger'::regnamespace AND a.grantee = 0$$, 'PUBLIC executes nothing');
SELECT is_empty($$
  SELECT p.oid::regprocedure FROM pg_proc AS p
  WHERE p.pronamespace = 'limitledger'::regnamespace AND p.prosecdef AND obj_description(p.oid, 'pg_proc') IS NULL$$,
  'each is described');

-- ---- Misuse --------------------------------------------------------------------

SELECT at('09:00:00');
SELECT publish('misuse', 'misuse') AS active \gset
SELECT generation AS published FROM limitledger.publish_policy(document('misuse', 'misuse', '{"burst": 10}'), false) \gset
SELECT is_misuse(call, code, field, call) FROM (VALUES
  ('drain_policy(NULL, ''why'')', 'LL101', 'generation'), ('retire_policy(NULL)', 'LL101', 'generation'),
  ('rollback_policy(NULL, ''why'')', 'LL101', 'generation'),
  ('drain_policy(99, ''why'')', 'LL206', 'generation 99'), ('retire_policy(99)', 'LL206', 'generation 99'),
  ('rollback_policy(99, ''why'')', 'LL206', 'generation 99'),
  ('drain_policy(1, NULL)', 'LL101', 'reason'), ('drain_policy(1, '''')', 'LL106', 'reason'),
  ('drain_policy(1, repeat(''x'', 257))', 'LL106', 'reason'), ('rollback_policy(1, repeat(chr(228), 129))', 'LL106', 'reason'),
  ('rollback_policy(1, NULL)', 'LL101', 'reason'), ('rollback_policy(1, '''')', 'LL106', 'reason'),
  (format('drain_policy(%s, ''why'')', :published), 'LL205', 'generation'),
  (format('retire_policy(%s)', :published), 'LL205', 'generation'),
  (format('retire_policy(%s)', :active), 'LL205', 'generation'),
  (format('rollback_policy(%s, ''why'')', :published), 'LL205', 'generation'),
  ('policy_diff(NULL)', 'LL101', 'document'), ('policy_diff(''[]'')', 'LL203', 'document'),
  (format('policy_diff(%L)', document('misuse', 'misuse') - 'weight'), 'LL201', 'weight'),
  (format('policy_diff(%L)', document('misuse', 'misuse') || '{"colour": 1}'), 'LL202', 'colour'),
  (format('policy_diff(%L)', document('misuse', 'misuse') || '{"holdTtl": "1 month"}'), 'LL203', 'holdTtl')
) AS m (call, code, field);

-- ---- B6: draining -----------------------------------------------------------------

SELECT at('10:00:00');
SELECT publish('*', 'drain', continuous(1, '1 second', 100)) AS others \gset
SELECT publish('d', 'drain', continuous(1, '1 second', 100)) AS d \gset
SELECT is(reserve('d', 'drain', id, 20), 'ACCEPTED RESERVED', 'a hold: ' || id) FROM unnest(ARRAY['start', 'release', 'expire']) id;
SELECT is(reserve('d', 'drain', 'run', 20, 'o1'), 'ACCEPTED STARTED', 'an execution');
SELECT is(drain(:d), 'draining', 'it drains');
SELECT is(drain(:d), 'draining already', 'once');
SELECT results_eq(
  $$SELECT outcome, dimension, retry_kind, retry_after_ms FROM limitledger.reserve_capacity('d', 'drain', 'new', 1, sha256('d'))$$,
  $$VALUES ('REFUSED', 'draining', 'operator', NULL::bigint)$$, 'no admission');
SELECT is(admission('d', 'drain'), 'draining', 'get_budget says so');
SELECT is(reserve('e', 'drain', 'new', 1), 'ACCEPTED RESERVED', 'the wildcard admits others');
SELECT is(generation('d', 'drain'), :d::bigint, 'but it does not take over what drains');
SELECT is(reserve('d', 'drain', 'run', 20, 'o1'), 'ACCEPTED STARTED replayed', 'a receipt stands');
SELECT is(start('d', 'start', 'o2'), 'ACCEPTED STARTED', 'a hold is started');
SELECT is(release('d', 'release'), 'ACCEPTED RELEASED', 'and released');
SELECT is(settle('d', 'start', 'o2', 5), 'ACCEPTED SETTLED', 'an execution is settled');
SELECT is(settle('d', 'run', 'o1', 130), 'ACCEPTED SETTLED_WITH_DEBT', 'also with debt');
SELECT is(debt('d', 'drain'), 55::bigint, 'which is owed');
SELECT at('10:00:30');
SELECT is((SELECT (claimed, expired)::text FROM limitledger.expire_reservations()), '(2,2)', 'holds expire');
SELECT is(debt('d', 'drain'), 5::bigint, 'and pay, as refill does');
SELECT at('10:00:45');
SELECT is(available('d', 'drain'), 10::bigint, 'units accrue');
SELECT is(reserve('d', 'drain', 'new', 1), 'REFUSED draining', 'and are not given out');
SELECT is((SELECT string_agg((actor = current_user, action, subject, route, reason, acted_at)::text, ' ') FROM limitledger.operator_actions),
  '(t,drain_policy,d,drain,"a test","2030-01-01 10:00:00+00")', 'who drained it, and why: once');
SELECT sound('draining');

-- The actor is the role that called.
CREATE ROLE limitledger_test_operator;
GRANT USAGE ON SCHEMA limitledger TO limitledger_test_operator;
GRANT EXECUTE ON FUNCTION limitledger.drain_policy TO limitledger_test_operator;
SELECT publish('actor', 'drain') AS actor \gset
SET LOCAL ROLE limitledger_test_operator;
SELECT stage AS drained FROM limitledger.drain_policy(:actor, 'as another') \gset
RESET ROLE;
SELECT is((SELECT string_agg((actor, reason)::text, ' ') FROM limitledger.operator_actions WHERE subject = 'actor'),
  '(limitledger_test_operator,"as another")', 'not the owner');

-- ---- B6: retire says what is left ----------------------------------------------------

SELECT at('11:00:00');
SELECT publish('*', 'left', continuous(10, '1 second', 1000)) AS w1 \gset
SELECT is(reserve('a', 'left', 'held', 100), 'ACCEPTED RESERVED', 'a hold of 100');
SELECT is(reserve('a', 'left', 'lost', 50, 'o1'), 'ACCEPTED STARTED', 'an execution of 50');
SELECT is(report_unknown('a', 'lost', 'o1'), 'ACCEPTED USAGE_UNKNOWN', 'whose usage is unknown');
SELECT is(reserve('b', 'left', 'over', 10, 'o1'), 'ACCEPTED STARTED', 'another pair');
SELECT is(settle('b', 'over', 'o1', 1200), 'ACCEPTED SETTLED_WITH_DEBT', 'which owes 200');
SELECT is(reserve('c', 'left', 'r1', 10), 'ACCEPTED RESERVED', 'a third one');
SELECT is(release('c', 'r1'), 'ACCEPTED RELEASED', 'which is quiet');
SELECT is(drain(:w1), 'draining', 'the wildcard drains');
SELECT is_misuse(format('retire_policy(%s)', :w1), 'LL205', 'generation', 'others are admitted until the draining commits');
SELECT is(retire(:w1), 'REFUSED draining: 150 reserved, 50 unknown, 200 owed by 2 pairs', 'all that is left');
SELECT results_eq(format('SELECT generation, retired_at FROM limitledger.retire_policy(%s)', :w1),
  format('VALUES (%s::bigint, NULL::timestamptz)', :w1), 'not retired, at no instant');
SELECT is(release('a', 'held'), 'ACCEPTED RELEASED', 'the hold ends');
SELECT is(retire(:w1), 'REFUSED draining: 50 reserved, 50 unknown, 200 owed by 2 pairs', 'what is unknown is reserved');
SELECT is(settle('a', 'lost', 'o1', 0), 'ACCEPTED SETTLED', 'its receipt comes');
SELECT is(retire(:w1), 'REFUSED draining: 0 reserved, 0 unknown, 200 owed by 1 pairs', 'debt alone');
SELECT at('11:00:20');
SELECT is(retire(:w1), 'REFUSED draining: 0 reserved, 0 unknown, 200 owed by 1 pairs', 'as stored: what is due is not booked yet');
SELECT is((SELECT repaid_units FROM limitledger.repay_debt('b', 'left')), 200::bigint, 'it is booked');
SELECT is(retire(:w1), :nothing_left, 'nothing is left');
SELECT is((SELECT p.retired_at FROM limitledger.policy p WHERE generation = :w1), '2030-01-01 11:00:20+00', 'it is retired');
SELECT at('11:00:30');
SELECT is(retire(:w1), :nothing_left, 'once');
SELECT is((SELECT r.retired_at FROM limitledger.retire_policy(:w1) r), '2030-01-01 11:00:20+00', 'at one instant');
SELECT is(drain(:w1), 'retired already', 'it needs no draining');
SELECT sound('retired');

-- With nothing to fall to there is no policy for a new request, and the rest goes on.
SELECT results_eq(
  format($$SELECT outcome, dimension, retry_kind, state FROM limitledger.reserve_capacity(%L, 'left', 'new', 1, sha256('d'))$$, pair),
  $$VALUES ('REFUSED', 'no_policy', 'operator', 'REQUESTED')$$, 'no policy: ' || pair) FROM unnest(ARRAY['a', 'never met']) pair;
SELECT is((SELECT string_agg(answer(r.outcome, r.dimension, r.state, r.replayed), ', ' ORDER BY r.element)
    FROM limitledger.reserve_capacity_batch(ARRAY['a', 'never met'], ARRAY['left', 'left'], ARRAY['x', 'x'], ARRAY[1, 1], ARRAY[sha256('x'), sha256('x')]) r),
  'REFUSED no_policy, REFUSED no_policy', 'in a batch, under the locks, too');
SELECT is(admission('a', 'left'), 'no_policy', 'get_budget says so');
SELECT is_empty($$SELECT FROM limitledger.get_budget('never met', 'left')$$, 'and shows nothing of a pair that no call has met');
SELECT is(reserve('a', 'left', 'held', 100), 'ACCEPTED RELEASED replayed', 'receipts stand');
SELECT is(settle('a', 'lost', 'o1', 0), 'ACCEPTED SETTLED replayed', 'settlements, too');
SELECT is(available('c', 'left'), 1000::bigint, 'the balance is there');
SELECT publish('*', 'left', continuous(10, '1 second', 70)) AS w2 \gset
SELECT is(generation('c', 'left'), :w2::bigint, 'the next wildcard takes over');
SELECT is(available('c', 'left'), 70::bigint, 'with what it carries');
SELECT is(available('b', 'left'), 70::bigint, 'also where debt was');
SELECT is(reserve('never met', 'left', 'new', 1), 'ACCEPTED RESERVED', 'and admits');
SELECT sound('a wildcard after a wildcard');

-- Reservations of older generations settle below a retired head (B5, B6).
SELECT publish('s', 'settle', '{"burst": 100}') AS s1 \gset
SELECT is(reserve('s', 'settle', 'run', 40, 'o1'), 'ACCEPTED STARTED', 'an execution of 40');
SELECT is(reserve('s', 'settle', 'held', 30), 'ACCEPTED RESERVED', 'a hold of 30');
SELECT publish('s', 'settle', '{"burst": 90}') AS s2 \gset
SELECT is(reserve('s', 'settle', 'r3', 10), 'ACCEPTED RESERVED', 'the next generation');
SELECT is(release('s', 'r3'), 'ACCEPTED RELEASED', 'holds nothing');
SELECT is(drain(:s2), 'draining', 'drained');
SELECT is(retire(:s2), :nothing_left, 'and retired first');
SELECT is(retire(:s1), 'REFUSED draining: 70 reserved, 0 unknown, 0 owed by 1 pairs', 'the older one holds 70');
SELECT is(reserve('s', 'settle', 'new', 1), 'REFUSED no_policy', 'no policy');
SELECT is(settle('s', 'run', 'o1', 25), 'ACCEPTED SETTLED', 'the execution settles');
SELECT is(available('s', 'settle'), 45::bigint, 'and gives back');
SELECT is(start('s', 'held', 'o2'), 'ACCEPTED STARTED', 'the hold is started');
SELECT is(settle('s', 'held', 'o2', 90), 'ACCEPTED SETTLED_WITH_DEBT', 'and uses more than there is');
SELECT is(retire(:s1), :nothing_left, 'the older one is done');
SELECT is(debt('s', 'settle'), 15::bigint, 'the newer one bears the debt, retired or not');
SELECT sound('settled below a retired generation');
SELECT publish('s', 'settle', continuous(5, '1 second', 90)) AS s3 \gset
SELECT is(reserve('s', 'settle', 'new', 1), 'REFUSED debt', 'no generation forgets it (E4)');
SELECT at('11:00:34.00001');
SELECT is(reserve('s', 'settle', 'new', 5), 'ACCEPTED RESERVED', 'refill repays it');
SELECT sound('and repaid');

-- ---- B4: the fall to a wildcard ------------------------------------------------------

-- To one that was published after it, not to one before.
SELECT at('12:00:00');
SELECT publish('*', 'fall', continuous(50, '1 second', 1000)) AS w0 \gset
SELECT publish('x', 'fall', continuous(1, '1 second', 100)) AS x \gset
SELECT publish('unmet', 'fall', continuous(1, '1 second', 100)) AS unmet \gset
SELECT is(reserve('x', 'fall', 'r1', 100, 'o1'), 'ACCEPTED STARTED', 'all of a pair');
SELECT is(settle('x', 'r1', 'o1', 100), 'ACCEPTED SETTLED', 'is used');
SELECT at('12:00:10');
SELECT is(drain(:x), 'draining', 'its policy drains');
SELECT at('12:00:20');
SELECT is(retire(:x), :nothing_left, 'and is retired');
SELECT is(reserve('y', 'fall', 'r1', 1), 'ACCEPTED RESERVED', 'there is a wildcard');
SELECT is(reserve('x', 'fall', 'r2', 1), 'REFUSED no_policy', 'but it is older');
SELECT is(drain(:unmet), 'draining', 'a policy of a pair that no call has met');
SELECT is(retire(:unmet), :nothing_left, 'is retired');
SELECT is(reserve('unmet', 'fall', 'r1', 1), 'REFUSED no_policy', 'and falls no further');
SELECT is((SELECT count(*) FROM limitledger.policy_diff(document('unmet', 'fall')) WHERE in_force IS NOT NULL), 0::bigint, 'policy_diff knows');
SELECT at('12:00:30');
SELECT publish('*', 'fall', continuous(10, '1 second', 1000)) AS w1 \gset
SELECT at('12:00:31');
SELECT is(available('x', 'fall'), 40::bigint, 'thirty seconds of the old rule, one of the new');
SELECT is(reserve('x', 'fall', 'r2', 41), 'REFUSED available', 'no cap is given away');
SELECT is((SELECT r.generation FROM limitledger.reserve_capacity('x', 'fall', 'r2', 40, sha256('r2')) r), :w1::bigint, 'the wildcard decides');
SELECT results_eq($$SELECT generation, follows_generation, carried, opened_at FROM limitledger.head_budget WHERE subject = 'x'$$,
  format($$VALUES (%s::bigint, %s::bigint, 30::bigint, timestamptz '2030-01-01 12:00:30+00')$$, :w1, :x), 'at its switch instant');
SELECT sound('the next wildcard');

-- At the instant of the retirement, if the wildcard was there before; one that another
-- had followed by then never ruled: its cap of 1 cuts nothing.
SELECT at('13:00:00');
SELECT publish('z', 'fall', continuous(1, '1 second', 100)) AS z \gset
SELECT is(reserve('z', 'fall', 'r1', 100, 'o1'), 'ACCEPTED STARTED', 'all of a pair');
SELECT is(settle('z', 'r1', 'o1', 100), 'ACCEPTED SETTLED', 'is used');
SELECT at('13:00:10');
SELECT publish('*', 'fall', continuous(1, '1 second', 1)) AS w2 \gset
SELECT at('13:00:20');
SELECT publish('*', 'fall', continuous(5, '1 second', 1000)) AS w3 \gset
SELECT is(available('z', 'fall'), 20::bigint, 'wildcards pass an exact policy by (B2)');
SELECT at('13:00:40');
SELECT is(drain(:z), 'draining', 'which drains');
SELECT is(retire(:z), :nothing_left, 'and is retired');
SELECT at('13:00:42');
SELECT is(available('z', 'fall'), 50::bigint, 'forty seconds of its rule, two of the wildcard''s');
SELECT at('13:00:50');
SELECT publish('*', 'fall', continuous(100, '1 second', 1000)) AS w4 \gset
SELECT at('13:00:51');
SELECT is(available('z', 'fall'), 40 + 50 + 100::bigint, 'and so on, though nobody called meanwhile');
SELECT is(reserve('z', 'fall', 'r2', 191), 'REFUSED available', 'not a unit more');
SELECT is(reserve('z', 'fall', 'r2', 190), 'ACCEPTED RESERVED', 'at the next call');
SELECT results_eq($$SELECT generation, closed_at FROM limitledger.closed_budget WHERE subject = 'z' ORDER BY 1$$,
  format($$VALUES (%s::bigint, timestamptz '2030-01-01 13:00:40+00'), (%s, '2030-01-01 13:00:50+00')$$, :z, :w3), 'budget by budget');
SELECT sound('a wildcard that was there');

-- Back to a policy of its own, and away again.
SELECT publish('z', 'fall', continuous(1, '1 second', 20)) AS z2 \gset
SELECT is(generation('z', 'fall'), :z2::bigint, 'an exact policy again');
SELECT is(release('z', 'r2'), 'ACCEPTED RELEASED', '190 come back');
SELECT is(available('z', 'fall'), 20::bigint, 'within its cap');
SELECT is(drain(:z2), 'draining', 'drained');
SELECT is(retire(:z2), :nothing_left, 'and retired');
SELECT is(reserve('z', 'fall', 'r3', 1), 'REFUSED no_policy', 'the wildcard is older now');
SELECT is(retire(:w3), :nothing_left, 'a wildcard that drained is retired as well');
SELECT sound('back and away');

-- A wildcard that was published before an exact policy, and activated after it, never
-- ruled the pair: not on the way from an older wildcard either.
SELECT publish('*', 'late', '{"burst": 100}') AS late \gset
SELECT is(reserve('p', 'late', 'r1', 10), 'ACCEPTED RESERVED', 'a pair under a wildcard');
SELECT generation AS later FROM limitledger.publish_policy(document('*', 'late', '{"burst": 1}'), false) \gset
SELECT publish('p', 'late', '{"burst": 100}') AS p \gset
SELECT is((SELECT stage FROM limitledger.activate_policy(:later)), 'active', 'a later wildcard of one unit');
SELECT is(available('p', 'late'), 90::bigint, 'cuts nothing of a pair that has a policy of its own');
SELECT is(release('p', 'r1'), 'ACCEPTED RELEASED', 'its hold ends');
SELECT is(drain(:p), 'draining', 'it drains');
SELECT is(retire(:p), :nothing_left, 'and is retired');
SELECT is(reserve('p', 'late', 'r2', 1), 'REFUSED no_policy', 'to nothing: the wildcard has the lower generation');
SELECT sound('a late wildcard');

-- Not to a wildcard that is retired; to one that drains, and is told so.
SELECT at('14:00:00');
SELECT publish('v', 'gone', '{"burst": 10}') AS v \gset
SELECT publish('*', 'gone', '{"burst": 10}') AS w5 \gset
SELECT publish('*', 'gone', '{"burst": 20}') AS w6 \gset
SELECT is(reserve('v', 'gone', 'r1', 1), 'ACCEPTED RESERVED', 'a pair');
SELECT is(release('v', 'r1'), 'ACCEPTED RELEASED', 'with a head');
SELECT is(drain(g), 'draining', 'generation ' || g || ' drains') FROM unnest(ARRAY[:v, :w6]::bigint[]) g;
SAVEPOINT draining;
SELECT is(retire(:v), :nothing_left, 'the exact one retires first');
SELECT is(generation(pair, 'gone'), :w6::bigint, 'it falls to one that drains: ' || pair) FROM unnest(ARRAY['v', 'u']) pair;
SELECT is(reserve(pair, 'gone', 'r2', 1), 'REFUSED draining', 'as others: ' || pair) FROM unnest(ARRAY['v', 'u']) pair;
SELECT is(retire(:w6), :nothing_left, 'until that is retired, too');
SELECT is(reserve(pair, 'gone', 'r2', 1), 'REFUSED no_policy', 'then there is none: ' || pair) FROM unnest(ARRAY['v', 'u']) pair;
ROLLBACK TO draining;
SELECT is(admission('v', 'gone'), 'draining', 'undone: the exact one drains');
SELECT is(retire(:w6), :nothing_left, 'the wildcard retires first');
SELECT at('14:00:10');
SELECT is(retire(:v), :nothing_left, 'then the exact one');
SELECT is(generation('v', 'gone'), :v::bigint, 'it falls to none: neither to that, nor to one before it');
SELECT is(reserve('v', 'gone', 'r2', 1), 'REFUSED no_policy', 'no policy');
SELECT sound('no wildcard left');

-- Debt goes along, also that of generations before (E4).
SELECT at('15:00:00');
SELECT publish('q', 'owe', '{"burst": 100}') AS q1 \gset
SELECT is(reserve('q', 'owe', 'r1', 100, 'o1'), 'ACCEPTED STARTED', 'an execution of 100');
SELECT is(settle('q', 'r1', 'o1', 150), 'ACCEPTED SETTLED_WITH_DEBT', 'takes 150');
SELECT publish('q', 'owe', '{"burst": 200}') AS q2 \gset
SELECT at('15:00:01');
SELECT publish('*', 'owe', continuous(10, '1 second', 1000)) AS w7 \gset
SELECT at('15:00:02');
SELECT is(drain(:q2), 'draining', 'the generation that follows drains');
SELECT is(retire(:q2), :nothing_left, 'and is retired: it owes nothing');
SELECT is(retire(:q1), 'REFUSED draining: 0 reserved, 0 unknown, 50 owed by 1 pairs', 'the one before it does');
SELECT is(debt('q', 'owe'), 50::bigint, 'under the wildcard');
SELECT is(reserve('q', 'owe', 'r2', 1), 'REFUSED debt', 'nothing is admitted');
SELECT at('15:00:08');
SELECT is(reserve('q', 'owe', 'r2', 11), 'REFUSED available', 'its refill pays first');
SELECT is(reserve('q', 'owe', 'r2', 10), 'ACCEPTED RESERVED', 'then admits');
SELECT is(retire(:q1), :nothing_left, 'and the first is done');
SELECT sound('debt at a fall');

-- A clock that stepped back moves neither a retirement nor what follows it (A3).
SELECT at('14:30:00');
SELECT is(drain(:w7), 'draining', 'half an hour earlier');
SELECT is(retire(:w7), 'REFUSED draining: 10 reserved, 0 unknown, 0 owed by 1 pairs', 'a hold is left');
SELECT is(release('q', 'r2'), 'ACCEPTED RELEASED', 'it ends');
SELECT is((SELECT r.retired_at FROM limitledger.retire_policy(:w7) r), '2030-01-01 15:00:08.000001+00', 'no earlier than the switch before');
SELECT is((SELECT p.active_at FROM limitledger.publish_policy(document('*', 'owe')) p), '2030-01-01 15:00:08.000002+00', 'nor what is published then');
SELECT sound('a clock that stepped back');

-- Nor does it hide that a wildcard came before a policy of one subject: what it has cut is gone (B5).
SELECT at('15:30:00');
SELECT publish('*', 'cut', '{"burst": 100}');
SELECT is(reserve('cut', 'cut', 'r1', 1), 'ACCEPTED RESERVED', 'a pair with 99 left');
SELECT at('15:30:10');
SELECT publish('*', 'cut', '{"burst": 5}');
SELECT is(available('cut', 'cut'), 5::bigint, 'a wildcard cuts them to 5');
SELECT at('15:30:05');
SELECT publish('cut', 'cut', '{"burst": 100}');
SELECT is(available('cut', 'cut'), 5::bigint, 'a policy of its own finds no more');
SELECT is(reserve('cut', 'cut', 'r2', 6), 'REFUSED available', 'nor gives any');
SELECT publish('gap', 'gap', '{"burst": 100}') AS gap \gset
SELECT is(reserve('gap', 'gap', 'r1', 1) || ' ' || release('gap', 'r1'), 'ACCEPTED RESERVED ACCEPTED RELEASED', 'a pair with 100');
SELECT publish('*', 'gap', '{"burst": 5}');
SELECT is(drain(:gap) || ', ' || retire(:gap), 'draining, ' || :nothing_left, 'falls to a wildcard');
SELECT publish('gap', 'gap', '{"burst": 100}');
SELECT is(available('gap', 'gap'), 5::bigint, 'which has cut them, though at the same instant');

-- ---- B4, B5: rollback ---------------------------------------------------------------

SELECT at('16:00:00');
SELECT publish('k', 'roll', quota(100)) AS k1 \gset
SELECT is(reserve('k', 'roll', 'r1', 60), 'ACCEPTED RESERVED', '60 of 100');
SELECT publish('k', 'roll', quota(200)) AS k2 \gset
SELECT is(reserve('k', 'roll', 'r2', 100), 'ACCEPTED RESERVED', 'and 100 of 200');
SELECT max(generation) + 1 AS k3 FROM limitledger.policy \gset
SELECT results_eq(format('SELECT * FROM limitledger.rollback_policy(%s, ''too much'')', :k1),
  format('VALUES (%s::bigint, %s::bigint, %s::bigint)', :k3, :k2, :k1), 'rolled back, under a new generation');
SELECT is((SELECT string_agg(p.stage, ' ' ORDER BY generation) FROM limitledger.policies p WHERE subject = 'k'), 'draining draining active', 'the newer one drains');
SELECT is((SELECT document - 'policyGeneration' FROM limitledger.policies WHERE generation = :k3),
  (SELECT document - 'policyGeneration' FROM limitledger.policies WHERE generation = :k1), 'the content is that of the older one');
SELECT results_eq($$SELECT cap, available, deficit, outstanding FROM limitledger.get_budget('k', 'roll')$$,
  'VALUES (100::bigint, 0::bigint, 60::bigint, 160::bigint)', 'what was used stays used');
SELECT is(reserve('k', 'roll', 'r3', 1), 'REFUSED available', 'and nothing is given back');
CREATE TEMP TABLE before ON COMMIT DROP AS SELECT (SELECT count(*) FROM limitledger.policy) AS policies, (SELECT count(*) FROM limitledger.operator_action) AS actions;
SELECT results_eq(format('SELECT * FROM limitledger.rollback_policy(%s, ''again'')', :k1),
  format('VALUES (%s::bigint, %s::bigint, %s::bigint)', :k3, :k2, :k1), 'a lost reply is harmless');
SELECT results_eq(format('SELECT * FROM limitledger.rollback_policy(%s, ''again'')', :k3),
  format('VALUES (%s::bigint, NULL::bigint, %s::bigint)', :k3, :k3), 'what is in force is there already');
SELECT results_eq('SELECT (SELECT count(*) FROM limitledger.policy), (SELECT count(*) FROM limitledger.operator_action)', 'TABLE before', 'neither wrote anything down');
SELECT is((SELECT string_agg((action, route, reason)::text, ' ') FROM limitledger.operator_actions WHERE subject = 'k'),
  '(rollback_policy,roll,"too much")', 'the first did');
SELECT sound('rolled back');

-- Forward again is a rollback, too, and nothing was gained on the way.
SELECT generation AS k4 FROM limitledger.rollback_policy(:k2, 'after all') \gset
SELECT is(available('k', 'roll'), 40::bigint, '200 less 160');
SELECT is(release('k', 'r1'), 'ACCEPTED RELEASED', 'the first hold ends');
SELECT is(release('k', 'r2'), 'ACCEPTED RELEASED', 'and the second');
SELECT is(available('k', 'roll'), 200::bigint, 'all is there, once');

-- The way back from draining, and from retirement.
SELECT is(drain(:k4), 'draining', 'drained');
SELECT is((SELECT (p.generation, p.stage, p.already_published)::text FROM limitledger.publish_policy(document('k', 'roll', quota(200))) p),
  format('(%s,draining,t)', :k4), 'a repeated publish does not revive it');
SELECT results_eq(format('SELECT * FROM limitledger.rollback_policy(%s, ''resume'')', :k4),
  format('VALUES (%s::bigint, %s::bigint, %s::bigint)', :k4 + 1, :k4, :k4), 'a rollback does, under a new generation');
SELECT is(reserve('k', 'roll', 'r5', 200), 'ACCEPTED RESERVED', 'which admits');
SELECT is(release('k', 'r5'), 'ACCEPTED RELEASED', 'and takes back');
SELECT is(drain(:k4 + 1), 'draining', 'drained again');
SELECT is(retire(:k4 + 1), :nothing_left, 'and retired');
SELECT is(reserve('k', 'roll', 'r6', 1), 'REFUSED no_policy', 'no policy');
SELECT results_eq(format('SELECT * FROM limitledger.rollback_policy(%s, ''bring it back'')', :k1),
  format('VALUES (%s::bigint, %s::bigint, %s::bigint)', :k4 + 2, :k4 + 1, :k1), 'a rollback from what is retired');
SELECT is(available('k', 'roll'), 100::bigint, 'its content is in force');
SELECT sound('rolled back from draining and from retirement');

-- ---- policy_diff ------------------------------------------------------------------

SELECT publish('m', 'diff', continuous(1, '1 second', 100) || '{"largestReservation": 100}') AS m \gset
CREATE TEMP TABLE differing (n serial, patch jsonb, without text[] DEFAULT '{}', shown text) ON COMMIT DROP;
INSERT INTO differing (patch, shown) VALUES
  ('{}', NULL),
  ('{"policyGeneration": 1}', NULL),
  ('{"burst": 100.0}', NULL),
  ('{"region": "eu"}', 'region: * -> eu'),
  ('{"unit": "request"}', 'unit: tokens -> request'),
  ('{"refill": {"kind": "continuous", "units": 2, "interval": "1 second"}}', 'refill.units: 1 -> 2'),
  ('{"refill": {"kind": "continuous", "units": 1, "interval": "PT1S"}}', 'refill.interval: 1 second -> PT1S'),
  ('{"refill": {"kind": "none"}}', 'refill.interval: 1 second -> NULL, refill.kind: continuous -> none, refill.units: 1 -> NULL'),
  ('{"burst": 9223372036854775807}', 'burst: 100 -> 9223372036854775807'),
  ('{"epoch": {"length": "1 day"}}', 'epoch.length: 1 hour -> 1 day'),
  ('{"epoch": {"calendar": "day", "timeZone": "UTC"}}', 'epoch.calendar: NULL -> day, epoch.length: 1 hour -> NULL, epoch.timeZone: NULL -> UTC'),
  (jsonb_build_object('estimatorDigests', jsonb_build_array('sha256:' || repeat('0a', 32))), 'estimatorDigests: [] -> ["sha256:' || repeat('0a', 32) || '"]'),
  ('{"largestReservation": 99}', 'largestReservation: 100 -> 99'),
  ('{"largestOutstanding": 100}', 'largestOutstanding: NULL -> 100'),
  ('{"holdTtl": "31 seconds"}', 'holdTtl: 30 seconds -> 31 seconds'),
  ('{"executionTtl": "11 minutes"}', 'executionTtl: 10 minutes -> 11 minutes'),
  ('{"hardExecutionLimit": 1}', 'hardExecutionLimit: 1000000 -> 1'),
  ('{"maximumOverdraft": 0}', 'maximumOverdraft: 500 -> 0'),
  ('{"priority": -1}', 'priority: 0 -> -1'),
  ('{"weight": 2}', 'weight: 1 -> 2'),
  ('{"fairnessBudget": 1}', 'fairnessBudget: 0 -> 1'),
  ('{"retention": "2 days"}', 'retention: 1 day -> 2 days'),
  ('{"emergencyMode": "enabled", "emergencyShare": 5, "shardTtl": "1 h"}',
   'emergencyMode: NULL -> enabled, emergencyShare: NULL -> 5, shardTtl: NULL -> 1 h'),
  ('{"weight": 2, "region": "eu"}', 'region: * -> eu, weight: 1 -> 2');
INSERT INTO differing (patch, without, shown) VALUES
  ('{"refill": {"kind": "window", "quota": 100}}', '{burst}',
   'burst: 100 -> NULL, refill.interval: 1 second -> NULL, refill.kind: continuous -> window, refill.quota: NULL -> 100, refill.units: 1 -> NULL');
SELECT is(diff(((SELECT document - 'policyGeneration' FROM limitledger.policies WHERE generation = :m) || patch) - without), shown,
          'diff: ' || coalesce(shown, patch::text))
FROM differing ORDER BY n;
SELECT set_eq(
  $$SELECT DISTINCT split_part(regexp_split_to_table(shown, ', '), ':', 1) FROM differing WHERE shown IS NOT NULL$$,
  $$SELECT unnest(ARRAY['region', 'unit', 'refill.kind', 'refill.units', 'refill.interval', 'refill.quota', 'burst', 'epoch.length',
    'epoch.calendar', 'epoch.timeZone', 'estimatorDigests', 'largestReservation', 'largestOutstanding', 'holdTtl', 'executionTtl',
    'hardExecutionLimit', 'maximumOverdraft', 'priority', 'weight', 'fairnessBudget', 'retention', 'emergencyMode', 'emergencyShare', 'shardTtl'])$$, 'no field was left out');

-- Against what would decide a request: the wildcard, an exact policy, or nothing.
SELECT is((SELECT count(*) FROM limitledger.policy_diff(document('n', 'diff'))), 18::bigint, 'nothing in force: every field');
SELECT is((SELECT count(*) FROM limitledger.policy_diff(document('n', 'diff')) WHERE in_force IS NOT NULL), 0::bigint, 'from nothing');
SELECT publish('*', 'diff', '{"burst": 50}') AS w8 \gset
SELECT is(diff(document('n', 'diff', '{"burst": 50}')), 'subject: * -> n', 'a first policy of its own: the subject alone');
SELECT is(diff(document('*', 'diff', '{"burst": 50}')), NULL, 'the wildcard with itself');
SELECT is(diff(document('m', 'diff', continuous(1, '1 second', 100))), NULL, 'the exact policy with itself');
SELECT is((SELECT g.stage FROM limitledger.publish_policy(document('m', 'diff', '{"burst": 7}'), false) g), 'published', 'what is published and not active');
SELECT is(diff(document('m', 'diff', continuous(1, '1 second', 100))), NULL, 'is not in force');
SELECT is(drain(:m), 'draining', 'what drains');
SELECT is((SELECT count(*) FROM limitledger.policy_diff(document('m', 'diff')) WHERE in_force IS NOT NULL), 0::bigint, 'is not, nor is the wildcard');
SELECT is(retire(:m), :nothing_left, 'retired');
SELECT is(diff(document('m', 'diff', '{"burst": 50}')), 'subject: * -> m', 'it falls to the wildcard, which was published after it');
SELECT is(drain(:w8), 'draining', 'which drains');
SELECT is((SELECT count(*) FROM limitledger.policy_diff(document('*', 'diff')) WHERE in_force IS NOT NULL), 0::bigint, 'then nothing is');
SELECT sound('at the end');

SELECT * FROM finish();
ROLLBACK;
