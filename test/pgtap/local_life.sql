-- A shard on its gateway: reserve, start, settle, release, unknown, expiry, seal and
-- report, against what was allocated and nothing else (G1, G4, G6; D2, D5-D10).
--
-- Fails when: an answer, a figure of the shard or a receipt's column is another one, a
-- refusal writes, or a guard lets through what no call does.

BEGIN;
\ir helpers.psql
SELECT plan(151);
SELECT at('10:00:00');
SELECT original();

-- ---- Before there is a gateway ------------------------------------------------
SELECT changes_nothing($$shard_reserve('t', 'chat', 'r', 1, sha256('r'))$$, 'REFUSED no_shard', 'no gateway holds no shard');
SELECT changes_nothing($$shard_start('t', 'r', 'o')$$, 'UNKNOWN reservation', 'nor a reservation');
SELECT is((SELECT outcome || ' ' || dimension FROM limitledger.seal_shard('t', 's')), 'UNKNOWN emergency_shard', 'nor anything to seal');
SELECT is((SELECT outcome || ' ' || dimension FROM limitledger.cut_shard_report('t', 's')), 'UNKNOWN emergency_shard', 'or to report');
SELECT is((SELECT outcome || ' ' || already_open FROM limitledger.open_gateway('gw')), 'ACCEPTED false', 'it is opened');
SELECT is((SELECT outcome || ' ' || already_open FROM limitledger.open_gateway('gw')), 'ACCEPTED true', 'once');
SELECT is((SELECT boot_epoch FROM limitledger.open_gateway('gw')), (SELECT boot_epoch FROM limitledger.local_gateway), 'and says its boot each time');
SELECT throws_ok($$SELECT * FROM limitledger.open_gateway('other')$$, 'LL404', NULL, 'a database is one gateway for good');

-- ---- Reserve: the order of refusals ---------------------------------------------
SELECT accepted('t', 's1', 'chat');
SELECT is(shard('t', 's1'), '100 = 100 + 0 + 0 + 0', 'all that was allocated is available');
SELECT is(shard_reserve('t', 'chat', 'r1', 60), 'ACCEPTED RESERVED', 'some of it is taken');
SELECT results_eq($$SELECT state, generation, epoch, reserved_units, expires_at, ledger_at, available, cap, reset_at, retry_after_ms, retry_kind, hard_limit, excess_units
                    FROM limitledger.shard_reserve('t', 'chat', 'r1', 60, sha256('r1'))$$,
  $$VALUES ('RESERVED', 7::bigint, '2030-01-01 00:00:00+00'::timestamptz, 60::bigint, '2030-01-01 10:00:30+00'::timestamptz, '2030-01-01 10:00:00+00'::timestamptz,
            40::bigint, 100::bigint, NULL::timestamptz, NULL::bigint, NULL, 500::bigint, NULL::bigint)$$, 'the receipt is the shard''s');
SELECT is(shard_reserve('t', 'chat', 'r1', 60), 'ACCEPTED RESERVED replayed', 'again, the same receipt');
SELECT changes_nothing($$shard_reserve('t', 'chat', 'r1', 61, sha256('r1'))$$, 'CONFLICT request', 'other units');
SELECT changes_nothing($$shard_reserve('t', 'chat', 'r1', 60, sha256('other'))$$, 'CONFLICT request', 'another digest');
SELECT changes_nothing($$shard_reserve('t', 'other', 'r1', 60, sha256('r1'))$$, 'CONFLICT request', 'another route, where there is no shard');
SELECT changes_nothing($$shard_reserve('t', 'chat', 'r2', 41, sha256('r2'))$$, 'REFUSED available', 'more than is left');
SELECT results_eq($$SELECT state, available, cap, retry_kind, generation FROM limitledger.shard_reserve('t', 'chat', 'r2', 41, sha256('r2'))$$,
  $$VALUES ('REQUESTED', 40::bigint, 100::bigint, 'release', 7::bigint)$$, 'which may come back');
