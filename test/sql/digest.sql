-- canonical_json() and request_digest() against the vectors that RFC 8785
-- publishes, and what they refuse (A5).  Needs a database in UTF-8.

-- Appendix B, in full but for NaN and Infinity, which JSON cannot write.  The
-- second column is the double; the third spells it, mostly otherwise than the
-- RFC's own text in the fourth.
WITH number (n, ieee754, spelled, published) AS (VALUES
  ( 1, '0000000000000000', '0.00',                           '0'),
  ( 2, '8000000000000000', '-0',                             '0'),
  ( 3, '0000000000000001', '5E-324',                         '5e-324'),
  ( 4, '8000000000000001', '-0.5e-323',                      '-5e-324'),
  ( 5, '7fefffffffffffff', '17976931348623157e292',          '1.7976931348623157e+308'),
  ( 6, 'ffefffffffffffff', '-17976931348623157e292',         '-1.7976931348623157e+308'),
  ( 7, '4340000000000000', '9007199254740992.0',             '9007199254740992'),
  ( 8, 'c340000000000000', '-9.007199254740992e15',          '-9007199254740992'),
  ( 9, '4430000000000000', '29514790517935283e4',            '295147905179352830000'),
  (10, '44b52d02c7e14af5', '99999999999999970000000',        '9.999999999999997e+22'),
  (11, '44b52d02c7e14af6', '100000000000000000000000',       '1e+23'),
  (12, '44b52d02c7e14af7', '100000000000000010000000',       '1.0000000000000001e+23'),
  (13, '444b1ae4d6e2ef4e', '9.999999999999997e20',           '999999999999999700000'),
  (14, '444b1ae4d6e2ef4f', '9.999999999999999e20',           '999999999999999900000'),
  (15, '444b1ae4d6e2ef50', '1000000000000000000000',         '1e+21'),
  (16, '3eb0c6f7a0b5ed8c', '0.0000009999999999999997',       '9.999999999999997e-7'),
  (17, '3eb0c6f7a0b5ed8d', '1e-6',                           '0.000001'),
  (18, '41b3de4355555553', '3333333333333332e-7',            '333333333.3333332'),
  (19, '41b3de4355555554', '33333333333333325e-8',           '333333333.33333325'),
  (20, '41b3de4355555555', '333333333.33333330',             '333333333.3333333'),
  (21, '41b3de4355555556', '3.333333333333334e8',            '333333333.3333334'),
  (22, '41b3de4355555557', '33333333333333343e-8',           '333333333.33333343'),
  (23, 'becbf647612f3696', '-3.3333333333333333e-6',         '-0.0000033333333333333333'),
  (24, '43143ff3c1cb0959', '14249539237812062e-1',           '1424953923781206.2'))
SELECT n, ieee754, encode(float8send(spelled::float8), 'hex') = ieee754 AS that_double,
       limitledger.canonical_json(spelled::jsonb) AS canonical,
       limitledger.canonical_json(spelled::jsonb) = published AS as_published
FROM number ORDER BY n;

-- Sections 3.2.2 and 3.2.4: the sample, and its published bytes.  Its first
-- number is no double.  The RFC rounds it; here it is refused, since two requests
-- that differ must not share a digest.
SELECT limitledger.canonical_json(
  '{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\u20ac$\u000F\u000aA''\u0042\u0022\u005c\\\"\/",
    "literals": [null, true, false]}');
WITH sample AS (SELECT
  '{"numbers": [333333333.3333333, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\u20ac$\u000F\u000aA''\u0042\u0022\u005c\\\"\/",
    "literals": [null, true, false]}'::jsonb AS request)
