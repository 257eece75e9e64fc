-- Whose signatures count, and what signs here (G3).
--
-- A key has an id, an owner and a life.  All three are judged when an envelope is
-- opened, at the ledger's clock.  An id stands for one key for ever, a key has one id
-- and one owner, and trust that has ended does not come back: a call that is repeated
-- late, or a script that is run again, must not revive a key that was given up.
--
-- Secret keys are in files; src/api/signing.c reads one at each signing.

CREATE FUNCTION guard_trusted_key() RETURNS trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'limitledger_guard_trusted_key';
CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON trusted_key
  FOR EACH ROW EXECUTE FUNCTION guard_trusted_key();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON trusted_key
  FOR EACH STATEMENT EXECUTE FUNCTION guard_trusted_key();

CREATE VIEW trusted_keys AS
SELECT k.kid, k.gateway,
       k.trusted_until IS NULL OR c.now < k.trusted_until AS trusted,
       k.trusted_from, k.trusted_until, k.actor,
       format('limitledger-ed25519-public-v1 %s %s', k.kid,
              translate(encode(k.public_key, 'base64'), '+/=', '-_')) COLLATE "C" AS public_key
FROM ledger_clock() AS c (now), trusted_key k
ORDER BY k.gateway NULLS FIRST, k.trusted_from, k.kid;

-- ---- Envelopes, for the calls that decide about them ---------------------------
-- No role is granted these.

