-- Usage above the reservation, debt, suspension, repayment, freeze (D7, D8, E1-E4).
--
-- Fails when: excess is cut off, admission goes on in debt, refill fills available
-- before it pays, or an epoch, a generation or a freeze forgets what is owed.

BEGIN;
\ir helpers.psql
SELECT plan(103);

-- Excess that is covered ends SETTLED; the rest is debt.
SELECT at('10:00:00');
SELECT publish('t1', 'chat');
SELECT is(reserve('t1', 'chat', 'r1', 100, 'o1'), 'ACCEPTED STARTED', 'started');
SELECT is(settle('t1', 'r1', 'o1', 500), 'ACCEPTED SETTLED', 'four hundred more than reserved, all covered');
SELECT is(equation('t1', 'chat'), '1000 + 0 + 0 = 500 + 0 + 500 + 0 + 0', 'by what was available');
SELECT results_eq($$SELECT reserved_units, actual_units, excess_units, excess_generation, excess_epoch FROM limitledger.get_reservation('t1', 'r1')$$,
  $$SELECT 100::bigint, 500::bigint, 400::bigint, generation, '2030-01-01 10:00:00+00'::timestamptz FROM limitledger.get_budget('t1', 'chat')$$,
  'the receipt names the budget that bore it');
SELECT is(admission('t1', 'chat'), 'open', 'admission is open');
SELECT is(reserve('t1', 'chat', 'r2', 100, 'o2'), 'ACCEPTED STARTED', 'another one');
SELECT is(reserve('t1', 'chat', 'r3', 200), 'ACCEPTED RESERVED', 'and a hold');
SELECT is(settle('t1', 'r2', 'o2', 600), 'ACCEPTED SETTLED_WITH_DEBT', 'five hundred more than reserved, two hundred covered');
SELECT is(equation('t1', 'chat'), '1000 + 0 + 300 = 0 + 200 + 1100 + 0 + 0', 'three hundred are owed');
SELECT is(debt('t1', 'chat'), 300::bigint, 'which is the debt');
SELECT is(admission('t1', 'chat'), 'suspended', 'admission is suspended');
SELECT results_eq($$SELECT outcome, dimension, retry_kind, available FROM limitledger.reserve_capacity('t1', 'chat', 'r4', 1, sha256('r4'))$$,
  $$VALUES ('REFUSED', 'debt', 'release', 0::bigint)$$, 'for everybody');
SELECT is(settle('t1', 'r2', 'o2', 600), 'ACCEPTED SETTLED_WITH_DEBT replayed', 'told again, it is booked once');
SELECT is(reserve('t1', 'chat', 'r3', 200), 'ACCEPTED RESERVED replayed', 'a receipt from before is still a receipt');
SELECT is(release('t1', 'r3'), 'ACCEPTED RELEASED', 'units that come back');
SELECT is(equation('t1', 'chat'), '1000 + 0 + 300 = 0 + 0 + 1100 + 0 + 200', 'pay the debt first');
SELECT is(debt('t1', 'chat'), 100::bigint, 'which falls');
SELECT is(reserve('t1', 'chat', 'r4', 1), 'REFUSED debt', 'a hundred are still owed');
SELECT sound('debt without refill');

-- Refill pays, then fills; the reserve that meets the last of it is admitted (E3).
SELECT publish('t2', 'chat', continuous(10, '1 second', 100));
SELECT is(reserve('t2', 'chat', 'r1', 100, 'o1'), 'ACCEPTED STARTED', 'started');
SELECT is(settle('t2', 'r1', 'o1', 400), 'ACCEPTED SETTLED_WITH_DEBT', 'three hundred are owed');
SELECT at('10:00:10');
SELECT results_eq($$SELECT outcome, repaid_units, debt, available, admission FROM limitledger.repay_debt('t2', 'chat')$$,
  $$VALUES ('ACCEPTED', 100::bigint, 200::bigint, 0::bigint, 'suspended')$$, 'ten seconds pay a hundred');