SELECT convert_to(limitledger.canonical_json(request), 'UTF8') = decode(
  '7b 22 6c 69 74 65 72 61 6c 73 22 3a 5b 6e 75 6c 6c 2c 74 72
   75 65 2c 66 61 6c 73 65 5d 2c 22 6e 75 6d 62 65 72 73 22 3a
   5b 33 33 33 33 33 33 33 33 33 2e 33 33 33 33 33 33 33 2c 31
   65 2b 33 30 2c 34 2e 35 2c 30 2e 30 30 32 2c 31 65 2d 32 37
   5d 2c 22 73 74 72 69 6e 67 22 3a 22 e2 82 ac 24 5c 75 30 30
   30 66 5c 6e 41 27 42 5c 22 5c 5c 5c 5c 5c 22 2f 22 7d', 'hex') AS as_published,
  encode(limitledger.request_digest(request), 'hex') AS digest
FROM sample;

-- Section 3.2.3: members in the order of UTF-16 code units.
SELECT translate(encode(convert_to(limitledger.canonical_json(
  '{"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh",
    "1": "One", "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control",
    "\u00f6": "Latin Small Letter O With Diaeresis"}'), 'UTF8'), 'escape'), '{,}', E'\n\n\n') AS members;

-- Around the surrogates, at every depth, and with one name the start of another.
SELECT encode(convert_to(limitledger.canonical_json(
  '[{"\uffff": 6, "\ue000": 5, "\ud800\udc00": 3, "\udbff\udfff": 4, "\ud7ff": 2, "": 0, "\u007f": 1},
    {"b": {"aa": 2, "a": 1, "a\u0001": 0, "B": -1}, "a": [], "": {}}]'), 'UTF8'), 'escape') AS canonical;

-- Only what has to be escaped is.
SELECT encode(convert_to(limitledger.canonical_json(
  '"\u0001\b\t\n\u000b\f\r\u001f \u0022\u0027\u002f\u005c\u007f\u00e4\u2028"'), 'UTF8'), 'escape') AS canonical;

-- Scalars are JSON too.
SELECT request, limitledger.canonical_json(request)
FROM unnest(ARRAY['null', 'true', '""', '[]', '{}', '-1.50', '[[1, {"b": 2, "a": 1}], 3]']::jsonb[]) AS request;

-- The digests are those of sha256sum(1) over the canonical form ...
SELECT request, encode(limitledger.request_digest(request::jsonb), 'hex') AS digest
FROM (VALUES ('{}'), ('{"units": 600, "prompt": "gr\u00fc\u00df Gott", "model": "m-1"}')) AS v (request);
-- ... and of the server's own SHA-256.
SELECT bool_and(limitledger.request_digest(request)
                = sha256(convert_to(limitledger.canonical_json(request), 'UTF8'))) AS same
FROM (SELECT jsonb_build_object('n', n, 'half', n / 2.0, 'text', repeat(chr(8364), n)) AS request
      FROM generate_series(0, 200) AS n) AS requests;

-- One request, spelled twice; and two requests.
SELECT limitledger.request_digest('{"a": 1.0, "b": "\u00e9"}') = limitledger.request_digest('{"b":"\u00E9","a":10e-1}') AS same,
       limitledger.request_digest('{"a": 1}') = limitledger.request_digest('{"a": "1"}') AS other,
       limitledger.request_digest('[1, 2]') = limitledger.request_digest('[2, 1]') AS order_counts;

-- A number that a double does not hold is refused, wherever it stands (LL108).
SELECT limitledger.request_digest('{"units": [9007199254740993]}');
\echo :LAST_ERROR_SQLSTATE
SELECT limitledger.canonical_json('0.1000000000000000055511151231257827');
\echo :LAST_ERROR_SQLSTATE
SELECT limitledger.canonical_json('9.999999999999999e22');
\echo :LAST_ERROR_SQLSTATE
SELECT limitledger.canonical_json('-1e400');
\echo :LAST_ERROR_SQLSTATE
SELECT limitledger.canonical_json('1e-400');
\echo :LAST_ERROR_SQLSTATE

-- NULL has no digest; the functions may stand in an index and in a parallel plan.
SELECT limitledger.canonical_json(NULL) IS NULL AND limitledger.request_digest(NULL) IS NULL AS null_in_null_out;
SELECT proname, provolatile, proisstrict, proparallel, prosecdef
FROM pg_proc WHERE pronamespace = 'limitledger'::regnamespace AND proname IN ('canonical_json', 'request_digest')
ORDER BY proname;
