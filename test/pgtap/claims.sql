-- Unknown usage for reconcilers (D10): claimed in batches, the oldest first, each item by
-- one at a time for the length of a lease; what a claim does not do; what converged, and
-- what an operator's word leaves behind.
--
-- Fails when: an item is claimed twice within a lease, or not again after it; a younger one
-- goes first; a claim moves a balance or stands in the way of a settlement; who claimed or
-- attested is not shown; a view counts wrong.

BEGIN;
\ir helpers.psql
SELECT plan(95);

-- claimed is what one call gives, in its order.
CREATE FUNCTION helpers.claimed(batch_limit integer, lease interval DEFAULT '5 minutes', reconciler text DEFAULT 'a') RETURNS text
LANGUAGE sql AS $$
  SELECT coalesce(string_agg(c.reservation_id, ' '), '') FROM limitledger.claim_unknown_usage(batch_limit, lease, reconciler) c
$$;
-- lost runs an execution and loses it, at the clock's instant.
CREATE FUNCTION helpers.lost(subject text, route text, id text, units bigint DEFAULT 10) RETURNS text
LANGUAGE sql AS $$
  SELECT CASE WHEN reserve(subject, route, id, units, 'o ' || id) = 'ACCEPTED STARTED' THEN report_unknown(subject, id, 'o ' || id) END
$$;
CREATE FUNCTION helpers.holder(subject text, id text) RETURNS text
LANGUAGE sql AS $$
  SELECT concat_ws(' ', u.claimed_by, to_char(u.claimed_until AT TIME ZONE 'UTC', 'HH24:MI:SS'))
  FROM limitledger.unknown_usage u WHERE (u.subject, u.reservation_id) = ($1, $2)
$$;

SELECT at('10:00:00');
SELECT publish('*', 'chat', '{"hardExecutionLimit": 700}');
SELECT publish('*', 'embed');
SELECT is(claimed(10), '', 'at first there is nothing to claim');
SELECT changes_nothing(
  $$claim_unknown_usage(10) c, LATERAL (VALUES ('', '', '', false)) v (outcome, dimension, state, replayed)$$, NULL, 'and a claim of nothing writes nothing');

-- ---- What is claimed, and in which order -------------------------------------------
SELECT is(lost('t', 'chat', 'u2', 20), 'ACCEPTED USAGE_UNKNOWN', 'an execution is lost');
SELECT at('10:00:01');
SELECT is(lost('s', 'embed', 'u1'), 'ACCEPTED USAGE_UNKNOWN', 'and a later one');
SELECT at('10:00:02');
SELECT is(lost('t', 'chat', 'u3'), 'ACCEPTED USAGE_UNKNOWN', 'and another');
SELECT is(reserve('t', 'chat', 'held', 10), 'ACCEPTED RESERVED', 'a hold is none of it');
SELECT is(reserve('t', 'chat', 'runs', 10, 'o runs'), 'ACCEPTED STARTED', 'nor is what runs');
SELECT is((SELECT outcome FROM limitledger.report_progress('t', 'u2', 'o u2', 7)), 'ACCEPTED', 'something is known about the first');
SELECT is(equation('t', 'chat'), '1000 + 0 + 0 = 950 + 50 + 0 + 0 + 0', 'all of them hold their units');

SELECT at('10:00:10');
SELECT results_eq($$SELECT * FROM limitledger.claim_unknown_usage(1, reconciler => 'a')$$,
  $$VALUES ('t', 'u2', 'chat', 'o u2', 20::bigint, 7::bigint, 700::bigint, '2030-01-01 10:00:00+00'::timestamptz, '2030-01-01 10:02:10+00'::timestamptz)$$,
  'the oldest one, with all that a reconciler needs');
SELECT is(claimed(10, '1 minute', 'b'), 'u1 u3', 'the next reconciler gets the others, the oldest first');
SELECT is(claimed(10, '1 minute', 'c'), '', 'and the third one none');
SELECT is(holder('t', 'u2'), 'a 10:02:10', 'who has claimed it is shown, and until when');
SELECT is(holder('s', 'u1'), 'b 10:01:10', 'by the lease that was asked for');
SELECT is((SELECT concat_ws(' ', claimed_by, claimed_until) FROM limitledger.reservations WHERE reservation_id = 'u3'), 'b 2030-01-01 10:01:10+00', 'in the whole list as well');
SELECT is(equation('t', 'chat'), '1000 + 0 + 0 = 950 + 50 + 0 + 0 + 0', 'a claim moves no balance');
SELECT is(state('t', 'u2'), 'USAGE_UNKNOWN', 'and no state');
SELECT sound('claimed');