SELECT changes_nothing($$shard_reserve('t', 'chat', 'r2', 101, sha256('r2'))$$, 'REFUSED largest_reservation', 'more than one may hold');
SELECT changes_nothing($$shard_reserve('t', 'chat', 'r2', 1, sha256('r2'), deadline => '2030-01-01 10:00:00+00')$$, 'REFUSED deadline', 'at the caller''s deadline');
SELECT changes_nothing($$shard_reserve('u', 'chat', 'r1', 1, sha256('r1'))$$, 'REFUSED no_shard', 'another subject has none');
SELECT changes_nothing($$shard_reserve('t', 'embed', 'r2', 1, sha256('r2'))$$, 'REFUSED no_shard', 'nor another route');
SELECT is(shard('t', 's1'), '100 = 40 + 60 + 0 + 0', 'nothing of that has moved a unit');

-- ---- Start, settle, release, unknown ---------------------------------------------
SELECT throws_ok($$SELECT * FROM limitledger.shard_settle('t', 'r1', 'o1', 1)$$, 'LL301', NULL, 'what was not started is not settled');
SELECT changes_nothing($$shard_settle_batch('{t}', '{r1}', '{o1}', '{1}')$$, 'REFUSED not_started', 'and in a batch is refused');
SELECT is(shard_start('t', 'r1', 'o1'), 'ACCEPTED STARTED', 'started');
SELECT is(shard_start('t', 'r1', 'o1'), 'ACCEPTED STARTED replayed', 'once');
SELECT results_eq($$SELECT operation, expires_at, hard_limit FROM limitledger.shard_start('t', 'r1', 'o1')$$,
  $$VALUES ('o1', '2030-01-01 10:10:00+00'::timestamptz, 500::bigint)$$, 'with its deadline and its limit');
SELECT changes_nothing($$shard_start('t', 'r1', 'o2')$$, 'CONFLICT operation', 'by one operation');
SELECT changes_nothing($$shard_release('t', 'r1')$$, 'REFUSED already_started', 'and not released any more');
SELECT is(shard_reserve('t', 'chat', 'r2', 40, 'o2'), 'ACCEPTED STARTED', 'another one, started at once');
SELECT changes_nothing($$shard_reserve('t', 'chat', 'r3', 1, sha256('r3'), start_operation => 'o2')$$, 'CONFLICT operation_elsewhere', 'an operation is bound to one thing');
SELECT changes_nothing($$shard_settle('t', 'r1', 'o2', 10)$$, 'CONFLICT operation', 'and settles only that');
SELECT is(shard_settle('t', 'r1', 'o1', 45), 'ACCEPTED SETTLED', 'what was used is spent');
SELECT is(shard('t', 's1'), '100 = 15 + 40 + 45 + 0', 'the difference came back');
SELECT is(shard_settle('t', 'r1', 'o1', 45), 'ACCEPTED SETTLED replayed', 'once');
SELECT changes_nothing($$shard_settle('t', 'r1', 'o1', 44)$$, 'CONFLICT figures', 'with one figure');
SELECT changes_nothing($$shard_settle('t', 'r1', 'o1', 45, sha256('x'))$$, 'CONFLICT figures', 'and one receipt');
SELECT changes_nothing($$shard_start('t', 'nobody', 'o9')$$, 'UNKNOWN reservation', 'a start of nothing');
SELECT changes_nothing($$shard_settle('t', 'nobody', 'o9', 1)$$, 'UNKNOWN reservation', 'a settlement of nothing');
SELECT changes_nothing($$shard_release('t', 'nobody')$$, 'UNKNOWN reservation', 'a release of nothing');
SELECT is(shard_reserve('t', 'chat', 'r4', 5), 'ACCEPTED RESERVED', 'a hold');
SELECT changes_nothing($$shard_start('t', 'r4', 'o2')$$, 'CONFLICT operation_elsewhere', 'is not started by what is bound');
SELECT is(shard_release('t', 'r4'), 'ACCEPTED RELEASED', 'given back');
SELECT is(shard_release('t', 'r4'), 'ACCEPTED RELEASED replayed', 'once');
SELECT changes_nothing($$shard_start('t', 'r4', 'o4')$$, 'REFUSED released', 'and not started any more');
SELECT changes_nothing($$shard_report_unknown('t', 'r2', 'o1')$$, 'CONFLICT operation', 'unknown by another operation');
SELECT is(shard_unknown('t', 'r2', 'o2'), 'ACCEPTED USAGE_UNKNOWN', 'unknown');
SELECT is(shard_unknown('t', 'r2', 'o2'), 'ACCEPTED USAGE_UNKNOWN replayed', 'once');
SELECT is(shard('t', 's1'), '100 = 15 + 40 + 45 + 0', 'its units stay held');
SELECT is(shard_settle('t', 'r2', 'o2', 30), 'ACCEPTED SETTLED', 'until its receipt comes');
SELECT is(shard('t', 's1'), '100 = 25 + 0 + 75 + 0', 'then the rest is back');
SELECT sound('after the first round');

