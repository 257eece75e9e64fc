-- The three kinds of refill (C4, A3, B2), and units that come back to a bucket that
-- was refilled during the hold.
--
-- Fails when: a fraction is dropped or kept where it must not be, a bucket overflows,
-- or a clock that steps back mints.

BEGIN;
\ir helpers.psql
SELECT plan(151);

-- Continuous: 10 units a second, burst 100.
SELECT at('10:00:00');
SELECT publish('c', 'chat', continuous(10, '1 second', 100));
SELECT is(reserve('c', 'chat', 'all', 100), 'ACCEPTED RESERVED', 'the first budget opens at the burst');
SELECT at('10:00:00.099999');
SELECT is(available('c', 'chat'), 0::bigint, 'a unit takes a tenth of a second');
SELECT is(reserve('c', 'chat', 'r1', 1), 'REFUSED available', 'and is not given earlier');
SELECT at('10:00:00.1');
SELECT is(available('c', 'chat'), 1::bigint, 'then it is there');
SELECT is(reserve('c', 'chat', 'r1', 1), 'ACCEPTED RESERVED', 'and given');
SELECT is(equation('c', 'chat'), '100 + 1 + 0 = 0 + 101 + 0 + 0 + 0', 'as minted');
SELECT at('10:59:59');
SELECT is(available('c', 'chat'), 100::bigint, 'a bucket never holds more than the burst');
SELECT is((SELECT cap FROM limitledger.get_budget('c', 'chat')), 100::bigint, 'which is the cap');

-- One late call gives what many early ones give: settlements at odd instants write
-- the budget of one pair again and again, that of the other once, at the end.
SELECT at('10:00:00');
SELECT publish(pair, 'chat', continuous(7, '1 minute', 1000) || '{"executionTtl": "10 hours"}') FROM unnest(ARRAY['early', 'late']) pair;
SELECT is(reserve(pair, 'chat', 'r' || n, 10, 'o' || n), 'ACCEPTED STARTED', pair || ' started ' || n)
FROM unnest(ARRAY['early', 'late']) pair, generate_series(1, 40) n;
DO $$
BEGIN
  FOR n IN 1 .. 40 LOOP
    PERFORM at(timestamptz '2030-01-01 10:00:00+00' + n * interval '37.123457 seconds');
    ASSERT settle('early', 'r' || n, 'o' || n, 10) = 'ACCEPTED SETTLED';
  END LOOP;
END $$;
SELECT is((SELECT count(*) FILTER (WHERE settle('late', 'r' || n, 'o' || n, 10) = 'ACCEPTED SETTLED') FROM generate_series(1, 40) n), 40::bigint,
  'forty at the end');
SELECT is(available('early', 'chat'), 600 + floor(40 * 37.123457 * 7 / 60)::bigint, 'the early one has what the time has brought');
SELECT results_eq(
  $$SELECT available, minted, remainder FROM limitledger.head_budget WHERE subject = 'early'$$,
  $$SELECT available, minted, remainder FROM limitledger.head_budget WHERE subject = 'late'$$, 'and the late one the same, to the fraction');

-- The fraction is dropped while the bucket is full and free of debt, and only then.
SELECT at('10:00:00');
SELECT publish('f', 'chat', continuous(1, '10 seconds', 10));
SELECT is(reserve('f', 'chat', 'r1', 1), 'ACCEPTED RESERVED', 'full until now');
SELECT is(release('f', 'r1'), 'ACCEPTED RELEASED', 'and full again');
SELECT at('10:00:05');
SELECT is(reserve('f', 'chat', 'r2', 1), 'ACCEPTED RESERVED', 'half a unit''s time later');
SELECT at('10:00:14.999999');
SELECT is(available('f', 'chat'), 9::bigint, 'it does not count');
SELECT at('10:00:15');
SELECT is(available('f', 'chat'), 10::bigint, 'the unit takes its whole time');
SELECT publish('g', 'chat', continuous(1, '10 seconds', 10));
SELECT is(reserve('g', 'chat', 'r1', 2), 'ACCEPTED RESERVED', 'two are missing');
SELECT at('10:00:20');
SELECT is(reserve('g', 'chat', 'r2', 1), 'ACCEPTED RESERVED', 'half a unit''s time later');
SELECT at('10:00:25');
SELECT is(available('g', 'chat'), 8::bigint, 'it counts');

