-- What a gateway sends on: the figures of a receipt as HTTP fields, to the byte (D3,
-- D4, J3, I1).
--
-- Fails when: a wait is rounded down, a number leaves the range of RFC 9651, a byte
-- gets into a header that may not be there, a session's setting shows in a field, a
-- formatter raises an error, or an answer has another status than is documented.

BEGIN;
\ir helpers.psql
SELECT plan(178);

-- ---- What they are ------------------------------------------------------------
CREATE TEMP TABLE formatter (name text) ON COMMIT DROP;
INSERT INTO formatter VALUES ('http_headers'), ('rate_limit'), ('rate_limit_policy'), ('retry_after'), ('problem_details'), ('structured_string');
CREATE VIEW helpers.declared AS
SELECT p.* FROM pg_proc p WHERE p.pronamespace = 'limitledger'::regnamespace;

SELECT is((p.provolatile, p.proparallel)::text, '(i,s)', f.name || ': IMMUTABLE PARALLEL SAFE') FROM formatter f LEFT JOIN declared p ON p.proname = f.name;
SELECT is(p.prosecdef, false, f.name || ': with the caller''s rights') FROM formatter f LEFT JOIN declared p ON p.proname = f.name;
SELECT is(p.proconfig, ARRAY['search_path=pg_catalog, limitledger, pg_temp'], f.name || ': a fixed path') FROM formatter f LEFT JOIN declared p ON p.proname = f.name;
SELECT is_empty(format($$SELECT 1 FROM declared p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a WHERE p.proname = %L AND a.grantee = 0$$, name),
  name || ': nothing for PUBLIC') FROM formatter;

-- ---- A String of RFC 9651 -------------------------------------------------------
SELECT is(limitledger.structured_string(v.value), v.expected, v.what)
FROM (VALUES
  ('chat.generate', '"chat.generate"', 'plain'),
  ('', '""', 'empty'),
  (' !#$&''()*+,-./09:;<=>?@AZ[]^_`az{|}~', '" !#$&''()*+,-./09:;<=>?@AZ[]^_`az{|}~"', 'all that stays as it is'),
  ('a"b', '"a\"b"', 'a quote'),
  ('a\b', '"a\\b"', 'a backslash'),
  ('100%', '"100%25"', 'a percent sign'),
  ('ä€😀', '"%C3%A4%E2%82%AC%F0%9F%98%80"', 'two, three and four bytes'),
  (E'a\r\nSet-Cookie: x', '"a%0D%0ASet-Cookie: x"', 'a header inside'),
  (E'end\n', '"end%0A"', 'a newline at the end'),
  (E'\t\u007f', '"%09%7F"', 'control characters'),
  (']', '"]"', 'a bracket alone'),
  (NULL, NULL, 'NULL')) v (value, expected, what);

-- Every character below 256 alone: printable ASCII or nothing else, and none like another.
CREATE TEMP TABLE coded ON COMMIT DROP AS
SELECT n, limitledger.structured_string(chr(n)) AS value FROM generate_series(1, 255) n;
SELECT is_empty($$SELECT n FROM coded WHERE value !~ '^"([] !#$&-[^-~]|\\["\\]|(%[0-9A-F]{2})+)"$'$$, 'each character is printable ASCII');
SELECT is((SELECT count(DISTINCT value) FROM coded), 255::bigint, 'and none is like another');

