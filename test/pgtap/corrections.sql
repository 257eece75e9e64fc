-- A figure that comes too late, and a debt that somebody would like to forget (D6,
-- D12, E1-E4): a receipt is booked once, a correction is a record of its own, and only
-- refill or a grant lowers what a pair owes.
--
-- Fails when: a second settlement overwrites or adds, a conflict hides what is stored,
-- record_usage reuses an operation, or a publish, an epoch, a rollback, a drain, a
-- freeze or a grant of nothing changes a debt.

BEGIN;
\ir helpers.psql
SELECT plan(89);

-- ---- A partial figure was taken as the final one ------------------------------
-- The first event of the stream told the input, the last one the output: only that was
-- settled, and the sum follows.
SELECT at('10:00:00');
SELECT publish('t1', 'chat', '{"burst": 5000, "largestReservation": 5000}');
SELECT is(reserve('t1', 'chat', 'r1', 2000, 'o1'), 'ACCEPTED STARTED', 'a stream starts');
SELECT is(settle('t1', 'r1', 'o1', 50), 'ACCEPTED SETTLED', 'and is settled with its output alone');

CREATE FUNCTION stands() RETURNS text LANGUAGE sql AS $$
  SELECT concat_ws(', ', equation('t1', 'chat'), g.state, g.actual_units, 'ended ' || r.ended_at::time, encode(r.receipt_digest, 'hex'))
  FROM limitledger.get_reservation('t1', 'r1') g, limitledger.reservation r WHERE r.reservation_id = 'r1'
$$;
SELECT is(stands(), '5000 + 0 + 0 = 4950 + 0 + 50 + 0 + 0, SETTLED, 50, ended 10:00:00', 'that is what stands');

-- The corrected sum, one unit more or less, nothing, a digest, another voice, another
-- instant: none of them is booked, and each is shown what is.
SELECT at('10:05:00');
CREATE TEMP TABLE second (call text, description text) ON COMMIT DROP;
INSERT INTO second VALUES
  ($$settle_usage('t1', 'r1', 'o1', 1050)$$, 'the corrected figure'),
  ($$settle_usage('t1', 'r1', 'o1', 1000)$$, 'the difference'),
  ($$settle_usage('t1', 'r1', 'o1', 51)$$, 'a unit more'),
  ($$settle_usage('t1', 'r1', 'o1', 49)$$, 'a unit less'),
  ($$settle_usage('t1', 'r1', 'o1', 0)$$, 'zero'),
  ($$settle_usage('t1', 'r1', 'o1', 5001)$$, 'more than the pair had'),
  ($$settle_usage('t1', 'r1', 'o1', 1050, sha256('second receipt'))$$, 'the corrected figure with a digest'),
  ($$settle_usage('t1', 'r1', 'o1', 1050, source => 'operator')$$, 'an operator''s corrected figure'),
  ($$settle_usage_batch(ARRAY['t1'], ARRAY['r1'], ARRAY['o1'], ARRAY[1050])$$, 'the corrected figure in a batch');
SELECT changes_nothing(call, 'CONFLICT figures', description || ' is a conflict') FROM second;
SELECT results_eq(format('SELECT outcome, dimension, state, replayed, reserved_units, actual_units, operation, excess_units FROM limitledger.%s', call),
  $$VALUES ('CONFLICT', 'figures', 'SETTLED', false, 2000::bigint, 50::bigint, 'o1', 0::bigint)$$, description || ' shows the stored one')
FROM second;
SELECT is(string_agg(r.outcome || ' ' || r.dimension || ' ' || r.actual_units, ', ' ORDER BY element), 'CONFLICT figures 50, CONFLICT figures 50',
  'both of a batch that corrects twice')
FROM limitledger.settle_usage_batch(ARRAY['t1', 't1'], ARRAY['r1', 'r1'], ARRAY['o1', 'o1'], ARRAY[1050, 1060]) r;
SELECT changes_nothing($$settle_usage('t1', 'r1', 'o2', 1050)$$, 'CONFLICT operation', 'another operation is not a way round');
SELECT changes_nothing($$settle_usage('t1', 'r1', 'o1', 50)$$, 'ACCEPTED SETTLED replayed', 'the first figure is still a repeat');
SELECT changes_nothing($$report_progress('t1', 'r1', 'o1', 1050)$$, 'REFUSED settled', 'progress comes too late');
SELECT is(stands(), '5000 + 0 + 0 = 4950 + 0 + 50 + 0 + 0, SETTLED, 50, ended 10:00:00', 'nothing has moved');

-- The correction: a record of its own, under a name of its own.
SELECT changes_nothing($$record_usage('t1', 'chat', 'o1', 1000)$$, 'CONFLICT operation_elsewhere', 'the operation of the reservation is taken');
SELECT results_eq($$SELECT outcome, replayed, actual_units, available FROM limitledger.record_usage('t1', 'chat', 'o1 input', 1000)$$,
  $$VALUES ('ACCEPTED', false, 1000::bigint, 3950::bigint)$$, 'the missing input is recorded under another');
