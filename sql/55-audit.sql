-- The ledger for people: public views, and the audit that proves it.

CREATE VIEW policies AS
SELECT p.generation, p.subject, p.route, p.stage, p.region, p.unit, p.refill_kind, p.cap,
       p.refill_units, p.refill_interval,
       coalesce(p.epoch_length::text, p.epoch_calendar || ' in ' || p.epoch_time_zone) AS epoch,
       p.largest_reservation, p.largest_outstanding, p.hold_ttl, p.execution_ttl,
       p.hard_execution_limit, p.maximum_overdraft, p.priority, p.weight, p.fairness_budget,
       p.emergency_mode, p.retention, p.published_at, p.active_at, p.retired_at, p.document,
       p.canary_percents[cardinality(p.canary_percents)] AS canary_percent, p.canary_by,
       p.emergency_share, p.shard_ttl
FROM policy p;

-- Each generation: how far it is, what it holds, and what a shadow would have decided.
CREATE VIEW rollout_status AS
SELECT p.generation, p.route, p.subject, p.stage,
       p.canary_percents[cardinality(p.canary_percents)] AS canary_percent, p.canary_by,
       coalesce(b.pairs, 0) AS pairs, coalesce(b.spent, 0) AS spent,
       coalesce(b.reserved, 0) AS left_reserved,
       coalesce(u.unknown, 0) AS left_unknown,
       coalesce(b.debt, 0) AS left_debt,
       s.would_admit_admitted, s.would_admit_refused, s.would_admit_unenforced,
       s.would_reject_admitted, s.would_reject_refused, s.would_reject_unenforced,
       coalesce(e.shards, 0) AS left_shards
FROM policy p
LEFT JOIN (SELECT u.generation, count(DISTINCT u.subject) AS pairs, sum(u.spent) AS spent, sum(u.reserved) AS reserved, sum(u.debt) AS debt
           FROM (SELECT h.generation, h.subject, h.spent, h.reserved, h.overdraft_issued - h.overdraft_repaid AS debt FROM head_budget h
                 UNION ALL
                 SELECT c.generation, c.subject, c.spent, c.reserved, c.overdraft_issued - c.overdraft_repaid FROM closed_budget c) u
           GROUP BY u.generation) b USING (generation)
LEFT JOIN (SELECT r.generation, sum(r.reserved_units) AS unknown FROM reservation r
           WHERE r.state = 'USAGE_UNKNOWN' GROUP BY r.generation) u USING (generation)
LEFT JOIN (SELECT e.generation, sum(e.allocated_units) AS shards FROM emergency_shard e
           WHERE e.settled_at IS NULL GROUP BY e.generation) e USING (generation)
LEFT JOIN (SELECT d.generation,
                  sum(d.would_admit_admitted) AS would_admit_admitted, sum(d.would_admit_refused) AS would_admit_refused,
                  sum(d.would_admit_unenforced) AS would_admit_unenforced,
                  sum(d.would_reject_admitted) AS would_reject_admitted, sum(d.would_reject_refused) AS would_reject_refused,
                  sum(d.would_reject_unenforced) AS would_reject_unenforced
           FROM shadow_budget d GROUP BY d.generation) s USING (generation)
ORDER BY p.route, p.subject, p.generation DESC;

-- The same for monitors, who are told of no subject and no route.
CREATE VIEW rollout_totals AS
SELECT s.generation, s.stage, s.canary_percent, s.canary_by, s.pairs, s.left_reserved, s.left_unknown, s.left_debt,
       s.would_admit_admitted, s.would_admit_refused, s.would_admit_unenforced,
       s.would_reject_admitted, s.would_reject_refused, s.would_reject_unenforced, s.left_shards
FROM rollout_status s
ORDER BY s.generation DESC;

