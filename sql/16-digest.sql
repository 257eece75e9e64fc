-- The digest that identifies a request (A5, D2).

CREATE FUNCTION canonical_json(request jsonb) RETURNS text
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'limitledger_canonical_json';

CREATE FUNCTION request_digest(request jsonb) RETURNS bytea
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'limitledger_request_digest';

COMMENT ON FUNCTION canonical_json(jsonb) IS
$$Writes a JSON value in the one form that RFC 8785 (JCS) gives it: no white space, members sorted by the UTF-16 code units of their names, strings with the fewest escapes, numbers as ECMAScript writes them (A5).

What jsonb has settled before is settled: of several members with one name it keeps the last, -0 is 0, and it refuses a zero character or half a surrogate pair.

Errors: LL108 a number is no double, such as 9007199254740993 or 333333333.33333329: another library would read, and hash, its neighbour. Send such a number as a string. NULL gives NULL.$$;

COMMENT ON FUNCTION request_digest(jsonb) IS
$$The SHA-256 of canonical_json(request) in UTF-8, 32 bytes: what reserve_capacity takes as digest (A5). A client computes the same with any RFC 8785 library. Errors: LL108, as canonical_json. NULL gives NULL.$$;
