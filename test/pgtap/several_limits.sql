-- Several limits in one decision: all or nothing, the refusal names every limit that
-- said no and the longest wait, and no limit is charged for another's refusal (J2).
--
-- Fails when: a limit that would admit keeps its units although another one refused,
-- a refused batch writes anything, or a limit that said no is not named.

BEGIN;
\ir helpers.psql
SELECT plan(35);

SELECT at('10:00:00');
SELECT publish('*', 'tokens', continuous(10, '1 second', 1000));
SELECT publish('*', 'requests', quota(2));
SELECT publish('*', 'places', '{"burst": 1}');

-- all_of: one request under a limit of tokens and one of requests, and its
-- organisation's tokens; answers in one line.
CREATE FUNCTION all_of(id text, tokens bigint, subject text DEFAULT 't', organisation text DEFAULT 'org') RETURNS text
LANGUAGE sql AS $$
  SELECT string_agg(concat_ws(' ', r.outcome, coalesce(r.dimension, r.state), r.retry_kind, r.retry_after_ms), ', ' ORDER BY element)
  FROM limitledger.reserve_capacity_batch(
    ARRAY[subject, subject, organisation], ARRAY['tokens', 'requests', 'tokens'],
    ARRAY[id || '/tokens', id || '/requests', id], ARRAY[tokens, 1, tokens],
    array_fill(sha256(convert_to(id, 'UTF8')), ARRAY[3]), require_all => true) r
$$;
CREATE FUNCTION left_over() RETURNS text
LANGUAGE sql AS $$
  SELECT string_agg(concat_ws(' ', subject, route, available, reserved), ', ' ORDER BY subject, route) FROM limitledger.budgets
$$;

SELECT is(all_of('a', 600), 'ACCEPTED RESERVED, ACCEPTED RESERVED, ACCEPTED RESERVED', 'every limit has room');
SELECT is(left_over(), 'org tokens 400 600, t requests 1 1, t tokens 400 600', 'and every one is charged');
SELECT is(all_of('a', 600), 'ACCEPTED RESERVED, ACCEPTED RESERVED, ACCEPTED RESERVED', 'the same again: its receipts');
SELECT is(left_over(), 'org tokens 400 600, t requests 1 1, t tokens 400 600', 'charged once');

-- One says no: the subject's tokens.  The other two are left as they were.
CREATE TEMP TABLE before ON COMMIT DROP AS SELECT image() AS rows;
SELECT is(all_of('b', 500),
  'REFUSED available refill 10000, REFUSED require_all refill 10000, REFUSED available refill 10000', 'two say no, the third waits as long');
SELECT is(image(), (SELECT rows FROM before), 'no row of any table changed');
SELECT is(all_of('b', 500, 'u'),
  'REFUSED require_all refill 10000, REFUSED require_all refill 10000, REFUSED available refill 10000', 'the organisation says no to another subject');
SELECT is(image(), (SELECT rows FROM before), 'whose pairs do not come into being by it');
SELECT is(limitledger.get_reservation('t', 'b/tokens')::text ~ 'UNKNOWN', true, 'the ids are not burned');

-- The longest wait is told to all, whichever limit it is of.
SELECT is(all_of('c', 300), 'ACCEPTED RESERVED, ACCEPTED RESERVED, ACCEPTED RESERVED', 'the last request of the window');
SELECT is(all_of('d', 200),
  'REFUSED available refill 10000, REFUSED available refill 3600000, REFUSED available refill 10000', 'each limit says its own wait');
SELECT is(all_of('d', 50),
  'REFUSED require_all refill 3600000, REFUSED available refill 3600000, REFUSED require_all refill 3600000', 'and the longest of them to the others');
SELECT is(all_of('d', 1001),
  'REFUSED largest_reservation never, REFUSED available refill 3600000, REFUSED largest_reservation never', 'what can never fit says so');