-- As stored: refill that is due is counted in by get_budget(), and written by the next call.
CREATE VIEW budgets AS
SELECT b.subject, b.route, b.generation, b.epoch, true AS is_head,
       b.opening, b.minted, b.overdraft_issued,
       b.available, b.reserved, b.spent, b.retired_for_emergency, b.overdraft_repaid,
       b.overdraft_issued - b.overdraft_repaid AS debt, b.burned, b.deficit, b.purged_spent,
       b.carried, b.line, b.whole, b.follows_generation, b.follows_epoch,
       b.opened_at, NULL::timestamptz AS closed_at, b.frozen_at, b.frozen_reason,
       false AS follows_purged
FROM head_budget b
UNION ALL
SELECT b.subject, b.route, b.generation, b.epoch, false,
       b.opening, b.minted, b.overdraft_issued,
       b.available, b.reserved, b.spent, b.retired_for_emergency, b.overdraft_repaid,
       b.overdraft_issued - b.overdraft_repaid, b.burned, b.deficit, b.purged_spent,
       b.carried, b.line, b.whole, b.follows_generation, b.follows_epoch,
       b.opened_at, b.closed_at, NULL, NULL, b.follows_purged
FROM closed_budget b;

CREATE VIEW reservations AS
SELECT r.subject, r.reservation_id, r.route, r.generation, r.epoch, r.state,
       r.reserved_units, r.progress_units, r.actual_units, r.operation_id, r.priority, r.expires_at,
       'sha256:' || encode(r.request_digest, 'hex') AS request_digest,
       r.asked_units, r.reserved_at, r.started_at, r.unknown_at, r.ended_at,
       r.excess_units, r.excess_generation, r.excess_epoch,
       'sha256:' || encode(r.receipt_digest, 'hex') AS receipt_digest, r.receipt_source,
       r.claimed_by, r.claimed_until
FROM reservation r;

-- Usage that was never reserved, and units that operators granted.
CREATE VIEW unreserved_usage AS
SELECT o.bound_at AS recorded_at, o.subject, o.route, o.operation_id, o.usage_units,
       o.generation, o.epoch
FROM operation o WHERE o.usage_units IS NOT NULL;

CREATE VIEW capacity_grants AS
SELECT g.granted_at, g.actor, g.subject, g.route, g.grant_id, g.units, g.granted_units, g.reason
FROM capacity_grant g;

CREATE VIEW operator_actions AS
SELECT a.acted_at, a.actor, a.action, a.subject, a.route, a.reason
FROM operator_action a;

-- verify_conservation() proves the rules over the whole database, in one
-- snapshot: a row for each discrepancy, none when all is well.

CREATE FUNCTION verify_conservation(
  OUT rule text, OUT subject text, OUT route text, OUT generation bigint, OUT epoch timestamptz,
  OUT detail text)
RETURNS SETOF record
LANGUAGE sql STABLE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
WITH
-- the audit:
-- what each budget's reservations say
held AS (
  SELECT r.subject, r.route, r.generation, r.epoch,
         sum(r.reserved_units) FILTER (
           WHERE r.state IN ('RESERVED', 'EXPIRING', 'STARTED', 'USAGE_UNKNOWN')) AS reserved,
         sum(least(r.actual_units, r.reserved_units)) FILTER (
           WHERE r.actual_units IS NOT NULL) AS spent
  FROM reservation r WHERE r.route IS NOT NULL
  GROUP BY 1, 2, 3, 4),
excess AS (
  SELECT r.subject, r.route, r.excess_generation AS generation, r.excess_epoch AS epoch,
         sum(r.excess_units) AS spent
  FROM reservation r WHERE r.excess_units > 0
  GROUP BY 1, 2, 3, 4),
unreserved AS (
  SELECT o.subject, o.route, o.generation, o.epoch, sum(o.usage_units) AS spent
  FROM operation o WHERE o.usage_units IS NOT NULL
  GROUP BY 1, 2, 3, 4),
-- what left budgets in shards, and what the reports of a shard say in sum
retired AS (
  SELECT e.subject, e.route, e.generation, e.epoch, sum(e.allocated_units) AS units
  FROM emergency_shard e GROUP BY 1, 2, 3, 4),
