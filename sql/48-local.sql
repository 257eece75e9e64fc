-- The gateway's side of emergency shards: what was given is spent here, and nothing
-- else (G4, G5).  The life of a reservation against a shard is C, as in 40-calls.sql; what
-- opens envelopes and cuts reports is written here.

-- ---- Guards (C3) -------------------------------------------------------------

CREATE FUNCTION guard_local_gateway() RETURNS trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'limitledger_guard_local_gateway';
CREATE FUNCTION guard_local_shard() RETURNS trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'limitledger_guard_local_shard';
CREATE FUNCTION guard_shard_reservation() RETURNS trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'limitledger_guard_shard_reservation';
CREATE FUNCTION guard_local_record() RETURNS trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'limitledger_guard_local_record';

-- Where rows are inserted in SQL, the insertion is noted, to be as durable as a call (F4).
CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON local_gateway
  FOR EACH ROW EXECUTE FUNCTION guard_local_gateway();
CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON local_shard
  FOR EACH ROW EXECUTE FUNCTION guard_local_shard();
CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON local_report
  FOR EACH ROW EXECUTE FUNCTION guard_local_record();
CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON shard_reservation
  FOR EACH ROW EXECUTE FUNCTION guard_shard_reservation();
CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON shard_operation
  FOR EACH ROW EXECUTE FUNCTION guard_local_record();

CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON local_gateway
  FOR EACH STATEMENT EXECUTE FUNCTION guard_local_gateway();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON local_shard
  FOR EACH STATEMENT EXECUTE FUNCTION guard_local_shard();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON local_report
  FOR EACH STATEMENT EXECUTE FUNCTION guard_local_record();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON shard_reservation
  FOR EACH STATEMENT EXECUTE FUNCTION guard_shard_reservation();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON shard_operation
  FOR EACH STATEMENT EXECUTE FUNCTION guard_local_record();

-- ---- Reservations against shards ----------------------------------------------
-- A receipt's generation, epoch and hard_limit are the shard's, available is what that
-- has left, cap what it was given.

