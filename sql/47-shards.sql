-- Emergency shards, on the side of the ledger: who gets them, how they are issued and
-- signed, and how what became of them comes back (G).  Besides, the old limiter's share (B8).

-- policy_check_text demands a text of 1 to 256 bytes.
CREATE FUNCTION policy_check_text(field text, given text, call text)
RETURNS void LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
BEGIN
  IF given IS NULL OR octet_length(given) NOT BETWEEN 1 AND 256 THEN
    RAISE EXCEPTION USING
      ERRCODE = CASE WHEN given IS NULL THEN 'LL101' ELSE 'LL102' END,
      MESSAGE = CASE WHEN given IS NULL THEN format('%s must not be null', field)
                     ELSE format('%s must have 1 to 256 bytes', field) END,
      DETAIL = format('%s() takes one.', call),
      HINT = 'Names and ids are compared byte for byte and never cut.';
  END IF;
END;
$$;

CREATE FUNCTION register_gateway(
  gateway text,
  public_key text,                   -- the line of the key that signs its reports
  OUT outcome text,                  -- ACCEPTED
  OUT already_registered boolean,    -- true: only its key may be new
  OUT kid text
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
BEGIN
  PERFORM @extschema@.binding_refuse('register_gateway()');
  PERFORM @extschema@.policy_check_text('gateway', gateway, 'register_gateway');
  SELECT t.kid INTO kid FROM @extschema@.trust_key(public_key, gateway) AS t;

  INSERT INTO @extschema@.gateway AS g (gateway, registered_at, actor)
  VALUES (register_gateway.gateway, @extschema@.ledger_clock(), @extschema@.policy_actor())
  ON CONFLICT ON CONSTRAINT gateway_pkey DO NOTHING;
  already_registered := NOT FOUND;
  outcome := 'ACCEPTED';
END;
$$;

CREATE FUNCTION announce_boot(
  gateway text,
  boot_epoch uuid,                   -- that local_gateway has now
  OUT outcome text,                  -- ACCEPTED, or REFUSED
  OUT dimension text,                -- why not
  OUT already_announced boolean
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  known @extschema@.gateway;
BEGIN
  PERFORM @extschema@.binding_refuse('announce_boot()');
  PERFORM @extschema@.policy_check_text('gateway', gateway, 'announce_boot');
  PERFORM @extschema@.policy_check_text('boot_epoch', boot_epoch::text, 'announce_boot');
  SELECT g.* INTO known FROM @extschema@.gateway AS g WHERE g.gateway = announce_boot.gateway FOR NO KEY UPDATE;

  outcome := 'REFUSED'; already_announced := false;
  IF known.gateway IS NULL THEN
    dimension := 'gateway';
  ELSIF boot_epoch = ANY (known.past_boots) THEN
    dimension := 'boot_epoch';            -- an announcement that was overtaken
  ELSE
    outcome := 'ACCEPTED';
    already_announced := known.boot_epoch IS NOT DISTINCT FROM announce_boot.boot_epoch;
    IF NOT already_announced THEN
      UPDATE @extschema@.gateway AS g
      SET boot_epoch = announce_boot.boot_epoch, booted_at = @extschema@.ledger_clock(),
          past_boots = CASE WHEN g.boot_epoch IS NULL THEN g.past_boots ELSE g.past_boots || g.boot_epoch END
      WHERE g.gateway = announce_boot.gateway;
    END IF;
  END IF;
END;
$$;

CREATE FUNCTION issue_emergency_shard(
  subject text, route text, shard_id text, gateway text, units bigint,
  OUT outcome text,                  -- ACCEPTED, REFUSED or CONFLICT
  OUT dimension text,                -- why not
  OUT replayed boolean,              -- true: it was issued before
  OUT generation bigint,             -- the budget that gave the units
  OUT epoch timestamptz,
  OUT fence bigint,
  OUT issued_at timestamptz,
  OUT expires_at timestamptz,
  OUT debt bigint,                   -- of the pair, now
  OUT available bigint,
  OUT admission text,                -- open, suspended, frozen, draining or no_policy
  OUT ledger_at timestamptz
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_issue_emergency_shard';

CREATE FUNCTION sign_emergency_shard(
  subject text, shard_id text,
  OUT outcome text,                  -- ACCEPTED, REFUSED or UNKNOWN
  OUT dimension text,                -- why not
  OUT kid text,                      -- of the key that has signed
  OUT envelope text                  -- for accept_emergency_shard on the gateway
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  about   CONSTANT text := @extschema@.envelope_subject(sign_emergency_shard.subject, sign_emergency_shard.shard_id);
  shard   @extschema@.emergency_shard;
  terms   @extschema@.policy;
  present uuid;
BEGIN
  SELECT e.* INTO shard FROM @extschema@.emergency_shard AS e
  WHERE e.subject = about AND e.shard_id = sign_emergency_shard.shard_id;
  SELECT p.* INTO terms FROM @extschema@.policy AS p WHERE p.generation = shard.generation;
  SELECT g.boot_epoch INTO present FROM @extschema@.gateway AS g WHERE g.gateway = shard.gateway;

  outcome := 'REFUSED';
  IF shard.gateway IS NULL THEN
    outcome := 'UNKNOWN'; dimension := 'emergency_shard';
  ELSIF shard.issued_by = pg_current_xact_id() THEN
    dimension := 'not_committed';         -- an envelope would survive a ROLLBACK (G8)
  ELSIF shard.sealed OR shard.settled_at IS NOT NULL THEN
    dimension := 'sealed';
  ELSIF shard.boot_epoch <> present THEN
    dimension := 'boot_epoch';
  ELSIF shard.expires_at <= @extschema@.ledger_clock() THEN
    dimension := 'shard_expired';
  ELSIF @extschema@.recovery_look() <> 'normal' THEN
    dimension := 'recovery';
  ELSE
    outcome := 'ACCEPTED';
    -- Who has issued it may have given up waiting for the standby (F4).
    PERFORM @extschema@.envelope_confirm();
    SELECT s.kid, s.envelope INTO kid, envelope
    FROM @extschema@.seal_emergency_shard(
      shard.shard_id, shard.subject, shard.route, shard.generation, shard.epoch, shard.allocated_units,
      shard.gateway, shard.boot_epoch, shard.fence, shard.issued_at, shard.expires_at,
      terms.hold_ttl, terms.execution_ttl, terms.hard_execution_limit, terms.largest_reservation) AS s;
  END IF;
END;
$$;

CREATE FUNCTION reconcile_emergency_shard(
  subject text,
  report text,                       -- the envelope of report_shard
  OUT outcome text,                  -- ACCEPTED, REFUSED, CONFLICT or UNKNOWN
  OUT dimension text,                -- the rule that it breaks
  OUT replayed boolean,              -- true: this report was reconciled before
  OUT detail text,                   -- what is wrong with the envelope, and in which member
  OUT shard_id text,
  OUT sequence bigint,
  OUT excess_units bigint,           -- what this report made the pair bear
  OUT confirmed_units bigint,        -- what it proved unused
  OUT reminted_units bigint,         -- and what of that was minted; the rest was burned, filled a deficit or lapsed
  OUT settled boolean,               -- nothing of the shard is left to come
  OUT debt bigint,                   -- of the pair, now
  OUT available bigint,
  OUT admission text,
  OUT ledger_at timestamptz
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_reconcile_emergency_shard';

CREATE FUNCTION write_off_shard(
  subject text, shard_id text, reason text,
  OUT outcome text,                  -- ACCEPTED or UNKNOWN
  OUT dimension text,
  OUT replayed boolean,              -- true: it was settled already
  OUT lost_units bigint,             -- neither reported as spent nor proven unused: retired for ever
  OUT written_off_at timestamptz     -- NULL: it was settled by its reports
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_write_off_shard';

CREATE FUNCTION grant_legacy_share(
  subject text, route text, share_id text, units bigint, reason text,
  OUT outcome text,                  -- ACCEPTED, REFUSED or CONFLICT
  OUT dimension text,
  OUT replayed boolean,
  OUT generation bigint,
  OUT epoch timestamptz,
  OUT debt bigint,
  OUT available bigint,
  OUT admission text,
  OUT ledger_at timestamptz
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_grant_legacy_share';

CREATE FUNCTION report_legacy_share(
  subject text, share_id text,
  operation_ids text[], reserved_units bigint[], actual_units bigint[],
  OUT outcome text,                  -- ACCEPTED, REFUSED, CONFLICT or UNKNOWN
  OUT dimension text,
  OUT replayed boolean,              -- true: all of these receipts were booked before
  OUT excess_units bigint,
  OUT confirmed_units bigint,
  OUT reminted_units bigint,
  OUT settled boolean,
  OUT debt bigint,
  OUT available bigint,
  OUT admission text,
  OUT ledger_at timestamptz
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_report_legacy_share';

-- What is out, the oldest first; then what is settled.
CREATE VIEW emergency_shards AS
SELECT e.subject, e.shard_id, e.route, e.gateway,
       CASE WHEN e.written_off_at IS NOT NULL THEN 'written_off' WHEN e.settled_at IS NOT NULL THEN 'settled'
            WHEN e.sealed THEN 'sealed' ELSE 'issued' END AS state,
       e.allocated_units, e.local_available, e.local_reserved, e.local_spent, e.local_retired, e.local_excess,
       e.receipted_units, e.confirmed_units, e.reminted_units, e.sequence,
       e.generation, e.epoch, e.boot_epoch, e.fence, e.issued_at, e.expires_at, e.actor,
       e.written_off_at, e.written_off_reason, e.settled_at
FROM emergency_shard e
ORDER BY e.settled_at IS NOT NULL, e.issued_at;

CREATE VIEW gateways AS
SELECT g.gateway, g.boot_epoch, g.booted_at, g.last_fence, g.registered_at, g.actor,
       count(e.shard_id) AS open_shards, coalesce(sum(e.allocated_units), 0) AS open_units
FROM gateway g LEFT JOIN emergency_shard e ON e.gateway = g.gateway AND e.settled_at IS NULL
GROUP BY g.gateway
ORDER BY g.gateway;

CREATE VIEW shard_reports AS
SELECT p.reconciled_at, p.subject, p.shard_id, p.sequence, p.excess_units, p.confirmed_units, p.reminted_units,
       p.generation, p.epoch, 'sha256:' || encode(p.digest, 'hex') AS digest
FROM shard_report p
ORDER BY p.reconciled_at DESC;

CREATE VIEW shard_receipts AS
SELECT r.subject, r.shard_id, r.sequence, r.reservation_id, r.state, r.operation_id, r.reserved_units, r.actual_units
FROM shard_receipt r;

COMMENT ON FUNCTION register_gateway IS
$$Registers a gateway that may get emergency shards, and trusts the key that signs its reports (G2, G3).

gateway: 1 to 256 bytes. public_key: the line that make-signing-key prints. Again, it only trusts another key of the same gateway: that is how keys are rotated. Until announce_boot it gets no shard. Errors: LL101, LL102; LL402 the key is malformed, or its id taken.$$;

COMMENT ON FUNCTION announce_boot IS
$$Says which boot of a gateway is running, so that shards are issued for it (G5).

boot_epoch: as open_gateway or renew_boot returned it on the gateway. Shards of an earlier boot stay out until they are reconciled or written off. REFUSED gateway: it is not registered. REFUSED boot_epoch: that boot is over, another one was announced after it; so an announcement that comes late or twice changes nothing; after a wrong one, renew_boot on the gateway and announce that. Errors: LL101, LL102; 40001 at REPEATABLE READ and above.$$;

COMMENT ON FUNCTION issue_emergency_shard IS
$$Moves units of a pair from available into a shard that one gateway may spend while it can't reach the ledger (G2).

shard_id: 1 to 256 bytes, the idempotency key; the same again is the same answer, another gateway, route or number of units a CONFLICT shard. units: at least 1, and with what the pair has in shards that are not settled at most emergencyShare percent of the cap. It signs nothing: commit, then call sign_emergency_shard.

REFUSED: no_policy, draining, emergency_mode (the policy has it disabled, or is not active), frozen, cap, emergency_share, debt, available, recovery (set up the witness, or acknowledge), standby (limitledger.shard_needs_standby is on), gateway (not registered, or no boot announced). Errors: LL101, LL102, LL103; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION sign_emergency_shard IS
$$Signs a shard whose issue is committed, and returns the envelope for the gateway (G3, G8).

It writes nothing, and the same shard gives the same envelope as long as the key is the same. REFUSED: not_committed in the transaction that issued it; sealed once a report has sealed or settled it; boot_epoch once another boot is announced; shard_expired; recovery. UNKNOWN emergency_shard: there is none. Errors: LL101, LL102; LL401 the key file can't be used.$$;

COMMENT ON FUNCTION reconcile_emergency_shard IS
$$Takes in a gateway's signed report: excess becomes usage of the pair, units that are proven unused are minted again (G6).

report: the envelope that report_shard returned, up to 4314352 bytes. Reports of a shard come in the order of their numbers; the same one again is the same answer. excess_units take available units of the head, the rest is debt. confirmed_units are what local_retired grew by in a sealed report, once all that was used has its receipt; they fill a deficit, pay debt, and fill available up to the cap. spent and unknown units stay retired.

REFUSED: envelope (detail says what), gateway, boot_epoch, fence, sequence (one before it is missing), conservation (G1 does not hold), falls, receipts, recovery. CONFLICT report: another one was reconciled under this number. UNKNOWN emergency_shard. A refusal books nothing. Errors: LL101, LL102; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION write_off_shard IS
$$Gives up a shard that its gateway never reports, or a share of the old limiter: its units stay retired (G6, B8).

reason: 1 to 256 bytes, kept in operator_actions. From then on it hinders neither a new issue nor the retirement of its generation. If a report comes after all, its excess is booked and nothing is minted. A shard that is settled stays as it is. Errors: LL101, LL102, LL106.$$;

COMMENT ON FUNCTION grant_legacy_share IS
$$Moves units of a pair from available to the limiter that is being replaced, which may spend them by its own rules (B8).

share_id: the idempotency key, among the shards of the subject. units: at least 1. reason: 1 to 256 bytes. The units are retired here; they come back only against receipts, report_legacy_share, never as a block. REFUSED: no_policy, draining, frozen, cap, debt, available, recovery. CONFLICT shard: the id stands for something else. Errors: LL101, LL102, LL103, LL106.$$;

COMMENT ON FUNCTION report_legacy_share IS
$$Books receipts of the old limiter against its share, each operation once: what was reserved and not used comes back (B8).

operation_ids, reserved_units, actual_units: one element per receipt, units at least 0. What an operation used above what it had reserved, or above what the share had left, is borne by the pair. Units that no receipt names stay retired; write_off_shard ends the share. REFUSED recovery: the ledger may be a copy. CONFLICT figures: an operation was booked with other units; operation_elsewhere: in another share of the subject. Then nothing of the call is booked. Errors: LL101, LL102, LL103, LL105.$$;

COMMENT ON VIEW gateways IS
'Gateways that are registered, their present boot, and what they have out (G2, G5).';

COMMENT ON VIEW emergency_shards IS
'Shards and shares of the old limiter as the last report has them: what is out, the oldest first, then what is settled (G1, B8).';

COMMENT ON VIEW shard_reports IS
'Reports of shards that were reconciled, and what each of them booked on which budget (G6).';

COMMENT ON VIEW shard_receipts IS
'How each reservation of a shard ended, as its gateway reported it (G6).';
