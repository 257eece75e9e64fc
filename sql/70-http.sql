-- What a gateway sends on: the figures of a receipt as HTTP fields (J1, J3).
--
-- Pure functions of scalars: they read no table, no clock and no setting.  None of
-- them raises an error, whatever it gets: each runs in one statement with the call
-- whose receipt it formats, and an error would undo that call.  So numbers are
-- clamped, texts are encoded, and a field without a figure is left out.
--
-- They are plpgsql since a session then plans them once; a SQL function is planned in
-- each statement, which costs more than the call whose receipt it formats.  The path
-- of each is fixed (I2).  Where one calls what PostgreSQL labels STABLE (to_char,
-- jsonb_build_object), no setting counts for the types and patterns it is called with.

-- A String of RFC 9651, section 3.3.3.  A byte that it can't hold becomes %XX, and
-- so does % itself: two texts never look alike.
CREATE FUNCTION structured_string(value text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  bytes bytea;
  code  integer;
  coded text := '';
BEGIN
  IF value ~ '^[] !#$&-[^-~]*$' THEN   -- nothing to encode or escape
    RETURN '"' || value || '"';
  END IF;

  bytes := replace(value, chr(92), chr(92) || chr(92))::bytea;
  FOR place IN 0 .. length(bytes) - 1 LOOP
    code := get_byte(bytes, place);
    coded := coded || CASE
      WHEN code IN (34, 92) THEN chr(92) || chr(code)   -- \" and \\
      WHEN code BETWEEN 32 AND 126 AND code <> 37 THEN chr(code)
      ELSE '%' || lpad(upper(to_hex(code)), 2, '0') END;
  END LOOP;
  RETURN '"' || coded || '"';
END;
$$;

CREATE FUNCTION retry_after(retry_after_ms bigint) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
BEGIN
  IF retry_after_ms < 1 THEN
    RETURN NULL;
  END IF;
  RETURN least((retry_after_ms - 1) / 1000 + 1, 999999999999999);   -- rounded up
END;
$$;

-- The effective window ends with the wait of a refusal, if there is one: Retry-After
-- must not lie within it (section 6 of the draft).  least() passes over a NULL.
CREATE FUNCTION rate_limit(
  route text, available bigint, reset_at timestamptz, ledger_at timestamptz,
  retry_after_ms bigint DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  seconds bigint;
BEGIN
  IF route IS NULL OR available IS NULL THEN
    RETURN NULL;
  END IF;
  IF isfinite(reset_at) AND isfinite(ledger_at) THEN
    seconds := greatest(ceil(extract(epoch FROM reset_at - ledger_at)), 0);
  END IF;
  seconds := least(seconds, @extschema@.retry_after(retry_after_ms)::bigint);

  RETURN @extschema@.structured_string(route)
    || ';r=' || least(greatest(available, 0), 999999999999999)
    || coalesce(';t=' || seconds, '');
END;
$$;

CREATE FUNCTION rate_limit_policy(
  route text, cap bigint, unit text DEFAULT NULL, window_seconds bigint DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
BEGIN
  IF route IS NULL OR cap IS NULL THEN
    RETURN NULL;
  END IF;
  RETURN @extschema@.structured_string(route)
    || ';q=' || least(greatest(cap, 0), 999999999999999)
    || coalesce(';qu=' || @extschema@.structured_string(nullif(unit, 'requests')), '')
    || CASE WHEN window_seconds > 0 THEN ';w=' || least(window_seconds, 999999999999999) ELSE '' END;
END;
$$;

-- Which fields a dialect has goes by the unit: one without a word in it has none.
CREATE FUNCTION http_headers(
  route text, available bigint, cap bigint, reset_at timestamptz, ledger_at timestamptz,
  retry_after_ms bigint DEFAULT NULL, unit text DEFAULT NULL,
  window_seconds bigint DEFAULT NULL, dialect text DEFAULT NULL,
  OUT name text, OUT value text)
RETURNS SETOF record
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE ROWS 6
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  openai    CONSTANT text := CASE WHEN dialect = 'openai'
    AND unit IN ('requests', 'tokens') THEN unit END;
  anthropic CONSTANT text := CASE WHEN dialect = 'anthropic'
    AND unit IN ('requests', 'tokens', 'input-tokens', 'output-tokens') THEN unit END;
  quota     CONSTANT text := CASE WHEN cap IS NOT NULL THEN least(greatest(cap, 0), 999999999999999) END;
  remaining CONSTANT text := CASE WHEN available IS NOT NULL THEN least(greatest(available, 0), 999999999999999) END;
  ms        bigint;      -- until the pair is full, rounded up
  duration  text;        -- the same as Go writes it: 0s, 20ms, 1.5s, 6m0s, 24h0m0s
  instant   timestamp;   -- when that is in UTC, rounded up to the second
BEGIN
  IF isfinite(reset_at) AND isfinite(ledger_at) THEN
    ms := greatest(ceil(extract(epoch FROM reset_at - ledger_at) * 1000), 0);
    duration := CASE WHEN ms BETWEEN 1 AND 999 THEN ms || 'ms' ELSE
      CASE WHEN ms >= 3600000 THEN ms / 3600000 || 'h' ELSE '' END
      || CASE WHEN ms >= 60000 THEN ms / 60000 % 60 || 'm' ELSE '' END
      || trim_scale(ms % 60000 / 1000.0) || 's' END;
    -- RFC 3339 ends with the year 9999.
    instant := date_trunc('second',
      least(reset_at, '9999-12-31 23:59:59+00') AT TIME ZONE 'UTC' + interval '999999 microseconds');
  END IF;

  RETURN QUERY SELECT header.name, header.value
  FROM (VALUES
    ('RateLimit', @extschema@.rate_limit(route, available, reset_at, ledger_at, retry_after_ms)),
    ('RateLimit-Policy', @extschema@.rate_limit_policy(route, cap, unit, window_seconds)),
    ('Retry-After', @extschema@.retry_after(retry_after_ms)),
    ('x-ratelimit-limit-' || openai, quota),
    ('x-ratelimit-remaining-' || openai, remaining),
    ('x-ratelimit-reset-' || openai, duration),
    ('anthropic-ratelimit-' || anthropic || '-limit', quota),
    ('anthropic-ratelimit-' || anthropic || '-remaining', remaining),
    ('anthropic-ratelimit-' || anthropic || '-reset', to_char(instant, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
  ) AS header (name, value)
  WHERE header.name IS NOT NULL AND header.value IS NOT NULL;
END;
$$;

-- Who can change the answer?  Time (429), another attempt (503), an operator or
-- another request (403), or nobody (409, 404).  The status goes by retry_kind, so
-- that a dimension to come has one, too.
CREATE FUNCTION problem_details(
  outcome text, dimension text, retry_after_ms bigint, retry_kind text, generation bigint,
  route text DEFAULT NULL)
RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  status CONSTANT integer := CASE
    WHEN outcome = 'CONFLICT' THEN 409
    WHEN outcome = 'UNKNOWN' THEN 404
    WHEN outcome = 'REFUSED' THEN CASE
      WHEN retry_kind IN ('refill', 'release') THEN 429
      WHEN dimension IN ('draining', 'estimator', 'deadline', 'no_shard', 'shard_expired', 'sealed', 'excess') THEN 503
      WHEN retry_kind IN ('operator', 'never') THEN 403
      ELSE 409 END
    END;
BEGIN
  IF status IS NULL THEN   -- ACCEPTED, UNENFORCED: no problem
    RETURN NULL;
  END IF;
  RETURN jsonb_strip_nulls(jsonb_build_object(
    'type', CASE status WHEN 429 THEN 'https://iana.org/assignments/http-problem-types#quota-exceeded'
                        ELSE 'about:blank' END,
    'title', CASE status WHEN 403 THEN 'Forbidden' WHEN 404 THEN 'Not Found' WHEN 409 THEN 'Conflict'
                         WHEN 429 THEN 'Quota Exceeded' ELSE 'Service Unavailable' END,
    'status', status,
    'detail', CASE
      WHEN outcome = 'CONFLICT' THEN 'The id already stands for something else.'
      WHEN outcome = 'UNKNOWN' THEN 'Nothing is known under this id.'
      WHEN status = 409 THEN 'The reservation is not in a state that allows this.'
      WHEN status = 503 THEN 'This attempt was not admitted; another one may be.'
      WHEN retry_kind = 'refill' THEN 'Capacity comes back with time: ask again after the wait.'
      WHEN retry_kind = 'release' THEN 'Capacity comes back when running work ends.'
      WHEN retry_kind = 'operator' THEN 'An operator has to act before this can be admitted.'
      ELSE 'This request can never be admitted as it is.' END,
    -- A String of RFC 9651 is JSON, too: the policy is named as in RateLimit.
    'violated-policies', CASE WHEN status = 429 AND route IS NOT NULL THEN
      jsonb_build_array(@extschema@.structured_string(route)::jsonb) END,
    'dimension', dimension,
    'generation', generation::text,
    'retry_kind', retry_kind,
    'retry_after_ms', retry_after_ms::text));
END;
$$;

COMMENT ON FUNCTION http_headers IS
$$Lists the HTTP header fields that a receipt gives, as names and values: RateLimit, RateLimit-Policy, Retry-After and, if asked, those of a dialect (J3).

route names the policy; the figures are the receipt's. unit: what the policy counts. window_seconds: the policy's time window. dialect: openai (x-ratelimit-*) or anthropic (anthropic-ratelimit-*); any other text, or a unit that the dialect has no word for, adds none. A field whose figures are NULL is left out. No errors. Needs EXECUTE on rate_limit, rate_limit_policy, retry_after and structured_string, too.$$;

COMMENT ON FUNCTION rate_limit IS
$$Writes the RateLimit field: what is available to the pair, and the seconds in which it is full again (J3).

draft-ietf-httpapi-ratelimit-headers-11. r is available, 0 to 999999999999999; t the seconds from ledger_at to reset_at, rounded up, but no more than Retry-After; without both there is no t. NULL if route or available is. No errors. Needs EXECUTE on retry_after and structured_string, too.$$;

COMMENT ON FUNCTION rate_limit_policy IS
$$Writes the RateLimit-Policy field: the cap of the pair, its unit and the time window (J3).

draft-ietf-httpapi-ratelimit-headers-11. q is cap, 0 to 999999999999999; qu the unit, left out for requests, which it stands for; w is window_seconds, left out below 1. NULL if route or cap is. No errors. Needs EXECUTE on structured_string, too.$$;

COMMENT ON FUNCTION retry_after IS
$$Writes the Retry-After field: whole seconds, rounded up, or NULL where there is no wait (D4, J3).

RFC 9110, section 10.2.3. 1 to 999999999999999; NULL below one millisecond. No errors.$$;

COMMENT ON FUNCTION problem_details IS
$$Writes an answer that is a problem as the problem document of RFC 9457, status included; NULL for ACCEPTED and UNENFORCED (D3, J3).

Members: type, title, status, detail, dimension, generation, retry_kind, retry_after_ms and, with status 429 and a route, violated-policies. generation and retry_after_ms are strings; what is NULL is left out; no balance is shown. No errors. Needs EXECUTE on structured_string, too.$$;

COMMENT ON FUNCTION structured_string IS
$$Writes a text as a String of RFC 9651, in quotes: a byte outside printable ASCII, and the percent sign, become %XX (J3).

Quotes and backslashes are escaped. Any percent-decoder gives the text back. NULL gives NULL. No errors.$$;