reported AS (
  SELECT p.subject, p.shard_id, count(*) AS reports, max(p.sequence) AS sequence, sum(p.excess_units) AS excess,
         sum(p.confirmed_units) AS confirmed, sum(p.reminted_units) AS reminted
  FROM shard_report p GROUP BY 1, 2),
receipted AS (
  SELECT r.subject, r.shard_id, sum(r.actual_units) AS units, max(r.sequence) AS sequence
  FROM shard_receipt r GROUP BY 1, 2),
shard_excess AS (
  SELECT p.subject, p.route, p.generation, p.epoch, sum(p.excess_units) AS spent
  FROM shard_report p WHERE p.excess_units > 0
  GROUP BY 1, 2, 3, 4),
-- what the closed budgets of a pair add up to
older AS (
  SELECT c.subject, c.route, sum(c.overdraft_issued::numeric - c.overdraft_repaid) AS debt,
         sum(c.reserved) AS reserved
  FROM closed_budget c GROUP BY 1, 2),
-- each budget with the one that it took over from; the oldest one that a purge has
-- left says itself that this one is gone, so one that is missing is still found
chain AS (
  SELECT b.subject, b.route, b.generation, b.epoch, b.is_head, b.line, b.whole,
         b.carried, b.opening, b.follows_generation, b.follows_purged, b.opened_at, p.cap, p.refill_kind,
         f.subject IS NOT NULL AS found, f.line AS line_before, f.closed_at,
         f.closing_available, f.deficit AS deficit_before, q.cap AS cap_before,
         count(*) OVER (PARTITION BY b.subject, b.route, b.follows_generation, b.follows_epoch) AS twins
  FROM budgets b
  JOIN policy p ON p.generation = b.generation
  LEFT JOIN closed_budget f ON (f.subject, f.route, f.generation, f.epoch)
                             = (b.subject, b.route, b.follows_generation, b.follows_epoch)
  LEFT JOIN policy q ON q.generation = f.generation),
-- what the reservations against each shard of this gateway say
locally AS (
  SELECT r.subject, r.shard_id,
         sum(r.reserved_units) FILTER (WHERE r.ended_at IS NULL) AS reserved,
         sum(r.actual_units) AS used
  FROM shard_reservation r GROUP BY 1, 2)

SELECT 'B1', b.subject, b.route, b.generation, b.epoch, 'its generation has no policy'
FROM budgets b
WHERE NOT EXISTS (SELECT FROM policy p WHERE p.generation = b.generation)

UNION ALL
SELECT 'B6', b.subject, b.route, b.generation, b.epoch,
       format('its generation is retired, and %s units are reserved', b.reserved)
FROM budgets b JOIN policy p USING (generation)
WHERE p.stage = 'retired' AND b.reserved > 0

UNION ALL
SELECT 'C1', b.subject, b.route, b.generation, b.epoch,
       format('%s + %s + %s came, %s + %s + %s + %s + %s went', b.opening, b.minted, b.overdraft_issued,
              b.available, b.reserved, b.spent, b.retired_for_emergency, b.overdraft_repaid)
FROM budgets b
WHERE b.opening::numeric + b.minted + b.overdraft_issued
   <> b.available::numeric + b.reserved + b.spent + b.retired_for_emergency + b.overdraft_repaid
   OR least(b.opening, b.minted, b.overdraft_issued, b.available, b.reserved, b.spent,
            b.retired_for_emergency, b.overdraft_repaid, b.debt, b.deficit, b.burned) < 0

UNION ALL
SELECT 'C2', b.subject, b.route, b.generation, b.epoch,
       format('reserved is %s, its open reservations hold %s', b.reserved, coalesce(h.reserved, 0))
FROM budgets b LEFT JOIN held h USING (subject, route, generation, epoch)
WHERE b.reserved <> coalesce(h.reserved, 0)

UNION ALL
SELECT 'C2', b.subject, b.route, b.generation, b.epoch,
       format('spent is %s, its settlements say %s', b.spent,
              coalesce(h.spent, 0) + coalesce(x.spent, 0) + coalesce(u.spent, 0) + coalesce(s.spent, 0) + b.purged_spent)
