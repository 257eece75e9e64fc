-- verify_conservation() finds what it says it finds (C2): with triggers and CHECKs out
-- of the way each kind of discrepancy is seeded in turn, and is reported under its
-- rule, with its pair; nothing else is.
--
-- Fails when: any of its queries is dropped or looks at less than it should, or the
-- audit of a part reads what lies behind that part.

BEGIN;
\ir helpers.psql
SELECT plan(98);

-- A ledger with something in every corner: three epochs, two generations, debts, an
-- excess, a fence, every state.
SELECT at('10:00:00');
SELECT publish('t', 'chat', quota(1000) || '{"holdTtl": "6 hours", "executionTtl": "6 hours", "maximumOverdraft": 5000}');
SELECT is(reserve('t', 'chat', 'old', 100, 'o old'), 'ACCEPTED STARTED', 'one that outlives its window');
SELECT is(reserve('t', 'chat', 'r1', 50, 'o1'), 'ACCEPTED STARTED', 'one that is settled in it');
SELECT is(settle('t', 'r1', 'o1', 50), 'ACCEPTED SETTLED', 'settled');
SELECT publish('t', 'chat', quota(1200) || '{"holdTtl": "6 hours", "executionTtl": "6 hours", "maximumOverdraft": 5000}');
SELECT is(reserve('t', 'chat', 'r2', 100, 'o2'), 'ACCEPTED STARTED', 'one under the next generation');
SELECT at('11:00:00');
SELECT is(settle('t', 'r2', 'o2', 250), 'ACCEPTED SETTLED', 'settled in the next epoch, with an excess that the head bore');
SELECT is(reserve('t', 'chat', 'held', 100), 'ACCEPTED RESERVED', 'a hold');
SELECT is(release('t', 'held'), 'ACCEPTED RELEASED', 'that was released');
SELECT is(reserve('t', 'chat', 'open', 200), 'ACCEPTED RESERVED', 'and one that was not');
SELECT is(resolve('t', 'fence'), 'ACCEPTED RELEASED', 'a fence');
SELECT publish('owes', 'chat', continuous(1, '1 hour', 100));
SELECT is(reserve('owes', 'chat', 'r1', 60, 'o1'), 'ACCEPTED STARTED', 'a pair');
SELECT is(reserve('owes', 'chat', 'r2', 40), 'ACCEPTED RESERVED', 'with a hold');
SELECT is(settle('owes', 'r1', 'o1', 90), 'ACCEPTED SETTLED_WITH_DEBT', 'that owes thirty');
SELECT publish('owes', 'chat', continuous(2, '1 hour', 100));
SELECT is((SELECT debt FROM limitledger.repay_debt('owes', 'chat')), 30::bigint, 'under its next generation too');
SELECT is((SELECT outcome FROM limitledger.record_usage('t', 'chat', 'ran', 30)), 'ACCEPTED', 'usage that was never reserved');
-- And a gateway, with a shard that has something of each kind.
SELECT original();
SELECT limitledger.open_gateway('gw');
SELECT accepted('local', 's', 'chat'), accepted('local', 'other', 'embed');
SELECT is(shard_reserve('local', 'chat', 'l1', 30, 'lo1'), 'ACCEPTED STARTED', 'an execution on a gateway');
SELECT is(shard_settle('local', 'l1', 'lo1', 25), 'ACCEPTED SETTLED', 'that was settled');
SELECT is(shard_reserve('local', 'chat', 'l2', 10, 'lo2'), 'ACCEPTED STARTED', 'one that runs');
SELECT is((SELECT sequence FROM limitledger.cut_shard_report('local', 's')), 1::bigint, 'and a report');
SELECT sound('all is well');

-- Now without guards.
SELECT format('ALTER TABLE limitledger.%I DISABLE TRIGGER USER', c.relname)
FROM pg_class c WHERE c.relnamespace = 'limitledger'::regnamespace AND c.relkind = 'r' \gexec
SELECT format('ALTER TABLE limitledger.%I DROP CONSTRAINT %I', r.relname, c.conname)
FROM pg_constraint c JOIN pg_class r ON r.oid = c.conrelid
WHERE c.connamespace = 'limitledger'::regnamespace AND c.contype = 'c' AND r.relkind = 'r' \gexec

