-- A new epoch or generation takes over (B5, C5, E4): what is carried, so that neither
-- publishing nor rolling back nor the turn of an hour is free capacity.
--
-- Fails when: a new generation opens at its cap, a raised quota is swallowed by refused
-- calls, a lowered one forgets what was used, or units come back to two budgets.

BEGIN;
\ir helpers.psql
SELECT plan(164);

-- A raised quota counts at once; refused calls have left no trace (the same window).
SELECT at('10:00:00');
SELECT is(publish('raise', 'chat', quota(10)), 1::bigint, 'the first generation');
SELECT is((SELECT string_agg(n || ' x ' || a, ', ' ORDER BY a) FROM (
    SELECT a, count(*) FROM (SELECT reserve('raise', 'chat', 'r' || n, 1) AS a FROM generate_series(1, 50) n) calls GROUP BY a) t (a, n)),
  '10 x ACCEPTED RESERVED, 40 x REFUSED available', 'ten of fifty are admitted');
SELECT is(equation('raise', 'chat'), '10 + 0 + 0 = 0 + 10 + 0 + 0 + 0', 'forty left no trace');
SELECT is(start('raise', 'r' || n, 'o' || n), 'ACCEPTED STARTED', 'started ' || n) FROM generate_series(1, 10) n;
SELECT is(settle('raise', 'r' || n, 'o' || n, 1), 'ACCEPTED SETTLED', 'settled ' || n) FROM generate_series(1, 8) n;
SELECT is(publish('raise', 'chat', quota(20)), 2::bigint, 'twice the quota');
SELECT is(available('raise', 'chat'), 10::bigint, 'get_budget shows the change at once');
SELECT is((SELECT string_agg(n || ' x ' || a, ', ' ORDER BY a) FROM (
    SELECT a, count(*) FROM (SELECT reserve('raise', 'chat', 's' || n, 1) AS a FROM generate_series(1, 15) n) calls GROUP BY a) t (a, n)),
  '10 x ACCEPTED RESERVED, 5 x REFUSED available', 'ten more are admitted');
SELECT is(equation('raise', 'chat'), '10 + 0 + 0 = 0 + 10 + 0 + 0 + 0', 'the new budget opened with the change of quota');
SELECT is(closed('raise', 'chat', 1), '10 + 0 + 0 = 0 + 2 + 8 + 0 + 0', 'the old one keeps its own reservations');
SELECT is((SELECT generation FROM limitledger.settle_usage('raise', 'r9', 'o9', 0)), 1::bigint, 'they settle under the old one');
SELECT is(closed('raise', 'chat', 1), '10 + 0 + 0 = 1 + 1 + 8 + 0 + 0', 'in its own closing balance');
SELECT is(equation('raise', 'chat'), '10 + 1 + 0 = 1 + 10 + 0 + 0 + 0', 'and what comes back is minted where it can be used');
SELECT sound('a raised quota');

-- A lowered quota remembers what was used as a deficit; going back is not free.
SELECT at('10:00:00');
SELECT publish('lower', 'chat', quota(10));
SELECT is(reserve('lower', 'chat', 'r1', 4), 'ACCEPTED RESERVED', 'four');
SELECT is(reserve('lower', 'chat', 'r2', 4), 'ACCEPTED RESERVED', 'and four');
SELECT publish('lower', 'chat', quota(5));
SELECT is(reserve('lower', 'chat', 'r3', 1), 'REFUSED available', 'five, of which eight are used');
SELECT results_eq($$SELECT available, deficit FROM limitledger.get_budget('lower', 'chat')$$, $$VALUES (0::bigint, 3::bigint)$$, 'three are missing');
SELECT publish('lower', 'chat', quota(10));
SELECT results_eq($$SELECT available, deficit FROM limitledger.get_budget('lower', 'chat')$$, $$VALUES (2::bigint, 0::bigint)$$, 'down and up again gives nothing');
SELECT publish('lower', 'chat', quota(5));
SELECT is(release('lower', 'r1'), 'ACCEPTED RELEASED', 'four come back');
SELECT results_eq($$SELECT available, deficit, minted FROM limitledger.get_budget('lower', 'chat')$$, $$VALUES (1::bigint, 0::bigint, 1::bigint)$$, 'the deficit first');
SELECT is(reserve('lower', 'chat', 'r4', 1), 'ACCEPTED RESERVED', 'the rest can be used');
SELECT is(reserve('lower', 'chat', 'r5', 1), 'REFUSED available', 'and no more');
SELECT sound('a lowered quota');
SELECT publish('lower', 'chat', quota(2));
SELECT results_eq($$SELECT available, deficit FROM limitledger.get_budget('lower', 'chat')$$, $$VALUES (0::bigint, 3::bigint)$$, 'a deficit again');
SELECT at('11:00:00');
SELECT results_eq($$SELECT available, deficit FROM limitledger.get_budget('lower', 'chat')$$, $$VALUES (2::bigint, 0::bigint)$$, 'which ends with the window');
SELECT is(reserve('lower', 'chat', 'r6', 2), 'ACCEPTED RESERVED', 'the next one opens with its quota');
SELECT is(release('lower', 'r2'), 'ACCEPTED RELEASED', 'units of an ended window');
SELECT is(equation('lower', 'chat'), '2 + 0 + 0 = 0 + 2 + 0 + 0 + 0', 'lapse');
SELECT sound('after the window');