-- ---- Leases --------------------------------------------------------------------------
SELECT at('10:01:09.999999');
SELECT is(claimed(10), '', 'nothing comes back before its lease ends');
SELECT at('10:01:10');
SELECT is(claimed(1, '10 minutes', 'c'), 'u1', 'at its end it does, the oldest first');
SELECT is(holder('s', 'u1'), 'c 10:11:10', 'for whoever comes');
SELECT is(lost('t', 'chat', 'u4'), 'ACCEPTED USAGE_UNKNOWN', 'one more is lost');
SELECT at('10:05:10');
SELECT is(claimed(2, '1 second', 'd'), 'u2 u3', 'what has come back is older than what nobody has claimed');
SELECT is(claimed(2, '1 second', 'd'), 'u4', 'which is next');
SELECT at('10:05:11');
SELECT is(claimed(2, '1 second'), 'u2 u3', 'and the shortest lease is a second');
SELECT at('10:05:00');
SELECT is(claimed(10), '', 'a clock that steps back ends no lease');
SELECT at('10:11:09.999999');
SELECT is(claimed(10, '1 day'), 'u2 u3 u4', 'the others have lapsed long ago');
SELECT is(holder('t', 'u4'), 'a 10:11:09', 'for a day');

-- ---- It gates nothing ------------------------------------------------------------------
SELECT is((SELECT outcome FROM limitledger.report_progress('t', 'u2', 'o u2', 9)), 'ACCEPTED', 'progress of what is claimed');
SELECT is(holder('t', 'u2'), 'a 10:11:09', 'leaves the claim');
SELECT is(report_unknown('t', 'u2', 'o u2'), 'ACCEPTED USAGE_UNKNOWN replayed', 'it is still unknown');
SELECT is(settle('t', 'u2', 'o u2', 15), 'ACCEPTED SETTLED', 'a late receipt of the executor settles as always');
SELECT is(equation('t', 'chat'), '1000 + 0 + 0 = 945 + 40 + 15 + 0 + 0', 'and gives back what was not used');
SELECT is((SELECT concat_ws(' ', dimension, actual_units) FROM limitledger.settle_usage('t', 'u2', 'o u2', 20, source => 'reconciler')), 'figures 15', 'the reconciler''s own is too late, and sees what stands');
SELECT is((SELECT outcome FROM limitledger.settle_usage('s', 'u1', 'o u1', 10, source => 'reconciler')), 'ACCEPTED', 'a reconciler settles what it has found out');
SELECT is((SELECT outcome FROM limitledger.settle_usage('t', 'u4', 'o u4', 10, source => 'reconciler')), 'ACCEPTED', 'or what another one has claimed');
SELECT is((SELECT concat_ws(' ', claimed_by, receipt_source) FROM limitledger.reservations WHERE reservation_id = 'u4'), 'a reconciler', 'who had claimed it stays to be seen');
SELECT at('2030-01-03 00:00:00+00'::timestamptz);
SELECT is(claimed(10), 'u3', 'what has ended is not claimed again');
SELECT sound('settled');

-- ---- Without a name, and within bounds -------------------------------------------------
SELECT at('2030-01-03 12:00:00+00'::timestamptz);
CREATE ROLE limitledger_test_reconciler;
SELECT isnt((SELECT granted FROM limitledger.grant_bundle('limitledger_test_reconciler', 'executor')), 0::bigint, 'an executor reconciles');
GRANT USAGE ON SCHEMA helpers TO limitledger_test_reconciler;
SET LOCAL ROLE limitledger_test_reconciler;
SELECT is((SELECT reservation_id FROM limitledger.claim_unknown_usage()), 'u3', 'with no argument at all');
SELECT throws_ok($$SELECT * FROM limitledger.unknown_usage$$, '42501', NULL, 'it does not read what others have');
RESET ROLE;
SELECT is((SELECT claimed_by FROM limitledger.unknown_usage), 'limitledger_test_reconciler', 'who gave no name is known by its role');
SELECT is_misuse(format('claim_unknown_usage(10, %L)', lease), 'LL106', 'lease', 'a lease of ' || lease)
FROM unnest(ARRAY['0', '999999 microseconds', '-1 second', '1 day 1 microsecond', '25 hours', '2 days', '1 month', '-1 day',
  '-1 month 30 days', '178000000 years']) lease;
