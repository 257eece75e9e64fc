-- Unknown treated as unused (D6, D9, D10): a receipt without a figure, a cancelled
-- caller, an execution that ran out.  None of them gives a unit back; only the
-- bound operation's number does.
--
-- Fails when: NULL is read as 0, release or expiry accept what was started, or a
-- report of unknown usage moves a balance.

BEGIN;
\ir helpers.psql
SELECT plan(44);

SELECT at('10:00:00');
SELECT publish('t1', 'chat');
SELECT is(reserve('t1', 'chat', 'r1', 600), 'ACCEPTED RESERVED', 'reserved');
SELECT is(report_unknown('t1', 'r1', 'o1'), 'REFUSED not_started', 'nothing can be unknown about a hold');
SELECT is(start('t1', 'r1', 'o1'), 'ACCEPTED STARTED', 'started');
SELECT is_misuse($$settle_usage('t1', 'r1', 'o1', NULL)$$, 'LL101', 'actual', 'NULL is no figure');
SELECT is(state('t1', 'r1'), 'STARTED', 'after it the execution still runs');
SELECT is(equation('t1', 'chat'), '1000 + 0 + 0 = 400 + 600 + 0 + 0 + 0', 'and holds its units');

SELECT is(report_unknown('t1', 'r1', 'other'), 'CONFLICT operation', 'another operation can not say so');
SELECT is(report_unknown('t1', 'r1', 'o1'), 'ACCEPTED USAGE_UNKNOWN', 'its own can');
SELECT is(equation('t1', 'chat'), '1000 + 0 + 0 = 400 + 600 + 0 + 0 + 0', 'the units stay held');
SELECT is(report_unknown('t1', 'r1', 'o1'), 'ACCEPTED USAGE_UNKNOWN replayed', 'said twice');
SELECT changes_nothing($$report_usage_unknown('t1', 'r1', 'o1')$$, 'ACCEPTED USAGE_UNKNOWN replayed', 'which writes nothing');

SELECT changes_nothing($$release_reservation('t1', 'r1')$$, 'REFUSED already_started', 'release is refused');
SELECT at('12:00:00');
SELECT results_eq($$SELECT * FROM limitledger.expire_reservations(100)$$, $$VALUES (0::bigint, 0::bigint, 0::bigint)$$,
  'long after both deadlines a sweep finds no hold');
SELECT results_eq($$SELECT * FROM limitledger.expire_executions(100)$$, $$VALUES (0::bigint)$$, 'and no execution');
SELECT is(reserve('t1', 'chat', 'next', 401), 'REFUSED available', 'nor does a reserve that could use the units');
SELECT is(start('t1', 'r1', 'o1'), 'ACCEPTED USAGE_UNKNOWN replayed', 'start again: the same answer, nothing moves');
SELECT is(state('t1', 'r1'), 'USAGE_UNKNOWN', 'it is still unknown');
SELECT is((SELECT outstanding FROM limitledger.get_budget('t1', 'chat')), 600::bigint, 'and holds its units, whatever the epoch');
SELECT sound('unknown usage');

SELECT changes_nothing($$settle_usage('t1', 'r1', 'other', 200)$$, 'CONFLICT operation', 'another operation can not end it');
SELECT is_misuse($$settle_usage('t1', 'r1', 'o1', -1)$$, 'LL103', 'actual', 'nor a negative figure');
SELECT is((SELECT outcome FROM limitledger.report_progress('t1', 'r1', 'o1', 150)), 'ACCEPTED', 'a hundred and fifty were seen');
SELECT changes_nothing($$settle_usage('t1', 'r1', 'o1', 149, source => 'operator')$$, 'REFUSED progress', 'so an operator''s word for less does not end it either');
SELECT is(settle('t1', 'r1', 'o1', 200), 'ACCEPTED SETTLED', 'its receipt does');
SELECT is((SELECT outstanding FROM limitledger.get_budget('t1', 'chat')), 0::bigint, 'nothing is held any more');
SELECT is(available('t1', 'chat'), 800::bigint, '400 are back');
SELECT is(report_unknown('t1', 'r1', 'o1'), 'REFUSED settled', 'it can not become unknown again');
SELECT sound('settled from unknown');

-- An explicit zero is a figure.
SELECT publish('t2', 'chat');
SELECT is(reserve('t2', 'chat', 'r1', 600, 'o1'), 'ACCEPTED STARTED', 'started at once');
SELECT is(settle('t2', 'r1', 'o1', 0), 'ACCEPTED SETTLED', 'zero is a figure');
SELECT is(equation('t2', 'chat'), '1000 + 0 + 0 = 1000 + 0 + 0 + 0 + 0', 'everything is back');

-- The execution TTL, with no word from anybody (D10).
SELECT at('12:10:00');
SELECT is(reserve('t2', 'chat', 'r2', 600, 'o2'), 'ACCEPTED STARTED', 'started');
SELECT is((SELECT expires_at FROM limitledger.get_reservation('t2', 'r2')), '2030-01-01 12:20:00+00'::timestamptz, 'it may run for ten minutes');
SELECT at('12:19:59.999999');
SELECT results_eq($$SELECT * FROM limitledger.expire_executions(100)$$, $$VALUES (0::bigint)$$, 'before its deadline it is not due');
SELECT at('12:20:00');
SELECT results_eq($$SELECT * FROM limitledger.expire_executions(100)$$, $$VALUES (1::bigint)$$, 'at its deadline it is');
SELECT is(state('t2', 'r2'), 'USAGE_UNKNOWN', 'its usage is unknown');
SELECT is(equation('t2', 'chat'), '1000 + 0 + 0 = 400 + 600 + 0 + 0 + 0', 'and its units are held');
SELECT is(reserve('t2', 'chat', 'r3', 401), 'REFUSED available', 'from everybody');
SELECT is(settle('t2', 'r2', 'o2', 700), 'ACCEPTED SETTLED', 'a late receipt ends it, with all that it used');
SELECT is(equation('t2', 'chat'), '1000 + 0 + 0 = 300 + 0 + 700 + 0 + 0', 'nothing that ran is lost');

-- A late receipt that comes before anybody noticed the deadline.
SELECT is(reserve('t2', 'chat', 'r4', 100, 'o4'), 'ACCEPTED STARTED', 'started');
SELECT at('12:40:00');
SELECT is(settle('t2', 'r4', 'o4', 100), 'ACCEPTED SETTLED', 'a receipt after the deadline is a receipt');
SELECT is(equation('t2', 'chat'), '1000 + 0 + 0 = 200 + 0 + 800 + 0 + 0', 'and counts');
SELECT sound('at the end');

SELECT * FROM finish();
ROLLBACK;