-- Continuous and none: what is available is carried, within the new cap.
SELECT at('10:00:00');
SELECT publish(pair, 'chat', first) FROM (VALUES ('cont up', continuous(1, '1 hour', 100)), ('cont down', continuous(1, '1 hour', 100)),
  ('none up', '{"burst": 100}'), ('none down', '{"burst": 100}'), ('none to cont', '{"burst": 100}'),
  ('cont to window', continuous(1, '1 hour', 100)), ('window to cont', quota(100)), ('window to longer', quota(100))) p (pair, first);
CREATE TEMP TABLE change (pair text, second jsonb, carried bigint) ON COMMIT DROP;
INSERT INTO change VALUES
  ('cont up', continuous(1, '1 hour', 1000), 40), ('cont down', continuous(1, '1 hour', 20), 20),
  ('none up', '{"burst": 1000}', 40), ('none down', '{"burst": 20}', 20), ('none to cont', continuous(1, '1 hour', 1000), 40),
  ('cont to window', quota(1000), 40), ('window to cont', continuous(1, '1 hour', 1000), 40),
  ('window to longer', quota(1000) || '{"epoch": {"length": "2 hours"}}', 40);
SELECT is(reserve(pair, 'chat', 'r1', 60), 'ACCEPTED RESERVED', pair || ': 60 of 100') FROM change;
SELECT publish(pair, 'chat', second) FROM change;
SELECT is(available(pair, 'chat'), carried, pair || ': what is carried') FROM change;
SELECT is(reserve(pair, 'chat', 'more', carried + 1), CASE pair WHEN 'cont down' THEN 'REFUSED largest_reservation' WHEN 'none down' THEN 'REFUSED largest_reservation'
  ELSE 'REFUSED available' END, pair || ': not a unit more') FROM change;
SELECT is(reserve(pair, 'chat', 'rest', carried), 'ACCEPTED RESERVED', pair || ': can be used') FROM change;
SELECT is(release(pair, 'r1'), 'ACCEPTED RELEASED', pair || ': 60 come back from the closed budget') FROM change;
SELECT is(available(pair, 'chat'), least(60, cap), pair || ': into the head, within its cap')
FROM change, LATERAL limitledger.get_budget(pair, 'chat') b;
SELECT is(b.burned, 60 - least(60, b.cap), pair || ': the rest is burned') FROM change, LATERAL limitledger.get_budget(pair, 'chat') b;
SELECT is((SELECT (follows_generation, carried)::text FROM limitledger.head_budget h WHERE h.subject = c.pair),
  (SELECT (generation, c.carried)::text FROM limitledger.closed_budget b WHERE b.subject = c.pair), c.pair || ': the budget says what it follows') FROM change c;
SELECT sound('changes of the cap and the kind');