-- ---- Excess ------------------------------------------------------------------------
SELECT is(shard_reserve('t', 'chat', 'x1', 10, 'ox1'), 'ACCEPTED STARTED', 'one that will use more');
SELECT is(shard_settle('t', 'x1', 'ox1', 20), 'ACCEPTED SETTLED', 'what is available covers it');
SELECT is(shard('t', 's1'), '100 = 5 + 0 + 95 + 0', 'first');
SELECT accepted('t', 's2', 'chat');
SELECT is(shard_reserve('t', 'chat', 'x2', 5, 'ox2'), 'ACCEPTED STARTED', 'the first shard that has enough');
SELECT is((SELECT shard_id FROM limitledger.shard_reservations WHERE reservation_id = 'x2'), 's1', 'is the one of the lowest fence');
SELECT is(shard_reserve('t', 'chat', 'x3', 1), 'ACCEPTED RESERVED', 'then the next');
SELECT is((SELECT shard_id FROM limitledger.shard_reservations WHERE reservation_id = 'x3'), 's2', 'gives');
SELECT is(shard_settle('t', 'x2', 'ox2', 12), 'ACCEPTED SETTLED_WITH_DEBT', 'what nothing covers');
SELECT is(shard('t', 's1'), '100 = 0 + 0 + 100 + 0, excess 7', 'stands beside the equation');
SELECT results_eq($$SELECT actual_units, excess_units, excess_generation FROM limitledger.shard_settle('t', 'x2', 'ox2', 12)$$,
  $$VALUES (12::bigint, 7::bigint, NULL::bigint)$$, 'and in the receipt, of no budget yet');
SELECT changes_nothing($$shard_reserve('t', 'chat', 'x4', 1, sha256('x4'))$$, 'REFUSED excess', 'a pair with excess stops, though another shard has units (E1)');
SELECT is(shard_start('t', 'x3', 'ox3'), 'ACCEPTED STARTED', 'what is held goes on');
SELECT is((SELECT outcome || retired_units || sealed_by FROM limitledger.seal_shard('t', 's1')), 'ACCEPTED0operator', 'sealed');
SELECT is(shard_reserve('t', 'chat', 'x4', 1), 'ACCEPTED RESERVED', 'it stops nobody any more');
SELECT sound('with an excess');