SELECT at('11:00:00');
SELECT is(all_of('d', 50), 'ACCEPTED RESERVED, ACCEPTED RESERVED, ACCEPTED RESERVED', 'after the wait it is admitted at the first try');

-- Rejected in one, charged in none: a limit of requests and one of places.
CREATE FUNCTION visit(id text) RETURNS text
LANGUAGE sql AS $$
  SELECT string_agg(concat_ws(' ', outcome, coalesce(dimension, state)), ', ' ORDER BY element)
  FROM limitledger.reserve_capacity_batch(ARRAY['v', 'v'], ARRAY['requests', 'places'], ARRAY[id || '/r', id || '/p'],
    ARRAY[1, 1]::bigint[], array_fill(sha256('v'), ARRAY[2]), start_operations => ARRAY[id || '/r', id || '/p'], require_all => true)
$$;
CREATE FUNCTION leave(id text) RETURNS text
LANGUAGE sql AS $$
  SELECT string_agg(concat_ws(' ', r.outcome, r.state, r.actual_units), ', ' ORDER BY element)
  FROM limitledger.settle_usage_batch(ARRAY['v', 'v'], ARRAY[id || '/r', id || '/p'], ARRAY[id || '/r', id || '/p'], ARRAY[1, 0]::bigint[]) r
$$;
SELECT is(visit('A'), 'ACCEPTED STARTED, ACCEPTED STARTED', 'A holds the place');
SELECT is(visit('B'), 'REFUSED require_all, REFUSED available', 'B is refused for the place');
SELECT is((SELECT available FROM limitledger.get_budget('v', 'requests')), 1::bigint, 'and no request was charged to B');
SELECT is(leave('A'), 'ACCEPTED SETTLED 1, ACCEPTED SETTLED 0', 'A leaves: its request is used, its place is free');
SELECT is(visit('C'), 'ACCEPTED STARTED, ACCEPTED STARTED', 'C is admitted');
SELECT is(leave('C'), 'ACCEPTED SETTLED 1, ACCEPTED SETTLED 0', 'and leaves');
SELECT is(visit('D'), 'REFUSED available, REFUSED require_all', 'D is refused for the requests, which are two');

-- A conflict is a no like any other, and an id twice in one batch is one request.
SELECT is((SELECT string_agg(concat_ws(' ', outcome, coalesce(dimension, state)), ', ' ORDER BY element)
  FROM limitledger.reserve_capacity_batch(ARRAY['t', 'w'], ARRAY['tokens', 'tokens'], ARRAY['a/tokens', 'w1'], ARRAY[1, 1]::bigint[],
    array_fill(sha256('other'), ARRAY[2]), require_all => true)), 'CONFLICT request, REFUSED require_all', 'a conflict refuses all');
SELECT is((SELECT string_agg(concat_ws(' ', outcome, coalesce(dimension, state)), ', ' ORDER BY element)
  FROM limitledger.reserve_capacity_batch(ARRAY['w', 'w', 'w'], ARRAY['tokens', 'tokens', 'places'], ARRAY['w1', 'w1', 'w2'], ARRAY[1, 1, 2]::bigint[],
    array_fill(sha256('w'), ARRAY[3]), require_all => true)), 'REFUSED require_all, REFUSED require_all, REFUSED largest_reservation', 'a repeated id is refused with the first of it');
SELECT is((SELECT string_agg(concat_ws(' ', outcome, coalesce(dimension, state), CASE WHEN replayed THEN 'replayed' END), ', ' ORDER BY element)
  FROM limitledger.reserve_capacity_batch(ARRAY['w', 'w', 'w'], ARRAY['tokens', 'tokens', 'places'], ARRAY['w1', 'w1', 'w2'], ARRAY[1, 1, 1]::bigint[],
    array_fill(sha256('w'), ARRAY[3]), require_all => true)), 'ACCEPTED RESERVED, ACCEPTED RESERVED replayed, ACCEPTED RESERVED', 'or replays it');