-- A window that came from another kind is no whole window: only what is there counts,
-- until the next one opens with its quota.
SELECT is(release('cont to window', 'rest'), 'ACCEPTED RELEASED', '100 of 1,000 are available');
SELECT is(available('cont to window', 'chat'), 100::bigint, 'in a window that came from a bucket');
SELECT publish('cont to window', 'chat', quota(2000));
SELECT is(available('cont to window', 'chat'), 100::bigint, 'a raise gives nothing within it');
SELECT publish('cont to window', 'chat', quota(50));
SELECT is(available('cont to window', 'chat'), 50::bigint, 'a lower cap cuts');
SELECT publish('cont to window', 'chat', quota(2000));
SELECT is(available('cont to window', 'chat'), 50::bigint, 'and rolling back does not give it back');
SELECT at('11:00:00');
SELECT is(available('cont to window', 'chat'), 2000::bigint, 'the next window opens with its quota');
SELECT publish('cont to window', 'chat', quota(2500));
SELECT is(available('cont to window', 'chat'), 2500::bigint, 'and a raise counts again');
SELECT sound('a window from a bucket');

-- Epochs of a bucket: one line, nothing gained or lost at the turn.
SELECT at('10:59:50');
SELECT publish('turn', 'turn', continuous(1, '1 second', 100));
SELECT is(reserve('turn', 'turn', 'r1', 100, 'o1'), 'ACCEPTED STARTED', 'empty ten seconds before the hour');
SELECT at('11:00:20');
SELECT is(available('turn', 'turn'), 30::bigint, 'thirty seconds later there are thirty units');
SELECT is(reserve('turn', 'turn', 'r2', 10), 'ACCEPTED RESERVED', 'ten of them');
SELECT is((SELECT epoch FROM limitledger.get_budget('turn', 'turn')), '2030-01-01 11:00:00+00'::timestamptz, 'in the new epoch');
SELECT is(settle('turn', 'r1', 'o1', 60), 'ACCEPTED SETTLED', 'forty come back from the old one');
SELECT is(available('turn', 'turn'), 60::bigint, 'and count');
SELECT is((SELECT count(*) FROM limitledger.closed_budget WHERE subject = 'turn'), 1::bigint, 'one budget was closed');
SELECT at('15:00:00');
SELECT is(reserve('turn', 'turn', 'r3', 100), 'ACCEPTED RESERVED', 'hours later it is full');
SELECT is((SELECT count(*) FROM limitledger.closed_budget WHERE subject = 'turn'), 2::bigint, 'epochs that nobody opened have no budget');
SELECT sound('the turn of a bucket');

-- The fraction of a unit is carried; at a rate change as a part of a unit.
SELECT at('10:59:58');
SELECT publish('part', 'part', continuous(1, '10 seconds', 10));
SELECT is(reserve('part', 'part', 'r1', 5), 'ACCEPTED RESERVED', 'five of ten');
SELECT at('11:00:03');
SELECT is(reserve('part', 'part', 'r2', 1), 'ACCEPTED RESERVED', 'half a unit''s time later, in a new epoch');
SELECT publish('part', 'part', continuous(1, '2 seconds', 10));
SELECT at('11:00:03.999999');
SELECT is(available('part', 'part'), 4::bigint, 'half a unit of the faster rate takes a second');
SELECT at('11:00:04');
SELECT is(available('part', 'part'), 5::bigint, 'no more, no less');
SELECT publish('part', 'part', continuous(3, '7 seconds', 10));
SELECT is(reserve('part', 'part', 'r3', 1), 'ACCEPTED RESERVED', 'and under a third rate');

