-- Whether this database is the original, or may be a copy of it (G7).
--
-- src/store/recovery.c compares the row of incarnation with a witness file outside the
-- data folder.  Calls that issue, remint, accept or sign ask recovery_look(), and take
-- anything but normal for a refusal.

CREATE FUNCTION guard_incarnation() RETURNS trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'limitledger_guard_incarnation';
CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON incarnation
  FOR EACH ROW EXECUTE FUNCTION guard_incarnation();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON incarnation
  FOR EACH STATEMENT EXECUTE FUNCTION guard_incarnation();

CREATE FUNCTION recovery_status(
  OUT status text,                   -- normal, unset, promoted, quarantined, or standby
  OUT detail text,                   -- why it is not normal
  OUT incarnation uuid,              -- what this database takes itself for; NULL: nothing was acknowledged
  OUT timeline integer,              -- that was acknowledged
  OUT acknowledged_at timestamptz)
LANGUAGE C STABLE
AS 'MODULE_PATHNAME', 'limitledger_recovery_status';

-- recovery_look is the look of calls that write: it returns the status, lets the witness
-- file follow, and gives the ledger a new incarnation after a start of the server.
CREATE FUNCTION recovery_look() RETURNS text
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_recovery_look';

-- recovery_acknowledge writes row and witness file.
CREATE FUNCTION recovery_acknowledge(actor text, reason text, OUT status_before text, OUT incarnation uuid)
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_recovery_acknowledge';

CREATE FUNCTION acknowledge_recovery(
  reason text,
  OUT outcome text,                  -- ACCEPTED
  OUT status_before text,            -- as recovery_status had it
  OUT incarnation uuid               -- the new one
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
BEGIN
  PERFORM @extschema@.binding_refuse('acknowledge_recovery()');
  PERFORM @extschema@.policy_check_reason(acknowledge_recovery.reason, 'acknowledge_recovery');
  outcome := 'ACCEPTED';
  SELECT a.status_before, a.incarnation INTO acknowledge_recovery.status_before, acknowledge_recovery.incarnation
  FROM @extschema@.recovery_acknowledge(@extschema@.policy_actor(), acknowledge_recovery.reason) AS a;

  -- An older state has forgotten fences that gateways have seen.
  IF status_before IN ('quarantined', 'promoted') THEN
    UPDATE @extschema@.gateway AS g SET last_fence = g.last_fence + 1000000;
  END IF;
  INSERT INTO @extschema@.operator_action (acted_at, actor, action, subject, route, reason)
  VALUES (@extschema@.ledger_clock(), @extschema@.policy_actor(), 'acknowledge_recovery', '*', '*', acknowledge_recovery.reason);
END;
$$;

COMMENT ON FUNCTION recovery_status IS
$$Tells whether this database is the original or may be a copy, by its witness file, and writes nothing (G7).

normal: the witness agrees. unset: limitledger.witness_file is not set, or nothing was acknowledged. promoted: the server is on another timeline. quarantined: the database is not the one that the witness names. standby: the server is one, and judges nothing. Unless it is normal no shard is issued, signed, accepted or reconciled; settlement goes on, and admission as limitledger.admit_in_recovery says. detail says in words what is wrong. Errors: none.$$;

COMMENT ON FUNCTION acknowledge_recovery IS
$$Makes this database the original: a new incarnation, in its row and in the witness file (G7).

Any other database that the file had named is quarantined from the commit on. For the first set-up, after a promotion, and for a restored or moved ledger once the one that it came from is stopped for good. reason: 1 to 256 bytes, kept in operator_actions. If the ledger was quarantined or promoted, the fences of all gateways go up by 1,000,000, since an older state does not know the last ones. A ROLLBACK leaves all as it was. Repeated, it makes another incarnation and does no harm.

Errors: LL101, LL106; LL403 limitledger.witness_file is not set, or can't be written; 25006 in a read-only transaction; 40001 at REPEATABLE READ and above, or if two calls make the first incarnation at once; 42501 for a bound login.$$;
