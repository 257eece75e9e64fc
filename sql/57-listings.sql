-- What needs a look, for people: one view a kind of problem, newest first.  age is
-- how long each has lasted; the clock is read once a listing, so that ages compare.
--
-- The views run with their owner's rights on tables.  The clock and get_budget() are
-- called as whoever reads them, so a reader needs EXECUTE on both: the auditor has it.

-- A state by a state, since each has an index of its own: what has ended, which is
-- nearly all, is not read.
CREATE VIEW open_reservations AS
SELECT r.subject, r.route, r.reservation_id, r.state, r.reserved_units, r.progress_units,
       r.operation_id, r.generation, r.epoch, r.reserved_at, r.started_at, r.expires_at,
       c.now - r.reserved_at AS age, r.expires_at - c.now AS time_left
FROM ledger_clock() AS c (now), reservation r
WHERE r.state = 'RESERVED' OR r.state = 'EXPIRING' OR r.state = 'STARTED' OR r.state = 'USAGE_UNKNOWN'
ORDER BY r.reserved_at DESC, r.subject, r.reservation_id;

CREATE VIEW unknown_usage AS
SELECT r.subject, r.route, r.reservation_id, r.operation_id, r.reserved_units,
       r.progress_units, r.generation, r.epoch, r.started_at, r.unknown_at, c.now - r.unknown_at AS age,
       r.claimed_by, r.claimed_until
FROM ledger_clock() AS c (now), reservation r
WHERE r.state = 'USAGE_UNKNOWN'
ORDER BY r.unknown_at DESC, r.subject, r.reservation_id;

-- RESERVED, or EXPIRING since a sweep claimed it: it holds until it is EXPIRED (D14).
CREATE VIEW expired_unstarted AS
SELECT r.subject, r.route, r.reservation_id, r.state, r.reserved_units,
       r.generation, r.epoch, r.reserved_at, r.expires_at, c.now - r.expires_at AS age
FROM ledger_clock() AS c (now), reservation r
WHERE (r.state = 'RESERVED' AND r.expires_at <= c.now) OR r.state = 'EXPIRING'
ORDER BY r.expires_at DESC, r.subject, r.reservation_id;

-- What a pair owes is shown as of now: refill that is due has paid its part (E2).
CREATE VIEW frozen_pairs AS
SELECT b.subject, b.route, b.frozen_reason, g.debt, g.outstanding, g.generation,
       b.frozen_at, c.now - b.frozen_at AS age
FROM ledger_clock() AS c (now), head_budget b, get_budget(b.subject, b.route) g
WHERE b.frozen_at IS NOT NULL
ORDER BY b.frozen_at DESC, b.subject, b.route;

CREATE VIEW frozen_routes AS
SELECT f.route, f.reason, f.actor, f.frozen_at, c.now - f.frozen_at AS age
FROM ledger_clock() AS c (now), frozen_route f
ORDER BY f.frozen_at DESC, f.route;

-- When a debt arose is not stored.  A refusal writes nothing, so seen_at of a pair
-- that owes is when one of its balances moved last.
CREATE VIEW pairs_in_debt AS
SELECT b.subject, b.route, g.debt, g.admission, g.outstanding, g.generation, g.reset_at,
       b.seen_at AS changed_at, c.now - b.seen_at AS age
FROM ledger_clock() AS c (now), head_budget b, get_budget(b.subject, b.route) g
WHERE (b.overdraft_issued > b.overdraft_repaid OR b.older_debt > 0) AND g.debt > 0
ORDER BY b.seen_at DESC, b.subject, b.route;

COMMENT ON VIEW open_reservations IS
'Every reservation that holds units (RESERVED, EXPIRING, STARTED, USAGE_UNKNOWN), the newest first (C2).';

COMMENT ON VIEW unknown_usage IS
'Every execution whose usage is unknown, the newest first: its units stay reserved until it is settled (D10).';

COMMENT ON VIEW expired_unstarted IS
'Every hold that has run out, was never started and is not given back yet, the newest first (D14).';

COMMENT ON VIEW frozen_pairs IS
'Every pair that a breach or an operator has frozen, the newest first, with what it owes now (D8).';

COMMENT ON VIEW frozen_routes IS
'Every route that an operator has frozen, the newest first (D8).';

COMMENT ON VIEW pairs_in_debt IS
'Every pair that owes units, refill that is due counted in; the one that changed last comes first (E1).';
