-- Misuse, as its caller reads it: each SQLSTATE once, with message, detail and hint.
-- test/pgtap/contract.sql tries each field of each call.
SET client_min_messages = warning;
DROP EXTENSION IF EXISTS limitledger;
CREATE EXTENSION limitledger;
RESET client_min_messages;
SET limitledger.clock_override = '2030-01-01 10:00:00+00';
SELECT generation FROM limitledger.publish_policy('{
  "schema": "admissionBudget.v1", "subject": "t", "route": "chat", "region": "*", "unit": "tokens", "refill": {"kind": "none"},
  "burst": 1000, "epoch": {"length": "1 hour"}, "estimatorDigests": [], "largestReservation": 1000,
  "holdTtl": "30 seconds", "executionTtl": "10 minutes", "hardExecutionLimit": 9223372036854775807,
  "maximumOverdraft": 9223372036854775807, "priority": 0, "weight": 1, "fairnessBudget": 0, "retention": "1 day"}');

-- LL101
SELECT * FROM limitledger.settle_usage('t', 'r1', 'o1', NULL);
SELECT * FROM limitledger.reserve_capacity_batch(ARRAY['t', 't'], ARRAY['chat', NULL], ARRAY['a', 'b'], ARRAY[1, 1], ARRAY[sha256('a'), sha256('b')]);
-- LL102
SELECT * FROM limitledger.release_reservation('', 'r1');
SELECT * FROM limitledger.release_reservation('t', repeat('x', 257));
SELECT * FROM limitledger.reserve_capacity('*', 'chat', 'r1', 1, sha256('a'));
-- LL103
SELECT * FROM limitledger.reserve_capacity('t', 'chat', 'r1', 0, sha256('a'));
SELECT * FROM limitledger.settle_usage('t', 'r1', 'o1', -1);
-- LL104
SELECT * FROM limitledger.reserve_capacity('t', 'chat', 'r1', 1, 'sha256:12');
-- LL105
SELECT * FROM limitledger.start_reservation_batch(ARRAY['t'], ARRAY['a', 'b'], ARRAY['o']);
SELECT * FROM limitledger.start_reservation_batch(ARRAY[['t']], ARRAY[['a']], ARRAY[['o']]);
-- LL106
SELECT * FROM limitledger.expire_reservations(0);
SELECT * FROM limitledger.settle_usage('t', 'r1', 'o1', 1, NULL, 'nobody');
-- LL107
SELECT outcome, state FROM limitledger.reserve_capacity('t', 'chat', 'r1', 1, sha256('a'), start_operation => 'o1');
SELECT outcome, state FROM limitledger.reserve_capacity('t', 'chat', 'r2', 1, sha256('a'), start_operation => 'o2');
SELECT outcome, state FROM limitledger.settle_usage('t', 'r1', 'o1', 9223372036854774807);
SELECT outcome, state FROM limitledger.settle_usage('t', 'r2', 'o2', 9223372036854775807);
-- LL108
SELECT limitledger.request_digest('{"n": 9007199254740993}');
-- LL301
SELECT outcome, state FROM limitledger.resolve_reservation('t', 'r3', sha256('a'));
SELECT * FROM limitledger.settle_usage('t', 'r3', 'o3', 1);
-- LL302
BEGIN;
SELECT outcome, state FROM limitledger.resolve_reservation('t', 'r4', sha256('a'));
PREPARE TRANSACTION 'p';
-- LL401
SELECT * FROM limitledger.signing_key_id();
-- LL402
\set SHOW_CONTEXT never
SELECT * FROM limitledger.trust_key('limitledger-ed25519-public-v1');
-- LL902
UPDATE limitledger.reservation SET state = 'RESERVED' WHERE reservation_id = 'r3';
DELETE FROM limitledger.head_budget;
-- Read only is the server's own error.
BEGIN READ ONLY;
SELECT * FROM limitledger.release_reservation('t', 'r1');
ROLLBACK;
SELECT * FROM limitledger.verify_conservation();