-- Units that come back to a full bucket were refilled during the hold: un-minted.
SELECT at('10:00:00');
SELECT publish('u', 'return', continuous(10, '1 second', 100));
SELECT is(reserve('u', 'return', 'r1', 50), 'ACCEPTED RESERVED', 'half of it');
SELECT at('10:00:05');
SELECT is(release('u', 'r1'), 'ACCEPTED RELEASED', 'comes back when it has been refilled');
SELECT is(equation('u', 'return'), '100 + 0 + 0 = 100 + 0 + 0 + 0 + 0', 'what exceeds the cap is un-minted');
SELECT is((SELECT burned FROM limitledger.get_budget('u', 'return')), 50::bigint, 'and counted as burned');
SELECT is(reserve('u', 'return', 'r2', 50, 'o2'), 'ACCEPTED STARTED', 'half of it again');
SELECT at('10:00:08');
SELECT is(settle('u', 'r2', 'o2', 20), 'ACCEPTED SETTLED', 'thirty come back, thirty were refilled');
SELECT is(equation('u', 'return'), '100 + 20 + 0 = 100 + 0 + 20 + 0 + 0', 'ten were over the cap');
SELECT is((SELECT burned FROM limitledger.get_budget('u', 'return')), 60::bigint, 'and burned');
SELECT sound('units that came back');

-- Released units can be reserved again: what is held at once is bounded by the largest
-- outstanding, if there is one.
SELECT at('10:00:00');
SELECT publish('o', 'outstanding', continuous(100, '1 second', 100) || '{"largestOutstanding": 150}');
SELECT is(reserve('o', 'outstanding', 'r1', 100), 'ACCEPTED RESERVED', 'held');
SELECT at('10:00:01');
SELECT is(reserve('o', 'outstanding', 'r2', 50), 'ACCEPTED RESERVED', 'refilled and held up to the largest outstanding');
SELECT results_eq($$SELECT outcome, dimension, retry_kind, retry_after_ms FROM limitledger.reserve_capacity('o', 'outstanding', 'r3', 1, sha256('r3'))$$,
  $$VALUES ('REFUSED', 'largest_outstanding', 'release', NULL::bigint)$$, 'and no more, though it is available');
SELECT is(release('o', 'r2'), 'ACCEPTED RELEASED', 'once something is released');
SELECT is(reserve('o', 'outstanding', 'r3', 1), 'ACCEPTED RESERVED', 'it goes on');
SELECT is(start('o', 'r1', 'o1'), 'ACCEPTED STARTED', 'what runs counts too');
SELECT is(reserve('o', 'outstanding', 'r4', 50), 'REFUSED largest_outstanding', 'as what is held');
SELECT at('10:00:31');
SELECT is(reserve('o', 'outstanding', 'r4', 50), 'ACCEPTED RESERVED', 'a due hold is ended before that refusal');

-- Window: the quota once an epoch.
SELECT at('10:30:00');
SELECT publish('w', 'window', quota(1000) || '{"holdTtl": "2 hours"}');
SELECT is(reserve('w', 'window', 'r1', 600, 'o1'), 'ACCEPTED STARTED', 'a window opens with its quota, however late');
SELECT is(settle('w', 'r1', 'o1', 500), 'ACCEPTED SETTLED', 'units come back within it');
SELECT is(equation('w', 'window'), '1000 + 0 + 0 = 500 + 0 + 500 + 0 + 0', 'and can be used again');
SELECT is(reserve('w', 'window', 'r2', 500), 'ACCEPTED RESERVED', 'down to nothing');
SELECT at('10:59:59.999999');
SELECT is(reserve('w', 'window', 'r3', 1), 'REFUSED available', 'nothing comes before its end');
SELECT at('11:00:00');
SELECT is(equation('w', 'window'), '1000 + 0 + 0 = 1000 + 0 + 0 + 0 + 0', 'the next one is shown as it will open');
SELECT is(reserve('w', 'window', 'r3', 1000), 'ACCEPTED RESERVED', 'and opens with its quota');
SELECT is(closed('w', 'window', 1), '1000 + 0 + 0 = 0 + 500 + 500 + 0 + 0', 'the closed one keeps its equation');
SELECT is((SELECT epoch FROM limitledger.get_budget('w', 'window')), '2030-01-01 11:00:00+00'::timestamptz, 'its epoch is its start');