-- decoded reads a String as a client does: unescape, then percent-decode.
CREATE FUNCTION helpers.decoded(string text) RETURNS text
LANGUAGE sql AS $$
  SELECT coalesce(convert_from(string_agg(CASE WHEN left(piece, 1) = '%' THEN decode(substr(piece, 2), 'hex')
    ELSE convert_to(piece, 'UTF8') END, '' ORDER BY n), 'UTF8'), '')
  FROM regexp_matches(string::jsonb #>> '{}', '%[0-9A-F]{2}|[^%]', 'g') WITH ORDINALITY AS m (pieces, n), LATERAL (SELECT pieces[1]) p (piece)
$$;
SELECT is_empty($$SELECT n FROM coded WHERE decoded(value) <> chr(n)$$, 'a client gets each back');
SELECT is(decoded(limitledger.structured_string(v)), v, 'and a text of them') FROM (SELECT string_agg(chr(n), '' ORDER BY n) FROM generate_series(1, 9999) n) s (v);
SELECT is(length(limitledger.structured_string(repeat('ä', 128))), 770, 'the longest route stays below the 1,024 characters that each parser takes');

-- ---- Retry-After ------------------------------------------------------------------
SELECT is(limitledger.retry_after(v.ms), v.expected, format('wait of %s ms', coalesce(v.ms::text, 'NULL')))
FROM (VALUES
  (NULL::bigint, NULL), (-9223372036854775808, NULL), (-1, NULL), (0, NULL), (1, '1'), (999, '1'), (1000, '1'), (1001, '2'), (20000, '20'), (20001, '21'),
  (86400000, '86400'), (999999999999998001, '999999999999999'), (999999999999999001, '999999999999999'), (9223372036854775807, '999999999999999')) v (ms, expected);

-- ---- RateLimit ----------------------------------------------------------------------
SELECT is(limitledger.rate_limit('chat', v.available, '2030-01-01 10:00:00+00'::timestamptz + v.full_in, '2030-01-01 10:00:00+00', v.wait), v.expected, v.what)
FROM (VALUES
  (400::bigint, interval '60 seconds', NULL::bigint, '"chat";r=400;t=60', 'until it is full'),
  (400, '59.000001 seconds', NULL, '"chat";r=400;t=60', 'rounded up, from a microsecond on'),
  (400, '60 seconds', 20000, '"chat";r=400;t=20', 'no longer than Retry-After'),
  (400, '60 seconds', 19001, '"chat";r=400;t=20', 'which is rounded up'),
  (0, '60 seconds', 90000, '"chat";r=0;t=60', 'a longer wait does not count'),
  (400, '60 seconds', 0, '"chat";r=400;t=60', 'nor does none'),
  (1000, '0', NULL, '"chat";r=1000;t=0', 'full'),
  (1000, '-5 seconds', NULL, '"chat";r=1000;t=0', 'a clock that stepped back'),
  (400, NULL, NULL, '"chat";r=400', 'no refill'),
  (400, NULL, 5000, '"chat";r=400;t=5', 'no reset, but a wait'),
  (0, '366 days', NULL, '"chat";r=0;t=31622400', 'a year'),
  (-1, '1 second', NULL, '"chat";r=0;t=1', 'never below zero'),
  (999999999999999, '1 second', NULL, '"chat";r=999999999999999;t=1', 'the largest Integer'),
  (1000000000000000, '1 second', NULL, '"chat";r=999999999999999;t=1', 'clamped above'),
  (9223372036854775807, '1 second', NULL, '"chat";r=999999999999999;t=1', 'the largest bigint'),
  (NULL, '1 second', NULL, NULL, 'no available, no field')) v (available, full_in, wait, expected, what);
SELECT is(limitledger.rate_limit('chat', 1, 'infinity', now()), '"chat";r=1', 'never full');
SELECT is(limitledger.rate_limit('chat', 1, now(), '-infinity'), '"chat";r=1', 'no instant');
SELECT is(limitledger.rate_limit('chat', 1, now(), NULL), '"chat";r=1', 'no clock');
SELECT is(limitledger.rate_limit(NULL, 1, now(), now()), NULL, 'no route, no field');
SELECT is(limitledger.rate_limit(E'ch"ä\n', 1, NULL, NULL), '"ch\"%C3%A4%0A";r=1', 'a route that needs encoding');

-- ---- RateLimit-Policy -----------------------------------------------------------------
SELECT is(limitledger.rate_limit_policy('chat', v.cap, v.unit, v.seconds), v.expected, v.what)
FROM (VALUES
  (1000::bigint, 'tokens', 100::bigint, '"chat";q=1000;qu="tokens";w=100', 'in full'),
  (1000, NULL, NULL, '"chat";q=1000', 'the least'),
  (1000, 'requests', 60, '"chat";q=1000;w=60', 'requests are what no unit means'),
  (1000, 'content-bytes', NULL, '"chat";q=1000;qu="content-bytes"', 'a registered unit'),
  (1000, E'a"ä\n', NULL, '"chat";q=1000;qu="a\"%C3%A4%0A"', 'a unit that needs encoding'),
  (1000, NULL, 0, '"chat";q=1000', 'a window is never zero'),
  (1000, NULL, -1, '"chat";q=1000', 'nor negative'),
  (9223372036854775807, NULL, 9223372036854775807, '"chat";q=999999999999999;w=999999999999999', 'clamped above'),
  (-1, NULL, NULL, '"chat";q=0', 'and below'),
  (NULL, 'tokens', 100, NULL, 'no cap, no field')) v (cap, unit, seconds, expected, what);
SELECT is(limitledger.rate_limit_policy(NULL, 1000), NULL, 'no route, no field');

-- ---- The set ------------------------------------------------------------------------------
-- lines puts it as it goes over the wire.
CREATE FUNCTION helpers.lines(unit text, dialect text, available bigint DEFAULT 400, cap bigint DEFAULT 1000,
  reset_at timestamptz DEFAULT '2030-01-01 10:06:00+00', wait bigint DEFAULT NULL) RETURNS text
LANGUAGE sql AS $$
  SELECT string_agg(name || ': ' || value, E'\n') FROM limitledger.http_headers('chat', available, cap, reset_at, '2030-01-01 10:00:00+00', wait, unit, 60, dialect)
$$;
SELECT is(lines(NULL, NULL), E'RateLimit: "chat";r=400;t=360\nRateLimit-Policy: "chat";q=1000;w=60', 'of an accepted call');
SELECT is(lines('tokens', NULL, wait => 20000), E'RateLimit: "chat";r=400;t=20\nRateLimit-Policy: "chat";q=1000;qu="tokens";w=60\nRetry-After: 20', 'of a refusal');
SELECT is(lines('tokens', 'openai', wait => 19999), E'RateLimit: "chat";r=400;t=20\nRateLimit-Policy: "chat";q=1000;qu="tokens";w=60\nRetry-After: 20\n'
  'x-ratelimit-limit-tokens: 1000\nx-ratelimit-remaining-tokens: 400\nx-ratelimit-reset-tokens: 6m0s', 'openai, tokens');
SELECT is(lines('requests', 'openai'), E'RateLimit: "chat";r=400;t=360\nRateLimit-Policy: "chat";q=1000;w=60\n'
  'x-ratelimit-limit-requests: 1000\nx-ratelimit-remaining-requests: 400\nx-ratelimit-reset-requests: 6m0s', 'openai, requests');
SELECT is(lines('tokens', 'anthropic', wait => 19999), E'RateLimit: "chat";r=400;t=20\nRateLimit-Policy: "chat";q=1000;qu="tokens";w=60\nRetry-After: 20\n'
  'anthropic-ratelimit-tokens-limit: 1000\nanthropic-ratelimit-tokens-remaining: 400\nanthropic-ratelimit-tokens-reset: 2030-01-01T10:06:00Z', 'anthropic, tokens');
SELECT is(lines(unit, 'anthropic'), format(E'RateLimit: "chat";r=400;t=360\nRateLimit-Policy: "chat";q=1000%2$s;w=60\n'
  'anthropic-ratelimit-%1$s-limit: 1000\nanthropic-ratelimit-%1$s-remaining: 400\nanthropic-ratelimit-%1$s-reset: 2030-01-01T10:06:00Z',
  unit, CASE WHEN unit <> 'requests' THEN ';qu="' || unit || '"' ELSE '' END), 'anthropic, ' || unit) FROM unnest(ARRAY['requests', 'input-tokens', 'output-tokens']) unit;
SELECT is(lines(unit, dialect), lines(unit, NULL), format('%s has no word for %s', coalesce(dialect, 'nobody'), coalesce(unit, 'NULL')))
FROM (VALUES ('openai', 'input-tokens'), ('openai', 'credits'), ('openai', NULL), ('anthropic', 'credits'), ('anthropic', NULL), ('OpenAI', 'tokens'), ('', 'tokens')) v (dialect, unit);
SELECT is(lines('tokens', 'openai', NULL, NULL, NULL), NULL, 'no figures, no fields');
SELECT is(lines('tokens', 'anthropic', 5, 10, NULL), E'RateLimit: "chat";r=5\nRateLimit-Policy: "chat";q=10;qu="tokens";w=60\n'
  'anthropic-ratelimit-tokens-limit: 10\nanthropic-ratelimit-tokens-remaining: 5', 'no refill, no reset');
SELECT is(lines('tokens', 'openai', 9223372036854775807, 9223372036854775807, NULL), E'RateLimit: "chat";r=999999999999999\nRateLimit-Policy: "chat";q=999999999999999;qu="tokens";w=60\n'
  'x-ratelimit-limit-tokens: 999999999999999\nx-ratelimit-remaining-tokens: 999999999999999', 'clamped above');
SELECT is(lines('tokens', 'anthropic', -1, -1, NULL), E'RateLimit: "chat";r=0\nRateLimit-Policy: "chat";q=0;qu="tokens";w=60\n'
  'anthropic-ratelimit-tokens-limit: 0\nanthropic-ratelimit-tokens-remaining: 0', 'and below');
SELECT is((SELECT count(*) FROM limitledger.http_headers(NULL, 1, 1, now(), now())), 0::bigint, 'no route, no fields');

-- Durations as Go writes them, instants as RFC 3339 does; both rounded up.
CREATE FUNCTION helpers.reset(dialect text, reset_at timestamptz) RETURNS text
LANGUAGE sql AS $$
  SELECT value FROM limitledger.http_headers('chat', 1, 1, reset_at, '2030-01-01 10:00:00+00', unit => 'tokens', dialect => dialect) WHERE name ~ 'ratelimit-.*reset'
$$;
SELECT is(reset('openai', '2030-01-01 10:00:00+00'::timestamptz + v.full_in::interval), v.expected, 'in ' || v.full_in)
FROM (VALUES ('0', '0s'), ('1 microsecond', '1ms'), ('20 milliseconds', '20ms'), ('999 milliseconds', '999ms'), ('999.001 milliseconds', '1s'), ('1 second', '1s'), ('1.5 seconds', '1.5s'),
  ('8.64 seconds', '8.64s'), ('59.9999 seconds', '1m0s'), ('86.4 seconds', '1m26.4s'), ('6 minutes', '6m0s'), ('59 minutes 59.001 seconds', '59m59.001s'),
  ('1 hour', '1h0m0s'), ('1 hour 250 milliseconds', '1h0m0.25s'), ('24 hours', '24h0m0s'), ('366 days', '8784h0m0s'), ('-1 hour', '0s')) v (full_in, expected);
SELECT is(reset('openai', 'infinity'), NULL, 'never');
SELECT is(reset('anthropic', v.instant::timestamptz), v.expected, 'at ' || v.instant)
FROM (VALUES ('2030-01-01 10:00:00+00', '2030-01-01T10:00:00Z'), ('2030-01-01 10:00:00.000001+00', '2030-01-01T10:00:01Z'), ('2030-01-01 12:00:00+02', '2030-01-01T10:00:00Z'),
  ('2029-12-31 23:59:59.5+00', '2030-01-01T00:00:00Z'), ('9999-12-31 23:59:59+00', '9999-12-31T23:59:59Z'), ('20000-01-01 00:00:00+00', '9999-12-31T23:59:59Z'),
  ('infinity', NULL)) v (instant, expected);

-- No setting of a session shows.
CREATE FUNCTION helpers.all_fields() RETURNS text
LANGUAGE sql AS $$
  SELECT lines('tokens', 'openai', wait => 19999) || lines('tokens', 'anthropic', reset_at => '2030-07-01 09:59:59.5+00')
    || limitledger.problem_details('REFUSED', 'available', 19999, 'refill', 7, E'ä"\\')::text
$$;
CREATE TEMP TABLE plain ON COMMIT DROP AS SELECT all_fields() AS fields;
SET LOCAL TimeZone = 'Asia/Kathmandu';
SET LOCAL DateStyle = 'SQL, DMY';
SET LOCAL IntervalStyle = 'iso_8601';
SET LOCAL bytea_output = 'escape';
SET LOCAL extra_float_digits = -15;
SET LOCAL standard_conforming_strings = off;
SELECT is(all_fields(), fields, 'the same under any setting') FROM plain;
RESET TimeZone; RESET DateStyle; RESET IntervalStyle; RESET bytea_output; RESET extra_float_digits; RESET standard_conforming_strings;

-- Nor does a search path that leads elsewhere first.
CREATE SCHEMA elsewhere;
CREATE FUNCTION elsewhere.evil(text, text) RETURNS text LANGUAGE sql AS $$SELECT 'evil'$$;
CREATE OPERATOR elsewhere.|| (FUNCTION = elsewhere.evil, LEFTARG = text, RIGHTARG = text);
SET LOCAL search_path = elsewhere, pg_catalog;
CREATE TEMP TABLE misled ON COMMIT DROP AS SELECT 'a'::text || 'b' AS joined, limitledger.rate_limit('ä', 400, NULL, NULL) AS field;
SET LOCAL search_path = helpers, public;
SELECT is((joined, field)::text, '(evil,"""%C3%A4"";r=400")', 'the same under a search path that misleads the caller') FROM misled;

-- ---- Problems ---------------------------------------------------------------------------
CREATE TEMP TABLE problem (outcome text, dimension text, retry_kind text, status int) ON COMMIT DROP;
INSERT INTO problem VALUES
  ('REFUSED', 'no_policy', 'operator', 403), ('REFUSED', 'region', 'never', 403), ('REFUSED', 'estimator', 'never', 503), ('REFUSED', 'deadline', 'never', 503),
  ('REFUSED', 'draining', 'operator', 503), ('REFUSED', 'frozen', 'operator', 403), ('REFUSED', 'largest_reservation', 'never', 403), ('REFUSED', 'cap', 'never', 403),
  ('REFUSED', 'largest_outstanding', 'release', 429), ('REFUSED', 'largest_outstanding', 'never', 403), ('REFUSED', 'debt', 'refill', 429), ('REFUSED', 'debt', 'release', 429),
  ('REFUSED', 'available', 'refill', 429), ('REFUSED', 'available', 'release', 429), ('REFUSED', 'not_started', NULL, 409), ('REFUSED', 'already_started', NULL, 409),
  ('REFUSED', 'expired', NULL, 409), ('REFUSED', 'to_come', 'refill', 429), ('REFUSED', 'to_come', 'operator', 403), ('REFUSED', 'to_come', 'never', 403), ('REFUSED', 'to_come', NULL, 409),
  ('CONFLICT', 'request', NULL, 409), ('CONFLICT', 'operation', NULL, 409), ('CONFLICT', 'figures', NULL, 409), ('UNKNOWN', 'reservation', NULL, 404), ('UNKNOWN', 'pair', NULL, 404),
  ('ACCEPTED', NULL, NULL, NULL), ('else', NULL, NULL, NULL), (NULL, NULL, NULL, NULL);
SELECT is(limitledger.problem_details(outcome, dimension, NULL, retry_kind, 1) -> 'status', to_jsonb(status), concat_ws(' ', 'status of', coalesce(outcome, 'NULL'), dimension, retry_kind)) FROM problem;
SELECT is_empty($$SELECT o.outcome, o.dimension FROM limitledger.outcomes() o WHERE (limitledger.problem_details(o.outcome, o.dimension, NULL, o.retry_kind, 1) IS NULL) <> (o.outcome IN ('ACCEPTED', 'UNENFORCED'))$$,
  'each answer but ACCEPTED and UNENFORCED is a problem');
SELECT is_empty($$SELECT status, title FROM (SELECT DISTINCT limitledger.problem_details(outcome, dimension, NULL, retry_kind, 1) FROM problem) p (d), jsonb_to_record(d) AS r (type text, title text, status int)
  WHERE (type, title, status) NOT IN (('about:blank', 'Forbidden', 403), ('about:blank', 'Not Found', 404), ('about:blank', 'Conflict', 409), ('about:blank', 'Service Unavailable', 503),
    ('https://iana.org/assignments/http-problem-types#quota-exceeded', 'Quota Exceeded', 429))$$, 'a type and a title for each status');
SELECT is(limitledger.problem_details('REFUSED', 'available', 9223372036854775807, 'refill', 9223372036854775807, E'ch"ä\\%'),
  '{"type": "https://iana.org/assignments/http-problem-types#quota-exceeded", "title": "Quota Exceeded", "status": 429, "detail": "Capacity comes back with time: ask again after the wait.",
    "violated-policies": ["ch\"%C3%A4\\%25"], "dimension": "available", "generation": "9223372036854775807", "retry_kind": "refill", "retry_after_ms": "9223372036854775807"}'::jsonb,
  'a wait in full: large numbers are strings, the policy is named as in RateLimit');