FROM budgets b LEFT JOIN held h USING (subject, route, generation, epoch)
               LEFT JOIN excess x USING (subject, route, generation, epoch)
               LEFT JOIN unreserved u USING (subject, route, generation, epoch)
               LEFT JOIN shard_excess s USING (subject, route, generation, epoch)
WHERE b.spent <> coalesce(h.spent, 0) + coalesce(x.spent, 0) + coalesce(u.spent, 0) + coalesce(s.spent, 0) + b.purged_spent

UNION ALL
SELECT 'C2', h.subject, h.route, h.generation, h.epoch, 'reservations without their budget'
FROM (SELECT subject, route, generation, epoch FROM held
      UNION SELECT subject, route, generation, epoch FROM excess
      UNION SELECT subject, route, generation, epoch FROM unreserved
      UNION SELECT subject, route, generation, epoch FROM shard_excess
      UNION SELECT subject, route, generation, epoch FROM retired) h
WHERE NOT EXISTS (SELECT FROM budgets b WHERE (b.subject, b.route, b.generation, b.epoch)
                                            = (h.subject, h.route, h.generation, h.epoch))

UNION ALL
SELECT 'C2', c.subject, c.route, NULL, NULL, 'closed budgets without a head'
FROM older c
WHERE NOT EXISTS (SELECT FROM head_budget b WHERE (b.subject, b.route) = (c.subject, c.route))

UNION ALL
SELECT 'C2', b.subject, b.route, b.generation, b.epoch,
       format('the head counts %s reserved and %s owed in closed budgets, they have %s and %s',
              b.older_reserved, b.older_debt, coalesce(o.reserved, 0), coalesce(o.debt, 0))
FROM head_budget b LEFT JOIN older o USING (subject, route)
WHERE (b.older_reserved, b.older_debt) IS DISTINCT FROM (coalesce(o.reserved, 0), coalesce(o.debt, 0))

UNION ALL
SELECT 'C4', b.subject, b.route, b.generation, b.epoch,
       format('available is %s, the cap %s', b.available, p.cap)
FROM head_budget b JOIN policy p USING (generation)
WHERE b.available > p.cap

UNION ALL
SELECT 'E2', b.subject, b.route, b.generation, b.epoch,
       format('available is %s while the pair owes %s', b.available,
              b.overdraft_issued::numeric - b.overdraft_repaid + coalesce(o.debt, 0))
FROM head_budget b LEFT JOIN older o USING (subject, route)
WHERE b.available > 0 AND b.overdraft_issued::numeric - b.overdraft_repaid + coalesce(o.debt, 0) > 0

UNION ALL
SELECT 'B5', c.subject, c.route, c.generation, c.epoch,
       CASE WHEN c.follows_purged AND c.found THEN 'it says that the budget that it follows is purged'
            WHEN NOT c.found AND NOT c.follows_purged THEN 'the budget that it follows does not exist'
            WHEN c.twins > 1 THEN 'two budgets follow the same one'
            ELSE 'it opened before the one that it follows had closed' END
FROM chain c
WHERE c.follows_generation IS NOT NULL
  AND (c.found = c.follows_purged OR c.twins > 1 OR c.opened_at <> c.closed_at)

UNION ALL
SELECT 'B5', c.subject, c.route, min(c.generation), NULL, 'more than one budget follows none or a purged one'
FROM chain c
WHERE c.follows_generation IS NULL OR c.follows_purged
GROUP BY c.subject, c.route HAVING count(*) > 1

UNION ALL
SELECT 'B5', c.subject, c.route, c.generation, c.epoch,
       format('it opened with %s of %s carried, at a cap of %s', c.opening, c.carried, c.cap)