-- finds seeds a discrepancy, asks the audit, in one piece and in parts, and takes it back.
CREATE FUNCTION helpers.finds(seed text, expected text, description text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  said text;
  parts text;
  rows bigint;
BEGIN
  BEGIN
    EXECUTE seed;
    GET DIAGNOSTICS rows = ROW_COUNT;
    SELECT coalesce(string_agg(DISTINCT concat_ws(' ', rule, subject, route), ', '), 'nothing') INTO said FROM limitledger.verify_conservation();
    SELECT coalesce(string_agg(DISTINCT concat_ws(' ', rule, subject, route), ', '), 'nothing') INTO parts
    FROM (SELECT * FROM limitledger.verify_subjects(NULL, 'm') UNION ALL SELECT * FROM limitledger.verify_subjects('m', 't')
          UNION ALL SELECT * FROM limitledger.verify_subjects('t')) p;
    IF parts <> said THEN said := format('%s, but in parts %s', said, parts); END IF;
    IF rows = 0 THEN said := 'the seed changed no row'; END IF;
    RAISE EXCEPTION USING ERRCODE = 'XX999';
  EXCEPTION WHEN SQLSTATE 'XX999' THEN NULL;
  END;
  RETURN is(said, expected, description);
END $$;
CREATE FUNCTION helpers.head(change text) RETURNS text LANGUAGE sql AS $$
  SELECT 'UPDATE limitledger.head_budget SET ' || change || ' WHERE subject = ''t'''
$$;
CREATE FUNCTION helpers.older(change text) RETURNS text LANGUAGE sql AS $$
  SELECT 'UPDATE limitledger.closed_budget SET ' || change || ' WHERE subject = ''t'' AND generation = (SELECT min(generation) FROM limitledger.closed_budget WHERE subject = ''t'')'
$$;

-- C1, each column of the equation, in the head and in a closed budget.
SELECT finds(head(c || ' = ' || c || ' + 1'), expected, 'head: ' || c || ' + 1')
FROM (VALUES ('minted', 'C1 t chat'), ('available', 'C1 t chat'), ('retired_for_emergency', 'C1 t chat, G2 t chat'),
  ('reserved', 'C1 t chat, C2 t chat'), ('spent', 'C1 t chat, C2 t chat'),
  ('overdraft_issued', 'C1 t chat, E2 t chat'), ('overdraft_repaid', 'C1 t chat')) v (c, expected);
SELECT finds(head('opening = opening - 1'), 'C1 t chat', 'head: opening - 1');
SELECT finds(older(c || ' = ' || c || ' + 1'), expected, 'closed: ' || c || ' + 1')
FROM (VALUES ('minted', 'C1 t chat'), ('available', 'C1 t chat'), ('retired_for_emergency', 'C1 t chat, G2 t chat'),
  ('reserved', 'C1 t chat, C2 t chat'), ('spent', 'C1 t chat, C2 t chat'),
  ('overdraft_issued', 'C1 t chat, C2 t chat, E2 t chat'), ('overdraft_repaid', 'C1 t chat, C2 t chat')) v (c, expected);
SELECT finds(head('opening = opening - 1, minted = minted + 1, retired_for_emergency = -1, available = available + 1'), 'C1 t chat, G2 t chat', 'a column below zero that adds up');
SELECT finds(head('opening = -1, minted = minted + opening + 1'), 'C1 t chat', 'an opening below zero that adds up');
SELECT finds(older('available = available - 1, spent = spent + 1'), 'C2 t chat', 'a unit moved to spent in a closed budget');

-- C2, from the reservations' side.
SELECT finds('UPDATE limitledger.reservation SET reserved_units = reserved_units + 1 WHERE subject = ''t'' AND reservation_id = ''open''', 'C2 t chat', 'a reservation that holds more');
SELECT finds('UPDATE limitledger.reservation SET reserved_units = reserved_units - 1 WHERE subject = ''t'' AND reservation_id = ''old''', 'C2 t chat', 'one of a closed budget that holds less');
SELECT finds('UPDATE limitledger.reservation SET state = ''RELEASED'' WHERE subject = ''t'' AND reservation_id = ''open''', 'C2 t chat', 'one that ended without giving back');
SELECT finds('UPDATE limitledger.reservation SET state = ''RESERVED'' WHERE subject = ''t'' AND reservation_id = ''held''', 'C2 t chat', 'one that came back to life');
SELECT finds('UPDATE limitledger.reservation SET actual_units = 49 WHERE subject = ''t'' AND reservation_id = ''r1''', 'C2 t chat', 'a figure that was lowered');
SELECT finds('UPDATE limitledger.reservation SET excess_units = excess_units + 1 WHERE subject = ''t'' AND reservation_id = ''r2''', 'C2 t chat', 'an excess that was raised');
SELECT finds('UPDATE limitledger.reservation SET excess_epoch = epoch, excess_generation = generation WHERE subject = ''t'' AND reservation_id = ''r2''', 'C2 t chat', 'an excess moved to another budget');
SELECT finds('UPDATE limitledger.reservation SET epoch = epoch + interval ''7 hours'' WHERE subject = ''t'' AND reservation_id = ''open''', 'C2 t chat', 'a reservation without its budget');
SELECT finds('DELETE FROM limitledger.reservation WHERE subject = ''t'' AND reservation_id = ''open''', 'C2 t chat', 'a hold that was deleted');
SELECT finds('DELETE FROM limitledger.reservation WHERE subject = ''t'' AND reservation_id = ''r1''', 'C2 t chat, D5 t', 'a settlement that was deleted');
SELECT finds('UPDATE limitledger.head_budget SET older_debt = older_debt - 1 WHERE subject = ''owes''', 'C2 owes chat', 'an older debt that was forgotten');
SELECT finds('UPDATE limitledger.head_budget SET older_reserved = older_reserved + 1 WHERE subject = ''owes''', 'C2 owes chat', 'older holds that are miscounted');
SELECT finds('UPDATE limitledger.head_budget SET available = 1, minted = minted + 1 WHERE subject = ''owes''', 'E2 owes chat', 'something available in debt');
SELECT finds(head('available = available + 1000000, minted = minted + 1000000'), 'C4 t chat', 'more available than the cap');

-- C2, from the side of usage that was never reserved.
SELECT finds('UPDATE limitledger.operation SET usage_units = usage_units + 1 WHERE operation_id = ''ran''', 'C2 t chat', 'usage that was raised');
SELECT finds('UPDATE limitledger.operation SET usage_units = usage_units - 1 WHERE operation_id = ''ran''', 'C2 t chat', 'usage that was lowered');
SELECT finds('DELETE FROM limitledger.operation WHERE operation_id = ''ran''', 'C2 t chat', 'usage that was deleted');
SELECT finds('UPDATE limitledger.operation SET epoch = epoch - interval ''1 hour'' WHERE operation_id = ''ran''', 'C2 t chat', 'usage moved to another budget');
SELECT finds('UPDATE limitledger.operation SET route = ''embed'', usage_units = 0 WHERE operation_id = ''ran''', 'C2 t chat, C2 t embed', 'usage without its budget');
SELECT finds('INSERT INTO limitledger.operation SELECT subject, ''stray'', NULL, now(), 1, route, generation, epoch FROM limitledger.head_budget WHERE subject = ''owes''', 'C2 owes chat', 'usage that no budget spent');

-- B5, the chain of budgets.
SELECT finds(head('carried = carried + 1'), 'B5 t chat', 'a head that carried too much');
SELECT finds(head('carried = carried - 1, opening = opening - 1, available = available - 1'), 'B5 t chat', 'or too little');
SELECT finds(head('line = line - 1'), 'B5 t chat', 'a window that says it is the one before');
SELECT finds(head('follows_epoch = epoch'), 'B5 t chat', 'one that follows none that exists');
SELECT finds(head('follows_generation = NULL, follows_epoch = NULL'), 'B5 t chat', 'two that follow none');
SELECT finds(head('(follows_generation, follows_epoch) = (SELECT follows_generation, follows_epoch FROM limitledger.closed_budget
  WHERE subject = ''t'' AND follows_generation IS NOT NULL)'), 'B5 t chat', 'two that follow the same one');
SELECT finds(head('opened_at = opened_at - interval ''1 second'''), 'B5 t chat', 'one that opened before the other closed');
SELECT finds(older('closing_available = closing_available + 1, available = available + 1, minted = minted + 1'), 'B5 t chat', 'a closing balance that was raised');
SELECT finds('UPDATE limitledger.closed_budget SET carried = carried + 1 WHERE subject = ''t'' AND follows_generation IS NOT NULL', 'B5 t chat', 'a closed one that carried too much');
SELECT finds('DELETE FROM limitledger.head_budget WHERE subject = ''owes''', 'C2 owes chat', 'a head that is gone');
SELECT finds('DELETE FROM limitledger.closed_budget WHERE subject = ''owes''', 'B5 owes chat, C2 owes chat', 'a closed budget that is gone');
SELECT finds(head('opening = 1300, carried = 1300, available = available + 100'), 'B5 t chat', 'a window that opened with more than its quota');
SELECT finds('UPDATE limitledger.closed_budget SET opening = opening + 1, carried = carried + 1, minted = minted - 1 WHERE subject = ''owes''', 'B5 owes chat, C1 owes chat', 'a first budget above the cap');
SELECT finds('UPDATE limitledger.head_budget SET carried = carried + 1 WHERE subject = ''owes''', 'B5 owes chat', 'units carried that the one before did not have');

-- B1 and D5.
SELECT finds('DELETE FROM limitledger.policy WHERE generation = (SELECT generation FROM limitledger.head_budget WHERE subject = ''owes'')', 'B1 owes chat', 'a policy that is gone');
SELECT finds('DELETE FROM limitledger.operation WHERE subject = ''t'' AND operation_id = ''o1''', 'D5 t chat', 'an operation that is not bound');
SELECT finds('UPDATE limitledger.operation SET reservation_id = ''r2'' WHERE subject = ''t'' AND operation_id = ''o1''', 'D5 t, D5 t chat', 'one bound to another reservation');
SELECT finds('INSERT INTO limitledger.operation VALUES (''t'', ''stray'', ''open'', now())', 'D5 t', 'a stray operation');

-- G1, G5, G6 and D5 on a gateway.
CREATE FUNCTION helpers.local(change text) RETURNS text LANGUAGE sql AS $$
  SELECT 'UPDATE limitledger.local_shard SET ' || change || ' WHERE subject = ''local'' AND shard_id = ''s'''
$$;
SELECT finds(local(c || ' = ' || c || ' + 1'), 'G1 local chat', 'shard: ' || c || ' + 1')
FROM (VALUES ('allocated_units'), ('local_available'), ('local_reserved'), ('local_spent'), ('local_retired'), ('local_excess')) v (c);
SELECT finds(local('local_available = local_available - 1, local_spent = local_spent + 1'), 'G1 local chat', 'a unit moved to spent');
SELECT finds(local('local_available = local_available - 1, local_reserved = local_reserved + 1'), 'G1 local chat', 'or to reserved');
SELECT finds(local('local_retired = -1, local_available = local_available + 1'), 'G1 local chat', 'a figure below zero that adds up');
SELECT finds(local('sealed_at = now(), sealed_by = ''operator'''), 'G1 local chat', 'a sealed shard with units');
SELECT finds(local('boot_epoch = gen_random_uuid()'), 'G5 local chat', 'an open shard of another boot');
SELECT finds(local('last_sequence = 2'), 'G6 local chat', 'a report that is missing');
SELECT finds('DELETE FROM limitledger.local_report WHERE subject = ''local''', 'G6 local, G6 local chat', 'a report that is gone');
SELECT finds('UPDATE limitledger.shard_reservation SET sequence = 2 WHERE reservation_id = ''l1''', 'G6 local', 'a reservation that no report tells of');
SELECT finds('UPDATE limitledger.shard_reservation SET actual_units = 24 WHERE reservation_id = ''l1''', 'G1 local chat', 'a figure that was lowered');
SELECT finds('UPDATE limitledger.shard_reservation SET reserved_units = 11 WHERE reservation_id = ''l2''', 'G1 local chat', 'an execution that holds more');
SELECT finds('UPDATE limitledger.shard_reservation SET ended_at = now() WHERE reservation_id = ''l2''', 'G1 local chat', 'or ended without giving back');
SELECT finds('UPDATE limitledger.shard_reservation SET shard_id = ''none'' WHERE reservation_id = ''l2''', 'G1 local, G1 local chat', 'one without its shard');
SELECT finds('DELETE FROM limitledger.shard_reservation WHERE reservation_id = ''l2''', 'D5 local, G1 local chat', 'one that was deleted');
SELECT finds('DELETE FROM limitledger.shard_operation WHERE operation_id = ''lo1''', 'D5 local', 'an operation that is not bound');
SELECT finds('UPDATE limitledger.shard_operation SET reservation_id = ''l2'' WHERE operation_id = ''lo1''', 'D5 local', 'one bound to another reservation');

SELECT sound('everything was taken back');

-- A part is read as such, or the audit of all parts in turn would read the whole for each.
SET LOCAL enable_seqscan = off;
CREATE FUNCTION helpers.entries_read() RETURNS numeric LANGUAGE sql VOLATILE AS $$
  SELECT sum(pg_stat_get_xact_tuples_returned(c.oid)) FROM pg_class c
  WHERE c.relnamespace = 'limitledger'::regnamespace AND c.relkind = 'i' AND c.relname !~ '^policy'
$$;
SELECT entries_read() AS before \gset
SELECT count(*) FROM limitledger.verify_subjects(NULL, 'a');
SELECT is(entries_read() - :before, 0::numeric, 'a part in which nobody is reads nobody');
SELECT * FROM finish();
ROLLBACK;
