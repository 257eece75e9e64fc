-- Long work: what a stream reports while it runs (D10), and a reservation that gets
-- more units or a later deadline before it runs out (D13).
--
-- Fails when: progress falls, moves a balance or binds the executor's own receipt; an
-- operator's receipt gets below it; an extension takes what a reserve could not, is
-- done twice, revives what has run out, or adds units to a budget that has closed.

BEGIN;
\ir helpers.psql
SELECT plan(105);

CREATE FUNCTION helpers.progress(subject text, id text, operation text, units bigint) RETURNS text
LANGUAGE sql AS $$
  SELECT answer(r.outcome, r.dimension, r.state, r.replayed) FROM limitledger.report_progress(subject, id, operation, units) r
$$;
CREATE FUNCTION helpers.used_so_far(of_subject text, id text) RETURNS bigint
LANGUAGE sql AS $$
  SELECT progress_units FROM limitledger.reservations WHERE subject = of_subject AND reservation_id = id
$$;
CREATE FUNCTION helpers.extend(subject text, id text, extension text, units bigint, until text DEFAULT NULL) RETURNS text
LANGUAGE sql AS $$
  SELECT answer(r.outcome, r.dimension, r.state, r.replayed)
  FROM limitledger.extend_reservation(subject, id, extension, units, ('2030-01-01 ' || until || '+00')::timestamptz) r
$$;
-- What is held under an id, and until when.
CREATE FUNCTION helpers.held(subject text, id text) RETURNS text
LANGUAGE sql AS $$
  SELECT format('%s until %s', reserved_units, to_char(expires_at AT TIME ZONE 'UTC', 'HH24:MI:SS')) FROM limitledger.get_reservation(subject, id)
$$;

-- ---- Progress (D10) ---------------------------------------------------------
SELECT at('10:00:00');
SELECT publish('t1', 'chat');
SELECT is(reserve('t1', 'chat', 'r1', 600), 'ACCEPTED RESERVED', 'a hold');
SELECT changes_nothing($$report_progress('t1', 'r1', 'o1', 10)$$, 'REFUSED not_started', 'nothing has run under it');
SELECT is(start('t1', 'r1', 'o1'), 'ACCEPTED STARTED', 'started');
SELECT changes_nothing($$report_progress('t1', 'r1', 'o1', 0)$$, 'ACCEPTED STARTED replayed', 'zero is where it stands');
SELECT is(progress('t1', 'r1', 'o1', 100), 'ACCEPTED STARTED', 'a hundred so far');
SELECT is(progress('t1', 'r1', 'o1', 250), 'ACCEPTED STARTED', 'two hundred and fifty');
SELECT is(used_so_far('t1', 'r1'), 250::bigint, 'are stored');
SELECT is(equation('t1', 'chat'), '1000 + 0 + 0 = 400 + 600 + 0 + 0 + 0', 'no balance has moved');
SELECT results_eq($$SELECT reserved_units, actual_units, hard_limit, expires_at FROM limitledger.report_progress('t1', 'r1', 'o1', 250)$$,
  $$VALUES (600::bigint, NULL::bigint, 1000000::bigint, '2030-01-01 10:10:00+00'::timestamptz)$$, 'the receipt has limit and deadline, and no actual figure');
SELECT changes_nothing($$report_progress('t1', 'r1', 'o1', 250)$$, 'ACCEPTED STARTED replayed', 'said twice');
SELECT changes_nothing($$report_progress('t1', 'r1', 'o1', 100)$$, 'ACCEPTED STARTED replayed', 'a report that was overtaken');
SELECT is(used_so_far('t1', 'r1'), 250::bigint, 'lowers nothing');
SELECT changes_nothing($$report_progress('t1', 'r1', 'other', 300)$$, 'CONFLICT operation', 'another operation has no say');
SELECT changes_nothing($$report_progress('t1', 'never', 'o1', 300)$$, 'UNKNOWN reservation', 'nor is there progress of nothing');

