-- What needs a look: each listing shows exactly what has its problem, the newest first,
-- with its age by the ledger's clock (C2, D8, D10, D14, E1).
--
-- Fails when: a listing misses one, keeps one that is over, or tells another age or order.

BEGIN;
\ir helpers.psql
SELECT plan(47);

-- shown is a listing in its own order.
CREATE FUNCTION helpers.shown(listing text, columns text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE said text;
BEGIN
  EXECUTE format('SELECT string_agg(concat_ws('' '', %s), '', '') FROM limitledger.%I AS one', columns, listing) INTO said;
  RETURN coalesce(said, '');
END $$;

SELECT at('10:00:00');
SELECT publish('t', 'chat');
SELECT is(shown(l, 'one'), '', l || ' is empty at first')
FROM unnest(ARRAY['open_reservations', 'unknown_usage', 'expired_unstarted', 'frozen_pairs', 'pairs_in_debt']) l;

-- ---- What holds units ---------------------------------------------------------
SELECT is(reserve('t', 'chat', 'a', 10), 'ACCEPTED RESERVED', 'a hold, and one that will be claimed');
SELECT at('10:00:01');
SELECT is(reserve('t', 'chat', 'b', 20, 'o b'), 'ACCEPTED STARTED', 'an execution');
SELECT at('10:00:02');
SELECT is(reserve('t', 'chat', 'c', 30, 'o c'), 'ACCEPTED STARTED', 'one that will be unknown');
SELECT at('10:00:03');
SELECT is(reserve('t', 'chat', 'd', 40), 'ACCEPTED RESERVED', 'a hold that will be released');
SELECT is(release('t', 'd'), 'ACCEPTED RELEASED', 'and is');
SELECT is(reserve('t', 'chat', 'e', 50, 'o e'), 'ACCEPTED STARTED', 'an execution that will be settled');
SELECT is(settle('t', 'e', 'o e', 50), 'ACCEPTED SETTLED', 'and is');
SELECT is(resolve('t', 'lost'), 'ACCEPTED RELEASED', 'and a fence, which holds nothing');
SELECT at('10:00:20');
SELECT is(reserve('t', 'chat', 'f', 60), 'ACCEPTED RESERVED', 'a later hold');
SELECT is(shown('open_reservations', 'reservation_id, state, reserved_units, operation_id, age, time_left'),
  'f RESERVED 60 00:00:00 00:00:30, c STARTED 30 o c 00:00:18 00:09:42, b STARTED 20 o b 00:00:19 00:09:41, a RESERVED 10 00:00:20 00:00:10',
  'open: what is held, the newest first, with its age and the time that it has left');
SELECT is((SELECT sum(reserved_units) FROM limitledger.open_reservations), (SELECT outstanding::numeric FROM limitledger.get_budget('t', 'chat')),
  'open: and nothing else is reserved (C2)');

SELECT is(shown('expired_unstarted', 'one'), '', 'no hold has run out before its time');
SELECT at('10:00:29.999999');
SELECT is(shown('expired_unstarted', 'one'), '', 'not a microsecond before');
SELECT at('10:00:30');
SELECT is(shown('expired_unstarted', 'reservation_id, state, age'), 'a RESERVED 00:00:00', 'at its instant it has (D5)');
SELECT is((SELECT claimed FROM limitledger.claim_expiring(10)), 1::bigint, 'a sweep claims it, and dies');
SELECT at('10:01:00');
SELECT is(shown('expired_unstarted', 'reservation_id, state, reserved_units, age'),
  'f RESERVED 60 00:00:10, a EXPIRING 10 00:00:30', 'both hold until somebody finishes it, the newest first');
SELECT is(shown('open_reservations', 'reservation_id, time_left'), 'f -00:00:10, c 00:09:02, b 00:09:01, a -00:00:30', 'open: what is overdue has less than nothing left');
SELECT is((SELECT concat_ws(' ', claimed, expired) FROM limitledger.expire_reservations()), '1 2', 'the next run ends both');
SELECT is(shown('expired_unstarted', 'one'), '', 'and nothing is left to do');

-- ---- What nobody knows ----------------------------------------------------------
SELECT at('10:02:00');
SELECT is((SELECT outcome FROM limitledger.report_progress('t', 'c', 'o c', 7)), 'ACCEPTED', 'an executor reports how far it is');
SELECT is(report_unknown('t', 'c', 'o c'), 'ACCEPTED USAGE_UNKNOWN', 'and loses its work');
SELECT at('10:10:31');
SELECT is((SELECT unknown FROM limitledger.expire_executions(10)), 1::bigint, 'another never came back');
SELECT at('10:11:01');
SELECT is(shown('unknown_usage', 'reservation_id, operation_id, reserved_units, progress_units, age'), 'b o b 20 0 00:00:30, c o c 30 7 00:09:01', 'unknown: the newest first');
SELECT is(settle('t', 'b', 'o b', 20), 'ACCEPTED SETTLED', 'a receipt ends it');
SELECT is(shown('unknown_usage', 'reservation_id'), 'c', 'unknown: and it is gone');
SELECT is(shown('open_reservations', 'reservation_id, state'), 'c USAGE_UNKNOWN', 'open: the other one still holds');

-- ---- Who owes, and who is stopped ------------------------------------------------
-- v refills 10 a second and may owe 500; w has one execution above its hard limit.
SELECT publish('v', 'chat', continuous(10, '1 second', 100));
SELECT publish('w', 'chat', '{"hardExecutionLimit": 5}');
SELECT is(reserve('v', 'chat', 'r', 10, 'o'), 'ACCEPTED STARTED', 'one runs');
SELECT is(settle('v', 'r', 'o', 400), 'ACCEPTED SETTLED_WITH_DEBT', 'far beyond what it reserved');
SELECT at('10:11:11');
SELECT reserve('w', 'chat', 'r', 10, 'o'), settle('w', 'r', 'o', 1100);
SELECT at('10:11:21');
SELECT is(shown('pairs_in_debt', 'subject, route, debt, admission, age'), 'w chat 100 frozen 00:00:10, v chat 100 suspended 00:00:20',
  'in debt: as of now, refill counted in; the one that changed last comes first');
SELECT at('10:11:31');
SELECT reserve('t', 'chat', 'g', 10, 'o g'), settle('t', 'g', 'o g', 2000);
SELECT is(shown('frozen_pairs', 'subject, debt, age'), 't 1100 00:00:00, w 100 00:00:20', 'frozen: the newest first');
SELECT is(shown('pairs_in_debt', 'subject, debt'), 't 1100, w 100', 'in debt: a debt that due refill has paid is none');
SELECT is((SELECT concat_ws(' ', route, frozen_reason, outstanding) FROM limitledger.frozen_pairs WHERE subject = 'w'),
  'chat an execution used more than its hard limit 0', 'frozen: and why');
SELECT publish('w', 'chat', continuous(100, '1 second', 1000) || '{"hardExecutionLimit": 5}');
SELECT at('10:11:33');
SELECT is((SELECT count(*) FROM limitledger.pairs_in_debt WHERE subject = 'w'), 0::bigint, 'in debt: paid');
SELECT is(shown('frozen_pairs', 'subject, debt'), 't 1100, w 0', 'frozen: still, since only an operator opens it');
SELECT is((SELECT outcome FROM limitledger.unfreeze('w', 'chat', 'looked into it')), 'ACCEPTED', 'one does');
SELECT is(shown('frozen_pairs', 'subject'), 't', 'frozen: and it is gone');

-- A debt of an epoch that is over is a debt.
SELECT at('11:00:00');
SELECT is(reserve('w', 'chat', 's', 1), 'ACCEPTED RESERVED', 'w opens an epoch');
SELECT is((SELECT is_head FROM limitledger.budgets WHERE subject = 't' AND debt > 0), true, 't has not');
SELECT publish('t', 'chat', '{"burst": 900}');
SELECT is(settle('t', 'c', 'o c', 30), 'ACCEPTED SETTLED', 'until a receipt comes');
SELECT is((SELECT is_head FROM limitledger.budgets WHERE subject = 't' AND debt > 0), false, 'and its debt stays behind');
SELECT is(shown('pairs_in_debt', 'subject, debt, admission, age'), 't 1100 frozen 00:00:00', 'in debt: over all budgets of the pair');
SELECT sound('at the end');

SELECT * FROM finish();
ROLLBACK;
