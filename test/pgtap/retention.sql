-- Retention (D15, C2): what has ended is purged once its policy's retention is over,
-- and the sums of its budgets stand. What is open or unknown, debts, the head and the
-- budget that it follows are never purged, and what is missing is still found (B5).
--
-- Fails when: a purge comes too early or too late, takes what is open, forgets what was
-- spent, or leaves a gap in the chain of budgets that the audit does not see.

BEGIN;
\ir helpers.psql
SELECT plan(153);

-- purge runs one kind of step to its end, and says what it purged: rows, units.
CREATE FUNCTION helpers.purge(kind text, size int DEFAULT 1000) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE step record; rows bigint := 0; units bigint := 0; steps int := 0;
BEGIN
  SELECT 0::bigint AS next_generation, NULL::timestamptz AS next_instant INTO step;
  WHILE step.next_generation IS NOT NULL LOOP
    EXECUTE format('SELECT * FROM limitledger.purge_%s($1, $2, $3)', kind) INTO step USING size, step.next_generation, step.next_instant;
    rows := rows + step.purged;
    units := units + step.purged_units;
    steps := steps + 1;
    IF steps > 1000 THEN RETURN 'it does not end'; END IF;
  END LOOP;
  RETURN concat_ws(' ', rows, units);
END $$;
CREATE FUNCTION helpers.ids(of_subject text) RETURNS text LANGUAGE sql AS $$
  SELECT coalesce(string_agg(reservation_id, ' ' ORDER BY reservation_id COLLATE "C"), 'none') FROM limitledger.reservation WHERE subject = of_subject
$$;
CREATE FUNCTION helpers.operations(of_subject text) RETURNS text LANGUAGE sql AS $$
  SELECT coalesce(string_agg(operation_id, ' ' ORDER BY operation_id COLLATE "C"), 'none') FROM limitledger.operation WHERE subject = of_subject
$$;
-- what the budgets of a pair have spent, and what of it is purged, in opening order
CREATE FUNCTION helpers.spent(of_subject text) RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(spent || '/' || purged_spent || CASE WHEN follows_purged THEN '*' ELSE '' END, ' ' ORDER BY opened_at, generation, epoch)
  FROM limitledger.budgets WHERE subject = of_subject
$$;

-- ---- One budget, every state ------------------------------------------------
SELECT at('10:00:00');
SELECT publish('t', 'chat', '{"retention": "2 hours", "holdTtl": "30 minutes", "epoch": {"length": "1 day"}}');
SELECT is(reserve('t', 'chat', id, 100, operation), 'ACCEPTED ' || CASE WHEN operation IS NULL THEN 'RESERVED' ELSE 'STARTED' END, id)
FROM (VALUES ('settled', 'o1'), ('zero', 'o2'), ('started', 'o3'), ('unknown', 'o4'), ('released', NULL), ('expired', NULL), ('held', NULL)) v (id, operation);
SELECT is((SELECT outcome FROM limitledger.extend_reservation('t', 'held', 'e1', until => '2030-01-01 10:25:00+00')), 'ACCEPTED', 'an extension that moves nothing');
SELECT is((SELECT outcome FROM limitledger.extend_reservation('t', 'settled', 'e2', units => 50)), 'ACCEPTED', 'and one that does');
SELECT is(settle('t', 'settled', 'o1', 70), 'ACCEPTED SETTLED', 'settled');
SELECT is(settle('t', 'zero', 'o2', 0), 'ACCEPTED SETTLED', 'settled with nothing');
SELECT is(release('t', 'released'), 'ACCEPTED RELEASED', 'released');
SELECT is(report_unknown('t', 'unknown', 'o4'), 'ACCEPTED USAGE_UNKNOWN', 'unknown');
SELECT is(resolve('t', 'fence'), 'ACCEPTED RELEASED', 'a fence');
SELECT is((SELECT outcome FROM limitledger.record_usage('t', 'chat', 'ran', 30)), 'ACCEPTED', 'unreserved usage');
SELECT is((SELECT outcome FROM limitledger.record_usage('t', 'chat', 'ran idle', 0)), 'ACCEPTED', 'and some of nothing');
SELECT is((SELECT outcome FROM limitledger.grant_capacity('t', 'chat', 'g', 5, 'goodwill')), 'ACCEPTED', 'a grant');
SELECT at('10:30:00');
SELECT is((SELECT expired FROM limitledger.expire_reservations()), 2::bigint, 'two holds expire');
SELECT is(reserve('t', 'chat', 'claimed', 50), 'ACCEPTED RESERVED', 'one that will be claimed');
SELECT is(reserve('t', 'chat', 'open', 50), 'ACCEPTED RESERVED', 'and one that stays open');
SELECT at('11:00:00');
SELECT is((SELECT sum(claimed) FROM limitledger.claim_expiring(1)), 1::numeric, 'one is claimed');
SELECT is(equation('t', 'chat'), '1000 + 5 + 0 = 605 + 300 + 100 + 0 + 0', 'what is held and spent');