-- Past the deadline it is still reported, and the last resort can't go below it.
SELECT at('10:10:00');
SELECT results_eq($$SELECT * FROM limitledger.expire_executions(100)$$, $$VALUES (1::bigint)$$, 'nobody knows what it used');
SELECT is(progress('t1', 'r1', 'o1', 300), 'ACCEPTED USAGE_UNKNOWN', 'but at least three hundred');
SELECT changes_nothing($$settle_usage('t1', 'r1', 'o1', 299, source => 'operator')$$, 'REFUSED progress', 'an operator can not attest less');
SELECT changes_nothing($$settle_usage('t1', 'r1', 'o1', 0, source => 'operator')$$, 'REFUSED progress', 'nor nothing');
SELECT changes_nothing($$settle_usage_batch(ARRAY['t1'], ARRAY['r1'], ARRAY['o1'], ARRAY[299]::bigint[], sources => ARRAY['operator'])$$, 'REFUSED progress', 'nor in a batch');
SELECT is((SELECT outcome FROM limitledger.settle_usage('t1', 'r1', 'o1', 300, source => 'operator')), 'ACCEPTED', 'the known progress can be attested');
SELECT is(equation('t1', 'chat'), '1000 + 0 + 0 = 700 + 0 + 300 + 0 + 0', 'and is spent');
SELECT is((SELECT receipt_source FROM limitledger.reservations WHERE subject = 't1' AND reservation_id = 'r1'), 'operator', 'marked as what it is');
SELECT changes_nothing($$report_progress('t1', 'r1', 'o1', 400)$$, 'REFUSED settled', 'then it is over');
SELECT changes_nothing($$report_progress('t1', 'r1', 'other', 400)$$, 'CONFLICT operation', 'for another operation it never was');

-- The executor and the reconciler know better than what was said on the way.
SELECT is(reserve('t1', 'chat', 'r2', 100, 'o2'), 'ACCEPTED STARTED', 'another stream');
SELECT is(progress('t1', 'r2', 'o2', 80), 'ACCEPTED STARTED', 'says eighty');
SELECT is(settle('t1', 'r2', 'o2', 50), 'ACCEPTED SETTLED', 'and its receipt fifty');
SELECT changes_nothing($$settle_usage('t1', 'r2', 'o2', 50, source => 'operator')$$, 'ACCEPTED SETTLED replayed', 'which stands, whoever repeats it');
SELECT is(reserve('t1', 'chat', 'r3', 100, 'o3'), 'ACCEPTED STARTED', 'another');
SELECT is(progress('t1', 'r3', 'o3', 150), 'ACCEPTED STARTED', 'has used more than it reserved');
SELECT is(equation('t1', 'chat'), '1000 + 0 + 0 = 550 + 100 + 350 + 0 + 0', 'which its receipt will book');
SELECT is((SELECT outcome FROM limitledger.settle_usage('t1', 'r3', 'o3', 140, source => 'reconciler')), 'ACCEPTED', 'by the reconciler''s figure');
SELECT is(equation('t1', 'chat'), '1000 + 0 + 0 = 510 + 0 + 490 + 0 + 0', 'with its excess');
SELECT is(resolve('t1', 'fence'), 'ACCEPTED RELEASED', 'a fence');
SELECT changes_nothing($$report_progress('t1', 'fence', 'o', 1)$$, 'REFUSED not_started', 'has no progress');
SELECT is(reserve('t1', 'chat', 'r4', 10), 'ACCEPTED RESERVED', 'a hold');
SELECT is(release('t1', 'r4'), 'ACCEPTED RELEASED', 'that was released');
SELECT changes_nothing($$report_progress('t1', 'r4', 'o', 1)$$, 'REFUSED not_started', 'has none either');
SELECT sound('after all reports');

-- ---- A later deadline (D13) ---------------------------------------------------
SELECT at('10:00:00');
SELECT publish('t2', 'chat', '{"largestReservation": 800, "largestOutstanding": 900}');
SELECT is(reserve('t2', 'chat', 'r1', 500), 'ACCEPTED RESERVED', 'a hold of thirty seconds');
SELECT at('10:00:20');
SELECT is(extend('t2', 'r1', 'e1', 0, '10:00:50'), 'ACCEPTED RESERVED', 'thirty seconds from now');
SELECT is(held('t2', 'r1'), '500 until 10:00:50', 'are held');
SELECT is(extend('t2', 'r1', 'e2', 0, '10:00:50.000001'), 'REFUSED ttl', 'not a microsecond more');
SELECT is((SELECT retry_kind FROM limitledger.extend_reservation('t2', 'r1', 'e2', until => 'infinity')), 'never', 'nor for ever');
SELECT changes_nothing($$extend_reservation('t2', 'r1', 'e1', 0, '2030-01-01 10:00:50+00')$$, 'ACCEPTED RESERVED replayed', 'the same extension again');
SELECT changes_nothing($$extend_reservation('t2', 'r1', 'e1', 0, '2030-01-01 10:00:49+00')$$, 'CONFLICT extension', 'its id with another deadline');
SELECT changes_nothing($$extend_reservation('t2', 'r1', 'e1', 1, '2030-01-01 10:00:50+00')$$, 'CONFLICT extension', 'with units as well');
SELECT changes_nothing($$extend_reservation('t2', 'r1', 'e1', 1)$$, 'CONFLICT extension', 'with units alone');
SELECT is(extend('t2', 'r1', 'e2', 0, '10:00:40'), 'ACCEPTED RESERVED', 'an earlier deadline under an id that was refused');
SELECT is(held('t2', 'r1'), '500 until 10:00:50', 'moves none');
SELECT at('10:00:35');
SELECT results_eq($$SELECT claimed FROM limitledger.expire_reservations(100)$$, $$VALUES (0::bigint)$$, 'after its first deadline no sweep takes it');