-- ---- Time --------------------------------------------------------------------------
SELECT accepted('time', 's', 'chat', 100, '40 seconds');
SELECT is(shard_reserve('time', 'chat', 'h1', 100), 'ACCEPTED RESERVED', 'a hold of everything');
SELECT at('10:00:29.999999');
SELECT is(shard_reserve('time', 'chat', 'h2', 100), 'REFUSED available', 'one instant before it has run out');
SELECT at('10:00:30');
SELECT changes_nothing($$shard_start('time', 'h1', 'oh1')$$, 'REFUSED expired', 'then it is late, though no sweep has come by (D5)');
SELECT is(shard_reserve('time', 'chat', 'h2', 100), 'ACCEPTED RESERVED', 'and a reserve ends it itself (D14)');
SELECT is((SELECT state FROM limitledger.shard_reservations WHERE reservation_id = 'h1'), 'EXPIRED', 'as expired');
SELECT is((SELECT expires_at FROM limitledger.shard_reservations WHERE reservation_id = 'h2'), '2030-01-01 10:00:40+00'::timestamptz, 'no hold outlives its shard');
SELECT is(shard_reserve('time', 'chat', 'h1', 100), 'ACCEPTED EXPIRED replayed', 'an id that has ended is answered by what stands');
SELECT is(shard_start('time', 'h2', 'oh2'), 'ACCEPTED STARTED', 'an execution');
SELECT is((SELECT expires_at FROM limitledger.shard_reservations WHERE reservation_id = 'h2'), '2030-01-01 10:10:30+00'::timestamptz, 'may');
SELECT is((SELECT ledger_at FROM limitledger.shard_reserve('time', 'chat', 'h3', 1, sha256('h3'))), '2030-01-01 10:00:30+00'::timestamptz, 'the clock goes on');
SELECT at('09:00:00');
SELECT is(shard_settle('time', 'h2', 'oh2', 40), 'ACCEPTED SETTLED', 'and back');
SELECT is((SELECT ended_at FROM limitledger.shard_reservations WHERE reservation_id = 'h2'), '2030-01-01 10:00:30+00'::timestamptz, 'but not for the shard (A3)');
SELECT is(shard_reserve('time', 'chat', 'h3', 10), 'ACCEPTED RESERVED', 'a hold');
SELECT is((SELECT expires_at FROM limitledger.shard_reservations WHERE reservation_id = 'h3'), '2030-01-01 10:00:40+00'::timestamptz, 'no shorter for it');
SELECT at('10:00:40');
SELECT changes_nothing($$shard_reserve('time', 'chat', 'h4', 1, sha256('h4'))$$, 'REFUSED shard_expired', 'a shard that has run out');
SELECT changes_nothing($$shard_reserve_batch('{time,time}', '{chat,chat}', '{h4,h3}', '{1,10}', ARRAY[sha256('h4'), sha256('h3')])$$,
  'REFUSED shard_expired, ACCEPTED RESERVED replayed', 'gives nothing new, and still knows its own');
SELECT results_eq($$SELECT * FROM limitledger.sweep_shards(100)$$, $$VALUES (2::bigint, 0::bigint, 1::bigint)$$, 'a sweep ends holds, here and of t, and the shard');
SELECT is(shard('time', 's'), '100 = 0 + 0 + 40 + 60, expiry', 'whose units are retired');
SELECT is((SELECT sequence FROM limitledger.cut_shard_report('time', 's')), 1::bigint, 'and can be reported');
SELECT changes_nothing($$shard_reserve('time', 'chat', 'h4', 1, sha256('h4'))$$, 'REFUSED shard_expired', 'the refusal is the same when it is sealed');
SELECT at('10:10:31');
SELECT results_eq($$SELECT * FROM limitledger.sweep_shards(100)$$, $$VALUES (0::bigint, 1::bigint, 0::bigint)$$, 'an execution past its deadline');
SELECT is((SELECT state FROM limitledger.shard_reservations WHERE reservation_id = 'x3'), 'USAGE_UNKNOWN', 'is unknown (D10)');
SELECT results_eq($$SELECT * FROM limitledger.sweep_shards(100)$$, $$VALUES (0::bigint, 0::bigint, 0::bigint)$$, 'and then there is nothing to do');
SELECT sound('after time has ended it');

