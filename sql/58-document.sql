-- limitReservation.v1: a reservation as the document that other systems keep.

CREATE FUNCTION get_reservation_document(subject text, reservation_id text) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
  -- get_reservation judges the arguments, and whether the login may name the subject (I1);
  -- the row and the document are of one snapshot
  SELECT jsonb_strip_nulls(jsonb_build_object(
    'schema', 'limitReservation.v1',
    'reservation', $2,
    'subject', $1,
    'route', r.route,
    'policyGeneration', r.generation,
    'accountingEpoch', to_char(r.epoch AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
    'requestDigest', 'sha256:' || encode(r.request_digest, 'hex'),
    'reservedUnits', r.reserved_units::text,
    'progressUnits', CASE WHEN r.progress_units > 0 THEN r.progress_units::text END,
    'actualUnits', r.actual_units::text,
    'receiptSource', r.receipt_source,
    'operationId', r.operation_id,
    'expiresAt', to_char(r.expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    'state', coalesce(r.state, g.state)))
  FROM @extschema@.get_reservation($1, $2) g
  LEFT JOIN @extschema@.reservation r ON g.outcome = 'ACCEPTED' AND r.subject = $1 AND r.reservation_id = $2
$$;

COMMENT ON FUNCTION get_reservation_document IS
$$Reads a reservation as a limitReservation.v1 document; writes nothing and locks nothing (D11, J1).

Units are strings, so that no reader rounds them; instants are in UTC. What is not known yet is left out. An id that this ledger does not hold has the state RESERVATION_UNKNOWN. Errors: LL101, LL102.$$;