-- ---- More units -----------------------------------------------------------------
SELECT is(extend('t2', 'r1', 'e4', 200), 'ACCEPTED RESERVED', 'two hundred more');
SELECT is(held('t2', 'r1'), '700 until 10:00:50', 'are held, no longer than before');
SELECT is(equation('t2', 'chat'), '1000 + 0 + 0 = 300 + 700 + 0 + 0 + 0', 'and taken');
SELECT changes_nothing($$extend_reservation('t2', 'r1', 'e4', 200)$$, 'ACCEPTED RESERVED replayed', 'once');
SELECT changes_nothing($$extend_reservation('t2', 'r1', 'e5', 101)$$, 'REFUSED largest_reservation', 'old and new units are one reservation');
SELECT changes_nothing($$extend_reservation('t2', 'r1', 'e5', 9223372036854775807)$$, 'REFUSED largest_reservation', 'however many');
SELECT is(extend('t2', 'r1', 'e5', 50), 'ACCEPTED RESERVED', 'a refused id is not burned');
SELECT is(reserve('t2', 'chat', 'r2', 150), 'ACCEPTED RESERVED', 'nine hundred are held in all');
SELECT results_eq($$SELECT outcome, dimension, retry_kind FROM limitledger.extend_reservation('t2', 'r1', 'e6', 1)$$,
  $$VALUES ('REFUSED', 'largest_outstanding', 'release')$$, 'which is what the pair may hold');
SELECT is(release('t2', 'r2'), 'ACCEPTED RELEASED', 'they come back');
SELECT changes_nothing($$reserve_capacity('t2', 'chat', 'r1', 500, sha256('r1'))$$, 'ACCEPTED RESERVED replayed', 'the request still is one of five hundred');
SELECT changes_nothing($$reserve_capacity('t2', 'chat', 'r1', 750, sha256('r1'))$$, 'CONFLICT request', 'and none of what it holds now');
SELECT is(start('t2', 'r1', 'o1'), 'ACCEPTED STARTED', 'started');
SELECT at('10:05:00');
SELECT is(extend('t2', 'r1', 'e7', 50, '10:15:00'), 'ACCEPTED STARTED', 'an execution gets units and the execution TTL, from now');
SELECT is(held('t2', 'r1'), '800 until 10:15:00', 'both');
SELECT changes_nothing($$extend_reservation('t2', 'r1', 'e8', 0, '2030-01-01 10:15:00.000001+00')$$, 'REFUSED ttl', 'and no more');
SELECT at('10:14:59');
SELECT results_eq($$SELECT * FROM limitledger.expire_executions(100)$$, $$VALUES (0::bigint)$$, 'until then it is not unknown');
SELECT is(settle('t2', 'r1', 'o1', 790), 'ACCEPTED SETTLED', 'it used ten less');
SELECT is(equation('t2', 'chat'), '1000 + 0 + 0 = 210 + 0 + 790 + 0 + 0', 'which come back, without an excess');
SELECT changes_nothing($$extend_reservation('t2', 'r1', 'e4', 200)$$, 'ACCEPTED SETTLED replayed', 'an extension that was made stays made');
SELECT changes_nothing($$extend_reservation('t2', 'r1', 'e9', 1)$$, 'REFUSED settled', 'a new one comes too late');
SELECT sound('after the extensions');

-- What has run out, ended or is unknown is not extended.
SELECT publish('t3', 'chat');
SELECT is(reserve('t3', 'chat', 'r1', 900), 'ACCEPTED RESERVED', 'a hold');
SELECT is(reserve('t3', 'chat', 'r2', 10, 'o2'), 'ACCEPTED STARTED', 'an execution');
SELECT at('10:15:10');
SELECT is(reserve('t3', 'chat', 'r3', 50), 'ACCEPTED RESERVED', 'a later hold');
SELECT results_eq($$SELECT outcome, dimension, retry_kind FROM limitledger.extend_reservation('t3', 'r3', 'e1', 41)$$,
  $$VALUES ('REFUSED', 'available', 'release')$$, 'forty are left');