SELECT at('11:59:59.999999');
SELECT is(purge(kind), '0 0', kind || ': a microsecond too early') FROM unnest(ARRAY['reservations', 'usage', 'budgets']) kind;
SELECT at('12:00:00');
SELECT is(purge('reservations'), '4 70', 'at the instant, what ended at ten: settled, zero, released, the fence');
SELECT is(purge('usage'), '2 30', 'and both usages');
SELECT is(purge('budgets'), '0 0', 'the head is no closed budget');
SELECT is(ids('t'), 'claimed expired held open started unknown', 'what ended later is there, and what has not ended');
SELECT is(operations('t'), 'o3 o4', 'operations go with their reservations');
SELECT is((SELECT string_agg(extension_id, ' ') FROM limitledger.extension), 'e1', 'and so do extensions');
SELECT is((SELECT count(*) FROM limitledger.capacity_grants), 1::bigint, 'grants stay');
SELECT is(spent('t'), '100/100', 'the budget keeps what they had spent');
SELECT is(equation('t', 'chat'), '1000 + 5 + 0 = 605 + 300 + 100 + 0 + 0', 'no balance has moved');
SELECT sound('after the first purge');
SELECT is(purge(kind), '0 0', kind || ': again, nothing') FROM unnest(ARRAY['reservations', 'usage', 'budgets']) kind;

SELECT at(timestamptz '2030-02-01 10:00:00+00');
SELECT is(purge('reservations'), '2 0', 'a month later the two that expired are gone');
SELECT is(ids('t'), 'claimed open started unknown', 'what is claimed, held, started or unknown is never purged');
SELECT is(purge('usage') || ', ' || purge('budgets'), '0 0, 0 0', 'nor is anything else');
SELECT sound('a month later');

-- What a replay gets after the purge: a new request (D2, D6, D11, D12).
SELECT is(state('t', 'settled'), 'RESERVATION_UNKNOWN', 'a purged id is unknown');
SELECT is(settle('t', 'settled', 'o1', 70), 'UNKNOWN reservation', 'its settlement is not booked again');
SELECT is(start('t', 'settled', 'o1'), 'UNKNOWN reservation', 'it can not be started');
SELECT is(release('t', 'released'), 'UNKNOWN reservation', 'nor released');
SELECT is((SELECT outcome FROM limitledger.extend_reservation('t', 'settled', 'e2', units => 50)), 'UNKNOWN', 'nor extended');
SELECT is(reserve('t', 'chat', 'settled', 10, 'o1'), 'ACCEPTED STARTED', 'the id and the operation are as new');
SELECT is(resolve('t', 'released'), 'ACCEPTED RELEASED', 'and so is an id for a fence');
SELECT is((SELECT replayed FROM limitledger.record_usage('t', 'chat', 'ran', 30)), false, 'and an operation for usage');
SELECT is(settle('t', 'settled', 'o1', 10), 'ACCEPTED SETTLED', 'settled again');
SELECT is(spent('t') , '100/100 40/0', 'in the budget of the day');
SELECT sound('with ids used again');