SELECT is(limitledger.problem_details('REFUSED', 'available', 1, 'refill', 1) ? 'violated-policies', false, 'without a route no policy is named');
SELECT is(limitledger.problem_details('REFUSED', 'frozen', NULL, 'operator', 3, 'chat'),
  '{"type": "about:blank", "title": "Forbidden", "status": 403, "detail": "An operator has to act before this can be admitted.", "dimension": "frozen", "generation": "3", "retry_kind": "operator"}'::jsonb, 'no wait');
SELECT is(limitledger.problem_details('CONFLICT', 'request', NULL, NULL, NULL, 'chat'),
  '{"type": "about:blank", "title": "Conflict", "status": 409, "detail": "The id already stands for something else.", "dimension": "request"}'::jsonb, 'a conflict gives nothing away');

-- ---- With real receipts --------------------------------------------------------------------
SELECT at('10:00:00');
SELECT publish('t', 'chat', continuous(10, '1 second', 1000));
SELECT is(reserve('t', 'chat', 'r1', 600), 'ACCEPTED RESERVED', 'a hold');
PREPARE asked (text, text, bigint, bytea) AS
SELECT string_agg(h.name || ': ' || h.value, E'\n') FROM limitledger.reserve_capacity('t', $1, $2, $3, $4) r,
  limitledger.http_headers($1, r.available, r.cap, r.reset_at, r.ledger_at, r.retry_after_ms, 'tokens', 100) h;
