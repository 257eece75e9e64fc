-- import_usage: the first budget of a pair opens with what was already spent under
-- another limiter (B2); record_usage_batch and import_usage_batch, many at once (J2).
--
-- Fails when: a switch in the middle of a window gives a second quota, an import is
-- booked twice or beside traffic, or a large import counts as one execution.

BEGIN;
\ir helpers.psql
SELECT plan(43);

CREATE FUNCTION helpers.bring(subject text, route text, operation text, units bigint) RETURNS text LANGUAGE sql AS $$
  SELECT concat_ws(' ', r.outcome, coalesce(r.dimension, r.actual_units::text), r.retry_kind, CASE WHEN r.replayed THEN 'replayed' END, r.available)
  FROM limitledger.import_usage(subject, route, operation, units) r
$$;
CREATE FUNCTION helpers.answers(batch text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  said text;
BEGIN
  EXECUTE format('SELECT string_agg(concat_ws('' '', outcome, dimension, actual_units, CASE WHEN replayed THEN ''replayed'' END), '', '' ORDER BY element) FROM limitledger.%s', batch) INTO said;
  RETURN said;
END $$;

-- ---- In the middle of a window ------------------------------------------------------
SELECT at('10:20:00');
SELECT publish('*', 'minute', quota(1000) || '{"hardExecutionLimit": 10, "largestReservation": 10, "maximumOverdraft": 300}');
SELECT is(bring('t1', 'minute', 'import t1', 990), 'ACCEPTED 990 10', 'most of the quota is used');
SELECT is(equation('t1', 'minute'), '1000 + 0 + 0 = 10 + 0 + 990 + 0 + 0', 'it opened at the quota, and spent it');
SELECT is(admission('t1', 'minute'), 'open', 'an import is no execution, however large');
SELECT is(reserve('t1', 'minute', 'r1', 10, 'o1'), 'ACCEPTED STARTED', 'what is left');
SELECT is(reserve('t1', 'minute', 'r2', 1), 'REFUSED available', 'and no more');
SELECT at('11:00:00');
SELECT is(available('t1', 'minute'), 1000::bigint, 'the next window opens with its quota');
SELECT is((SELECT concat_ws(' ', route, usage_units) FROM limitledger.unreserved_usage WHERE operation_id = 'import t1'), 'minute 990', 'the import is on record');

-- ---- Once, and first ------------------------------------------------------------------
SELECT changes_nothing($$import_usage('t1', 'minute', 'import t1', 990)$$, 'ACCEPTED replayed', 'repeated after a lost reply');
SELECT changes_nothing($$import_usage('t1', 'minute', 'import t1', 991)$$, 'CONFLICT figures', 'other units are a conflict');
SELECT changes_nothing($$import_usage('t1', 'minute', 'another', 5)$$, 'REFUSED opened', 'a second import would count twice');
SELECT is(bring('t1', 'minute', 'another', 5), 'REFUSED opened never 1000', 'and no waiting changes that');
SELECT changes_nothing($$import_usage('t1', 'minute', 'o1', 10)$$, 'CONFLICT operation_elsewhere', 'an operation of a reservation is none of an import');
SELECT is(reserve('t2', 'minute', 'r1', 1), 'ACCEPTED RESERVED', 'a pair that was met');
SELECT changes_nothing($$import_usage('t2', 'minute', 'late', 5)$$, 'REFUSED opened', 'has its budget');
SELECT is((SELECT outcome FROM limitledger.record_usage('t2', 'minute', 'late', 5)), 'ACCEPTED', 'record_usage books what is missing');
SELECT changes_nothing($$import_usage('t3', 'nowhere', 'import', 5)$$, 'REFUSED no_policy', 'without a policy there is no pair to open');
SELECT is((SELECT count(*) FROM limitledger.head_budget WHERE subject = 't3'), 0::bigint, 'and none came into being');

-- ---- More than the cap, nothing at all, a bucket that refills --------------------------
SELECT is(bring('t4', 'minute', 'import', 1200), 'ACCEPTED 1200 0', 'more than the quota was used');
SELECT is(debt('t4', 'minute'), 200::bigint, 'the rest is debt');
SELECT at('12:00:00');
SELECT is(reserve('t4', 'minute', 'r', 10), 'ACCEPTED RESERVED', 'that the next window repays');
SELECT is(available('t4', 'minute'), 790::bigint, 'out of its quota');
SELECT is(bring('t5', 'minute', 'import', 1301), 'ACCEPTED 1301 0', 'far more');
SELECT is(admission('t5', 'minute'), 'frozen', 'than the maximum overdraft freezes the pair');
SELECT is((SELECT frozen_reason FROM limitledger.get_budget('t5', 'minute')), 'the debt exceeded the maximum overdraft', 'and says why');
SELECT is(bring('t6', 'minute', 'import', 0), 'ACCEPTED 0 1000', 'nothing was used');
SELECT changes_nothing($$import_usage('t6', 'minute', 'again', 5)$$, 'REFUSED opened', 'which is an import, too');
SELECT publish('*', 'bucket', continuous(10, '1 second', 600));
SELECT is(bring('t1', 'bucket', 'bucket import', 600), 'ACCEPTED 600 0', 'an empty bucket');
SELECT at('12:00:07');
SELECT is(available('t1', 'bucket'), 70::bigint, 'refills from then on');
SELECT is((SELECT count(*) FROM limitledger.import_usage('t9', 'bucket', 'big', 9223372036854775807) WHERE outcome = 'ACCEPTED'), 1::bigint, 'the largest number is booked in full');
SELECT is(admission('t9', 'bucket'), 'frozen', 'and looked at by an operator');

-- ---- Many at once ------------------------------------------------------------------------
SELECT is(answers($$import_usage_batch('{a,b,c,a,d}', '{minute,minute,minute,minute,nowhere}', '{i1,i1,i1,i2,i1}', '{1,2,3,4,5}')$$),
  'ACCEPTED 1, ACCEPTED 2, ACCEPTED 3, REFUSED opened, REFUSED no_policy', 'one import a pair');
SELECT is(answers($$import_usage_batch('{a,b,c}', '{minute,minute,minute}', '{i1,i1,i1}', '{1,2,4}')$$),
  'ACCEPTED 1 replayed, ACCEPTED 2 replayed, CONFLICT figures 3', 'repeated');
SELECT is(answers($$import_usage_batch('{e,e}', '{minute,minute}', '{i,i}', '{7,7}')$$), 'ACCEPTED 7, ACCEPTED 7 replayed', 'one operation twice in a batch');
SELECT is(answers($$import_usage_batch('{e,e}', '{bucket,minute}', '{j,j}', '{7,7}')$$), 'ACCEPTED 7, CONFLICT figures 7', 'and on two pairs');
SELECT is((SELECT string_agg(concat_ws(' ', subject, route, spent), ', ' ORDER BY subject, route) FROM limitledger.budgets WHERE subject IN ('a', 'b', 'c', 'e') AND is_head),
  'a minute 1, b minute 2, c minute 3, e bucket 7, e minute 7', 'each was booked once');
SELECT is(answers($$record_usage_batch('{a,b,a,d}', '{minute,minute,minute,nowhere}', '{u1,u1,u2,u1}', '{10,20,30,5}')$$),
  'ACCEPTED 10, ACCEPTED 20, ACCEPTED 30, REFUSED no_policy', 'usage of many pairs');
SELECT is(answers($$record_usage_batch('{a,b,a}', '{minute,minute,minute}', '{u1,u1,u2}', '{10,21,30}')$$),
  'ACCEPTED 10 replayed, CONFLICT figures 20, ACCEPTED 30 replayed', 'repeated');
SELECT is((SELECT string_agg(concat_ws(' ', subject, spent), ', ' ORDER BY subject) FROM limitledger.budgets WHERE subject IN ('a', 'b') AND is_head),
  'a 41, b 22', 'on top of what was imported');
SELECT is(admission('a', 'minute'), 'frozen', 'an execution above its hard limit freezes, in a batch as well');
SELECT is(answers($$import_usage_batch('{}', '{}', '{}', '{}')$$), NULL, 'nothing to import');
SELECT is_misuse($$import_usage_batch('{a,b}', '{minute}', '{x,y}', '{1,2}')$$, 'LL105', 'routes', 'arrays that do not match');
SELECT is_misuse($$record_usage_batch('{a,b}', '{minute,minute}', '{x,y}', '{1,-2}')$$, 'LL103', 'units', 'a bad element refuses the batch');
SELECT sound('at the end');

SELECT * FROM finish();
ROLLBACK;
