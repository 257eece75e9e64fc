-- The yardstick: reserve_capacity as a good plpgsql author would write it.
--
-- Its tables are made from the extension's own, so that columns, CHECKs,
-- indexes and fill factors can't drift; guard triggers stay behind.  It starts
-- from the same rows.  It does the same work in the same order (lock, clock,
-- refill, duplicate, limits, insert, update, answer) and less of it: no epoch
-- or generation ever ends, no closed budget is owed for, no due hold is ended,
-- a refusal takes the lock.  Start and settle likewise, and they know no excess,
-- no report of unknown usage and no receipt of an operator.

CREATE SCHEMA bench_baseline;

CREATE TABLE bench_baseline.policy      (LIKE limitledger.policy      INCLUDING ALL);
CREATE TABLE bench_baseline.head_budget (LIKE limitledger.head_budget INCLUDING ALL);
CREATE TABLE bench_baseline.reservation (LIKE limitledger.reservation INCLUDING ALL);
CREATE TABLE bench_baseline.operation   (LIKE limitledger.operation   INCLUDING ALL);

-- LIKE leaves out the fill factors of tables.
DO $$
DECLARE
  original record;
BEGIN
  FOR original IN
    SELECT relname, array_to_string(reloptions, ', ') AS options
    FROM pg_class
    WHERE relnamespace = 'limitledger'::regnamespace
      AND relname IN ('policy', 'head_budget', 'reservation', 'operation') AND reloptions IS NOT NULL
  LOOP
    EXECUTE format('ALTER TABLE bench_baseline.%I SET (%s)', original.relname, original.options);
  END LOOP;
END;
$$;

-- Proof that both sides carry the same columns, constraints, indexes and fill factors.
DO $$
DECLARE
  difference text;
BEGIN
  WITH relation AS (
    SELECT c.oid, c.relname, c.relnamespace::regnamespace::text AS side, c.reloptions
    FROM pg_class c
    WHERE c.relnamespace IN ('limitledger'::regnamespace, 'bench_baseline'::regnamespace)
      AND c.relname IN ('policy', 'head_budget', 'reservation', 'operation')
  ), trait AS (
    SELECT side, relname, concat('options ', reloptions) AS what FROM relation
    UNION ALL
    SELECT side, relname, concat_ws(' ', 'column', a.attname, format_type(a.atttypid, a.atttypmod),
             a.attnotnull, a.attcollation::regcollation, pg_get_expr(d.adbin, d.adrelid))
    FROM relation
    JOIN pg_attribute a ON a.attrelid = relation.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
    UNION ALL
    SELECT side, relname, concat_ws(' ', 'constraint', pg_get_constraintdef(c.oid))
    FROM relation JOIN pg_constraint c ON c.conrelid = relation.oid
    UNION ALL
    SELECT side, relname, regexp_replace(pg_get_indexdef(i.indexrelid), 'INDEX \S+ ON \S+', 'index on')
    FROM relation JOIN pg_index i ON i.indrelid = relation.oid
  )
  SELECT string_agg(format('%s: %s', relname, what), E'\n') INTO difference
  FROM (SELECT relname, what, count(*) FILTER (WHERE side = 'limitledger') AS ours,
               count(*) FILTER (WHERE side = 'bench_baseline') AS theirs
        FROM trait GROUP BY relname, what) AS t
  WHERE ours <> theirs;
  IF difference IS NOT NULL THEN
    RAISE EXCEPTION 'the baseline''s tables differ from the extension''s' USING DETAIL = difference;
  END IF;
END;
$$;

INSERT INTO bench_baseline.policy      SELECT * FROM limitledger.policy;
INSERT INTO bench_baseline.head_budget SELECT * FROM limitledger.head_budget;
INSERT INTO bench_baseline.reservation SELECT * FROM limitledger.reservation;

