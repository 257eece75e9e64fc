-- What a monitor reads every few seconds: totals, ages and counters, each by an index or
-- from memory, whatever the ledger has stored.
--
-- ledger_totals and decision_counters show no subject, route or id, and pg_monitor reads
-- them; the rest names routes or pairs, and is the auditor's alone.

-- The oldest of each kind by the instant that matters.  Debt is as stored: refill that is
-- due has not paid its part yet; pairs_in_debt counts it in.
CREATE VIEW ledger_totals AS
SELECT h.reserved_at AS oldest_hold_at, c.now - h.reserved_at AS oldest_hold_age,
       greatest(c.now - h.expires_at, interval '0') AS hold_overdue,
       e.started_at AS oldest_execution_at, c.now - e.started_at AS oldest_execution_age,
       greatest(c.now - e.expires_at, interval '0') AS execution_overdue,
       u.unknown_at AS oldest_unknown_at, c.now - u.unknown_at AS oldest_unknown_age,
       d.pairs AS pairs_in_debt, d.units AS debt_units, f.pairs AS frozen_pairs,
       s.shards AS open_shards, s.units AS shard_units, s.overdue AS shard_overdue
FROM ledger_clock() AS c (now)
LEFT JOIN LATERAL (
  SELECT o.* FROM (
    (SELECT r.reserved_at, r.expires_at FROM reservation r WHERE r.state = 'RESERVED' ORDER BY r.expires_at LIMIT 1)
    UNION ALL
    (SELECT r.reserved_at, r.expires_at FROM reservation r WHERE r.state = 'EXPIRING' ORDER BY r.expires_at LIMIT 1)) o
  ORDER BY o.expires_at LIMIT 1) h ON true
LEFT JOIN LATERAL (
  SELECT r.started_at, r.expires_at FROM reservation r WHERE r.state = 'STARTED' ORDER BY r.expires_at LIMIT 1) e ON true
LEFT JOIN LATERAL (
  SELECT r.unknown_at FROM reservation r WHERE r.state = 'USAGE_UNKNOWN' ORDER BY r.unknown_at LIMIT 1) u ON true
CROSS JOIN LATERAL (
  SELECT count(*) AS pairs, coalesce(sum(b.overdraft_issued::numeric - b.overdraft_repaid + b.older_debt), 0) AS units
  FROM head_budget b WHERE b.overdraft_issued > b.overdraft_repaid OR b.older_debt > 0) d
CROSS JOIN LATERAL (
  SELECT count(*) AS pairs FROM head_budget b WHERE b.frozen_at IS NOT NULL) f
CROSS JOIN LATERAL (
  SELECT count(*) AS shards, coalesce(sum(e.allocated_units), 0) AS units,
         greatest(c.now - min(e.expires_at), interval '0') AS overdue
  FROM emergency_shard e WHERE e.settled_at IS NULL) s;

-- By route: what is unknown still, and what converged within the last day.  Routes are
-- stepped through in the index, one look each, and so is the oldest item of each.
CREATE VIEW unknown_usage_convergence AS
WITH RECURSIVE routes (route) AS (
  (SELECT r.route FROM reservation r WHERE r.unknown_at IS NOT NULL ORDER BY r.route LIMIT 1)
  UNION ALL
  SELECT (SELECT r.route FROM reservation r WHERE r.unknown_at IS NOT NULL AND r.route > p.route ORDER BY r.route LIMIT 1)
  FROM routes p WHERE p.route IS NOT NULL)
SELECT p.route, u.unknown_at AS oldest_unknown_at, c.now - u.unknown_at AS oldest_unknown_age,
       s.converged, s.attested, s.p50, s.p99, s.slowest
FROM ledger_clock() AS c (now), routes p
LEFT JOIN LATERAL (
  SELECT r.unknown_at FROM reservation r
  WHERE r.route = p.route AND r.ended_at IS NULL AND r.unknown_at IS NOT NULL
  ORDER BY r.ended_at, r.unknown_at LIMIT 1) u ON true
CROSS JOIN LATERAL (
  SELECT count(*) AS converged, count(*) FILTER (WHERE r.receipt_source = 'operator') AS attested,
         percentile_cont(0.5) WITHIN GROUP (ORDER BY r.ended_at - r.unknown_at) AS p50,
         percentile_cont(0.99) WITHIN GROUP (ORDER BY r.ended_at - r.unknown_at) AS p99,
         max(r.ended_at - r.unknown_at) AS slowest
  FROM reservation r
  WHERE r.route = p.route AND r.unknown_at IS NOT NULL AND r.ended_at > c.now - interval '1 day') s
WHERE p.route IS NOT NULL AND (u.unknown_at IS NOT NULL OR s.converged > 0)
ORDER BY p.route;

-- What the calls have answered in this database, counted in shared memory if the library
-- is preloaded: no row is written for it.  Without preload there is nothing.
CREATE FUNCTION count_decisions(
  OUT call text, OUT outcome text, OUT dimension text, OUT replayed boolean,
  OUT answers bigint, OUT since timestamptz)
RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_count_decisions';

CREATE VIEW decision_counters AS
SELECT d.call, d.outcome, d.dimension, d.replayed, d.answers, d.since
FROM count_decisions() d
ORDER BY d.call, d.outcome, d.dimension NULLS FIRST, d.replayed;

COMMENT ON VIEW ledger_totals IS
'The oldest hold, execution and unknown usage, and how many pairs owe or are frozen: one row without a name of anybody, cheap whatever is stored (C2, D8, D10, E1).';

COMMENT ON VIEW unknown_usage_convergence IS
'By route: the oldest usage that is unknown still, and how long what ended within the last day had been unknown (D10).';

COMMENT ON VIEW decision_counters IS
'How often each call has given each answer in this database since the server started, by outcome and dimension, replays apart; empty unless the library is preloaded (D3).';

COMMENT ON FUNCTION count_decisions IS
$$Counts what the calls have answered in this database since the server started; decision_counters shows it (D3).

An answer counts when the call gives it, also if its transaction is rolled back afterwards; each element of a batch is one; an error is none. Readers such as get_reservation are not counted. since: when the counting began, at the start of the server or after a crash. No row unless limitledger is in shared_preload_libraries.$$;