SELECT at('10:15:29');
SELECT changes_nothing($$extend_reservation('t3', 'r1', 'e1', 0, '2030-01-01 10:15:40+00')$$, 'REFUSED expired', 'at its deadline a hold has run out, swept or not');
SELECT is(state('t3', 'r1'), 'RESERVED', 'it was not swept');
SELECT is(extend('t3', 'r3', 'e1', 500), 'ACCEPTED RESERVED', 'another one takes its units');
SELECT is(state('t3', 'r1'), 'EXPIRED', 'by ending it first');
SELECT changes_nothing($$extend_reservation('t3', 'r1', 'e1', 1)$$, 'REFUSED expired', 'it stays ended');
SELECT is(report_unknown('t3', 'r2', 'o2'), 'ACCEPTED USAGE_UNKNOWN', 'of unknown usage');
SELECT changes_nothing($$extend_reservation('t3', 'r2', 'e1', 1)$$, 'REFUSED already_started', 'only a receipt is awaited');
SELECT is(release('t3', 'r3'), 'ACCEPTED RELEASED', 'released');
SELECT changes_nothing($$extend_reservation('t3', 'r3', 'e2', 1)$$, 'REFUSED released', 'there is nothing to extend');
SELECT changes_nothing($$extend_reservation('t1', 'fence', 'e1', 1)$$, 'REFUSED released', 'nor in a fence');
SELECT changes_nothing($$extend_reservation('t3', 'never', 'e1', 1)$$, 'UNKNOWN reservation', 'nor in nothing');

-- Decided like a new reserve: the wait of D4, debt (E1), a frozen pair (D8).
SELECT publish('t4', 'chat', continuous(10, '1 second', 1000));
SELECT is(reserve('t4', 'chat', 'r1', 500, 'o1'), 'ACCEPTED STARTED', 'an execution');
SELECT is(reserve('t4', 'chat', 'r2', 500, 'o2'), 'ACCEPTED STARTED', 'and one');
SELECT results_eq($$SELECT outcome, dimension, retry_after_ms, retry_kind FROM limitledger.extend_reservation('t4', 'r1', 'e1', 100)$$,
  $$VALUES ('REFUSED', 'available', 10000::bigint, 'refill')$$, 'a hundred come in ten seconds');
SELECT at('10:15:39');
SELECT is(extend('t4', 'r1', 'e1', 100), 'ACCEPTED STARTED', 'who waits that long gets them');
SELECT is(settle('t4', 'r2', 'o2', 700), 'ACCEPTED SETTLED_WITH_DEBT', 'the other one overdraws');
SELECT changes_nothing($$extend_reservation('t4', 'r1', 'e2', 1)$$, 'REFUSED debt', 'in debt there is no unit more');
SELECT changes_nothing($$extend_reservation('t4', 'r1', 'e2', 0, '2030-01-01 10:25:00+00')$$, 'REFUSED debt', 'and no later deadline');
SELECT at('10:20:00');
SELECT is((SELECT outcome FROM limitledger.freeze('t4', 'chat', 'looking into it')), 'ACCEPTED', 'frozen');
SELECT changes_nothing($$extend_reservation('t4', 'r1', 'e2', 1)$$, 'REFUSED frozen', 'nor while the pair is frozen');
SELECT changes_nothing($$extend_reservation('t4', 'r1', 'e1', 100)$$, 'ACCEPTED STARTED replayed', 'what was given was given');

-- Units come from the budget that was reserved from, so only while it is the head.
SELECT at('10:50:00');
SELECT publish('t5', 'chat', quota(1000) || '{"holdTtl": "6 hours"}');
SELECT is(reserve('t5', 'chat', 'r1', 100), 'ACCEPTED RESERVED', 'a hold that outlives its window');
SELECT at('11:00:00');
SELECT changes_nothing($$extend_reservation('t5', 'r1', 'e1', 10)$$, 'REFUSED closed_budget', 'its window has ended');
SELECT is(extend('t5', 'r1', 'e1', 0, '17:00:00'), 'ACCEPTED RESERVED', 'its deadline can still move');
SELECT is(reserve('t5', 'chat', 'r2', 100), 'ACCEPTED RESERVED', 'one in the next window');
SELECT publish('t5', 'chat', quota(900) || '{"holdTtl": "1 minute"}');
SELECT changes_nothing($$extend_reservation('t5', 'r2', 'e1', 10)$$, 'REFUSED closed_budget', 'a generation closes a budget too');
SELECT is(extend('t5', 'r2', 'e1', 0, '17:00:00'), 'ACCEPTED RESERVED', 'its own TTL stays');
SELECT sound('at the end');

SELECT * FROM finish();
ROLLBACK;