FROM chain c
WHERE c.opening > c.carried
   OR c.carried <> CASE
        WHEN NOT c.found THEN c.carried
        WHEN c.line <> c.line_before AND c.refill_kind = 'window' THEN c.cap
        WHEN c.line <> c.line_before THEN -1
        WHEN c.whole THEN greatest(0, least(c.cap, c.closing_available::numeric - c.deficit_before
                                                   + c.cap - c.cap_before))
        ELSE least(c.cap, c.closing_available) END
   OR (NOT c.found AND c.carried > c.cap)

UNION ALL
SELECT 'D5', r.subject, r.route, r.generation, r.epoch,
       format('operation %L of reservation %L is not bound to it', r.operation_id, r.reservation_id)
FROM reservation r LEFT JOIN operation o USING (subject, operation_id)
WHERE r.operation_id IS NOT NULL AND o.reservation_id IS DISTINCT FROM r.reservation_id

UNION ALL
SELECT 'D5', o.subject, NULL, NULL, NULL,
       format('operation %L is bound to reservation %L, which is not bound to it',
              o.operation_id, o.reservation_id)
FROM operation o LEFT JOIN reservation r USING (subject, reservation_id)
WHERE o.reservation_id IS NOT NULL AND r.operation_id IS DISTINCT FROM o.operation_id

UNION ALL
SELECT 'B6', e.subject, e.route, e.generation, e.epoch, format('its generation is retired, and shard %L is not settled', e.shard_id)
FROM emergency_shard e JOIN policy p USING (generation)
WHERE p.stage = 'retired' AND e.settled_at IS NULL

UNION ALL
SELECT 'G1', e.subject, e.route, e.generation, e.epoch,
       format('shard %L was allocated %s: %s available, %s reserved, %s spent, %s retired', e.shard_id,
              e.allocated_units, e.local_available, e.local_reserved, e.local_spent, e.local_retired)
FROM emergency_shard e
WHERE e.allocated_units <> e.local_available::numeric + e.local_reserved + e.local_spent + e.local_retired
   OR least(e.local_available, e.local_reserved, e.local_spent, e.local_retired, e.local_excess) < 0
   OR (e.sealed AND e.local_available > 0)

UNION ALL
SELECT 'G2', b.subject, b.route, b.generation, b.epoch,
       format('retired_for_emergency is %s, its shards were allocated %s', b.retired_for_emergency, coalesce(t.units, 0))
FROM budgets b LEFT JOIN retired t USING (subject, route, generation, epoch)
WHERE b.retired_for_emergency <> coalesce(t.units, 0)

UNION ALL
SELECT 'G6', e.subject, e.route, e.generation, e.epoch,
       format('shard %L has the figures of %s reports, there are %s', e.shard_id, e.sequence, coalesce(t.reports, 0))
FROM emergency_shard e LEFT JOIN reported t USING (subject, shard_id)
WHERE e.sequence <> coalesce(t.reports, 0) OR e.sequence <> coalesce(t.sequence, 0)
   OR e.local_excess <> coalesce(t.excess, 0) OR e.confirmed_units <> coalesce(t.confirmed, 0)
   OR e.reminted_units <> coalesce(t.reminted, 0)

UNION ALL
SELECT 'G6', e.subject, e.route, e.generation, e.epoch,
       format('shard %L: %s units confirmed, %s reminted, of %s retired', e.shard_id, e.confirmed_units,
              e.reminted_units, e.local_retired)
FROM emergency_shard e
WHERE e.reminted_units > e.confirmed_units OR e.confirmed_units > least(e.local_retired, e.allocated_units - e.local_spent)

UNION ALL
SELECT 'G6', e.subject, e.route, e.generation, e.epoch,
       format('shard %L: receipts say that %s units were used, its row %s, its reports %s', e.shard_id,
              coalesce(t.units, 0), e.receipted_units, e.local_spent + e.local_excess)
FROM emergency_shard e LEFT JOIN receipted t USING (subject, shard_id)
WHERE e.receipted_units <> coalesce(t.units, 0) OR e.receipted_units > e.local_spent + e.local_excess
   OR coalesce(t.sequence, 0) > e.sequence