SELECT is_misuse(call, code, field, call) FROM (VALUES
  ('claim_unknown_usage(NULL)', 'LL101', 'batch_limit'), ('claim_unknown_usage(0)', 'LL106', 'batch_limit'),
  ('claim_unknown_usage(100001)', 'LL106', 'batch_limit'), ('claim_unknown_usage(10, NULL)', 'LL101', 'lease'),
  ('claim_unknown_usage(10, reconciler => '''')', 'LL102', 'reconciler'),
  ('claim_unknown_usage(10, reconciler => repeat(''x'', 257))', 'LL102', 'reconciler')) v (call, code, field);
SELECT at('2030-01-04 12:00:00+00'::timestamptz);
SELECT is(claimed(100000, '2 days -24 hours', repeat('x', 256)), 'u3', 'a day may be written in many ways');
SELECT is(holder('t', 'u3'), repeat('x', 256) || ' 12:00:00', 'and is a day');

-- ---- By hand -----------------------------------------------------------------------------
SELECT throws_ok('UPDATE limitledger.reservation SET ' || change || format(' WHERE reservation_id = %L', id), code, NULL, id || ': ' || change)
FROM (VALUES
  ('u3', 'claimed_until = claimed_until - interval ''1 second''', 'LL902'), ('u3', 'claimed_by = ''other''', 'LL902'),
  ('u3', 'claimed_by = NULL, claimed_until = NULL', 'LL902'), ('u3', 'claimed_by = NULL, claimed_until = claimed_until + interval ''1 second''', '23514'),
  ('u2', 'claimed_until = claimed_until + interval ''1 second''', 'LL902'),
  ('held', 'claimed_by = ''a'', claimed_until = now()', 'LL902'), ('runs', 'claimed_by = ''a'', claimed_until = now()', 'LL902'),
  ('u3', 'state = ''SETTLED'', actual_units = 1, claimed_until = claimed_until + interval ''1 second''', 'LL902')) v (id, change, code);

-- ---- Convergence ---------------------------------------------------------------------------
-- chat: u3 is open still, u2 took 11 m 9.999999 s, u4 9 m 59.999999 s; embed: u1 took 11 m 8.999999 s.
SELECT at('2030-01-02 10:00:00+00'::timestamptz);
SELECT is((SELECT string_agg(concat_ws(' ', route, oldest_unknown_age, converged, attested, p50, p99, slowest), '; ') FROM limitledger.unknown_usage_convergence),
  'chat 23:59:58 2 0 00:10:34.999999 00:11:09.299999 00:11:09.999999; embed 1 0 00:11:08.999999 00:11:08.999999 00:11:08.999999',
  'by route: the oldest that is open, and how long the others took');
SELECT is((SELECT p50 FROM limitledger.unknown_usage_convergence WHERE route = 'chat'),
  (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY ended_at - unknown_at) FROM limitledger.reservations WHERE route = 'chat' AND unknown_at IS NOT NULL), 'as it is computed by hand');
SELECT at('2030-01-02 10:11:10+00'::timestamptz);
SELECT is((SELECT string_agg(concat_ws(' ', route, converged), '; ') FROM limitledger.unknown_usage_convergence), 'chat 0', 'a day later there is only what is open');
SELECT is((SELECT oldest_unknown_at FROM limitledger.unknown_usage_convergence), '2030-01-01 10:00:02+00'::timestamptz, 'since it was lost');

