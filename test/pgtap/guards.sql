-- Guards against another write path (C1, C3): by hand, as a superuser, each illegal
-- change of a row is refused, by a trigger with LL902 or by a CHECK with 23514, and
-- with the triggers away the CHECKs still hold.
--
-- Fails when: a trigger or a CHECK is dropped, or looks at less than it should.

BEGIN;
\ir helpers.psql
SELECT plan(190);

SELECT at('10:00:00');
SELECT publish('t', 'chat', quota(1000) || '{"holdTtl": "2 hours", "executionTtl": "2 hours"}');
SELECT is(reserve('t', 'chat', 'old', 100, 'o old'), 'ACCEPTED STARTED', 'one that outlives its window');
SELECT is(reserve('t', 'chat', 'debtor', 10, 'o debtor'), 'ACCEPTED STARTED', 'and one that overdraws');
SELECT is(settle('t', 'debtor', 'o debtor', 1100), 'ACCEPTED SETTLED_WITH_DEBT', 'both budgets have moved');
SELECT at('11:00:00');
SELECT is(reserve('t', 'chat', 'held', 100), 'ACCEPTED RESERVED', 'a hold');
SELECT is(reserve('t', 'chat', 'started', 100, 'o1'), 'ACCEPTED STARTED', 'an execution');
SELECT is(reserve('t', 'chat', 'settled', 100, 'o2'), 'ACCEPTED STARTED', 'and one');
SELECT is(settle('t', 'settled', 'o2', 50), 'ACCEPTED SETTLED', 'that has ended');
SELECT is(reserve('t', 'chat', 'released', 100), 'ACCEPTED RESERVED', 'and one');
SELECT is(release('t', 'released'), 'ACCEPTED RELEASED', 'that was released');
SELECT publish('u', 'embed', '{"hardExecutionLimit": 1}');
SELECT is(reserve('u', 'embed', 'r', 2, 'o'), 'ACCEPTED STARTED', 'another pair');
SELECT is(settle('u', 'r', 'o', 2), 'ACCEPTED SETTLED', 'is frozen');
SELECT is((SELECT outcome FROM limitledger.unfreeze('u', 'embed', 'looked into it')), 'ACCEPTED', 'and opened by an operator');
SELECT is((SELECT outcome FROM limitledger.record_usage('u', 'embed', 'o ran', 1)), 'ACCEPTED', 'usage that was not reserved');
SELECT is((SELECT granted_units FROM limitledger.grant_capacity('u', 'embed', 'g', 1, 'goodwill')), 1::bigint, 'was granted anew');
SELECT is((SELECT outcome FROM limitledger.extend_reservation('t', 'started', 'e', until => '2030-01-01 12:30:00+00')), 'ACCEPTED', 'an extension');
SELECT is((SELECT outcome FROM limitledger.report_progress('t', 'started', 'o1', 10)), 'ACCEPTED', 'and progress');
SELECT sound('so far');