SELECT is(equation('t2', 'chat'), '100 + 100 + 300 = 0 + 0 + 400 + 0 + 100', 'minted and repaid grow together');
SELECT results_eq($$SELECT outcome, repaid_units, debt FROM limitledger.repay_debt('t2', 'chat')$$,
  $$VALUES ('ACCEPTED', 0::bigint, 200::bigint)$$, 'at the same instant nothing more');
SELECT at('10:00:29.999999');
SELECT is(reserve('t2', 'chat', 'r2', 1), 'REFUSED debt', 'one unit is still owed');
SELECT at('10:00:30');
SELECT is(reserve('t2', 'chat', 'r2', 1), 'REFUSED available', 'nothing is owed, nothing is there');
SELECT is(admission('t2', 'chat'), 'open', 'admission is open');
SELECT at('10:00:31');
SELECT is(reserve('t2', 'chat', 'r2', 10), 'ACCEPTED RESERVED', 'a reserve repays by itself and is admitted');
SELECT is(equation('t2', 'chat'), '100 + 310 + 300 = 0 + 10 + 400 + 0 + 300', 'debt first, then available');
SELECT sound('debt with refill');

-- No reset, epoch or generation forgets a debt (E4).
SELECT at('10:00:00');
SELECT publish('t3', 'chat', quota(100));
SELECT is(reserve('t3', 'chat', 'r1', 50, 'o1'), 'ACCEPTED STARTED', 'started');
SELECT is(reserve('t3', 'chat', 'r2', 50, 'o2'), 'ACCEPTED STARTED', 'twice');
SELECT is(settle('t3', 'r1', 'o1', 300), 'ACCEPTED SETTLED_WITH_DEBT', '250 are owed');
SELECT publish('t3', 'chat', quota(150));
SELECT is(debt('t3', 'chat'), 200::bigint, 'a raised quota pays with the change');
SELECT is(reserve('t3', 'chat', 'r3', 1), 'REFUSED debt', 'and nobody is admitted under the new generation');
SELECT at('11:00:00');
SELECT is(debt('t3', 'chat'), 50::bigint, 'a new window''s quota pays');
SELECT is(settle('t3', 'r2', 'o2', 130), 'ACCEPTED SETTLED_WITH_DEBT', 'eighty more, borne by the head');
SELECT is(debt('t3', 'chat'), 130::bigint, 'the debt of the pair is that of all its budgets');
SELECT is(equation('t3', 'chat'), '0 + 0 + 80 = 0 + 0 + 80 + 0 + 0', 'the head owes eighty');
SELECT is(closed('t3', 'chat', 1), '100 + 200 + 250 = 0 + 0 + 350 + 0 + 200', 'the first budget still owes fifty');
SELECT at('12:00:00');
SELECT is((SELECT repaid_units || ' ' || debt || ' ' || available FROM limitledger.repay_debt('t3', 'chat')), '130 0 20', 'the next quota pays, oldest first, then opens with the rest');
SELECT is(closed('t3', 'chat', 1), '100 + 250 + 250 = 0 + 0 + 350 + 0 + 250', 'the first is clear');
SELECT is((SELECT string_agg(overdraft_issued - overdraft_repaid || '', ' ' ORDER BY generation, epoch) FROM limitledger.closed_budget WHERE subject = 't3'), '0 0 0', 'as are all');
SELECT is(reserve('t3', 'chat', 'r4', 20), 'ACCEPTED RESERVED', 'admission is open');
SELECT sound('debt over epochs and generations');

-- Whole windows that nobody opened pay too, each with one quota and no more.
SELECT publish('t4', 'chat', quota(100));
SELECT is(reserve('t4', 'chat', 'r1', 100, 'o1'), 'ACCEPTED STARTED', 'at noon');
SELECT is(settle('t4', 'r1', 'o1', 430), 'ACCEPTED SETTLED_WITH_DEBT', '330 are owed');
SELECT at('15:30:00');
SELECT results_eq($$SELECT debt, available FROM limitledger.get_budget('t4', 'chat')$$, $$VALUES (30::bigint, 0::bigint)$$, 'two missed windows and the present one pay 300');
SELECT at('16:00:00');
SELECT is(reserve('t4', 'chat', 'r2', 71), 'REFUSED available', 'the next pays 30');
SELECT is(reserve('t4', 'chat', 'r2', 70), 'ACCEPTED RESERVED', 'and opens with 70');
SELECT sound('missed windows');