-- ---- The last resort -------------------------------------------------------------------------
SELECT at('2030-01-05 10:00:00+00'::timestamptz);
SELECT is((SELECT outcome FROM limitledger.report_progress('t', 'u3', 'o u3', 8)), 'ACCEPTED', 'eight units were seen');
SELECT is((SELECT count(*) FROM limitledger.operator_actions), 0::bigint, 'nobody has attested anything yet');
SELECT changes_nothing($$settle_usage('t', 'u3', 'o u3', 7, source => 'operator')$$, 'REFUSED progress', 'an operator does not attest less');
SELECT is((SELECT concat_ws(' ', outcome, state) FROM limitledger.settle_usage('t', 'u3', 'o u3', 8, source => 'operator')), 'ACCEPTED SETTLED', 'but that, or more');
SELECT changes_nothing($$settle_usage('t', 'u3', 'o u3', 8, source => 'operator')$$, 'ACCEPTED SETTLED replayed', 'once');
SELECT is((SELECT concat_ws(' ', actor, action, subject, route, reason) FROM limitledger.operator_actions),
  current_user || ' attest_usage t chat 8 units for reservation u3', 'who did it is recorded');
SELECT is((SELECT receipt_source FROM limitledger.reservations WHERE reservation_id = 'u3'), 'operator', 'and the figure is marked');
SELECT is(limitledger.get_reservation_document('t', 'u3') ->> 'receiptSource', 'operator', 'in its document too');
SELECT is((SELECT concat_ws(' ', route, converged, attested) FROM limitledger.unknown_usage_convergence), 'chat 1 1', 'and counted apart');
SELECT is((SELECT count(*) FROM limitledger.settle_usage_batch('{t}', '{runs}', '{o runs}', '{3}', sources => '{operator}')), 1::bigint, 'in a batch');
SELECT is((SELECT count(*) FROM limitledger.operator_actions WHERE action = 'attest_usage'), 2::bigint, 'it is recorded as well');

-- ---- Totals ------------------------------------------------------------------------------------
-- v owes, w is frozen and owes nothing; both by an execution that went too far.
SELECT at('2030-01-05 10:00:10+00'::timestamptz);
SELECT publish('v', 'batch', '{"burst": 100}'), publish('w', 'batch', '{"burst": 100, "hardExecutionLimit": 5}');
SELECT is(reserve('v', 'batch', 'r', 10, 'o') || settle('v', 'r', 'o', 170), 'ACCEPTED STARTEDACCEPTED SETTLED_WITH_DEBT', 'one pair owes 70');
SELECT is(reserve('w', 'batch', 'r', 10, 'o') || settle('w', 'r', 'o', 6), 'ACCEPTED STARTEDACCEPTED SETTLED', 'another is frozen');
SELECT is(reserve('x', 'chat', 'h1', 10), 'ACCEPTED RESERVED', 'a hold');
SELECT is(reserve('x', 'chat', 'e1', 10, 'o e1'), 'ACCEPTED STARTED', 'and an execution');
SELECT is(lost('x', 'chat', 'u9'), 'ACCEPTED USAGE_UNKNOWN', 'and something lost');
SELECT is((SELECT expired FROM limitledger.expire_reservations()), 1::bigint, 'what has long been due is ended');
SELECT at('2030-01-05 10:00:40+00'::timestamptz);
SELECT results_eq('SELECT * FROM limitledger.ledger_totals',
  $$VALUES ('2030-01-05 10:00:10+00'::timestamptz, interval '30 s', interval '0', '2030-01-05 10:00:10+00'::timestamptz, interval '30 s', interval '0',
            '2030-01-05 10:00:10+00'::timestamptz, interval '30 s', 1::bigint, 70::numeric, 1::bigint, 0::bigint, 0::numeric, interval '0')$$, 'totals: the oldest of each, and whom to look at');
SELECT at('2030-01-05 10:10:41+00'::timestamptz);
SELECT is((SELECT concat_ws(' ', hold_overdue, execution_overdue) FROM limitledger.ledger_totals), '00:10:01 00:00:31', 'and how long it has been due');
SELECT is((SELECT claimed FROM limitledger.claim_expiring(10)), 1::bigint, 'a sweep claims the hold, and dies');
SELECT is((SELECT hold_overdue FROM limitledger.ledger_totals), interval '10 minutes 1 second', 'which holds on');
SELECT sound('at the end');

SELECT * FROM finish();
ROLLBACK;