UNION ALL
SELECT 'G6', t.subject, NULL, NULL, NULL, format('shard %L has reports or receipts, and does not exist', t.shard_id)
FROM (SELECT subject, shard_id FROM reported UNION SELECT subject, shard_id FROM receipted) t
WHERE NOT EXISTS (SELECT FROM emergency_shard e WHERE (e.subject, e.shard_id) = (t.subject, t.shard_id))

-- shards on this gateway
UNION ALL
SELECT 'G1', s.subject, s.route, s.generation, s.epoch,
       format('shard %L was given %s and has %s + %s + %s + %s', s.shard_id, s.allocated_units,
              s.local_available, s.local_reserved, s.local_spent, s.local_retired)
FROM local_shard s
WHERE s.allocated_units <> s.local_available::numeric + s.local_reserved + s.local_spent + s.local_retired
   OR least(s.local_available, s.local_reserved, s.local_spent, s.local_retired, s.local_excess) < 0
   OR (s.sealed_at IS NOT NULL AND s.local_available > 0)

UNION ALL
SELECT 'G1', s.subject, s.route, s.generation, s.epoch,
       format('shard %L has %s reserved, %s spent and %s in excess, its reservations say %s and %s', s.shard_id,
              s.local_reserved, s.local_spent, s.local_excess, coalesce(l.reserved, 0), coalesce(l.used, 0))
FROM local_shard s LEFT JOIN locally l USING (subject, shard_id)
WHERE s.local_reserved <> coalesce(l.reserved, 0)
   OR s.local_spent::numeric + s.local_excess <> coalesce(l.used, 0)

UNION ALL
SELECT 'G1', l.subject, NULL, NULL, NULL, format('reservations against shard %L, which is not here', l.shard_id)
FROM locally l
WHERE NOT EXISTS (SELECT FROM local_shard s WHERE (s.subject, s.shard_id) = (l.subject, l.shard_id))

UNION ALL
SELECT 'D5', r.subject, NULL, NULL, NULL,
       format('operation %L of reservation %L is not bound to it', r.operation_id, r.reservation_id)
FROM shard_reservation r LEFT JOIN shard_operation o USING (subject, operation_id)
WHERE r.operation_id IS NOT NULL AND o.reservation_id IS DISTINCT FROM r.reservation_id

UNION ALL
SELECT 'D5', o.subject, NULL, NULL, NULL,
       format('operation %L is bound to reservation %L, which is not bound to it',
              o.operation_id, o.reservation_id)
FROM shard_operation o LEFT JOIN shard_reservation r USING (subject, reservation_id)
WHERE r.operation_id IS DISTINCT FROM o.operation_id

UNION ALL
SELECT 'G5', s.subject, s.route, s.generation, s.epoch, format('shard %L is of another boot, and not sealed', s.shard_id)
FROM local_shard s
WHERE s.sealed_at IS NULL
  AND NOT EXISTS (SELECT FROM local_gateway g WHERE g.boot_epoch = s.boot_epoch)

UNION ALL
SELECT 'G6', s.subject, s.route, s.generation, s.epoch,
       format('shard %L counts %s reports, and %s are here', s.shard_id, s.last_sequence, coalesce(p.reports, 0))
FROM local_shard s
LEFT JOIN (SELECT p.subject, p.shard_id, count(*) AS reports, max(p.sequence) AS last
           FROM local_report p GROUP BY 1, 2) p USING (subject, shard_id)
WHERE s.last_sequence <> coalesce(p.reports, 0) OR s.last_sequence <> coalesce(p.last, 0)

UNION ALL
SELECT 'G6', r.subject, NULL, NULL, NULL,
       format('reservation %L was reported by report %s of shard %L, which is not here', r.reservation_id, r.sequence, r.shard_id)
FROM shard_reservation r
WHERE r.sequence IS NOT NULL
  AND NOT EXISTS (SELECT FROM local_report p WHERE (p.subject, p.shard_id, p.sequence) = (r.subject, r.shard_id, r.sequence))
-- :the audit
$$;