CREATE FUNCTION shard_reserve(
  subject text, route text, reservation_id text, units bigint, digest bytea,
  deadline timestamptz DEFAULT NULL, start_operation text DEFAULT NULL,
@receipt@
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_shard_reserve';

CREATE FUNCTION shard_start(
  subject text, reservation_id text, operation_id text,
@receipt@
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_shard_start';

CREATE FUNCTION shard_settle(
  subject text, reservation_id text, operation_id text, actual bigint,
  receipt_digest bytea DEFAULT NULL, source text DEFAULT 'executor',
@receipt@
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_shard_settle';

CREATE FUNCTION shard_release(
  subject text, reservation_id text,
@receipt@
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_shard_release';

CREATE FUNCTION shard_report_unknown(
  subject text, reservation_id text, operation_id text,
@receipt@
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_shard_report_unknown';

CREATE FUNCTION shard_reserve_batch(
  subjects text[], routes text[], reservation_ids text[], units bigint[], digests bytea[],
  deadlines timestamptz[] DEFAULT NULL, start_operations text[] DEFAULT NULL,
  OUT element integer,               -- from 1
@receipt@
) RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_shard_reserve_batch';

CREATE FUNCTION shard_settle_batch(
  subjects text[], reservation_ids text[], operation_ids text[], actuals bigint[],
  receipt_digests bytea[] DEFAULT NULL, sources text[] DEFAULT NULL,
  OUT element integer,
@receipt@
) RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_shard_settle_batch';

-- ---- Steps ----------------------------------------------------------------------

-- local_boot begins a boot if the server was started since the last one, or in any case.
CREATE FUNCTION local_boot(
  renew boolean, OUT boot_epoch uuid,
  OUT sealed bigint, OUT unknown bigint  -- shards and reservations of the boot before, by this call
) LANGUAGE C VOLATILE STRICT
AS 'MODULE_PATHNAME', 'limitledger_local_boot';

-- local_begin checks what names a shard, begins a boot if one is due, and
-- gives the subject to go on with: an empty one, if the login may not name this one.
CREATE FUNCTION local_begin(subject text, shard_id text) RETURNS text
LANGUAGE C VOLATILE
AS 'MODULE_PATHNAME', 'limitledger_local_begin';

-- ---- The gateway and its boots (G5) -----------------------------------------------

CREATE FUNCTION open_gateway(
  gateway text,
  OUT outcome text,                  -- ACCEPTED
  OUT already_open boolean,          -- true: it was this gateway before
  OUT boot_epoch uuid                -- to be announced to the ledger
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  is_gateway text;
BEGIN
  PERFORM @extschema@.binding_refuse('open_gateway()');
  IF open_gateway.gateway IS NULL OR octet_length(open_gateway.gateway) NOT BETWEEN 1 AND 256 THEN
    RAISE EXCEPTION USING
      ERRCODE = CASE WHEN open_gateway.gateway IS NULL THEN 'LL101' ELSE 'LL102' END,
      MESSAGE = CASE WHEN open_gateway.gateway IS NULL THEN 'gateway must not be null'
                     ELSE 'gateway must have 1 to 256 bytes' END,
      DETAIL = 'It is the id by which the ledger knows this gateway.',
      HINT = 'Give each gateway an id of its own, and the same one to register_gateway in the ledger.';
  END IF;

  -- The epoch that is drawn here is replaced by the boot below: all boots begin alike.
  INSERT INTO @extschema@.local_gateway (gateway, boot_epoch, server_started, database_oid, relation_oid, booted_at)
  VALUES (open_gateway.gateway, gen_random_uuid(), '-infinity', 0, 0, @extschema@.ledger_clock())
  ON CONFLICT (only_one) DO NOTHING;
  already_open := NOT FOUND;
  SELECT g.gateway INTO is_gateway FROM @extschema@.local_gateway AS g;
  IF is_gateway IS DISTINCT FROM open_gateway.gateway THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL404', MESSAGE = 'gateway is not the one that this database is already',
      DETAIL = 'A database is one gateway for good: the ledger counts its fences.',
      HINT = 'Open another gateway in a database of its own.';
  END IF;
  SELECT b.boot_epoch INTO open_gateway.boot_epoch FROM @extschema@.local_boot(false) AS b;
  outcome := 'ACCEPTED';
END;
$$;

CREATE FUNCTION renew_boot(
  reason text,
  OUT outcome text,                  -- ACCEPTED
  OUT boot_epoch uuid,
  OUT sealed bigint,                 -- shards of the boot before
  OUT unknown bigint                 -- reservations that it held
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
#variable_conflict use_column
BEGIN
  PERFORM @extschema@.binding_refuse('renew_boot()');
  PERFORM @extschema@.policy_check_reason(renew_boot.reason, 'renew_boot');
  SELECT b.boot_epoch, b.sealed, b.unknown
  INTO renew_boot.boot_epoch, renew_boot.sealed, renew_boot.unknown
  FROM @extschema@.local_boot(true) AS b;
  PERFORM @extschema@.policy_record_route('renew_boot', '*', renew_boot.reason);
  outcome := 'ACCEPTED';
END;
$$;

-- ---- Shards: accepted, sealed ------------------------------------------------------

CREATE FUNCTION accept_emergency_shard(
  envelope text,
  OUT outcome text,                  -- ACCEPTED, REFUSED, CONFLICT
  OUT dimension text,
  OUT detail text,                   -- of an envelope that does not open: why, and the member
  OUT replayed boolean,
  OUT shard_id text, OUT subject text, OUT route text, OUT units bigint, OUT fence bigint,
  OUT expires_at timestamptz
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  here  record;
  shard record;
  stored record;
  now   timestamptz;
BEGIN
  PERFORM @extschema@.binding_refuse('accept_emergency_shard()');
  IF accept_emergency_shard.envelope IS NULL THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL101', MESSAGE = 'envelope must not be null',
      DETAIL = 'A shard comes in the envelope that the ledger signed.',
      HINT = 'Pass what sign_emergency_shard returned, as it is.';
  END IF;
  outcome := 'REFUSED';
  replayed := false;

  -- The boot first; then nobody begins another one until this has committed.
  PERFORM @extschema@.local_boot(false);
  SELECT g.gateway, g.boot_epoch, g.last_fence INTO here
  FROM @extschema@.local_gateway AS g FOR NO KEY UPDATE;
  IF @extschema@.recovery_look() <> 'normal' THEN
    dimension := 'recovery';
    RETURN;
  END IF;
  SELECT o.* INTO shard FROM @extschema@.open_emergency_shard(accept_emergency_shard.envelope) AS o;
  IF shard.problem IS NOT NULL THEN
    dimension := 'envelope';
    detail := concat_ws(': ', shard.problem, shard.member);
    RETURN;
  END IF;
  shard_id := shard.shard_id;
  subject := shard.subject;
  route := shard.route;
  units := shard.allocated_units;
  fence := shard.fence;
  expires_at := shard.expires_at;

  -- Accepted before, it is a replay whatever has become of it and of its boot.
  SELECT s.* INTO stored FROM @extschema@.local_shard AS s
  WHERE (s.subject, s.shard_id) = (shard.subject, shard.shard_id);
  IF FOUND THEN
    replayed := (stored.route, stored.generation, stored.epoch, stored.boot_epoch, stored.fence,
                 stored.allocated_units, stored.issued_at, stored.expires_at)
              = (shard.route, shard.generation, shard.epoch, shard.boot_epoch, shard.fence,
                 shard.allocated_units, shard.issued_at, shard.expires_at)
            AND shard.gateway = here.gateway;
    outcome := CASE WHEN replayed THEN 'ACCEPTED' ELSE 'CONFLICT' END;
    dimension := CASE WHEN NOT replayed THEN 'shard' END;
    PERFORM @extschema@.envelope_confirm();
    RETURN;
  END IF;

  now := greatest(@extschema@.ledger_clock(), shard.issued_at);
  dimension := CASE
    WHEN shard.gateway <> here.gateway THEN 'gateway'
    WHEN shard.boot_epoch <> here.boot_epoch THEN 'boot_epoch'
    WHEN shard.fence <= here.last_fence THEN 'fence'
    WHEN shard.expires_at <= now THEN 'shard_expired' END;
  IF dimension IS NOT NULL THEN
    RETURN;
  END IF;

  INSERT INTO @extschema@.local_shard (subject, shard_id, route, generation, epoch, boot_epoch, fence,
    allocated_units, largest_reservation, hard_execution_limit, hold_ttl, execution_ttl,
    issued_at, expires_at, accepted_at, local_available, seen_at)
  VALUES (shard.subject, shard.shard_id, shard.route, shard.generation, shard.epoch, shard.boot_epoch, shard.fence,
    shard.allocated_units, shard.largest_reservation, shard.hard_execution_limit, shard.hold_ttl, shard.execution_ttl,
    shard.issued_at, shard.expires_at, now, shard.allocated_units, now);
  UPDATE @extschema@.local_gateway AS g SET last_fence = shard.fence;
  outcome := 'ACCEPTED';
END;
$$;

CREATE FUNCTION seal_shard(
  subject text, shard_id text,
  OUT outcome text, OUT dimension text, OUT replayed boolean,
  OUT retired_units bigint,          -- by this call
  OUT local_reserved bigint,         -- still open, or of unknown usage
  OUT sealed_by text,                -- operator, expiry, boot
  OUT sealed_at timestamptz
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_seal_shard';

CREATE FUNCTION sweep_shards(
  batch_limit integer,
  OUT expired bigint,                -- holds that were given back
  OUT unknown bigint,                -- executions past their deadline, and what a boot ended
  OUT sealed bigint                  -- shards
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_sweep_shards';

-- ---- Reports (G6, G8) ----------------------------------------------------------------
-- What is signed was committed before, so cutting a report and signing it are two calls.

CREATE FUNCTION cut_shard_report(
  subject text, shard_id text,
  OUT outcome text, OUT dimension text,
  OUT replayed boolean,              -- true: nothing has changed since that report
  OUT sequence bigint,
  OUT receipts bigint,               -- of reservations that ended, in this report
  OUT more boolean,                  -- true: there are others, for the next report
  OUT sealed boolean
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  about CONSTANT text := @extschema@.local_begin(cut_shard_report.subject, cut_shard_report.shard_id);
  at_most CONSTANT bigint := 1000;   -- receipts of one report
  shard record;
BEGIN
  replayed := false;
  IF @extschema@.recovery_look() <> 'normal' THEN
    outcome := 'REFUSED';
    dimension := 'recovery';
    RETURN;
  END IF;
  -- Whoever ends a reservation holds this lock, so figures and receipts agree.
  SELECT s.* INTO shard FROM @extschema@.local_shard AS s
  WHERE (s.subject, s.shard_id) = (about, cut_shard_report.shard_id) FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    outcome := 'UNKNOWN';
    dimension := 'emergency_shard';
    RETURN;
  END IF;
  outcome := 'ACCEPTED';
  sequence := shard.last_sequence + 1;
  sealed := shard.sealed_at IS NOT NULL;

  UPDATE @extschema@.shard_reservation AS r SET sequence = cut_shard_report.sequence
  WHERE r.subject = about AND r.reservation_id IN (
    SELECT n.reservation_id FROM @extschema@.shard_reservation AS n
    WHERE (n.subject, n.shard_id) = (about, cut_shard_report.shard_id) AND n.ended_at IS NOT NULL AND n.sequence IS NULL
    ORDER BY n.reservation_id LIMIT at_most);
  GET DIAGNOSTICS receipts = ROW_COUNT;
  more := receipts = at_most AND EXISTS (
    SELECT FROM @extschema@.shard_reservation AS n
    WHERE (n.subject, n.shard_id) = (about, cut_shard_report.shard_id) AND n.ended_at IS NOT NULL AND n.sequence IS NULL);

  IF receipts = 0 AND EXISTS (
    SELECT FROM @extschema@.local_report AS p
    WHERE (p.subject, p.shard_id, p.sequence) = (about, cut_shard_report.shard_id, shard.last_sequence)
      AND (p.sealed, p.local_available, p.local_reserved, p.local_spent, p.local_retired, p.local_excess)
        = (cut_shard_report.sealed, shard.local_available, shard.local_reserved, shard.local_spent,
           shard.local_retired, shard.local_excess))
  THEN
    replayed := true;
    sequence := shard.last_sequence;
    SELECT count(*) INTO receipts FROM @extschema@.shard_reservation AS r
    WHERE (r.subject, r.shard_id, r.sequence) = (about, cut_shard_report.shard_id, shard.last_sequence);
    PERFORM @extschema@.envelope_confirm();
    RETURN;
  END IF;

  INSERT INTO @extschema@.local_report (subject, shard_id, sequence, cut_at, cut_by, sealed,
    local_available, local_reserved, local_spent, local_retired, local_excess)
  VALUES (about, cut_shard_report.shard_id, cut_shard_report.sequence,
    greatest(@extschema@.ledger_clock(), shard.seen_at), pg_current_xact_id(), cut_shard_report.sealed,
    shard.local_available, shard.local_reserved, shard.local_spent, shard.local_retired, shard.local_excess);
  UPDATE @extschema@.local_shard AS s SET last_sequence = cut_shard_report.sequence
  WHERE (s.subject, s.shard_id) = (about, cut_shard_report.shard_id);
END;
$$;

CREATE FUNCTION report_shard(
  subject text, shard_id text,
  INOUT sequence bigint DEFAULT NULL,  -- NULL: the newest that is committed
  OUT outcome text, OUT dimension text,
  OUT kid text, OUT envelope text
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  about CONSTANT text := @extschema@.envelope_subject(report_shard.subject, report_shard.shard_id);
  this CONSTANT xid8 := pg_current_xact_id_if_assigned();
  cut record;
BEGIN
  outcome := 'REFUSED';
  IF @extschema@.recovery_look() <> 'normal' THEN
    dimension := 'recovery';
    RETURN;
  END IF;
  IF NOT EXISTS (SELECT FROM @extschema@.local_shard AS s
                 WHERE (s.subject, s.shard_id) = (about, report_shard.shard_id))
  THEN
    outcome := 'UNKNOWN';
    dimension := 'emergency_shard';
    RETURN;
  END IF;
  -- A row of this transaction is not committed, and may never be (G8).
  SELECT p.sequence, p.cut_by IS NOT DISTINCT FROM this AS mine INTO cut FROM @extschema@.local_report AS p
  WHERE (p.subject, p.shard_id) = (about, report_shard.shard_id)
    AND (p.sequence = report_shard.sequence OR report_shard.sequence IS NULL AND p.cut_by IS DISTINCT FROM this)
  ORDER BY p.sequence DESC LIMIT 1;
  IF NOT FOUND OR cut.mine THEN
    dimension := 'not_committed';
    RETURN;
  END IF;
  PERFORM @extschema@.envelope_confirm();
  SELECT s.kid, s.envelope INTO report_shard.kid, report_shard.envelope
  FROM @extschema@.seal_shard_report(about, report_shard.shard_id, cut.sequence) AS s;
  sequence := cut.sequence;
  outcome := 'ACCEPTED';
END;
$$;

-- ---- For people ------------------------------------------------------------------------

CREATE VIEW local_shards AS
SELECT s.subject, s.shard_id, s.route, s.generation, s.epoch, s.boot_epoch, s.fence,
       s.allocated_units, s.local_available, s.local_reserved, s.local_spent, s.local_retired, s.local_excess,
       s.largest_reservation, s.hard_execution_limit, s.hold_ttl, s.execution_ttl,
       s.issued_at, s.expires_at, s.accepted_at, s.sealed_at, s.sealed_by, s.last_sequence
FROM local_shard s;

CREATE VIEW shard_reservations AS
SELECT r.subject, r.reservation_id, r.shard_id, r.state, r.reserved_units, r.actual_units, r.excess_units,
       r.operation_id, r.expires_at, 'sha256:' || encode(r.request_digest, 'hex') AS request_digest,
       r.reserved_at, r.started_at, r.unknown_at, r.ended_at,
       'sha256:' || encode(r.receipt_digest, 'hex') AS receipt_digest, r.receipt_source, r.sequence
FROM shard_reservation r;

CREATE VIEW local_reports AS
SELECT p.subject, p.shard_id, p.sequence, p.cut_at, p.sealed,
       p.local_available, p.local_reserved, p.local_spent, p.local_retired, p.local_excess,
       (SELECT count(*) FROM shard_reservation r
        WHERE (r.subject, r.shard_id, r.sequence) = (p.subject, p.shard_id, p.sequence)) AS receipts
FROM local_report p;