-- ---- Bounds of a sweep, and maintain's ----------------------------------------------------
SELECT accepted('many', 's', 'chat', 100, '1 hour');
SELECT is((SELECT count(*) FROM generate_series(1, 5) n, LATERAL (SELECT shard_reserve('many', 'chat', 'm' || n, 10)) r (said) WHERE said = 'ACCEPTED RESERVED'), 5::bigint, 'five holds');
SELECT at('10:11:01');
SELECT is((SELECT expired FROM limitledger.sweep_shards(2)), 2::bigint, 'a sweep of two');
SELECT is(shard('many', 's'), '100 = 70 + 30 + 0 + 0', 'ends two');
SELECT is((SELECT expired FROM limitledger.sweep_shards(2)), 2::bigint, 'and two');
SELECT is((SELECT expired FROM limitledger.sweep_shards(2)), 1::bigint, 'and one');

-- ---- Seal ---------------------------------------------------------------------------------
SELECT accepted('seal', 's', 'chat');
SELECT is(shard_reserve('seal', 'chat', 'a', 30, 'oa'), 'ACCEPTED STARTED', 'an execution');
SELECT is(shard_reserve('seal', 'chat', 'b', 20), 'ACCEPTED RESERVED', 'and a hold');
SELECT results_eq($$SELECT outcome, replayed, retired_units, local_reserved, sealed_by, sealed_at FROM limitledger.seal_shard('seal', 's')$$,
  $$VALUES ('ACCEPTED', false, 50::bigint, 50::bigint, 'operator', '2030-01-01 10:11:01+00'::timestamptz)$$, 'a seal retires what is available (G6)');
SELECT results_eq($$SELECT outcome, replayed, retired_units, local_reserved, sealed_by FROM limitledger.seal_shard('seal', 's')$$,
  $$VALUES ('ACCEPTED', true, 0::bigint, 50::bigint, 'operator')$$, 'once');
SELECT changes_nothing($$shard_reserve('seal', 'chat', 'c', 1, sha256('c'))$$, 'REFUSED sealed', 'nothing more is given');
SELECT is(shard_reserve('seal', 'chat', 'b', 20), 'ACCEPTED RESERVED replayed', 'what was given is known');
SELECT is(shard_settle('seal', 'a', 'oa', 10), 'ACCEPTED SETTLED', 'settled later');
SELECT is(shard('seal', 's'), '100 = 0 + 20 + 10 + 70, operator', 'what comes back is retired');
SELECT is(shard_start('seal', 'b', 'ob'), 'ACCEPTED STARTED', 'a hold is started');
SELECT is(shard_settle('seal', 'b', 'ob', 25), 'ACCEPTED SETTLED_WITH_DEBT', 'retired units cover no excess');
SELECT is(shard('seal', 's'), '100 = 0 + 0 + 30 + 70, excess 5, operator', 'so it stands beside the equation');

-- ---- Reports --------------------------------------------------------------------------------
SELECT results_eq($$SELECT outcome, replayed, sequence, receipts, more, sealed FROM limitledger.cut_shard_report('seal', 's')$$,
  $$VALUES ('ACCEPTED', false, 1::bigint, 2::bigint, false, true)$$, 'a report with two receipts');
SELECT results_eq($$SELECT outcome, replayed, sequence, receipts, more, sealed FROM limitledger.cut_shard_report('seal', 's')$$,
  $$VALUES ('ACCEPTED', true, 1::bigint, 2::bigint, false, true)$$, 'with nothing new it is the same one');
SELECT is((SELECT concat_ws(' ', outcome, dimension) FROM limitledger.report_shard('seal', 's')), 'REFUSED not_committed', 'what this transaction cut is not signed in it (G8)');
SELECT is((SELECT concat_ws(' ', outcome, dimension) FROM limitledger.report_shard('seal', 's', 1)), 'REFUSED not_committed', 'nor by its number');
SELECT is((SELECT concat_ws(' ', outcome, dimension) FROM limitledger.report_shard('seal', 'no')), 'UNKNOWN emergency_shard', 'a shard that is not here');
SELECT accepted('big', 's', 'chat', 2000);
SELECT is((SELECT count(*) FROM limitledger.shard_reserve_batch(array_fill('big'::text, '{1001}'), array_fill('chat'::text, '{1001}'),
  ARRAY(SELECT 'b' || to_char(n, 'FM0000') FROM generate_series(1, 1001) n), array_fill(1::bigint, '{1001}'), array_fill(sha256('d'), '{1001}')) WHERE outcome = 'ACCEPTED'),
  1001::bigint, 'a thousand and one');