SELECT is(equation('t1', 'chat'), '5000 + 0 + 0 = 3950 + 0 + 1050 + 0 + 0', 'and booked');
SELECT is((SELECT actual_units FROM limitledger.get_reservation('t1', 'r1')), 50::bigint, 'the reservation says what it said');
SELECT changes_nothing($$record_usage('t1', 'chat', 'o1 input', 1000)$$, 'ACCEPTED replayed', 'told again, it is booked once');
SELECT changes_nothing($$record_usage('t1', 'chat', 'o1 input', 1001)$$, 'CONFLICT figures', 'a correction is not corrected either');
SELECT is((SELECT actual_units FROM limitledger.record_usage('t1', 'chat', 'o1 input', 1001)), 1000::bigint, 'its conflict shows the stored figure');
SELECT is_misuse($$record_usage('t1', 'chat', 'o1 back', -1000)$$, 'LL103', 'units', 'nor is usage taken back');
SELECT is(equation('t1', 'chat'), '5000 + 0 + 0 = 3950 + 0 + 1050 + 0 + 0', 'once and for all');
SELECT sound('a correction keeps the books');

-- ---- A debt that stays -----------------------------------------------------------
-- 100 reserved, 1,300 used, of 1,000: 300 are owed.
SELECT at('12:00:00');
SELECT publish('t2', 'chat') AS first \gset
SELECT is(reserve('t2', 'chat', 'r1', 100, 'o1'), 'ACCEPTED STARTED', 'started');
SELECT is(settle('t2', 'r1', 'o1', 1300), 'ACCEPTED SETTLED_WITH_DEBT', 'settled above everything');

CREATE FUNCTION owed() RETURNS text LANGUAGE sql AS $$
  SELECT concat_ws(' ', b.debt, b.available, b.admission, reserve('t2', 'chat', 'next', 1))
  FROM limitledger.get_budget('t2', 'chat') b
$$;
SELECT is(owed(), '300 0 suspended REFUSED debt', 'the debt');
SELECT changes_nothing($$settle_usage('t2', 'r1', 'o1', 100)$$, 'CONFLICT figures', 'a lower figure does not undo it');
SELECT changes_nothing($$record_usage('t2', 'chat', 'o1', 0)$$, 'CONFLICT operation_elsewhere', 'nor does a record of nothing');
SELECT is(owed(), '300 0 suspended REFUSED debt', 'it stands');

-- New generations: the same rule, a higher cap, a lower one.
SELECT publish('t2', 'chat', '{"burst": 5000}') AS second \gset
SELECT is(owed(), '300 0 suspended REFUSED debt', 'after a publish with a higher cap');
SELECT is((SELECT outcome FROM limitledger.repay_debt('t2', 'chat')), 'ACCEPTED', 'the pair goes on under it');
SELECT is((SELECT generation FROM limitledger.head_budget WHERE subject = 't2'), :second::bigint, 'stored');
SELECT is(owed(), '300 0 suspended REFUSED debt', 'and owes what it owed');
SELECT publish('t2', 'chat', '{"burst": 10}');
SELECT is((SELECT outcome || repaid_units FROM limitledger.repay_debt('t2', 'chat')), 'ACCEPTED0', 'nothing is repaid');
SELECT is(owed(), '300 0 suspended REFUSED debt', 'after a publish with a lower one');

-- Epochs: one, and many that nobody looked at.
SELECT at('13:00:00');
SELECT is((SELECT outcome FROM limitledger.repay_debt('t2', 'chat')), 'ACCEPTED', 'a new epoch');
SELECT is((SELECT epoch FROM limitledger.head_budget WHERE subject = 't2'), '2030-01-01 13:00+00'::timestamptz, 'is opened');
SELECT is(owed(), '300 0 suspended REFUSED debt', 'it is no reset');
SELECT at('2030-02-01 13:00+00'::timestamptz);
SELECT is(owed(), '300 0 suspended REFUSED debt', 'nor is a month');

-- Rollback, drain, retire, and back again.
SELECT isnt((SELECT generation FROM limitledger.rollback_policy(:first, 'it was better')), NULL, 'a rollback');
SELECT is(owed(), '300 0 suspended REFUSED debt', 'is no reset');
SELECT is((SELECT outcome FROM limitledger.repay_debt('t2', 'chat')), 'ACCEPTED', 'the pair goes on under the old rule');
SELECT is(owed(), '300 0 suspended REFUSED debt', 'as it was');
SELECT max(generation) AS latest FROM limitledger.policies WHERE subject = 't2' \gset
SELECT is((SELECT stage FROM limitledger.drain_policy(:latest, 'no more')), 'draining', 'a drain');
SELECT is((SELECT debt || ' ' || admission FROM limitledger.get_budget('t2', 'chat')), '300 draining', 'is no reset');
SELECT is(reserve('t2', 'chat', 'next', 1), 'REFUSED draining', 'nobody is admitted');
UPDATE limitledger.policy SET drained_by = NULL;    -- as if that had been committed
SELECT results_eq(format('SELECT outcome, stage, left_reserved, left_debt, pairs FROM limitledger.retire_policy(%s)', g),
  $$VALUES ('REFUSED', 'draining', 0::bigint, 300::bigint, 1::bigint)$$, 'what owes is not retired')
