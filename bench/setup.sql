-- What is measured: one subject on two routes, among many others.
--
-- 'open' always admits: its refill is worth minting on every call, and neither
-- a hold, an epoch nor the cap ends within a run.  'full' has nothing available
-- and gets one unit a day.  The first reservation opens each pair (B3).

SELECT generation, stage
FROM limitledger.publish_policy('{
  "schema": "admissionBudget.v1", "subject": "*", "route": "open", "region": "*", "unit": "token",
  "refill": {"kind": "continuous", "units": 100000, "interval": "1 second"},
  "burst": 1000000000, "epoch": {"calendar": "month", "timeZone": "UTC"},
  "estimatorDigests": [], "largestReservation": 1000000, "largestOutstanding": 1000000000,
  "holdTtl": "1 day", "executionTtl": "1 day", "hardExecutionLimit": 1000000, "maximumOverdraft": 0,
  "priority": 0, "weight": 1, "fairnessBudget": 0, "retention": "30 days"}');

SELECT generation, stage
FROM limitledger.publish_policy('{
  "schema": "admissionBudget.v1", "subject": "bench", "route": "full", "region": "*", "unit": "token",
  "refill": {"kind": "continuous", "units": 1, "interval": "1 day"},
  "burst": 100, "epoch": {"calendar": "month", "timeZone": "UTC"},
  "estimatorDigests": [], "largestReservation": 100,
  "holdTtl": "1 day", "executionTtl": "1 day", "hardExecutionLimit": 100, "maximumOverdraft": 0,
  "priority": 0, "weight": 1, "fairnessBudget": 0, "retention": "30 days"}');

SELECT r.outcome, r.available
FROM limitledger.request_digest('{"open": true}') AS d (digest),
     limitledger.reserve_capacity('bench', 'open', 'first-open', 1, d.digest) AS r;

SELECT r.outcome, r.available
FROM limitledger.request_digest('{"full": true}') AS d (digest),
     limitledger.reserve_capacity('bench', 'full', 'first-full', 100, d.digest) AS r;

-- Other subjects, so that both sides' tables have a size at which every plan is
-- an index scan: four reservations of each of 5,000 pairs.
SELECT count(*)
FROM (SELECT array_agg(format('tenant-%s', n % 5000) ORDER BY n) AS subjects,
             array_agg('open'::text)                             AS routes,
             array_agg(format('rl-%s', n / 5000) ORDER BY n)     AS reservation_ids,
             array_agg(10::bigint)                               AS units,
             array_agg(sha256(n::text::bytea) ORDER BY n)        AS digests
      FROM generate_series(0, 19999) AS n) AS a,
     limitledger.reserve_capacity_batch(
       a.subjects, a.routes, a.reservation_ids, a.units, a.digests) AS r
WHERE r.outcome = 'ACCEPTED'
HAVING count(*) = 20000;
