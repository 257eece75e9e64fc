-- What the peers of bench/peers hold: 100,000 pairs of the route 'open', each with one
-- reservation, and of the route 'full' tenant-0, which is exhausted.

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
  "schema": "admissionBudget.v1", "subject": "*", "route": "full", "region": "*", "unit": "token",
  "refill": {"kind": "continuous", "units": 1, "interval": "1 day"},
  "burst": 100, "epoch": {"calendar": "month", "timeZone": "UTC"},
  "estimatorDigests": [], "largestReservation": 100,
  "holdTtl": "1 day", "executionTtl": "1 day", "hardExecutionLimit": 100, "maximumOverdraft": 0,
  "priority": 0, "weight": 1, "fairnessBudget": 0, "retention": "30 days"}');

SELECT count(*)
FROM generate_series(0, 9) AS part,
     LATERAL (SELECT array_agg(format('tenant-%s', n) ORDER BY n)   AS subjects,
                     array_agg('open'::text)                        AS routes,
                     array_agg('first'::text)                       AS reservation_ids,
                     array_agg(10::bigint)                          AS units,
                     array_agg(sha256(n::text::bytea) ORDER BY n)   AS digests
              FROM generate_series(part * 10000, part * 10000 + 9999) AS n) AS a,
     limitledger.reserve_capacity_batch(
       a.subjects, a.routes, a.reservation_ids, a.units, a.digests) AS r
WHERE r.outcome = 'ACCEPTED'
HAVING count(*) = 100000;

SELECT r.outcome
FROM limitledger.reserve_capacity('tenant-0', 'full', 'first-full', 100, sha256('full')) AS r;

-- A conditional UPDATE: no id, no record of a call, so a repeated call takes twice.
CREATE SCHEMA bench_update;
CREATE TABLE bench_update.budget (
  subject   text   COLLATE "C" PRIMARY KEY,
  available bigint NOT NULL CHECK (available >= 0),
  reserved  bigint NOT NULL CHECK (reserved >= 0)
) WITH (fillfactor = 50);
INSERT INTO bench_update.budget SELECT format('tenant-%s', n), 1000000000, 0 FROM generate_series(0, 99999) AS n;
CREATE TABLE bench_update.full_budget (LIKE bench_update.budget INCLUDING ALL);
INSERT INTO bench_update.full_budget VALUES ('tenant-0', 0, 100);

-- The bucket that the client computes, under an advisory lock: lock, read, write, commit.
CREATE SCHEMA bench_advisory;
CREATE TABLE bench_advisory.bucket (
  subject   text   COLLATE "C" PRIMARY KEY,
  available bigint NOT NULL CHECK (available >= 0)
) WITH (fillfactor = 50);
INSERT INTO bench_advisory.bucket SELECT subject, available FROM bench_update.budget;

-- A batch's rows, and nothing else: the same CHECKs and indexes, no budget.
CREATE SCHEMA bench_insert;
CREATE TABLE bench_insert.reservation (LIKE limitledger.reservation INCLUDING ALL) WITH (fillfactor = 80);