-- verify_subjects() is the same audit of some subjects: every rule is one of a
-- subject's own rows, so ranges that meet make a whole.  The Makefile puts the
-- lines between the two marks above in here.
CREATE FUNCTION verify_subjects(
  after_subject text DEFAULT NULL,   -- from the first one behind it; NULL: from the beginning
  last_subject text DEFAULT NULL,    -- up to this one; NULL: to the end
  OUT rule text, OUT subject text, OUT route text, OUT generation bigint, OUT epoch timestamptz,
  OUT detail text)
RETURNS SETOF record
LANGUAGE sql STABLE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
WITH
-- never NULL while there is a row: a range that an index knows at both ends
last_one AS (
  SELECT coalesce($2, greatest((SELECT max(r.subject) FROM @extschema@.reservation r),
                               (SELECT max(o.subject) FROM @extschema@.operation o),
                               (SELECT max(b.subject) FROM @extschema@.head_budget b),
                               (SELECT max(b.subject) FROM @extschema@.closed_budget b),
                               (SELECT max(e.subject) FROM @extschema@.emergency_shard e),
                               (SELECT max(s.subject) FROM @extschema@.local_shard s),
                               (SELECT max(r.subject) FROM @extschema@.shard_reservation r),
                               (SELECT max(o.subject) FROM @extschema@.shard_operation o),
                               (SELECT max(p.subject) FROM @extschema@.local_report p))) AS subject),
reservation AS NOT MATERIALIZED (
  SELECT * FROM @extschema@.reservation r
  WHERE r.subject > coalesce($1, '') AND r.subject <= (SELECT l.subject FROM last_one l)),
operation AS NOT MATERIALIZED (
  SELECT * FROM @extschema@.operation o
  WHERE o.subject > coalesce($1, '') AND o.subject <= (SELECT l.subject FROM last_one l)),
head_budget AS NOT MATERIALIZED (
  SELECT * FROM @extschema@.head_budget b
  WHERE b.subject > coalesce($1, '') AND b.subject <= (SELECT l.subject FROM last_one l)),
closed_budget AS NOT MATERIALIZED (
  SELECT * FROM @extschema@.closed_budget b
  WHERE b.subject > coalesce($1, '') AND b.subject <= (SELECT l.subject FROM last_one l)),
emergency_shard AS NOT MATERIALIZED (
  SELECT * FROM @extschema@.emergency_shard e
  WHERE e.subject > coalesce($1, '') AND e.subject <= (SELECT l.subject FROM last_one l)),
shard_report AS NOT MATERIALIZED (
  SELECT * FROM @extschema@.shard_report p
  WHERE p.subject > coalesce($1, '') AND p.subject <= (SELECT l.subject FROM last_one l)),
shard_receipt AS NOT MATERIALIZED (
  SELECT * FROM @extschema@.shard_receipt r
  WHERE r.subject > coalesce($1, '') AND r.subject <= (SELECT l.subject FROM last_one l)),
budgets AS NOT MATERIALIZED (
  SELECT * FROM @extschema@.budgets b
  WHERE b.subject > coalesce($1, '') AND b.subject <= (SELECT l.subject FROM last_one l)),
local_shard AS NOT MATERIALIZED (
  SELECT * FROM @extschema@.local_shard s
  WHERE s.subject > coalesce($1, '') AND s.subject <= (SELECT l.subject FROM last_one l)),
shard_reservation AS NOT MATERIALIZED (
  SELECT * FROM @extschema@.shard_reservation r
  WHERE r.subject > coalesce($1, '') AND r.subject <= (SELECT l.subject FROM last_one l)),
shard_operation AS NOT MATERIALIZED (
  SELECT * FROM @extschema@.shard_operation o
  WHERE o.subject > coalesce($1, '') AND o.subject <= (SELECT l.subject FROM last_one l)),
local_report AS NOT MATERIALIZED (
  SELECT * FROM @extschema@.local_report p
  WHERE p.subject > coalesce($1, '') AND p.subject <= (SELECT l.subject FROM last_one l)),
@audit@
$$;