CREATE FUNCTION bench_baseline.reserve_capacity(
  subject text, route text, reservation_id text, units bigint, digest bytea,
  region text DEFAULT NULL, estimator_digest bytea DEFAULT NULL,
  deadline timestamptz DEFAULT NULL, priority integer DEFAULT NULL,
  start_operation text DEFAULT NULL,
  OUT outcome text, OUT dimension text, OUT state text, OUT replayed boolean,
  OUT generation bigint, OUT epoch timestamptz,
  OUT reserved_units bigint, OUT actual_units bigint, OUT operation text,
  OUT expires_at timestamptz, OUT ledger_at timestamptz,
  OUT available bigint, OUT cap bigint, OUT reset_at timestamptz,
  OUT retry_after_ms bigint, OUT retry_kind text, OUT hard_limit bigint,
  OUT excess_units bigint, OUT excess_generation bigint, OUT excess_epoch timestamptz
)
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_column
<<here>>
DECLARE
  pair      record;
  stored    record;
  step_us   bigint;     -- of one refill interval
  accrued   bigint;     -- microseconds x units since the last refill
  minted    bigint := 0;
  remainder bigint;
  debt      bigint;
  missing   bigint;
BEGIN
  IF subject IS NULL OR route IS NULL OR reservation_id IS NULL OR units IS NULL OR digest IS NULL THEN
    RAISE EXCEPTION 'subject, route, reservation_id, units and digest must be given';
  END IF;
  IF units < 1 OR subject = '*' OR octet_length(digest) <> 32
     OR octet_length(subject)        NOT BETWEEN 1 AND 256
     OR octet_length(route)          NOT BETWEEN 1 AND 256
     OR octet_length(reservation_id) NOT BETWEEN 1 AND 256 THEN
    RAISE EXCEPTION 'an argument is out of range';
  END IF;
  IF start_operation IS NOT NULL THEN
    RAISE EXCEPTION 'the baseline starts nothing';
  END IF;

  -- The lock of the pair, and its policy.
  SELECT h.generation, h.epoch, h.available, h.reserved, h.older_reserved, h.remainder,
         h.overdraft_issued - h.overdraft_repaid AS debt,
         h.seen_at, h.accrued_at, h.frozen_at,
         p.stage, p.region, p.cap, p.refill_kind, p.refill_units, p.refill_interval,
         p.estimator_digests, p.largest_reservation, p.largest_outstanding,
         p.hold_ttl, p.hard_execution_limit, p.priority
    INTO pair
    FROM bench_baseline.head_budget h
    JOIN bench_baseline.policy p ON p.generation = h.generation
   WHERE h.subject = reserve_capacity.subject AND h.route = reserve_capacity.route
     FOR UPDATE OF h;

  IF NOT FOUND THEN
    outcome := 'REFUSED'; dimension := 'no_policy'; replayed := false;
    state := 'REQUESTED'; retry_kind := 'operator';
    RETURN;
  END IF;

  cap       := pair.cap;
  available := pair.available;
  remainder := pair.remainder;
  debt      := pair.debt;
  ledger_at := greatest(clock_timestamp(), pair.seen_at);

  -- Continuous refill pays debt first and stops at the cap.
  IF pair.refill_kind = 'continuous' THEN
    step_us := (date_part('epoch', pair.refill_interval) * 1000000)::bigint;
    missing := cap - available + debt;
    accrued := (date_part('epoch', ledger_at - pair.accrued_at) * 1000000)::bigint
               * pair.refill_units + remainder;
    IF accrued / step_us >= missing THEN
      minted := missing; remainder := 0;
    ELSE
      minted := accrued / step_us; remainder := accrued % step_us;
    END IF;
    available := available + minted - least(minted, debt);
  END IF;

  SELECT r.* INTO stored
    FROM bench_baseline.reservation r
   WHERE r.subject = reserve_capacity.subject AND r.reservation_id = reserve_capacity.reservation_id;

  IF FOUND THEN
    state := stored.state;
    IF stored.request_digest <> digest OR stored.route <> route OR stored.asked_units <> units THEN
      outcome := 'CONFLICT'; dimension := 'request'; replayed := false;
      cap := NULL; available := NULL;
      RETURN;
    END IF;
    outcome           := 'ACCEPTED';
    replayed          := true;
    generation        := stored.generation;
    epoch             := stored.epoch;
    reserved_units    := stored.reserved_units;
    actual_units      := stored.actual_units;
    operation         := stored.operation_id;
    expires_at        := stored.expires_at;
    hard_limit        := (SELECT p.hard_execution_limit FROM bench_baseline.policy p
                          WHERE p.generation = stored.generation);
    excess_units      := CASE WHEN stored.actual_units IS NOT NULL THEN stored.excess_units END;
    excess_generation := stored.excess_generation;
    excess_epoch      := stored.excess_epoch;
    reset_at := ledger_at + pair.refill_interval * ((cap - available)::float8 / pair.refill_units);
    RETURN;
  END IF;

  generation := pair.generation;
  epoch      := pair.epoch;
  replayed   := false;
  dimension := CASE
    WHEN pair.region <> '*' AND pair.region IS DISTINCT FROM region THEN 'region'
    WHEN pair.estimator_digests <> '{}'
     AND estimator_digest = ANY (pair.estimator_digests) IS NOT TRUE THEN 'estimator'
    WHEN deadline <= ledger_at THEN 'deadline'
    WHEN units > pair.largest_reservation THEN 'largest_reservation'
    WHEN units > cap THEN 'cap'
    WHEN pair.stage <> 'active' THEN 'draining'
    WHEN pair.frozen_at IS NOT NULL THEN 'frozen'
    WHEN pair.reserved + pair.older_reserved + units > pair.largest_outstanding THEN 'largest_outstanding'
    WHEN debt > minted THEN 'debt'
    WHEN units > available THEN 'available'
  END;

  IF dimension IS NOT NULL THEN
    outcome := 'REFUSED'; state := 'REQUESTED';
    retry_kind := CASE
      WHEN dimension IN ('debt', 'available') AND pair.refill_kind = 'continuous' THEN 'refill'
      WHEN dimension IN ('debt', 'available', 'largest_outstanding') THEN 'release'
      WHEN dimension IN ('draining', 'frozen') THEN 'operator'
      ELSE 'never'
    END;
    IF retry_kind = 'refill' THEN
      retry_after_ms := ceil(((units + debt - available)::float8 * step_us - remainder)
                             / pair.refill_units / 1000);
    END IF;
  ELSE
    outcome := 'ACCEPTED'; state := 'RESERVED';
    reserved_units := units;
    expires_at     := ledger_at + pair.hold_ttl;
    hard_limit     := pair.hard_execution_limit;
    available      := available - units;

    INSERT INTO bench_baseline.reservation
      (subject, reservation_id, route, generation, epoch, state, asked_units, reserved_units,
       request_digest, priority, expires_at, reserved_at)
    VALUES
      (reserve_capacity.subject, reserve_capacity.reservation_id, reserve_capacity.route,
       here.pair.generation, here.pair.epoch, 'RESERVED', reserve_capacity.units, reserve_capacity.units,
       reserve_capacity.digest, coalesce(reserve_capacity.priority, here.pair.priority),
       reserve_capacity.expires_at, reserve_capacity.ledger_at);

    UPDATE bench_baseline.head_budget h
       SET available        = reserve_capacity.available,
           reserved         = h.reserved + reserve_capacity.units,
           minted           = h.minted + here.minted,
           overdraft_repaid = h.overdraft_repaid + here.debt,
           remainder        = here.remainder,
           seen_at          = reserve_capacity.ledger_at,
           accrued_at       = reserve_capacity.ledger_at
     WHERE h.subject = reserve_capacity.subject AND h.route = reserve_capacity.route;
  END IF;

  reset_at := ledger_at + pair.refill_interval * ((cap - available)::float8 / pair.refill_units);