FROM (SELECT min(generation) FROM limitledger.policies WHERE subject = 't2') v (g);
SELECT is((SELECT outcome FROM limitledger.retire_policy(:latest)), 'ACCEPTED', 'the last generation owes nothing itself and retires');
SELECT is(debt('t2', 'chat'), 300::bigint, 'the pair owes on');
SELECT is(reserve('t2', 'chat', 'next', 1), 'REFUSED no_policy', 'with no policy');
SELECT publish('*', 'chat', '{"burst": 9000}');
SELECT is(owed(), '300 0 suspended REFUSED debt', 'a wildcard that takes over takes over the debt');
SELECT publish('t2', 'chat', quota(200));
SELECT is(owed(), '300 0 suspended REFUSED debt', 'a change of kind is no reset');
SELECT publish('t2', 'chat');
SELECT is((SELECT outcome FROM limitledger.repay_debt('t2', 'chat')), 'ACCEPTED', 'the pair goes on under a policy of its own');
SELECT is(owed(), '300 0 suspended REFUSED debt', 'as it was');

-- Freeze and unfreeze.
SELECT is((SELECT outcome || ' ' || debt || ' ' || admission FROM limitledger.freeze('t2', 'chat', 'look')), 'ACCEPTED 300 frozen', 'a freeze');
SELECT is((SELECT outcome || ' ' || dimension || ' ' || debt FROM limitledger.unfreeze('t2', 'chat', 'forget it')), 'REFUSED debt 300', 'opens only at zero');
SELECT is(owed(), '300 0 frozen REFUSED frozen', 'and is no reset');

-- A grant is a number of units above zero.
SELECT is_misuse(format($$grant_capacity('t2', 'chat', 'g', %s, 'because')$$, units), code, 'units', format('a grant of %s is an error', units))
FROM (VALUES ('-50', 'LL103'), ('-300', 'LL103'), ('0', 'LL103'), ('(-9223372036854775808)', 'LL103'), ('NULL', 'LL101')) v (units, code);
SELECT is(debt('t2', 'chat'), 300::bigint, 'and grants nothing');
SELECT is_empty($$SELECT * FROM limitledger.capacity_grants$$, 'nor is it on record');
SELECT is_misuse($$grant_capacity('t2', 'chat', 'g', 50, NULL)$$, 'LL101', 'reason', 'a grant has a reason');
SELECT sound('the debt is where it was');

-- What lowers it: a grant, on record, once; and refill.
SELECT is((SELECT granted_units || ' ' || debt FROM limitledger.grant_capacity('t2', 'chat', 'g', 250, 'our mistake')), '250 50', 'a grant pays');
SELECT is((SELECT replayed || ' ' || debt FROM limitledger.grant_capacity('t2', 'chat', 'g', 250, 'our mistake')), 'true 50', 'once');
SELECT is((SELECT units || ' ' || reason FROM limitledger.capacity_grants), '250 our mistake', 'and is on record');
SELECT is((SELECT outcome || ' ' || debt FROM limitledger.unfreeze('t2', 'chat', 'forget it')), 'REFUSED 50', 'a part of it is not all');
SELECT publish('t2', 'chat', continuous(10, '1 second', 1000));
SELECT is((SELECT repaid_units || ' ' || debt FROM limitledger.repay_debt('t2', 'chat')), '0 50', 'a rule that refills');
SELECT at('2030-02-01 13:00:04+00'::timestamptz);
SELECT is((SELECT repaid_units || ' ' || debt || ' ' || available FROM limitledger.repay_debt('t2', 'chat')), '40 10 0', 'pays before it fills');
SELECT at('2030-02-01 13:00:06+00'::timestamptz);
SELECT is((SELECT outcome || ' ' || debt || ' ' || available FROM limitledger.unfreeze('t2', 'chat', 'paid')), 'ACCEPTED 0 10', 'paid, it opens');
SELECT is(reserve('t2', 'chat', 'next', 10), 'ACCEPTED RESERVED', 'and admits what is left');
SELECT is((SELECT sum(overdraft_issued) || ' ' || sum(overdraft_repaid) FROM limitledger.budgets WHERE subject = 't2'), '300 300', 'what was issued was repaid, once');
SELECT sound('at the end');

SELECT * FROM finish();
ROLLBACK;