SELECT is((SELECT string_agg(concat_ws(' ', outcome, coalesce(dimension, state)), ', ' ORDER BY element)
  FROM limitledger.reserve_capacity_batch(ARRAY['x', 'x'], ARRAY['tokens', 'tokens'], ARRAY['x1', 'x1'], ARRAY[10, 20]::bigint[],
    array_fill(sha256('x'), ARRAY[2]), require_all => true)), 'REFUSED require_all, CONFLICT request', 'one id for two requests: neither');
SELECT is((SELECT state FROM limitledger.get_reservation('x', 'x1')), 'RESERVATION_UNKNOWN', 'and nothing is stored under it');
-- Usage that was recorded is not unheard of where there is no policy (D12).
SELECT is((SELECT string_agg(concat_ws(' ', outcome, dimension), ', ' ORDER BY n) FROM (
  SELECT 1 AS n, r.outcome, r.dimension FROM limitledger.record_usage('y', 'tokens', 'op', 7) r
  UNION ALL SELECT 2, r.outcome, r.dimension FROM limitledger.record_usage('y', 'no policy', 'op', 7) r
  UNION ALL SELECT 3, r.outcome, r.dimension FROM limitledger.record_usage('y', 'no policy', 'other', 7) r) a),
  'ACCEPTED, CONFLICT figures, REFUSED no_policy', 'the same operation elsewhere is a conflict');
SELECT throws_ok($$SELECT * FROM limitledger.reserve_capacity_batch(ARRAY['t'], ARRAY['tokens'], ARRAY['x'], ARRAY[1]::bigint[], ARRAY[sha256('x')], require_all => NULL)$$,
  'LL101', 'require_all must not be NULL', 'yes or no');

-- A retry among which one hold was given back, or fenced, meanwhile: nothing is admitted
-- beside what holds nothing any more.
CREATE FUNCTION both_of(a text, b text) RETURNS text
LANGUAGE sql AS $$
  SELECT string_agg(concat_ws(' ', outcome, coalesce(dimension, state), retry_kind, CASE WHEN replayed THEN 'replayed' END), ', ' ORDER BY element)
  FROM limitledger.reserve_capacity_batch(ARRAY['z', 'z'], ARRAY['tokens', 'requests'], ARRAY[a, b], ARRAY[1, 1]::bigint[],
    ARRAY[sha256(convert_to(a, 'UTF8')), sha256(convert_to(b, 'UTF8'))], require_all => true)
$$;
SELECT is(resolve('z', 'z1'), 'ACCEPTED RELEASED', 'an id is fenced');
SELECT is(both_of('z1', 'z2'), 'ACCEPTED RELEASED replayed, REFUSED require_all never', 'the other one is not admitted');
SELECT is(both_of('z3', 'z4') || '; ' || release('z', 'z4') || '; ' || both_of('z3', 'z4'),
  'ACCEPTED RESERVED, ACCEPTED RESERVED; ACCEPTED RELEASED; ACCEPTED RESERVED replayed, ACCEPTED RELEASED replayed', 'a batch that was admitted is replayed as it stands');
SELECT is(both_of('z3', 'z5') || '; ' || both_of('z3', 'z4'),
  'ACCEPTED RESERVED replayed, ACCEPTED RESERVED; ACCEPTED RESERVED replayed, ACCEPTED RELEASED replayed', 'what holds its units is company, and what is admitted stays');

-- A due hold in the way is ended first, as for a single reserve (D14).
SELECT is(all_of('e', 1000, 'e', 'e-org'), 'ACCEPTED RESERVED, ACCEPTED RESERVED, ACCEPTED RESERVED', 'all of it is held');
SELECT at('11:01:00');
SELECT is(all_of('f', 1000, 'e', 'e-org'), 'ACCEPTED RESERVED, ACCEPTED RESERVED, ACCEPTED RESERVED', 'the holds that ran out make room');
SELECT is_empty('SELECT * FROM limitledger.verify_conservation()', 'the books are in order');

SELECT * FROM finish();
ROLLBACK;
