-- freeze_route and unfreeze_route: an operator stops every pair of a route at once,
-- and opens it again (D8).
--
-- Fails when: a pair of a frozen route admits or is extended, another route stops, what
-- runs is not settled, a pair's own freeze is lifted with its route, or nobody says why.

BEGIN;
\ir helpers.psql
SELECT plan(44);

CREATE FUNCTION helpers.stop(route text, reason text) RETURNS text LANGUAGE sql AS $$
  SELECT concat_ws(' ', f.outcome, CASE WHEN f.already_frozen THEN 'already' END, to_char(f.frozen_at AT TIME ZONE 'UTC', 'HH24:MI:SS'))
  FROM limitledger.freeze_route(route, reason) f
$$;
CREATE FUNCTION helpers.go_on(route text, reason text) RETURNS text LANGUAGE sql AS $$
  SELECT concat_ws(' ', f.outcome, CASE WHEN NOT f.was_frozen THEN 'was open' END) FROM limitledger.unfreeze_route(route, reason) f
$$;
CREATE FUNCTION helpers.why(subject text, route text) RETURNS text LANGUAGE sql AS $$
  SELECT concat_ws(': ', b.admission, b.frozen_reason) FROM limitledger.get_budget(subject, route) b
$$;

SELECT at('10:00:00');
SELECT publish('*', 'chat', continuous(10, '1 second', 1000));
SELECT publish('own', 'chat');
SELECT publish('*', 'embed');
SELECT is(reserve('t1', 'chat', 'run', 200, 'o run'), 'ACCEPTED STARTED', 'an execution');
SELECT is(reserve('t1', 'chat', 'held', 100), 'ACCEPTED RESERVED', 'a hold');
SELECT is(reserve('t1', 'chat', 'back', 100), 'ACCEPTED RESERVED', 'and one');

SELECT is(stop('chat', 'provider is down'), 'ACCEPTED 10:00:00', 'the route is frozen');
SELECT results_eq($$SELECT outcome, dimension, retry_after_ms, retry_kind FROM limitledger.reserve_capacity('t1', 'chat', 'new', 1, sha256('new'))$$,
  $$VALUES ('REFUSED', 'frozen', NULL::bigint, 'operator')$$, 'nothing is admitted');
SELECT is(reserve('t2', 'chat', 'new', 1), 'REFUSED frozen', 'for a pair that nobody has met, either');
SELECT is(reserve('own', 'chat', 'new', 1), 'REFUSED frozen', 'or that has a policy of its own');
SELECT is(reserve('t1', 'embed', 'embedding', 1), 'ACCEPTED RESERVED', 'another route goes on');
SELECT is(reserve('t1', 'chat', 'held', 100), 'ACCEPTED RESERVED replayed', 'a receipt is still a receipt');
SELECT is((SELECT concat_ws(' ', outcome, dimension, retry_kind) FROM limitledger.extend_reservation('t1', 'held', 'e', 1)), 'REFUSED frozen operator', 'an extension is admission');
SELECT is(start('t1', 'held', 'o held'), 'ACCEPTED STARTED', 'what is held can run');
SELECT is(settle('t1', 'run', 'o run', 300), 'ACCEPTED SETTLED', 'settlement goes on');
SELECT is(release('t1', 'back'), 'ACCEPTED RELEASED', 'so does release');
SELECT is(why('t1', 'chat'), 'frozen: provider is down', 'get_budget says so, and why');
SELECT is(why('t2', 'chat'), 'frozen: provider is down', 'of every pair');
SELECT is(why('t1', 'embed'), 'open', 'of the route');
SELECT is((SELECT string_agg(concat_ws(' ', outcome, dimension), ', ' ORDER BY element) FROM limitledger.reserve_capacity_batch(
  ARRAY['t1', 't1'], ARRAY['chat', 'embed'], ARRAY['b1', 'b2'], ARRAY[1, 1]::bigint[], array_fill(sha256('b'), ARRAY[2]), require_all => true)),
  'REFUSED frozen, REFUSED require_all', 'a limit on a frozen route says no like any other');