-- None: only what is given back.
SELECT publish('n', 'chat');
SELECT is(reserve('n', 'chat', 'r1', 1000), 'ACCEPTED RESERVED', 'everything');
SELECT at(timestamptz '2031-01-01 00:00:00+00');
SELECT is(available('n', 'chat'), 0::bigint, 'no time brings a unit');
SELECT is(release('n', 'r1'), 'ACCEPTED RELEASED', 'a release does');
SELECT is(available('n', 'chat'), 1000::bigint, 'however many epochs later');
SELECT sound('after a year');

-- A clock that steps back mints nothing and moves no deadline earlier (A3).
SELECT at('10:00:00');
SELECT publish('b', 'back', continuous(10, '1 second', 100));
SELECT is(reserve('b', 'back', 'r1', 100), 'ACCEPTED RESERVED', 'at ten');
SELECT at('10:00:05');
SELECT is(reserve('b', 'back', 'r2', 10), 'ACCEPTED RESERVED', 'five seconds later');
SELECT at('10:00:01');
SELECT is(available('b', 'back'), 40::bigint, 'four seconds back: what was there stays');
SELECT is((SELECT expires_at FROM limitledger.reserve_capacity('b', 'back', 'r3', 10, sha256('r3'))), '2030-01-01 10:00:35+00'::timestamptz,
  'a hold runs from the latest instant that was seen');
SELECT at('10:00:05');
SELECT is(available('b', 'back'), 30::bigint, 'back where it was: nothing was minted twice');
SELECT at('10:00:06');
SELECT is(available('b', 'back'), 40::bigint, 'a second on: a second''s units');
SELECT at('09:00:00');
SELECT is(reserve('b', 'back', 'r4', 30), 'ACCEPTED RESERVED', 'an epoch back: the head stays the head');
SELECT is((SELECT epoch FROM limitledger.get_budget('b', 'back')), '2030-01-01 10:00:00+00'::timestamptz, 'and its epoch');

-- The units of a pair stay within bigint (A2).
SELECT at('10:00:00');
SELECT publish('max', 'most', '{"burst": 9223372036854775807, "maximumOverdraft": 9223372036854775807, "hardExecutionLimit": 9223372036854775807}');
SELECT is(reserve('max', 'most', 'r1', 9223372036854775807, 'o1'), 'ACCEPTED STARTED', 'as much as there can be');
SELECT is(settle('max', 'r1', 'o1', 9223372036854775807), 'ACCEPTED SETTLED', 'spent');
SELECT publish('sum', 'most', '{"burst": 9223372036854775807, "maximumOverdraft": 9223372036854775807, "hardExecutionLimit": 9223372036854775807}');
SELECT is(reserve('sum', 'most', 'r1', 1, 'o1'), 'ACCEPTED STARTED', 'one of as much as there can be');
SELECT is(reserve('sum', 'most', 'r2', 1), 'ACCEPTED RESERVED', 'and one');
SELECT is_misuse($$settle_usage('sum', 'r1', 'o1', 9223372036854775807)$$, 'LL107', 'overflow', 'an equation whose side no bigint holds is an overflow, not a broken rule');
SELECT publish('min', 'most', '{"maximumOverdraft": 9223372036854775807, "hardExecutionLimit": 9223372036854775807}');
SELECT is(reserve('min', 'most', 'r1', 1, 'o1'), 'ACCEPTED STARTED', 'one');
SELECT is(reserve('min', 'most', 'r2', 1, 'o2'), 'ACCEPTED STARTED', 'and one more');
SELECT is(settle('min', 'r1', 'o1', 9223372036854775807 - 1000), 'ACCEPTED SETTLED_WITH_DEBT', 'as much usage as there can be');
SELECT is_misuse($$settle_usage('min', 'r2', 'o2', 9223372036854775807)$$, 'LL107', 'overflow', 'what no sum can hold is an error');
SELECT is(settle('min', 'r2', 'o2', 0), 'ACCEPTED SETTLED', 'and the ledger goes on');
SELECT publish('fast', 'most', continuous(9223372036854775807, '1 microsecond', 9223372036854775807));
SELECT is(reserve('fast', 'most', 'r1', 9223372036854775807, 'o1'), 'ACCEPTED STARTED', 'the fastest refill there can be');
SELECT at(timestamptz '2130-01-01 10:00:00+00');
SELECT is(available('fast', 'most'), 9223372036854775807, 'fills the bucket in a hundred years');
SELECT sound('at the end');

SELECT * FROM finish();
ROLLBACK;