-- ---- Several budgets, excess and debt ----------------------------------------
SELECT at(timestamptz '2030-03-01 10:00:00+00');
SELECT is(purge('reservations') || ', ' || purge('usage') || ', ' || purge('budgets'), '2 10, 1 30, 0 0', 'a month later they are gone again');
SELECT publish('w', 'chat', quota(100) || '{"retention": "2 hours", "executionTtl": "1 day", "holdTtl": "10 minutes"}');
SELECT is(reserve('w', 'chat', 'late', 40, 'l1'), 'ACCEPTED STARTED', 'one that outlives its window');
SELECT is(reserve('w', 'chat', 'late zero', 10, 'l2'), 'ACCEPTED STARTED', 'and one');
SELECT is(reserve('w', 'chat', 'w1', 20, 'p1'), 'ACCEPTED STARTED', 'and one');
SELECT is(settle('w', 'w1', 'p1', 20), 'ACCEPTED SETTLED', 'that does not');
SELECT at(timestamptz '2030-03-01 11:00:00+00');
SELECT is(reserve('w', 'chat', 'w2', 20, 'p2'), 'ACCEPTED STARTED', 'the second window');
SELECT is(settle('w', 'w2', 'p2', 20), 'ACCEPTED SETTLED', 'is used');
SELECT at(timestamptz '2030-03-01 12:00:00+00');
SELECT is(reserve('w', 'chat', 'w3', 20, 'p3'), 'ACCEPTED STARTED', 'the third window');
SELECT is(settle('w', 'w3', 'p3', 20), 'ACCEPTED SETTLED', 'is used');
SELECT is(settle('w', 'late', 'l1', 70), 'ACCEPTED SETTLED', 'it used more than it held: the third window bears the excess');
SELECT at(timestamptz '2030-03-01 13:00:00+00');
SELECT is(reserve('w', 'chat', 'w4', 20, 'p4'), 'ACCEPTED STARTED', 'the fourth window');
SELECT is(settle('w', 'w4', 'p4', 20), 'ACCEPTED SETTLED', 'is used');
SELECT is(settle('w', 'late zero', 'l2', 0), 'ACCEPTED SETTLED', 'an execution of the first window used nothing');
SELECT is(spent('w'), '60/0 20/0 50/0 20/0', 'four budgets');
SELECT sound('four windows');

SELECT at(timestamptz '2030-03-01 13:59:59+00');
SELECT is(purge('reservations', 1), '2 40', 'the first two have been kept for two hours, one by one');
SELECT is(purge('budgets'), '0 0', 'their budgets still have others');
SELECT at(timestamptz '2030-03-01 14:59:59+00');
SELECT is(purge('reservations', 1), '2 90', 'then the third, and the late one');
SELECT is(spent('w'), '60/60 20/20 50/50 20/0', 'each budget has purged what it bore');
SELECT sound('excess is purged where it was borne');
SELECT is(purge('budgets'), '0 0', 'the first has changed less than two hours ago');
SELECT at(timestamptz '2030-03-01 15:00:00+00');
SELECT is(purge('budgets'), '0 0', 'an execution that spent nothing still tells of it');
SELECT is(purge('reservations'), '2 20', 'now it goes');
SELECT is(purge('budgets', 1), '2 80', 'and the first two budgets with it, one by one');
SELECT is(spent('w'), '50/50* 20/20', 'the one that the head follows stays, and says that it follows a purged one');
SELECT sound('the chain is shorter');
SELECT is(purge('budgets'), '0 0', 'once');