-- Once, with the first reason.
SELECT at('10:00:05');
CREATE TEMP TABLE before ON COMMIT DROP AS SELECT image() AS rows;
SELECT is(stop('chat', 'another reason'), 'ACCEPTED already 10:00:00', 'frozen twice');
SELECT is(image(), (SELECT rows FROM before), 'changes no row');
SELECT is((SELECT string_agg(concat_ws(' ', route, reason, to_char(frozen_at AT TIME ZONE 'UTC', 'HH24:MI:SS'), age), ', ') FROM limitledger.frozen_routes),
  'chat provider is down 10:00:00 00:00:05', 'the listing');

-- Whatever else changes, the route stays frozen.
SELECT publish('*', 'chat', continuous(20, '1 second', 2000));
SELECT is(reserve('t1', 'chat', 'new', 1), 'REFUSED frozen', 'a generation opens it not');
SELECT at('11:00:00');
SELECT is(reserve('t1', 'chat', 'new', 1), 'REFUSED frozen', 'nor an epoch');
SELECT is((SELECT concat_ws(' ', outcome, admission) FROM limitledger.unfreeze('t1', 'chat', 'this one')), 'ACCEPTED frozen', 'nor the opening of a pair');

-- A pair's own freeze and its debt outlive that of the route.
SELECT is((SELECT concat_ws(' ', outcome, admission) FROM limitledger.freeze('t3', 'chat', 'abuse')), 'ACCEPTED frozen', 'a pair of its own');
SELECT is(why('t3', 'chat'), 'frozen: abuse', 'shows its own reason');
SELECT is((SELECT outcome FROM limitledger.record_usage('t4', 'chat', 'ran', 2100)), 'ACCEPTED', 'usage is booked');
SELECT is(go_on('chat', 'provider is back'), 'ACCEPTED', 'the route is opened');
SELECT is(why('t3', 'chat'), 'frozen: abuse', 'this pair is not');
SELECT is(why('t4', 'chat'), 'suspended', 'nor one that owes');
SELECT is(reserve('t1', 'chat', 'new', 1), 'ACCEPTED RESERVED', 'the others are');
SELECT is(reserve('own', 'chat', 'new', 1), 'ACCEPTED RESERVED', 'all of them');
UPDATE before SET rows = image();
SELECT is(go_on('chat', 'again'), 'ACCEPTED was open', 'opened twice');
SELECT is(image(), (SELECT rows FROM before), 'changes no row');
SELECT is_empty('SELECT * FROM limitledger.frozen_routes', 'nothing is listed');

-- A route without a policy can be frozen before it gets one.
SELECT is(stop('later', 'not yet'), 'ACCEPTED 11:00:00', 'frozen first');
SELECT is(reserve('t1', 'later', 'r', 1), 'REFUSED no_policy', 'there is none');
SELECT publish('*', 'later');
SELECT is(reserve('t1', 'later', 'r', 1), 'REFUSED frozen', 'now there is one');
SELECT is(go_on('later', 'now'), 'ACCEPTED', 'opened');
SELECT is(reserve('t1', 'later', 'r', 1), 'ACCEPTED RESERVED', 'it admits');

SELECT is((SELECT string_agg(format('%s %s by %s on %s %s: %s', to_char(acted_at AT TIME ZONE 'UTC', 'HH24:MI'), action, CASE actor WHEN current_user THEN 'me' END, subject, route, reason),
                             ', ' ORDER BY acted_at, action, route) FROM limitledger.operator_actions WHERE action LIKE '%_route'),
  '10:00 freeze_route by me on * chat: provider is down, 11:00 freeze_route by me on * later: not yet, '
  '11:00 unfreeze_route by me on * chat: provider is back, 11:00 unfreeze_route by me on * later: now', 'who did what, and why');

-- A savepoint that is rolled back leaves nothing behind, in this session's cache least of all (F5).
SAVEPOINT stopped;
SELECT is(stop('chat', 'oops'), 'ACCEPTED 11:00:00', 'frozen');
SELECT is(reserve('t1', 'chat', 'next', 1), 'REFUSED frozen', 'for a moment');
ROLLBACK TO stopped;
SELECT is(reserve('t1', 'chat', 'next', 1), 'ACCEPTED RESERVED', 'and never was');
SELECT sound('at the end');

SELECT * FROM finish();
ROLLBACK;