END;
$$;

CREATE FUNCTION bench_baseline.start_reservation(
  subject text, reservation_id text, operation_id text,
  OUT outcome text, OUT dimension text, OUT state text, OUT replayed boolean,
  OUT generation bigint, OUT epoch timestamptz,
  OUT reserved_units bigint, OUT actual_units bigint, OUT operation text,
  OUT expires_at timestamptz, OUT ledger_at timestamptz,
  OUT available bigint, OUT cap bigint, OUT reset_at timestamptz,
  OUT retry_after_ms bigint, OUT retry_kind text, OUT hard_limit bigint,
  OUT excess_units bigint, OUT excess_generation bigint, OUT excess_epoch timestamptz
)
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_column
<<here>>
DECLARE
  stored record;
  bound  text;
BEGIN
  IF subject IS NULL OR reservation_id IS NULL OR operation_id IS NULL THEN
    RAISE EXCEPTION 'subject, reservation_id and operation_id must be given';
  END IF;

  SELECT r.route, r.generation, r.epoch, r.state, r.reserved_units, r.operation_id, r.expires_at,
         p.execution_ttl, p.hard_execution_limit
    INTO stored
    FROM bench_baseline.reservation r
    JOIN bench_baseline.policy p ON p.generation = r.generation
   WHERE r.subject = start_reservation.subject AND r.reservation_id = start_reservation.reservation_id
     FOR UPDATE OF r;

  IF NOT FOUND THEN
    outcome := 'UNKNOWN'; dimension := 'reservation'; replayed := false; state := 'RESERVATION_UNKNOWN';
    RETURN;
  END IF;

  ledger_at      := clock_timestamp();
  state          := stored.state;
  replayed       := stored.operation_id IS NOT NULL;
  generation     := stored.generation;
  epoch          := stored.epoch;
  reserved_units := stored.reserved_units;
  operation      := stored.operation_id;
  expires_at     := stored.expires_at;
  hard_limit     := stored.hard_execution_limit;

  IF replayed THEN
    outcome := CASE WHEN operation = operation_id THEN 'ACCEPTED' ELSE 'CONFLICT' END;
    dimension := CASE WHEN operation <> operation_id THEN 'operation' END;
    RETURN;
  END IF;
  IF state <> 'RESERVED' OR expires_at <= ledger_at THEN
    outcome := 'REFUSED'; dimension := 'expired'; retry_kind := 'never';
    RETURN;
  END IF;

  INSERT INTO bench_baseline.operation (subject, operation_id, reservation_id, bound_at)
  VALUES (start_reservation.subject, start_reservation.operation_id, start_reservation.reservation_id,
          start_reservation.ledger_at)
  ON CONFLICT DO NOTHING
  RETURNING operation.operation_id INTO bound;
  IF bound IS NULL THEN
    outcome := 'CONFLICT'; dimension := 'operation';
    RETURN;
  END IF;

  outcome := 'ACCEPTED'; state := 'STARTED';
  operation  := operation_id;
  expires_at := ledger_at + stored.execution_ttl;
  UPDATE bench_baseline.reservation r
     SET state        = 'STARTED',
         operation_id = start_reservation.operation_id,
         started_at   = start_reservation.ledger_at,
         expires_at   = start_reservation.expires_at
   WHERE r.subject = start_reservation.subject AND r.reservation_id = start_reservation.reservation_id;