-- Debt is never purged, nor is what follows it.
SELECT publish('d', 'chat', quota(100) || '{"retention": "1 hour", "largestReservation": 100, "executionTtl": "3 days"}');
SELECT is(reserve('d', 'chat', 'r', 100, 'o'), 'ACCEPTED STARTED', 'an execution');
SELECT is(settle('d', 'r', 'o', 450), 'ACCEPTED SETTLED_WITH_DEBT', 'overdraws');
SELECT at(timestamptz '2030-03-01 16:00:00+00');
SELECT is((SELECT debt FROM limitledger.repay_debt('d', 'chat')), 250::bigint, 'one window pays a part');
SELECT at(timestamptz '2030-03-01 17:00:00+00');
SELECT is((SELECT debt FROM limitledger.repay_debt('d', 'chat')), 150::bigint, 'the next one, too');
SELECT is(purge('reservations'), '1 450', 'the reservation goes');
SELECT is(purge('budgets'), '0 0', 'its budget, which owes, stays');
SELECT sound('with a debt that is older than all rows');
SELECT at(timestamptz '2030-03-01 19:00:00+00');
SELECT is((SELECT debt FROM limitledger.repay_debt('d', 'chat')), 0::bigint, 'it is paid');
SELECT is((SELECT count(*) FROM limitledger.closed_budget WHERE subject = 'd'), 3::bigint, 'three budgets have closed');
SELECT is(purge('budgets', 1), '0 0', 'the one that was paid has changed just now, and none goes before it');
SELECT at(timestamptz '2030-03-01 20:00:00+00');
SELECT is(purge('budgets'), '2 450', 'an hour later it goes, and the one that it had kept');
SELECT sound('after the debt');

-- What was retired for emergency stays, even with nothing else in it.
SELECT is(reserve('w', 'chat', 'w5', 10), 'ACCEPTED RESERVED', 'the fifth window');
SELECT is(release('w', 'w5'), 'ACCEPTED RELEASED', 'spends nothing');
SET LOCAL session_replication_role = replica;
UPDATE limitledger.closed_budget SET retired_for_emergency = 1, available = available - 1, closing_available = closing_available - 1 WHERE subject = 'w' AND follows_purged;
SET LOCAL session_replication_role = origin;
SELECT at(timestamptz '2030-03-02 20:00:00+00');
SELECT is(purge('reservations'), '1 0', 'a day later');
SELECT is(purge('budgets'), '0 0', 'its budget stays');
SET LOCAL session_replication_role = replica;
UPDATE limitledger.closed_budget SET retired_for_emergency = 0, available = available + 1, closing_available = closing_available + 1 WHERE subject = 'w' AND follows_purged;
SET LOCAL session_replication_role = origin;
SELECT is(purge('budgets'), '1 50', 'until that has come back');

-- ---- A retention for each generation -------------------------------------------
SELECT publish('long', 'chat', '{"retention": "10 days"}');
SELECT publish('short', 'chat', '{"retention": "1 minute"}');
SELECT is(reserve(s, 'chat', 'r', 1), 'ACCEPTED RESERVED', s) FROM unnest(ARRAY['long', 'short']) s;
SELECT is(release(s, 'r'), 'ACCEPTED RELEASED', s) FROM unnest(ARRAY['long', 'short']) s;
SELECT at(timestamptz '2030-03-02 20:01:00+00');
SELECT is(purge('reservations'), '1 0', 'the older generation keeps its row longer');
SELECT is(ids('long') || ' ' || ids('short'), 'r none', 'and stands in nobody''s way');
-- Fences have no policy: they stay as long as any generation that is not retired keeps what has ended.
SELECT is(resolve('t', 'fence'), 'ACCEPTED RELEASED', 'a fence');
SELECT is((SELECT stage FROM limitledger.drain_policy(generation, 'test')), 'draining', 'the generation that asks for most drains')
FROM limitledger.policies WHERE subject = 'long';
SELECT is(purge('reservations'), '0 0', 'and goes on asking for ten days');
SELECT at(timestamptz '2030-03-12 20:00:59+00');
SELECT is(purge('reservations'), '1 0', 'after them its own row goes');
SELECT is(ids('t'), 'claimed fence open started unknown', 'the fence is younger by a minute');
UPDATE limitledger.policy SET drained_by = NULL;    -- as if that had been committed
SELECT is((SELECT outcome FROM limitledger.retire_policy(generation)), 'ACCEPTED', 'with that generation retired')
FROM limitledger.policies WHERE subject = 'long';
SELECT is(purge('reservations'), '1 0', 'the others ask for less, and the fence goes');
SELECT at(timestamptz '2030-03-20 20:00:00+00');