SELECT results_eq($$EXECUTE asked ('chat', 'r2', 600, sha256('r2'))$$, ARRAY[E'RateLimit: "chat";r=400;t=20\nRateLimit-Policy: "chat";q=1000;qu="tokens";w=100\nRetry-After: 20'], 'of a refusal, in its statement');
SELECT results_eq($$EXECUTE asked ('chat', 'r3', 100, sha256('r3'))$$, ARRAY[E'RateLimit: "chat";r=300;t=70\nRateLimit-Policy: "chat";q=1000;qu="tokens";w=100'], 'of a hold');
SELECT is(state('t', 'r3'), 'RESERVED', 'which is there');
SELECT results_eq($$EXECUTE asked ('chat', 'r3', 101, sha256('other'))$$, ARRAY[NULL::text], 'a conflict has no figures');
SELECT results_eq($$EXECUTE asked ('nowhere', 'r4', 1, sha256('r4'))$$, ARRAY[NULL::text], 'nor has a route without a policy');
SELECT is(limitledger.problem_details(r.outcome, r.dimension, r.retry_after_ms, r.retry_kind, r.generation, 'chat') - 'generation',
  '{"type": "https://iana.org/assignments/http-problem-types#quota-exceeded", "title": "Quota Exceeded", "status": 429, "detail": "Capacity comes back with time: ask again after the wait.",
    "violated-policies": ["chat"], "dimension": "available", "retry_kind": "refill", "retry_after_ms": "30000"}'::jsonb, 'the problem of a refusal')
FROM limitledger.reserve_capacity('t', 'chat', 'r2', 600, sha256('r2')) r;

-- A caller needs EXECUTE on them and nothing else.
CREATE ROLE limitledger_test_formats;
GRANT USAGE ON SCHEMA limitledger TO limitledger_test_formats;
GRANT USAGE ON SCHEMA helpers TO limitledger_test_formats;
SET LOCAL ROLE limitledger_test_formats;
SELECT throws_ok($$SELECT limitledger.retry_after(1)$$, '42501', NULL, 'a plain role may not even format');
RESET ROLE;
GRANT EXECUTE ON FUNCTION limitledger.http_headers, limitledger.rate_limit, limitledger.rate_limit_policy, limitledger.retry_after, limitledger.problem_details,
  limitledger.structured_string TO limitledger_test_formats;
SET LOCAL ROLE limitledger_test_formats;
SELECT is(lines('tokens', 'openai', wait => 19999) IS NOT NULL AND limitledger.problem_details('UNKNOWN', 'pair', NULL, NULL, NULL) IS NOT NULL, true, 'with EXECUTE it may');
RESET ROLE;

SELECT * FROM finish();
ROLLBACK;
