-- The life of a reservation as a reader would type it: three gateways, one tenant,
-- 1,000 units; a duplicate, a lost reply, a hold that runs out, an overdraft.
--
-- test/pgtap has the cases; this is the picture of a receipt.
SET client_min_messages = warning;
DROP EXTENSION IF EXISTS limitledger;
CREATE EXTENSION limitledger;
RESET client_min_messages;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, MDY';
SET limitledger.clock_override = '2026-07-19 14:00:00+00';
\x on

SELECT * FROM limitledger.publish_policy('{
  "schema": "admissionBudget.v1", "subject": "tenant-7", "route": "chat.generate", "region": "*", "unit": "tokens",
  "refill": {"kind": "continuous", "units": 100, "interval": "1 second"}, "burst": 1000, "epoch": {"length": "1 hour"},
  "estimatorDigests": [], "largestReservation": 1000, "holdTtl": "30 seconds", "executionTtl": "10 minutes",
  "hardExecutionLimit": 5000, "maximumOverdraft": 500, "priority": 0, "weight": 1, "fairnessBudget": 1000,
  "retention": "7 days"}');

-- The first gateway gets 600, the second is told how long to wait.
SELECT * FROM limitledger.reserve_capacity('tenant-7', 'chat.generate', 'rl-01', 600,
  limitledger.request_digest('{"prompt": "one"}'));
SELECT * FROM limitledger.reserve_capacity('tenant-7', 'chat.generate', 'rl-02', 600,
  limitledger.request_digest('{"prompt": "two"}'));

-- The reply was lost: the same id and request get the same receipt.
SELECT * FROM limitledger.reserve_capacity('tenant-7', 'chat.generate', 'rl-01', 600,
  limitledger.request_digest('{ "prompt" : "one" }'));
SELECT * FROM limitledger.reserve_capacity('tenant-7', 'chat.generate', 'rl-01', 600,
  limitledger.request_digest('{"prompt": "another"}'));

-- Start, run, settle: 200 of 600 were used.
SELECT * FROM limitledger.start_reservation('tenant-7', 'rl-01', 'op-01');
SET limitledger.clock_override = '2026-07-19 14:00:01+00';
SELECT * FROM limitledger.settle_usage('tenant-7', 'rl-01', 'op-01', 200);

-- Nobody knows whether rl-03 was ever stored: the final word.
SELECT * FROM limitledger.resolve_reservation('tenant-7', 'rl-03', limitledger.request_digest('{"prompt": "three"}'));

-- More was used than reserved: the rest is debt, and admission stops.
SELECT outcome, state, reserved_units, operation, expires_at, available
FROM limitledger.reserve_capacity('tenant-7', 'chat.generate', 'rl-04', 500,
  limitledger.request_digest('{"prompt": "four"}'), start_operation => 'op-04');
SELECT * FROM limitledger.settle_usage('tenant-7', 'rl-04', 'op-04', 1200);
SELECT * FROM limitledger.get_budget('tenant-7', 'chat.generate');
SELECT outcome, dimension, generation, retry_after_ms, retry_kind
FROM limitledger.reserve_capacity('tenant-7', 'chat.generate', 'rl-05', 100,
  limitledger.request_digest('{"prompt": "five"}'));

-- Refill pays the debt first; the caller that waited as it was told is admitted.
SET limitledger.clock_override = '2026-07-19 14:00:03+00';
SELECT * FROM limitledger.repay_debt('tenant-7', 'chat.generate');
SET limitledger.clock_override = '2026-07-19 14:00:05+00';
SELECT outcome, dimension, state, available
FROM limitledger.reserve_capacity('tenant-7', 'chat.generate', 'rl-05', 100,
  limitledger.request_digest('{"prompt": "five"}'));

-- A hold that nobody starts comes back.
SET limitledger.clock_override = '2026-07-19 14:00:35+00';
SELECT * FROM limitledger.expire_reservations();
SELECT outcome, state, reserved_units FROM limitledger.get_reservation('tenant-7', 'rl-05');

\x off
SELECT reservation_id, state, reserved_units, actual_units, excess_units FROM limitledger.reservations ORDER BY 1;
SELECT opening, minted, overdraft_issued, available, reserved, spent, retired_for_emergency, overdraft_repaid
FROM limitledger.budgets;
SELECT * FROM limitledger.verify_conservation();