END;
$$;

CREATE FUNCTION bench_baseline.settle_usage(
  subject text, reservation_id text, operation_id text, actual bigint,
  OUT outcome text, OUT dimension text, OUT state text, OUT replayed boolean,
  OUT generation bigint, OUT epoch timestamptz,
  OUT reserved_units bigint, OUT actual_units bigint, OUT operation text,
  OUT expires_at timestamptz, OUT ledger_at timestamptz,
  OUT available bigint, OUT cap bigint, OUT reset_at timestamptz,
  OUT retry_after_ms bigint, OUT retry_kind text, OUT hard_limit bigint,
  OUT excess_units bigint, OUT excess_generation bigint, OUT excess_epoch timestamptz
)
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_column
<<here>>
DECLARE
  pair      record;
  stored    record;
  step_us   bigint;
  accrued   bigint;
  minted    bigint := 0;
  remainder bigint;
  missing   bigint;
BEGIN
  IF subject IS NULL OR reservation_id IS NULL OR operation_id IS NULL OR actual IS NULL OR actual < 0 THEN
    RAISE EXCEPTION 'subject, reservation_id, operation_id and actual must be given';
  END IF;

  -- The lock of the pair comes first, then that of the reservation.
  SELECT h.available, h.remainder, h.seen_at, h.accrued_at, h.subject, h.route,
         p.cap, p.refill_kind, p.refill_units, p.refill_interval
    INTO pair
    FROM bench_baseline.reservation r
    JOIN bench_baseline.head_budget h ON h.subject = r.subject AND h.route = r.route
    JOIN bench_baseline.policy p ON p.generation = h.generation
   WHERE r.subject = settle_usage.subject AND r.reservation_id = settle_usage.reservation_id
     FOR UPDATE OF h;
  SELECT r.* INTO stored
    FROM bench_baseline.reservation r
   WHERE r.subject = settle_usage.subject AND r.reservation_id = settle_usage.reservation_id
     FOR UPDATE OF r;

  IF NOT FOUND THEN
    outcome := 'UNKNOWN'; dimension := 'reservation'; replayed := false; state := 'RESERVATION_UNKNOWN';
    RETURN;
  END IF;

  ledger_at      := greatest(clock_timestamp(), pair.seen_at);
  state          := stored.state;
  replayed       := stored.actual_units IS NOT NULL;
  generation     := stored.generation;
  epoch          := stored.epoch;
  reserved_units := stored.reserved_units;
  actual_units   := stored.actual_units;
  operation      := stored.operation_id;
  expires_at     := stored.expires_at;
  available      := pair.available;
  cap            := pair.cap;

  IF operation IS DISTINCT FROM operation_id THEN
    outcome := 'CONFLICT'; dimension := 'operation';
    RETURN;
  END IF;
  IF replayed THEN
    outcome := CASE WHEN actual_units = actual THEN 'ACCEPTED' ELSE 'CONFLICT' END;
    dimension := CASE WHEN actual_units <> actual THEN 'figures' END;
    RETURN;
  END IF;
  IF actual > reserved_units THEN
    RAISE EXCEPTION 'the baseline knows no excess';
  END IF;

  -- What comes back above the cap is minted no more: the refill of before is burned.
  remainder := pair.remainder;
  IF pair.refill_kind = 'continuous' THEN
    step_us := (date_part('epoch', pair.refill_interval) * 1000000)::bigint;
    missing := cap - available - (reserved_units - actual);
    accrued := (date_part('epoch', ledger_at - pair.accrued_at) * 1000000)::bigint
               * pair.refill_units + remainder;
    IF accrued / step_us >= missing THEN
      minted := missing; remainder := 0;
    ELSE
      minted := accrued / step_us; remainder := accrued % step_us;
    END IF;
  END IF;

  outcome := 'ACCEPTED'; state := 'SETTLED';
  actual_units := actual;
  excess_units := 0;
  available    := available + minted + reserved_units - actual;

  UPDATE bench_baseline.reservation r
     SET state        = 'SETTLED',
         actual_units = settle_usage.actual,
         ended_at     = settle_usage.ledger_at,
         receipt_source = 'executor'
   WHERE r.subject = settle_usage.subject AND r.reservation_id = settle_usage.reservation_id;
  UPDATE bench_baseline.head_budget h
     SET available  = settle_usage.available,
         reserved   = h.reserved - settle_usage.reserved_units,
         spent      = h.spent + settle_usage.actual,
         minted     = h.minted + here.minted,
         burned     = h.burned + greatest(- here.minted, 0),
         remainder  = here.remainder,
         seen_at    = settle_usage.ledger_at,
         accrued_at = settle_usage.ledger_at
   WHERE h.subject = here.pair.subject AND h.route = here.pair.route;
  reset_at := ledger_at + pair.refill_interval * ((cap - available)::float8 / pair.refill_units);
END;
$$;