-- ---- Bounded steps ---------------------------------------------------------------
SELECT publish('many', 'chat', '{"retention": "1 minute"}');
SELECT is((SELECT count(*) FROM generate_series(1, 7) n WHERE reserve('many', 'chat', 'r' || n, 1) = 'ACCEPTED RESERVED'), 7::bigint, 'seven holds');
SELECT is((SELECT count(*) FROM limitledger.release_reservation_batch(array_fill('many'::text, ARRAY[7]), ARRAY(SELECT 'r' || n FROM generate_series(1, 7) n))), 7::bigint, 'end at one instant');
SELECT at(timestamptz '2030-03-20 20:02:00+00');
SELECT results_eq($$SELECT purged, purged_units, next_generation, next_instant FROM limitledger.purge_reservations(3, 0, NULL)$$,
  $$SELECT 3::bigint, 0::bigint, generation, '2030-03-20 20:00:00+00'::timestamptz FROM limitledger.policies WHERE subject = 'many'$$, 'three at a time, and where to go on');
SELECT is(purge('reservations', 2), '4 0', 'more rows of one instant than a step has');
SELECT is(ids('many'), 'none', 'all are gone');
SELECT publish(s, 'chat') FROM unnest(ARRAY['g1', 'g2', 'g3']) s;
SELECT is(reserve(s, 'chat', 'r', 1), 'ACCEPTED RESERVED', s) FROM unnest(ARRAY['g1', 'g2', 'g3']) s;
SELECT is(release(s, 'r'), 'ACCEPTED RELEASED', s) FROM unnest(ARRAY['g1', 'g2', 'g3']) s;
SELECT results_eq($$SELECT * FROM limitledger.purge_reservations(1, 0, NULL)$$, $$SELECT 0::bigint, 0::bigint, generation, '-infinity'::timestamptz FROM limitledger.policies WHERE subject = 'g2'$$,
  'generations that hold nothing due are bounded, too');
SELECT is(purge('reservations', 1), '0 0', 'and come to an end');
SELECT is_misuse(format('purge_%s(0, 0, NULL)', kind), 'LL106', 'batch_limit', kind || ': a step of none') FROM unnest(ARRAY['reservations', 'usage', 'budgets']) kind;
SELECT is_misuse(format('purge_%s(NULL, 0, NULL)', kind), 'LL101', 'batch_limit', kind || ': of unknown size') FROM unnest(ARRAY['reservations', 'usage', 'budgets']) kind;
SELECT sound('before the seeds');

-- ---- What is missing is found (B5, C2) -------------------------------------------
SELECT publish('c', 'chat', quota(100) || '{"retention": "1 minute"}');
SELECT at(timestamptz '2030-03-20 20:30:00+00'); SELECT is(reserve('c', 'chat', 'r0', 1), 'ACCEPTED RESERVED', 'window 1'); SELECT is(release('c', 'r0'), 'ACCEPTED RELEASED', 'of c');
SELECT at(timestamptz '2030-03-20 21:30:00+00'); SELECT is(reserve('c', 'chat', 'r1', 1), 'ACCEPTED RESERVED', 'window 2'); SELECT is(release('c', 'r1'), 'ACCEPTED RELEASED', 'of c');
SELECT at(timestamptz '2030-03-20 22:30:00+00'); SELECT is(reserve('c', 'chat', 'r2', 1), 'ACCEPTED RESERVED', 'window 3'); SELECT is(release('c', 'r2'), 'ACCEPTED RELEASED', 'of c');
SELECT at(timestamptz '2030-03-20 22:32:00+00');
SELECT is(purge('reservations'), '3 0', 'their rows go');
SELECT is(purge('budgets'), '1 0', 'and the oldest budget');
SELECT at(timestamptz '2030-03-20 23:30:00+00'); SELECT is(reserve('c', 'chat', 'r3', 1), 'ACCEPTED RESERVED', 'window 4');
SELECT is((SELECT count(*) FROM limitledger.closed_budget WHERE subject = 'c'), 2::bigint, 'two closed ones are left');
SELECT sound('with two closed budgets behind a purged one');