-- open_emergency_shard verifies an envelope, and takes it apart; problem is NULL, or a
-- word of docs/envelope.md and then no field is known.
CREATE FUNCTION open_emergency_shard(
  envelope text,
  OUT problem text, OUT member text, OUT kid text,
  OUT shard_id text, OUT subject text, OUT route text, OUT generation bigint, OUT epoch timestamptz,
  OUT allocated_units bigint, OUT gateway text, OUT boot_epoch uuid, OUT fence bigint,
  OUT issued_at timestamptz, OUT expires_at timestamptz, OUT hold_ttl interval, OUT execution_ttl interval,
  OUT hard_execution_limit bigint, OUT largest_reservation bigint
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_open_emergency_shard';

-- envelope_subject checks what names a shard, and gives the subject to go on with: an
-- empty one, if the login may not name this one (I1).
CREATE FUNCTION envelope_subject(subject text, shard_id text) RETURNS text
LANGUAGE C VOLATILE
AS 'MODULE_PATHNAME', 'limitledger_envelope_subject';

-- envelope_confirm waits until what was committed by others is as durable as it gets.
CREATE FUNCTION envelope_confirm() RETURNS void
LANGUAGE C VOLATILE
AS 'MODULE_PATHNAME', 'limitledger_envelope_confirm';

-- envelope_open_report verifies a report as a reconciling call does: for a superuser who
-- asks why one was refused.
CREATE FUNCTION envelope_open_report(
  envelope text,
  OUT problem text, OUT member text, OUT kid text,
  OUT gateway text,                  -- whose key it is
  OUT reported_gateway text, OUT shard_id text, OUT boot_epoch uuid, OUT fence bigint, OUT sequence bigint,
  OUT sealed boolean, OUT receipts integer
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_envelope_open_report';

-- seal_emergency_shard signs these figures, of a row that is committed (G8).
CREATE FUNCTION seal_emergency_shard(
  shard_id text, subject text, route text, generation bigint, epoch timestamptz,
  allocated_units bigint, gateway text, boot_epoch uuid, fence bigint,
  issued_at timestamptz, expires_at timestamptz, hold_ttl interval, execution_ttl interval,
  hard_execution_limit bigint, largest_reservation bigint,
  OUT kid text, OUT envelope text
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_seal_emergency_shard';

-- envelope_seal_report signs figures and receipts of a report; their order is free.
CREATE FUNCTION envelope_seal_report(
  shard_id text, gateway text, boot_epoch uuid, fence bigint, sequence bigint, sealed boolean,
  allocated_units bigint, local_available bigint, local_reserved bigint, local_spent bigint,
  local_retired bigint, local_excess bigint,
  reservation_ids text[], operation_ids text[], states text[], reserved_units bigint[], actual_units bigint[],
  OUT kid text, OUT envelope text
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_envelope_seal_report';

-- seal_shard_report signs a report of this gateway as it was cut (G6, G8).  It is the
-- same text each time.  NULL: there is no such report.
CREATE FUNCTION seal_shard_report(
  subject text, shard_id text, sequence bigint,
  OUT kid text, OUT envelope text
) LANGUAGE sql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
  SELECT e.kid, e.envelope
  FROM @extschema@.local_report AS r
  JOIN @extschema@.local_shard AS s ON s.subject = r.subject AND s.shard_id = r.shard_id
  CROSS JOIN @extschema@.local_gateway AS g
  CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(v.reservation_id), '{}') AS ids, coalesce(array_agg(v.operation_id), '{}') AS operations,
           coalesce(array_agg(v.state), '{}') AS states, coalesce(array_agg(v.reserved_units), '{}') AS reserved,
           coalesce(array_agg(v.actual_units), '{}') AS actual
    FROM @extschema@.shard_reservation AS v
    WHERE v.subject = r.subject AND v.shard_id = r.shard_id AND v.sequence = r.sequence) AS a
  CROSS JOIN LATERAL @extschema@.envelope_seal_report(
    s.shard_id, g.gateway, s.boot_epoch, s.fence, r.sequence, r.sealed,
    s.allocated_units, r.local_available, r.local_reserved, r.local_spent, r.local_retired, r.local_excess,
    a.ids, a.operations, a.states, a.reserved, a.actual) AS e
  WHERE r.subject = seal_shard_report.subject AND r.shard_id = seal_shard_report.shard_id
    AND r.sequence = seal_shard_report.sequence
$$;

-- ---- Steps ------------------------------------------------------------------

-- envelope_public_key takes the line of a public key apart, or raises LL402.
CREATE FUNCTION envelope_public_key(public_key text, OUT kid text, OUT key_bytes bytea)
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'limitledger_envelope_public_key';

-- envelope_refuse_key raises LL402 for a key that can't be trusted as it is asked.
CREATE FUNCTION envelope_refuse_key(problem text, detail text, hint text)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
BEGIN
  RAISE EXCEPTION USING
    ERRCODE = 'LL402', MESSAGE = 'public_key ' || problem, DETAIL = detail, HINT = hint;
END;
$$;

-- envelope_check_life demands an end of trust that is still to come, and not before the one that stands.
CREATE FUNCTION envelope_check_life(trusted_until timestamptz, now timestamptz, stands timestamptz)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
BEGIN
  IF trusted_until <= now THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL106', MESSAGE = 'trusted_until must be later than now',
      DETAIL = 'Now is what ledger_clock() shows.',
      HINT = 'Leave it out to trust the key until distrust_key().';
  END IF;
  IF trusted_until < coalesce(stands, 'infinity') THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL106', MESSAGE = 'trusted_until must not be earlier than it is',
      DETAIL = format('The key is trusted %s.', coalesce('until ' || stands, 'until distrust_key() ends it')),
      HINT = 'distrust_key() ends it at once.';
  END IF;
END;
$$;

-- envelope_record writes down what was done to a key.
CREATE FUNCTION envelope_record(action text, kid text, reason text)
RETURNS void LANGUAGE sql VOLATILE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
  INSERT INTO @extschema@.operator_action (acted_at, actor, action, subject, route, reason)
  VALUES (@extschema@.ledger_clock(), @extschema@.policy_actor(), action, '*', '*', kid || ': ' || reason);
$$;

-- ---- The calls --------------------------------------------------------------
-- They lock the key's row, and the table no more than any call does: envelopes are opened
-- meanwhile.

CREATE FUNCTION trust_key(
  public_key text, gateway text DEFAULT NULL, trusted_until timestamptz DEFAULT NULL,
  OUT outcome text,                  -- ACCEPTED
  OUT kid text,
  OUT already_trusted boolean        -- true: the key was trusted before, if for another time
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  named  record;
  stands @extschema@.trusted_key;
  now    timestamptz;
  ends   CONSTANT timestamptz := nullif(trust_key.trusted_until, 'infinity');
BEGIN
  PERFORM @extschema@.binding_refuse('trust_key()');
  SELECT p.kid, p.key_bytes INTO named FROM @extschema@.envelope_public_key(trust_key.public_key) AS p;
  IF octet_length(trust_key.gateway) NOT BETWEEN 1 AND 256 THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL102', MESSAGE = 'gateway must have 1 to 256 bytes',
      DETAIL = format('It has %s.', octet_length(trust_key.gateway)),
      HINT = 'Leave it out for a key of the ledger, which signs shards.';
  END IF;

  now := @extschema@.ledger_clock();
  PERFORM @extschema@.envelope_check_life(ends, now, '-infinity');
  outcome := 'ACCEPTED';
  kid := named.kid;
  -- Whoever comes second, with the id or with the key, waits and finds what stands.
  INSERT INTO @extschema@.trusted_key (kid, public_key, gateway, trusted_from, trusted_until, actor)
  VALUES (named.kid, named.key_bytes, trust_key.gateway, now, ends, @extschema@.policy_actor())
  ON CONFLICT DO NOTHING;
  already_trusted := NOT FOUND;
  IF already_trusted THEN
    SELECT k.* INTO stands FROM @extschema@.trusted_key AS k WHERE k.kid = named.kid FOR UPDATE;
    now := @extschema@.ledger_clock();
  END IF;

  IF NOT already_trusted THEN
    NULL;
  ELSIF stands.kid IS NULL THEN
    PERFORM @extschema@.envelope_refuse_key('has another id already',
      'A key has one id and one owner.', 'Make a new key with tools/make-signing-key.');
  ELSIF stands.public_key <> named.key_bytes THEN
    PERFORM @extschema@.envelope_refuse_key('has the id of another key',
      'An id stands for one key for ever.', 'Make the new key with an id of its own.');
  ELSIF stands.gateway IS DISTINCT FROM trust_key.gateway THEN
    PERFORM @extschema@.envelope_refuse_key('belongs to another gateway',
      'A key has one owner: one gateway, or the ledger if gateway is NULL.', 'Make a key of its own for each gateway.');
  ELSIF stands.trusted_until <= now THEN
    PERFORM @extschema@.envelope_refuse_key('has lost its trust',
      'Trust that has ended does not come back.', 'Make a new key with an id of its own.');
  ELSIF stands.trusted_until IS NOT DISTINCT FROM ends THEN
    RETURN;
  ELSE
    PERFORM @extschema@.envelope_check_life(ends, now, stands.trusted_until);
    UPDATE @extschema@.trusted_key AS k SET trusted_until = ends WHERE k.kid = named.kid;
  END IF;
  PERFORM @extschema@.envelope_record('trust_key', named.kid,
    concat_ws(' ', 'trusted', 'for ' || trust_key.gateway,
      'until ' || coalesce(to_char(ends AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), 'further notice')));
END;
$$;

CREATE FUNCTION distrust_key(
  kid text, reason text,
  OUT outcome text,                  -- ACCEPTED
  OUT already_distrusted boolean,    -- true: nothing has changed
  OUT trusted_until timestamptz      -- when its life ended
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  now timestamptz;
BEGIN
  PERFORM @extschema@.binding_refuse('distrust_key()');
  IF distrust_key.kid IS NULL THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL101', MESSAGE = 'kid must not be null',
      DETAIL = 'It names the key that is trusted no more.',
      HINT = 'The view trusted_keys lists them.';
  END IF;
  PERFORM @extschema@.policy_check_reason(distrust_key.reason, 'distrust_key');

  SELECT k.trusted_until INTO distrust_key.trusted_until
  FROM @extschema@.trusted_key AS k WHERE k.kid = distrust_key.kid FOR UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL106', MESSAGE = 'kid is not the id of a key',
      DETAIL = 'No key of this id was ever trusted here.',
      HINT = 'The view trusted_keys lists them. Ids are taken as they are written, upper case included.';
  END IF;
  now := @extschema@.ledger_clock();
  outcome := 'ACCEPTED';
  already_distrusted := coalesce(trusted_until <= now, false);
  IF NOT already_distrusted THEN
    UPDATE @extschema@.trusted_key AS k SET trusted_until = now WHERE k.kid = distrust_key.kid;
    distrust_key.trusted_until := now;
    PERFORM @extschema@.envelope_record('distrust_key', distrust_key.kid, distrust_key.reason);
  END IF;
END;
$$;

CREATE FUNCTION signing_key_id(
  OUT kid text,
  OUT public_key text                -- the line by which others trust the key
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_signing_key_id';

COMMENT ON FUNCTION trust_key IS
$$Trusts a public key, as one of the ledger or of a gateway, until an instant or until distrust_key (G3).

public_key: the line that tools/make-signing-key prints. gateway: whose reports it signs, 1 to 256 bytes; NULL: the ledger's, for shards. trusted_until: later than now; NULL: until further notice. kid is the id that the line gives the key. The same call again changes nothing; with a later trusted_until, or none, it lengthens the life of the key, never of one that has ended. Kept in operator_actions.

Errors: LL101, LL102; LL106 trusted_until is past, or earlier than it was; LL402 the line has another form, the id stands for another key, the key has another id or gateway, or has lost its trust; 42501 if the caller is bound.$$;

COMMENT ON FUNCTION distrust_key IS
$$Ends the trust in a key at once and for good, and records who did it and why (G3).

kid: the id of a key of trusted_keys. reason: 1 to 256 bytes, kept in operator_actions behind the id. From its commit on no envelope that the key has signed is opened, whenever it was signed; a call that had opened one before may still commit. Repeated, it changes nothing. Errors: LL101; LL106 the reason, or no such key; 42501 if the caller is bound.$$;

COMMENT ON FUNCTION signing_key_id IS
$$Reads the key file of limitledger.signing_key_file, and shows the id of the key and the line by which others trust it (G3).

Nothing that is secret. What a signing would say of the file, this says: use it after a key was replaced. Errors: LL401, with a word of docs/envelope.md; 42501 if the caller is bound.$$;

COMMENT ON VIEW trusted_keys IS
'Every key that is or was trusted: whose it is, its life, and whether it is trusted now (G3).';