SELECT is((SELECT count(*) FROM generate_series(1, 1001) n, LATERAL (SELECT shard_release('big', 'b' || to_char(n, 'FM0000'))) r (said) WHERE said = 'ACCEPTED RELEASED'), 1001::bigint, 'come back');
SELECT results_eq($$SELECT sequence, receipts, more FROM limitledger.cut_shard_report('big', 's')$$, $$VALUES (1::bigint, 1000::bigint, true)$$, 'a report has a thousand');
SELECT is((SELECT max(reservation_id) FROM limitledger.shard_reservations WHERE subject = 'big' AND sequence = 1), 'b1000', 'in the order of ids');
SELECT results_eq($$SELECT sequence, receipts, more FROM limitledger.cut_shard_report('big', 's')$$, $$VALUES (2::bigint, 1::bigint, false)$$, 'the next one the rest');
SELECT results_eq($$SELECT sequence, receipts FROM limitledger.local_reports WHERE subject = 'big' ORDER BY 1$$, $$VALUES (1::bigint, 1000::bigint), (2::bigint, 1::bigint)$$, 'as the view shows them');

-- ---- A batch ------------------------------------------------------------------------------------
SELECT accepted('batch', 's', 'chat', 100);
SELECT is((SELECT string_agg(answer(outcome, dimension, state, replayed), ', ' ORDER BY element) FROM limitledger.shard_reserve_batch(
  '{batch,batch,batch,batch,batch}', '{chat,chat,chat,chat,chat}', '{p,q,p,p,r}', '{60,60,60,1,40}', array_fill(sha256('d'), '{5}'), start_operations => '{op,NULL,op,NULL,op}')),
  'ACCEPTED STARTED, REFUSED available, ACCEPTED STARTED replayed, CONFLICT request, CONFLICT operation_elsewhere', 'elements in their order, each by itself');
SELECT is((SELECT string_agg(answer(outcome, dimension, state, replayed), ', ' ORDER BY element) FROM limitledger.shard_settle_batch(
  '{batch,batch,batch,batch}', '{p,p,p,none}', '{op,op,op,op}', '{10,10,11,1}')),
  'ACCEPTED SETTLED, ACCEPTED SETTLED replayed, CONFLICT figures, UNKNOWN reservation', 'settled once');
SELECT is(shard('batch', 's'), '100 = 90 + 0 + 10 + 0', 'and the shard once');
SELECT is((SELECT answer(outcome, dimension, state, replayed) FROM limitledger.shard_reserve('batch', 'chat', 'z', 5, sha256('z'), start_operation => 'oz')), 'ACCEPTED STARTED', 'one');
SELECT is((SELECT outcome FROM limitledger.shard_settle('batch', 'z', 'oz', 5, NULL, 'operator')), 'ACCEPTED', 'that an operator vouches for');
SELECT is((SELECT action || ' ' || subject || ' ' || route || ': ' || reason FROM limitledger.operator_actions WHERE subject = 'batch'), 'attest_usage batch chat: 5 units for reservation z', 'is written down (D10)');
SELECT accepted('due', 's', 'chat', 100);
SELECT is(shard_reserve('due', 'chat', 'held', 60), 'ACCEPTED RESERVED', 'a hold');
SELECT at('10:11:31');
SELECT is((SELECT string_agg(answer(outcome, dimension, state, replayed), ', ' ORDER BY element) FROM limitledger.shard_reserve_batch(
  '{due,due}', '{chat,chat}', '{new,held}', '{90,60}', ARRAY[sha256('new'), sha256('held')])), 'ACCEPTED RESERVED, ACCEPTED EXPIRED replayed', 'that the batch itself has ended is told as it is');