CREATE FUNCTION helpers.finds(seed text, expected text, description text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE said text; rows bigint;
BEGIN
  BEGIN
    SET LOCAL session_replication_role = replica;
    EXECUTE seed;
    GET DIAGNOSTICS rows = ROW_COUNT;
    SELECT coalesce(string_agg(DISTINCT concat_ws(' ', rule, subject, detail), ', '), 'nothing') INTO said FROM limitledger.verify_conservation();
    IF rows = 0 THEN said := 'the seed changed no row'; END IF;
    RAISE EXCEPTION USING ERRCODE = 'XX999';
  EXCEPTION WHEN SQLSTATE 'XX999' THEN NULL;
  END;
  RETURN is(said, expected, description);
END $$;
SELECT finds('DELETE FROM limitledger.closed_budget WHERE subject = ''c'' AND follows_purged', 'B5 c the budget that it follows does not exist', 'the oldest one is missing');
SELECT finds('DELETE FROM limitledger.closed_budget WHERE subject = ''c'' AND NOT follows_purged', 'B5 c the budget that it follows does not exist', 'the one in the middle is missing');
SELECT finds('DELETE FROM limitledger.closed_budget WHERE subject = ''c''', 'B5 c the budget that it follows does not exist', 'both are missing');
SELECT finds('UPDATE limitledger.closed_budget SET follows_purged = true WHERE subject = ''c'' AND NOT follows_purged',
  'B5 c it says that the budget that it follows is purged, B5 c more than one budget follows none or a purged one', 'one that says so falsely');
SELECT finds('UPDATE limitledger.closed_budget SET follows_purged = false WHERE subject = ''c'' AND follows_purged', 'B5 c the budget that it follows does not exist', 'one that does not say so');
SELECT finds('UPDATE limitledger.closed_budget SET purged_spent = purged_spent - 1 WHERE subject = ''t''', 'C2 t spent is 100, its settlements say 99', 'purged units that were lost');
SELECT finds('UPDATE limitledger.closed_budget SET carried = 101, opening = 101, available = available + 1 WHERE subject = ''c'' AND follows_purged',
  'B5 c it opened with 101 of 101 carried, at a cap of 100', 'more than the cap behind a purged one');

-- Guards (C3): by hand nothing goes, not even what is due; the marks do not go back.
CREATE FUNCTION helpers.refused(statement text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE said text := 'no error';
BEGIN
  BEGIN
    EXECUTE statement;
    RAISE EXCEPTION USING ERRCODE = 'XX999';   -- undo it all the same
  EXCEPTION WHEN SQLSTATE 'XX999' THEN NULL; WHEN OTHERS THEN said := SQLSTATE;
  END;
  RETURN is(said, 'LL902', statement);
END $$;
SELECT refused(statement) FROM unnest(ARRAY[
  'DELETE FROM limitledger.reservation WHERE subject = ''g1''',
  'DELETE FROM limitledger.closed_budget WHERE subject = ''c''',
  'UPDATE limitledger.closed_budget SET follows_purged = false WHERE follows_purged',
  'UPDATE limitledger.closed_budget SET changed_at = changed_at - interval ''1 hour''',
  'UPDATE limitledger.closed_budget SET purged_spent = purged_spent - 1 WHERE subject = ''t''']) statement;

SELECT * FROM finish();
ROLLBACK;