-- refused runs a statement and asserts that it fails with one of these SQLSTATEs.
CREATE FUNCTION helpers.refused(statement text, codes text, description text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE said text := 'no error';
BEGIN
  BEGIN
    EXECUTE statement;
    RAISE EXCEPTION USING ERRCODE = 'XX999';   -- undo it all the same
  EXCEPTION WHEN SQLSTATE 'XX999' THEN NULL; WHEN OTHERS THEN said := SQLSTATE;
  END;
  RETURN is(CASE WHEN said = ANY (string_to_array(codes, ' ')) THEN codes ELSE said END, codes, description);
END $$;

-- Movements that no call makes, each of them in an equation that still adds up.
SELECT refused('UPDATE limitledger.head_budget SET ' || change, 'LL902', 'head: ' || change) FROM unnest(ARRAY[
  'subject = ''u''', 'route = ''embed''',
  'opening = opening + 1, available = available + 1', 'carried = carried + 1', 'line = line + 1', 'whole = NOT whole',
  'opened_at = opened_at - interval ''1 hour''', 'follows_generation = NULL, follows_epoch = NULL',
  'spent = spent - 1, available = available + 1',
  'seen_at = seen_at - interval ''1 second''', 'accrued_at = accrued_at - interval ''1 second''',
  'generation = generation - 1', 'epoch = epoch + interval ''1 hour'', line = line - 1',
  'epoch = epoch + interval ''1 hour'', opened_at = opened_at - interval ''1 hour''']) change;
SELECT refused('UPDATE limitledger.closed_budget SET ' || change, 'LL902', 'closed: ' || change) FROM unnest(ARRAY[
  'subject = ''u''', 'route = ''embed''', 'generation = generation + 1', 'epoch = epoch + interval ''1 hour''',
  'opening = opening + 1, available = available + 1', 'carried = carried + 1', 'deficit = deficit + 1', 'line = line + 1',
  'closed_at = closed_at + interval ''1 hour''', 'closing_available = 0, opened_at = opened_at - interval ''1 hour''',
  'spent = spent - 1, available = available + 1', 'overdraft_issued = overdraft_issued - 100, spent = spent - 100',
  'overdraft_repaid = overdraft_repaid - 1, spent = spent + 1', 'minted = minted - 1, available = available - 1',
  'reserved = reserved + 1, minted = minted + 1']) change;
SELECT refused(format('UPDATE limitledger.reservation SET %s WHERE reservation_id = %L', change, id), 'LL902', format('%s: %s', id, change))
FROM (VALUES
  ('held', 'subject = ''u'''), ('held', 'reservation_id = ''x'''), ('held', 'route = ''embed'''), ('held', 'generation = generation + 1'),
  ('held', 'epoch = epoch + interval ''1 hour'''), ('held', 'asked_units = asked_units + 1'), ('held', 'request_digest = sha256(''x'')'),
  ('held', 'reserved_at = reserved_at - interval ''1 second'''), ('held', 'expires_at = expires_at - interval ''1 second'''),
  ('held', 'state = ''SETTLED'', operation_id = ''o'', actual_units = 1'), ('held', 'state = ''SETTLED_WITH_DEBT'', operation_id = ''o'', actual_units = 1'),
  ('held', 'state = ''USAGE_UNKNOWN'', operation_id = ''o'''), ('held', 'state = ''EXPIRED'''),
  ('started', 'state = ''RESERVED'', operation_id = NULL'), ('started', 'state = ''RELEASED'', operation_id = NULL'),
  ('started', 'state = ''EXPIRING'', operation_id = NULL'), ('started', 'state = ''EXPIRED'', operation_id = NULL'),
  ('started', 'operation_id = ''other'''), ('started', 'progress_units = progress_units - 1'), ('started', 'expires_at = expires_at - interval ''1 second'''),
  ('started', 'reserved_units = reserved_units - 1'), ('held', 'reserved_units = reserved_units - 1'), ('settled', 'progress_units = 1'),
  ('settled', 'actual_units = actual_units - 1'), ('settled', 'state = ''STARTED'', actual_units = NULL'), ('settled', 'receipt_source = ''operator'''),
  ('settled', 'state = ''SETTLED_WITH_DEBT'''), ('settled', 'ended_at = NULL'),
  ('debtor', 'state = ''SETTLED'''), ('debtor', 'excess_units = 1'),
  ('released', 'state = ''RESERVED'''), ('released', 'reserved_units = 0')) c (id, change);
SELECT refused('UPDATE limitledger.operation SET ' || change, 'LL902', 'operation: ' || change)
FROM unnest(ARRAY['operation_id = operation_id || ''x''', 'reservation_id = ''x''', 'bound_at = bound_at', 'usage_units = usage_units + 1 WHERE usage_units IS NOT NULL']) change;
SELECT refused('UPDATE limitledger.extension SET ' || change, 'LL902', 'extension: ' || change) FROM unnest(ARRAY['units = units + 1', 'extension_id = ''x''', 'extended_at = extended_at']) change;
SELECT refused('UPDATE limitledger.capacity_grant SET ' || change, 'LL902', 'capacity_grant: ' || change) FROM unnest(ARRAY['units = units + 1', 'granted_units = 0', 'reason = ''another''']) change;
SELECT refused('UPDATE limitledger.operator_action SET reason = ''another''', 'LL902', 'operator_action: another reason');
SELECT refused('UPDATE limitledger.policy SET ' || change, 'LL902', 'policy: ' || change)
FROM unnest(ARRAY['cap = cap + 1', 'hold_ttl = ''1 hour''', 'stage = ''published'', active_at = NULL', 'active_at = active_at + interval ''1 second''', 'document = ''{}''']) change;
SELECT refused('DELETE FROM limitledger.' || t, 'LL902', 'delete from ' || t) FROM unnest(ARRAY['head_budget', 'closed_budget', 'reservation', 'operation', 'extension', 'capacity_grant', 'operator_action', 'policy']) t;
SELECT refused('TRUNCATE limitledger.' || t, 'LL902', 'truncate ' || t)
FROM unnest(ARRAY['head_budget', 'closed_budget', 'reservation', 'operation', 'extension', 'capacity_grant', 'operator_action', 'policy']) t;

-- The CHECKs, alone: each constraint by its name.
SELECT format('ALTER TABLE limitledger.%I DISABLE TRIGGER USER', t) FROM unnest(ARRAY['head_budget', 'closed_budget', 'reservation', 'operation', 'extension', 'capacity_grant']) t \gexec
CREATE FUNCTION helpers.checked(target text, change text, name text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE said text := 'no error';
BEGIN
  BEGIN
    EXECUTE format('UPDATE limitledger.%s SET %s', target, change);
    RAISE EXCEPTION USING ERRCODE = 'XX999';
  EXCEPTION WHEN SQLSTATE 'XX999' THEN NULL; WHEN check_violation THEN GET STACKED DIAGNOSTICS said = CONSTRAINT_NAME; WHEN OTHERS THEN said := SQLERRM;
  END;
  RETURN is(said, name, format('%s: %s', target, change));
END $$;
SELECT checked(t, change, name) FROM (VALUES
  ('opening = -1, minted = minted + opening + 1', 'opening_sign'),
  ('minted = -1, spent = spent - minted - 1', 'minted_sign'),
  ('overdraft_issued = -1, overdraft_repaid = -1, opening = opening + overdraft_issued - overdraft_repaid', 'overdraft_issued_sign'),
  ('available = -1, reserved = reserved + available + 1', 'available_sign'),
  ('reserved = -1, available = available + reserved + 1', 'reserved_sign'),
  ('spent = -1, available = available + spent + 1', 'spent_sign'),
  ('retired_for_emergency = -1, available = available + retired_for_emergency + 1', 'retired_for_emergency_sign'),
  ('overdraft_repaid = -1, spent = spent + overdraft_repaid + 1 + available, available = 0', 'overdraft_repaid_sign'),
  ('available = available + 1', 'conservation'), ('reserved = reserved + 1', 'conservation'), ('spent = spent + 1', 'conservation'),
  ('minted = minted + 1', 'conservation'), ('opening = opening - 1', 'conservation'), ('overdraft_issued = overdraft_issued + 1', 'conservation'),
  ('overdraft_repaid = overdraft_issued + 1, spent = spent + available + overdraft_repaid - overdraft_issued - 1, available = 0', 'repaid_at_most_issued'),
  ('burned = -1', 'counters_sign'), ('purged_spent = -1', 'counters_sign'), ('purged_spent = spent + 1', 'spent_sign'), ('deficit = -1', 'counters_sign'), ('carried = opening - 1', 'counters_sign')) c (change, name),
  unnest(ARRAY['head_budget', 'closed_budget']) t;
SELECT checked('head_budget', change, name) FROM (VALUES
  ('overdraft_issued = overdraft_issued + 1, spent = spent + 1', 'debt_leaves_nothing'), ('older_debt = 1', 'debt_leaves_nothing'),
  ('older_debt = -1', 'counters_sign'), ('older_reserved = -1', 'counters_sign'), ('remainder = -1', 'counters_sign'),
  ('frozen_at = now()', 'frozen_with_reason'), ('frozen_reason = ''because''', 'frozen_with_reason')) c (change, name);
SELECT checked('closed_budget', 'closing_available = available + 1', 'counters_sign');
SELECT checked('closed_budget', 'follows_purged = true, follows_generation = NULL', 'purged_was_followed');
SELECT checked('reservation', change, name) FROM (VALUES
  ('state = ''REQUESTED'' WHERE reservation_id = ''held''', 'state_known'), ('request_digest = ''x''', 'digest_length'), ('reserved_units = -1', 'reserved_units_sign'),
  ('actual_units = 1 WHERE reservation_id = ''held''', 'actual_when_settled'), ('actual_units = NULL WHERE reservation_id = ''settled''', 'actual_when_settled'),
  ('actual_units = -1 WHERE reservation_id = ''settled''', 'actual_when_settled'),
  ('operation_id = ''o'' WHERE reservation_id = ''held''', 'operation_when_started'), ('operation_id = NULL WHERE reservation_id = ''started''', 'operation_when_started'),
  ('excess_units = 1 WHERE reservation_id = ''held''', 'excess_has_budget'), ('excess_units = -1 WHERE reservation_id = ''held''', 'excess_has_budget'),
  ('excess_generation = 1 WHERE reservation_id = ''held''', 'excess_has_budget'),
  ('route = NULL WHERE reservation_id = ''held''', 'budget_or_fence'), ('asked_units = 0 WHERE reservation_id = ''held''', 'budget_or_fence')) c (change, name);
SELECT checked('reservation', 'progress_units = -1', 'progress_units_sign');
SELECT checked('operation', change, 'reservation_or_usage') FROM unnest(ARRAY['usage_units = -1 WHERE usage_units IS NOT NULL', 'reservation_id = ''x'' WHERE usage_units IS NOT NULL',
  'reservation_id = NULL WHERE operation_id = ''o1''', 'usage_units = 1 WHERE operation_id = ''o1''', 'route = ''chat'' WHERE operation_id = ''o1''',
  'route = NULL WHERE usage_units IS NOT NULL', 'generation = NULL WHERE usage_units IS NOT NULL', 'epoch = NULL WHERE usage_units IS NOT NULL']) change;
SELECT checked('extension', 'units = -1', 'extension_units_check');
SELECT checked('capacity_grant', change, name) FROM (VALUES
  ('units = 0', 'capacity_grant_check'), ('granted_units = -1', 'capacity_grant_check'), ('granted_units = units + 1', 'capacity_grant_check'),
  ('units = 0, granted_units = 0', 'capacity_grant_units_check')) c (change, name);
SELECT format('ALTER TABLE limitledger.%I ENABLE TRIGGER USER', t) FROM unnest(ARRAY['head_budget', 'closed_budget', 'reservation', 'operation', 'extension', 'capacity_grant']) t \gexec

-- None of this has changed anything, and the ledger goes on.
SELECT sound('after all attempts');
SELECT is(settle('t', 'old', 'o old', 20), 'ACCEPTED SETTLED', 'the ledger goes on');
SELECT is(settle('t', 'started', 'o1', 100), 'ACCEPTED SETTLED', 'in this session');
SELECT sound('at the end');

SELECT * FROM finish();
ROLLBACK;