-- Units that come back from a closed budget pay, too.
SELECT at('10:00:00');
SELECT publish('t5', 'embed', continuous(1, '1 hour', 100));
SELECT is(reserve('t5', 'embed', 'r1', 60), 'ACCEPTED RESERVED', 'a hold');
SELECT is(reserve('t5', 'embed', 'r2', 40, 'o2'), 'ACCEPTED STARTED', 'an execution');
SELECT publish('t5', 'embed', continuous(1, '1 hour', 200));
SELECT is(settle('t5', 'r2', 'o2', 90), 'ACCEPTED SETTLED_WITH_DEBT', 'the head owes fifty');
SELECT is(release('t5', 'r1'), 'ACCEPTED RELEASED', 'sixty come back to the closed budget');
SELECT is(closed('t5', 'embed', 1), '100 + 0 + 0 = 60 + 0 + 40 + 0 + 0', 'stay in its closing balance');
SELECT is(equation('t5', 'embed'), '0 + 60 + 50 = 10 + 0 + 50 + 0 + 50', 'and are minted into the head: debt first');
SELECT sound('units from a closed budget');

-- Above the maximum overdraft the whole excess is recorded and the pair frozen (D8).
SELECT at('10:00:00');
SELECT publish('t6', 'embed', continuous(100, '1 second', 1000));
SELECT is(reserve('t6', 'embed', 'r1', 1000, 'o1'), 'ACCEPTED STARTED', 'started');
SELECT is(settle('t6', 'r1', 'o1', 1500), 'ACCEPTED SETTLED_WITH_DEBT', 'the maximum overdraft, to the unit');
SELECT is(admission('t6', 'embed'), 'suspended', 'does not freeze');
SELECT at('10:00:06');
SELECT is(reserve('t6', 'embed', 'r2', 100, 'o2'), 'ACCEPTED STARTED', 'paid and open');
SELECT is(settle('t6', 'r2', 'o2', 601), 'ACCEPTED SETTLED_WITH_DEBT', 'one unit above it');
SELECT is(debt('t6', 'embed'), 501::bigint, 'is recorded in full');
SELECT is(admission('t6', 'embed'), 'frozen', 'and freezes');
SELECT isnt((SELECT frozen_reason FROM limitledger.get_budget('t6', 'embed')), NULL, 'with a reason');
SELECT changes_nothing($$reserve_capacity('t6', 'embed', 'r3', 1, sha256('r3'))$$, 'REFUSED frozen', 'nobody is admitted');
SELECT results_eq($$SELECT outcome, dimension, debt, admission FROM limitledger.unfreeze('t6', 'embed', 'we talked')$$,
  $$VALUES ('REFUSED', 'debt', 501::bigint, 'frozen')$$, 'it stays frozen while anything is owed');
SELECT at('10:00:20');
SELECT is((SELECT debt FROM limitledger.repay_debt('t6', 'embed')), 0::bigint, 'refill pays a frozen pair');
SELECT is(reserve('t6', 'embed', 'r3', 1), 'REFUSED frozen', 'which stays frozen');
SELECT publish('t6', 'embed', continuous(100, '1 second', 2000));
SELECT at('11:00:20');
SELECT is(reserve('t6', 'embed', 'r3', 1), 'REFUSED frozen', 'under a new generation and in a new epoch');
SELECT is_misuse($$unfreeze('t6', 'embed', NULL)$$, 'LL101', 'reason', 'unfreeze wants a reason');
SELECT is_misuse($$unfreeze('t6', 'embed', '')$$, 'LL106', 'reason', 'not an empty one');
SELECT results_eq($$SELECT outcome, dimension, admission FROM limitledger.unfreeze('t6', 'embed', 'we talked')$$,
  $$VALUES ('ACCEPTED', NULL, 'open')$$, 'then it opens');
SELECT is((SELECT concat_ws(', ', actor, action, subject, route, reason) FROM limitledger.operator_action),
  session_user || ', unfreeze, t6, embed, we talked', 'and who did it is on record');
