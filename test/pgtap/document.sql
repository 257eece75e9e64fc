-- limitReservation.v1: what the document of a reservation says at each step (D11, J1).
--
-- Fails when: a field is missing, says more than is known, or is a number that a reader
-- of JSON would round.

BEGIN;
\ir helpers.psql
SELECT plan(9);

SELECT at('10:00:00');
SELECT publish('t', 'chat', '{"burst": 9007199254740993, "maximumOverdraft": 9007199254740993, "hardExecutionLimit": 9007199254740993}');

SELECT is(limitledger.get_reservation_document('t', 'r1'),
  '{"schema": "limitReservation.v1", "reservation": "r1", "subject": "t", "state": "RESERVATION_UNKNOWN"}'::jsonb, 'an id that is not known');

SELECT is(reserve('t', 'chat', 'r1', 9007199254740993), 'ACCEPTED RESERVED', 'as many units as a double can''t hold');
SELECT is(limitledger.get_reservation_document('t', 'r1') - 'policyGeneration', jsonb_build_object(
  'schema', 'limitReservation.v1', 'reservation', 'r1', 'subject', 't', 'route', 'chat', 'state', 'RESERVED',
  'reservedUnits', '9007199254740993', 'accountingEpoch', '2030-01-01T10:00:00Z', 'expiresAt', '2030-01-01T10:00:30.000000Z',
  'requestDigest', 'sha256:' || encode(sha256('r1'), 'hex')), 'reserved: to the unit');
SELECT is((limitledger.get_reservation_document('t', 'r1') ->> 'policyGeneration')::bigint,
  (SELECT generation FROM limitledger.get_reservation('t', 'r1')), 'under its generation');

SELECT is(start('t', 'r1', 'o1'), 'ACCEPTED STARTED', 'started');
SELECT at('10:00:10');
DO $$ BEGIN PERFORM limitledger.report_progress('t', 'r1', 'o1', 7); END $$;
SELECT is(limitledger.get_reservation_document('t', 'r1') - '{policyGeneration,requestDigest,schema,route,subject}'::text[], jsonb_build_object(
  'reservation', 'r1', 'state', 'STARTED', 'reservedUnits', '9007199254740993', 'progressUnits', '7', 'operationId', 'o1',
  'accountingEpoch', '2030-01-01T10:00:00Z', 'expiresAt', '2030-01-01T10:10:00.000000Z'), 'running: its operation, its progress, its deadline');

SELECT is(settle('t', 'r1', 'o1', 0), 'ACCEPTED SETTLED', 'settled');
SELECT is(limitledger.get_reservation_document('t', 'r1') ->> 'actualUnits', '0', 'with nothing used, which is not the same as unknown');

DO $$ BEGIN PERFORM limitledger.resolve_reservation('t', 'r2', sha256('r2')); END $$;
SELECT is(limitledger.get_reservation_document('t', 'r2'), jsonb_build_object(
  'schema', 'limitReservation.v1', 'reservation', 'r2', 'subject', 't', 'state', 'RELEASED', 'reservedUnits', '0',
  'expiresAt', '2030-01-01T10:00:10.000000Z', 'requestDigest', 'sha256:' || encode(sha256('r2'), 'hex')), 'a fence has no pair');

SELECT * FROM finish();
ROLLBACK;