SELECT sound('at the end of the calls');

-- ---- A login that is bound to one subject (I1) -------------------------------------------------
CREATE ROLE limitledger_test_bound LOGIN;
SELECT limitledger.grant_bundle('limitledger_test_bound', b) FROM unnest('{gateway,executor,operator}'::text[]) b;
GRANT USAGE ON SCHEMA helpers TO limitledger_test_bound;
SELECT limitledger.bind_subject('limitledger_test_bound', 'batch');
SET LOCAL SESSION AUTHORIZATION limitledger_test_bound;
SELECT is(shard_reserve('batch', 'chat', 'own', 1), 'ACCEPTED RESERVED', 'its own');
SELECT is(shard_reserve('many', 'chat', 'm6', 1), 'REFUSED no_shard', 'and for others there is nothing to take');
SELECT is(shard_settle('big', 'b0001', 'o', 1), 'UNKNOWN reservation', 'nothing to settle');
SELECT is((SELECT dimension FROM limitledger.seal_shard('many', 's')), 'emergency_shard', 'to seal');
SELECT is((SELECT dimension FROM limitledger.cut_shard_report('many', 's')), 'emergency_shard', 'to cut');
SELECT is((SELECT dimension FROM limitledger.report_shard('big', 's', 1)), 'emergency_shard', 'or to sign');
SELECT throws_ok(format('SELECT * FROM limitledger.%s', call), '42501', NULL, call || ' is about the gateway as a whole')
FROM unnest(ARRAY['open_gateway(''gw'')', 'renew_boot(''why'')', 'accept_emergency_shard(''x'')', 'sweep_shards(1)']) call;
RESET SESSION AUTHORIZATION;

-- ---- Guards ---------------------------------------------------------------------------------------
SELECT throws_ok(statement, 'LL902', NULL, description) FROM (VALUES
  ('UPDATE limitledger.local_shard SET allocated_units = allocated_units + 1, local_available = local_available + 1 WHERE subject = ''batch''', 'what was allocated stays'),
  ('UPDATE limitledger.local_shard SET local_spent = local_spent - 1, local_available = local_available + 1 WHERE subject = ''batch''', 'what was spent stays'),
  ('UPDATE limitledger.local_shard SET local_retired = local_retired - 1, local_reserved = local_reserved + 1 WHERE subject = ''seal''', 'what is retired stays'),
  ('UPDATE limitledger.local_shard SET local_excess = local_excess - 1 WHERE subject = ''seal''', 'and an excess'),
  ('UPDATE limitledger.local_shard SET sealed_at = NULL, sealed_by = NULL WHERE subject = ''seal''', 'a seal is not broken'),
  ('DELETE FROM limitledger.local_shard WHERE subject = ''seal''', 'no shard is deleted'),
  ('TRUNCATE limitledger.shard_operation', 'nor all of anything'),
  ('UPDATE limitledger.shard_reservation SET state = ''RELEASED'', operation_id = NULL, ended_at = now() WHERE reservation_id = ''x3''', 'states move as the table says'),
  ('UPDATE limitledger.shard_reservation SET actual_units = 1 WHERE subject = ''seal'' AND reservation_id = ''a''', 'what has ended stays'),
  ('UPDATE limitledger.shard_reservation SET sequence = 2 WHERE subject = ''big'' AND reservation_id = ''b0001''', 'and is reported once'),
  ('UPDATE limitledger.local_report SET local_spent = 0', 'a report stays'),
  ('UPDATE limitledger.shard_operation SET reservation_id = ''b''', 'and a binding'),
  ('UPDATE limitledger.local_gateway SET gateway = ''other''', 'a gateway stays itself'),
  ('UPDATE limitledger.local_gateway SET last_fence = last_fence - 1', 'and forgets no fence')) v (statement, description);

SELECT * FROM finish();
ROLLBACK;