-- A wildcard policy and the switch of it: each pair moves at its next call, accruing
-- under the old rule up to the switch (B2, B5).
SELECT at('10:00:00');
SELECT publish('*', 'wild', continuous(1, '1 second', 100));
SELECT is(reserve(pair, 'wild', 'r1', 100), 'ACCEPTED RESERVED', pair || ' has a budget of its own under the wildcard')
FROM unnest(ARRAY['a', 'b']) pair;
SELECT at('10:00:10');
SELECT publish('*', 'wild', continuous(10, '1 second', 100));
SELECT at('10:00:15');
SELECT is(available('a', 'wild'), 60::bigint, 'ten seconds of the old rate, five of the new');
SELECT is(reserve('a', 'wild', 'r2', 61), 'REFUSED available', 'not a unit more');
SELECT is(reserve('a', 'wild', 'r2', 60), 'ACCEPTED RESERVED', 'at the pair''s next call');
SELECT at('10:00:16');
SELECT is(available('b', 'wild'), 70::bigint, 'the other pair moves when it is called');
SELECT publish('*', 'wild', continuous(1, '1 second', 50));
SELECT publish('*', 'wild', continuous(1, '1 second', 80));
SELECT at('10:00:17');
SELECT is(available('b', 'wild'), 51::bigint, 'a cap in between cuts, though nobody called meanwhile');
SELECT is(reserve('b', 'wild', 'r3', 51), 'ACCEPTED RESERVED', 'and is honoured');
SELECT sound('a switch of the wildcard');

-- An exact policy takes its subject out of the wildcard, and others stay.
SELECT is((SELECT generation FROM limitledger.get_budget('a', 'wild')), (SELECT max(generation) FROM limitledger.policy), 'the wildcard is the newest so far');
SELECT at('10:00:20');
SELECT is(publish('a', 'wild', continuous(100, '1 second', 1000)), (SELECT max(generation) + 1 FROM limitledger.policy), 'one of its own');
SELECT is((SELECT refill_kind || cap FROM limitledger.get_budget('a', 'wild')), 'continuous1000', 'for this subject');
SELECT is((SELECT cap FROM limitledger.get_budget('b', 'wild')), 80::bigint, 'not for another');
SELECT is(reserve('c', 'wild', 'r1', 81), 'REFUSED largest_reservation', 'nor for a new one');
SELECT at('10:00:21');
SELECT is(available('a', 'wild'), 14 + 100::bigint, 'what it had is carried, what comes is by the new rate');
SELECT publish('*', 'wild', continuous(1, '1 second', 60));
SELECT is((SELECT cap FROM limitledger.get_budget('a', 'wild')), 1000::bigint, 'a later wildcard does not take it back');
SELECT sound('an exact policy');

-- What is published and not activated changes nothing; activated, it does.
SELECT at('10:00:00');
SELECT publish('later', 'later', quota(10));
SELECT is((SELECT stage FROM limitledger.publish_policy(document('later', 'later', quota(20)), false)), 'published', 'published, not active');
SELECT is((SELECT cap FROM limitledger.reserve_capacity('later', 'later', 'r1', 10, sha256('r1'))), 10::bigint, 'the old one decides');
SELECT is(reserve('later', 'later', 'r2', 1), 'REFUSED available', 'alone');
SELECT is((SELECT stage FROM limitledger.activate_policy((SELECT max(generation) FROM limitledger.policy))), 'active', 'activated');
SELECT is(reserve('later', 'later', 'r2', 10), 'ACCEPTED RESERVED', 'the new one decides');
SELECT is((SELECT count(*) FROM limitledger.closed_budget WHERE subject = 'later'), 1::bigint, 'one budget was closed');

-- Two generations in one transaction and at one instant are two budgets in their order.
SELECT publish('twice', 'later', quota(10));
SELECT is(reserve('twice', 'later', 'r1', 10), 'ACCEPTED RESERVED', 'under the first');
SELECT publish('twice', 'later', quota(4));
SELECT publish('twice', 'later', quota(12));
SELECT is(reserve('twice', 'later', 'r2', 3), 'REFUSED available', 'under the third');
SELECT is(reserve('twice', 'later', 'r2', 2), 'ACCEPTED RESERVED', 'twelve less ten');
SELECT is((SELECT string_agg(closing_available || '/' || deficit, ' ' ORDER BY generation) FROM limitledger.closed_budget WHERE subject = 'twice'), '0/0 0/6', 'by way of a deficit');

-- A closed budget never opens again (B5): publishing older content is a new generation.
SELECT is(publish('twice', 'later', quota(10)), (SELECT max(generation) + 1 FROM limitledger.policy), 'older content, a new generation');
SELECT is(reserve('twice', 'later', 'r3', 1), 'REFUSED available', 'what was used stays used');
SELECT sound('at the end');

SELECT * FROM finish();
ROLLBACK;