SELECT is(reserve('t6', 'embed', 'r3', 1), 'ACCEPTED RESERVED', 'admission is open');
SELECT is((SELECT frozen_reason FROM limitledger.get_budget('t6', 'embed')), NULL, 'the reason is gone');
SELECT sound('a freeze');

-- One execution above its hard limit freezes without debt; what runs goes on.
SELECT publish('t7', 'embed', '{"hardExecutionLimit": 300}');
SELECT is((SELECT hard_limit FROM limitledger.reserve_capacity('t7', 'embed', 'r1', 400, sha256('r1'), start_operation => 'o1')), 300::bigint, 'a receipt says the hard limit');
SELECT is(reserve('t7', 'embed', 'r2', 100, 'o2'), 'ACCEPTED STARTED', 'another execution');
SELECT is(reserve('t7', 'embed', 'r3', 100), 'ACCEPTED RESERVED', 'a hold');
SELECT is(reserve('t7', 'embed', 'r4', 100), 'ACCEPTED RESERVED', 'and one more');
SELECT is(settle('t7', 'r1', 'o1', 300), 'ACCEPTED SETTLED', 'the limit itself');
SELECT is(admission('t7', 'embed'), 'open', 'is in order');
SELECT is(settle('t7', 'r2', 'o2', 301), 'ACCEPTED SETTLED', 'one above it, and covered');
SELECT is(admission('t7', 'embed'), 'frozen', 'freezes');
SELECT is(start('t7', 'r3', 'o3'), 'ACCEPTED STARTED', 'what is held may start');
SELECT is(settle('t7', 'r3', 'o3', 50), 'ACCEPTED SETTLED', 'settlement goes on');
SELECT is(release('t7', 'r4'), 'ACCEPTED RELEASED', 'and release');
SELECT is(reserve('t7', 'embed', 'r4', 100), 'ACCEPTED RELEASED replayed', 'and receipts');
SELECT is(reserve('t7', 'embed', 'r5', 1), 'REFUSED frozen', 'but nobody is admitted');
SELECT is((SELECT outcome FROM limitledger.unfreeze('t7', 'embed', 'looked into it')), 'ACCEPTED', 'without debt it opens at once');
SELECT is(equation('t7', 'embed'), '1000 + 0 + 0 = 349 + 0 + 651 + 0 + 0', 'all that ran is recorded');
SELECT is((SELECT outcome || ' ' || admission FROM limitledger.unfreeze('t7', 'embed', 'again')), 'ACCEPTED open', 'opened twice is open');

-- The excess of an execution of a closed budget meets the head's limits (D7, D8).
SELECT at('10:00:00');
SELECT publish('t8', 'image', quota(100) || '{"maximumOverdraft": 10}');
SELECT is(reserve('t8', 'image', 'r1', 100, 'o1'), 'ACCEPTED STARTED', 'started in one window');
SELECT at('11:00:00');
SELECT is(settle('t8', 'r1', 'o1', 210), 'ACCEPTED SETTLED_WITH_DEBT', 'settled in the next');
SELECT is(closed('t8', 'image', 1), '100 + 0 + 0 = 0 + 0 + 100 + 0 + 0', 'its own budget spends what it had reserved');
SELECT is(equation('t8', 'image'), '100 + 0 + 10 = 0 + 0 + 110 + 0 + 0', 'the head bears the excess');
SELECT results_eq($$SELECT excess_units, excess_epoch FROM limitledger.get_reservation('t8', 'r1')$$,
  $$VALUES (110::bigint, '2030-01-01 11:00:00+00'::timestamptz)$$, 'and the receipt says so');
SELECT is(admission('t8', 'image'), 'suspended', 'the maximum overdraft is not exceeded');

-- repay_debt on pairs that owe nothing or do not exist.
SELECT is((SELECT outcome || ' ' || repaid_units || ' ' || debt FROM limitledger.repay_debt('t1', 'chat')), 'ACCEPTED 0 100', 'no refill, nothing repaid');
SELECT is((SELECT outcome || ' ' || dimension FROM limitledger.repay_debt('nobody', 'nowhere')), 'UNKNOWN pair', 'nobody, nowhere');
SELECT sound('at the end');

SELECT * FROM finish();
ROLLBACK;
