-- publish_policy() and activate_policy(): what a document must be, what a
-- generation is, who takes over from whom (B1 to B5), and the guards (C3).
BEGIN;
SET LOCAL search_path = public;
SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO'; SET LOCAL IntervalStyle = 'postgres';
SELECT plan(257);

-- A sound document, changed: `patch` replaces fields, `without` removes them.
CREATE FUNCTION pg_temp.document(patch jsonb DEFAULT '{}', without text[] DEFAULT '{}')
RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT ('{
    "schema": "admissionBudget.v1", "subject": "t1", "route": "chat", "region": "*", "unit": "token",
    "refill": {"kind": "continuous", "units": 100, "interval": "1 second"}, "burst": 1000,
    "epoch": {"length": "1 hour"}, "estimatorDigests": [],
    "largestReservation": 600, "holdTtl": "30 seconds", "executionTtl": "10 minutes",
    "hardExecutionLimit": 2000, "maximumOverdraft": 500,
    "priority": 5, "weight": 1, "fairnessBudget": 0, "retention": "7 days"}'::jsonb || patch) - without
$$;

-- What a statement ends in: its SQLSTATE and message, or 'done'.  Undone either way.
CREATE FUNCTION pg_temp.ending(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  code text; message text; detail text; hint text;
BEGIN
  EXECUTE statement;
  RAISE EXCEPTION USING ERRCODE = 'ZZ000';
EXCEPTION
  WHEN SQLSTATE 'ZZ000' THEN
    RETURN 'done';
  WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
      detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(' ', code, message, CASE WHEN detail = '' THEN '(no detail)' END,
      CASE WHEN hint = '' THEN '(no hint)' END, CASE WHEN length(detail) > 400 THEN '(long detail)' END);
END;
$$;

CREATE FUNCTION pg_temp.publishing(document jsonb) RETURNS text LANGUAGE sql AS $$
  SELECT pg_temp.ending(format('SELECT limitledger.publish_policy(%L)', document))
$$;

-- ---- B1: each field, strictly ------------------------------------------------

SELECT is(pg_temp.ending('SELECT limitledger.publish_policy(NULL)'), 'LL101 document must not be null');
SELECT is(pg_temp.ending('SELECT limitledger.publish_policy(''{}'', NULL)'), 'LL101 activate must not be null');
SELECT is(pg_temp.publishing('[]'), 'LL203 document must be a JSON object');
SELECT is(pg_temp.publishing('null'), 'LL203 document must be a JSON object');

-- Every field but the optional ones is missed, by its name.
SELECT is(pg_temp.publishing(pg_temp.document(without => ARRAY[field])),
          format('LL201 policy field %s is missing', field))
FROM jsonb_object_keys(pg_temp.document()) AS field ORDER BY field COLLATE "C";

-- Every field refuses null and a value of a type that no field has.
SELECT matches(pg_temp.publishing(pg_temp.document(jsonb_build_object(field, value))),
               format('^LL203 policy field %s(\.kind|\.length)? (must|is) [^()]*$', field))
FROM (SELECT jsonb_object_keys(pg_temp.document()
        || '{"largestOutstanding": 1, "emergencyMode": "", "policyGeneration": 1}') AS field) AS fields,
     unnest(ARRAY['null', 'true']::jsonb[]) AS value
ORDER BY field COLLATE "C", value;

CREATE TEMP TABLE refused (n serial, patch jsonb, without text[], ending text);
INSERT INTO refused (patch, without, ending) VALUES
  -- names
  ('{"colour": 1}', '{}', 'LL202 policy field colour is unknown'),
  ('{"Burst": 1}', '{burst}', 'LL202 policy field Burst is unknown'),
  ('{"a b\n": 1}', '{}', 'LL202 policy field "a b\n" is unknown'),
  ('{"": 1}', '{}', 'LL202 policy field "" is unknown'),
  ('{"refill": {"kind": "continuous", "units": 1, "interval": "1 second", "quota": 5}}', '{}',
   'LL202 policy field refill.quota is unknown'),
  ('{"refill": {"kind": "window", "quota": 700}}', '{}',
   'LL202 policy field burst is unknown with refill.kind "window"'),
  ('{"refill": {"kind": "window", "quota": 700, "units": 1}}', '{burst}', 'LL202 policy field refill.units is unknown'),
  ('{"refill": {"kind": "none", "units": 1}}', '{}', 'LL202 policy field refill.units is unknown'),
  ('{"epoch": {"calendar": "day", "timeZone": "UTC", "length": "1 day"}}', '{}',
   'LL202 policy field epoch.length is unknown'),
  ('{"refill": {}}', '{}', 'LL201 policy field refill.kind is missing'),
  ('{"refill": {"kind": "continuous", "interval": "1 second"}}', '{}', 'LL201 policy field refill.units is missing'),
  ('{"refill": {"kind": "continuous", "units": 1}}', '{}', 'LL201 policy field refill.interval is missing'),
  ('{"refill": {"kind": "window"}}', '{burst}', 'LL201 policy field refill.quota is missing'),
  ('{"refill": {"kind": "none"}}', '{burst}', 'LL201 policy field burst is missing'),
  ('{"epoch": {}}', '{}', 'LL201 policy field epoch.length is missing'),
  ('{"epoch": {"calendar": "day"}}', '{}', 'LL201 policy field epoch.timeZone is missing'),
  ('{"epoch": {"timeZone": "UTC"}}', '{}', 'LL201 policy field epoch.calendar is missing'),
  -- texts
  ('{"schema": "admissionBudget.v2", "colour": 1}', '{}', 'LL203 policy field schema must be "admissionBudget.v1"'),
  ('{"subject": ""}', '{}', 'LL203 policy field subject must be a text of 1 to 256 bytes'),
  (jsonb_build_object('subject', repeat('x', 257)), '{}', 'LL203 policy field subject must be a text of 1 to 256 bytes'),
  (jsonb_build_object('route', repeat(chr(228), 129)), '{}', 'LL203 policy field route must be a text of 1 to 256 bytes'),
  ('{"route": "*"}', '{}', 'LL203 policy field route must name one route'),
  ('{"unit": 7}', '{}', 'LL203 policy field unit must be a text of 1 to 256 bytes'),
  ('{"emergencyMode": "on"}', '{}', 'LL203 policy field emergencyMode must be "disabled" or "enabled"'),
  ('{"emergencyMode": "enabled", "shardTtl": "1 h"}', '{}', 'LL201 policy field emergencyShare is missing'),
  ('{"emergencyMode": "enabled", "emergencyShare": 10}', '{}', 'LL201 policy field shardTtl is missing'),
  ('{"emergencyMode": "enabled", "emergencyShare": 0, "shardTtl": "1 h"}', '{}', 'LL203 policy field emergencyShare must be a whole number from 1 to 100'),
  ('{"shardTtl": "1 h"}', '{}', 'LL203 policy field shardTtl must be left out while emergencyMode is "disabled"'),
  ('{"refill": "none"}', '{}', 'LL203 policy field refill must be an object'),
  ('{"refill": {"kind": "sliding"}}', '{}',
   'LL203 policy field refill.kind must be "continuous", "window" or "none"'),
  ('{"refill": {"kind": null}}', '{}', 'LL203 policy field refill.kind must be "continuous", "window" or "none"'),
  ('{"epoch": "calendar"}', '{}', 'LL203 policy field epoch must be an object'),
  ('{"epoch": {"calendar": "week", "timeZone": "UTC"}}', '{}',
   'LL203 policy field epoch.calendar must be "day" or "month"'),
  -- time zones: a place, not an abbreviation, not whatever this machine is set to
  ('{"epoch": {"calendar": "day", "timeZone": "CET"}}', '{}',
   'LL203 policy field epoch.timeZone must be the full name of a time zone'),
  ('{"epoch": {"calendar": "day", "timeZone": "localtime"}}', '{}',
   'LL203 policy field epoch.timeZone must be the full name of a time zone'),
  ('{"epoch": {"calendar": "day", "timeZone": "europe/berlin"}}', '{}',
   'LL203 policy field epoch.timeZone must be the full name of a time zone'),
  ('{"epoch": {"calendar": "day", "timeZone": "+02:00"}}', '{}',
   'LL203 policy field epoch.timeZone must be the full name of a time zone'),
  ('{"epoch": {"calendar": "day", "timeZone": "Europe/Atlantis"}}', '{}',
   'LL203 policy field epoch.timeZone must be the full name of a time zone'),
  -- units and numbers
  ('{"burst": 0}', '{}', 'LL203 policy field burst must be a whole number from 1 to 9223372036854775807'),
  ('{"burst": -1000}', '{}', 'LL203 policy field burst must be a whole number from 1 to 9223372036854775807'),
  ('{"burst": 1000.5}', '{}', 'LL203 policy field burst must be a whole number from 1 to 9223372036854775807'),
  ('{"burst": "1000"}', '{}', 'LL203 policy field burst must be a whole number from 1 to 9223372036854775807'),
  ('{"burst": 9223372036854775808}', '{}',
   'LL203 policy field burst must be a whole number from 1 to 9223372036854775807'),
  ('{"burst": 1e400}', '{}', 'LL203 policy field burst must be a whole number from 1 to 9223372036854775807'),
  ('{"burst": 599}', '{}', 'LL203 policy field burst must not be below largestReservation'),
  ('{"refill": {"kind": "window", "quota": 599}}', '{burst}',
   'LL203 policy field refill.quota must not be below largestReservation'),
  ('{"refill": {"kind": "continuous", "units": 0, "interval": "1 second"}}', '{}',
   'LL203 policy field refill.units must be a whole number from 1 to 9223372036854775807'),
  ('{"largestReservation": 0}', '{}',
   'LL203 policy field largestReservation must be a whole number from 1 to 9223372036854775807'),
  ('{"largestOutstanding": 599}', '{}', 'LL203 policy field largestOutstanding must not be below largestReservation'),
  ('{"hardExecutionLimit": 0}', '{}',
   'LL203 policy field hardExecutionLimit must be a whole number from 1 to 9223372036854775807'),
  ('{"maximumOverdraft": -1}', '{}',
   'LL203 policy field maximumOverdraft must be a whole number from 0 to 9223372036854775807'),
  ('{"fairnessBudget": -1}', '{}',
   'LL203 policy field fairnessBudget must be a whole number from 0 to 9223372036854775807'),
  ('{"priority": 2147483648}', '{}',
   'LL203 policy field priority must be a whole number from -2147483648 to 2147483647'),
  ('{"weight": 0}', '{}', 'LL203 policy field weight must be a whole number from 1 to 1000000'),
  ('{"weight": 1000001}', '{}', 'LL203 policy field weight must be a whole number from 1 to 1000000'),
  ('{"policyGeneration": 0}', '{}',
   'LL203 policy field policyGeneration must be a whole number from 1 to 9223372036854775807'),
  -- digests
  ('{"estimatorDigests": "sha256:00"}', '{}',
   'LL203 policy field estimatorDigests must be an array of at most 256 digests'),
  ('{"estimatorDigests": ["sha256:00"]}', '{}', 'LL203 policy field estimatorDigests.0 must be a SHA-256 digest'),
  ('{"estimatorDigests": [null]}', '{}', 'LL203 policy field estimatorDigests.0 must be a SHA-256 digest'),
  (jsonb_build_object('estimatorDigests', jsonb_build_array('sha256:' || repeat('0a', 32), 'SHA256:' || repeat('0b', 32))),
   '{}', 'LL203 policy field estimatorDigests.1 must be a SHA-256 digest'),
  (jsonb_build_object('estimatorDigests', jsonb_build_array('sha256:' || repeat('0a', 32), 'sha256:' || repeat('0A', 32))),
   '{}', 'LL203 policy field estimatorDigests.1 is there twice'),
  (jsonb_build_object('estimatorDigests',
     (SELECT jsonb_agg('sha256:' || encode(sha256(int4send(i)), 'hex')) FROM generate_series(1, 257) AS i)),
   '{}', 'LL203 policy field estimatorDigests must be an array of at most 256 digests'),
  -- a long value is shown short
  (jsonb_build_object('unit', repeat('x', 100000)), '{}', 'LL203 policy field unit must be a text of 1 to 256 bytes');
SELECT is(pg_temp.publishing(pg_temp.document(patch, without)), ending, left(patch::text, 90))
FROM refused ORDER BY n;

-- Durations: of fixed length, above zero, at most 366 days; no sign, no month.
SELECT is(pg_temp.publishing(pg_temp.document(jsonb_build_object('holdTtl', written))),
          'LL203 policy field holdTtl must be a duration from 1 microsecond to 366 days', format('"%s"', written))
FROM unnest(ARRAY['', '5', 'soon', '0 seconds', '0.0000001 seconds', '-1 second', '1 second ago', '1 month', '0.5 months',
  '1 year', 'P1M', 'P0.5M', 'P1Y', 'P', 'PT', '1-2', '1:00', '1 m', '1 second 1 second', 'infinity',
  '366 days 1 microsecond', '99999999999 weeks']) WITH ORDINALITY AS u (written, n) ORDER BY n;
SELECT is(pg_temp.publishing(pg_temp.document('{"epoch": {"length": "999 milliseconds"}}')),
          'LL203 policy field epoch.length must be a duration from 1 second to 366 days');
SELECT is(pg_temp.publishing(pg_temp.document('{"retention": 7}')),
          'LL203 policy field retention must be a duration from 1 microsecond to 366 days');

SELECT is_empty('TABLE limitledger.policy', 'what was refused has left nothing behind');

-- ---- B1, B2: what is stored ---------------------------------------------------

SET LOCAL limitledger.clock_override = '2026-07-19 14:00:00+00';
SELECT results_eq(
  'SELECT * FROM limitledger.publish_policy(pg_temp.document())',
  $$VALUES (1::bigint, 'active', false, timestamptz '2026-07-19 14:00:00+00')$$, 'the first generation is 1');
SELECT is((SELECT (subject, route, stage, published_at, region, unit, refill_kind, cap, refill_units, refill_interval)::text
           FROM limitledger.policy),
          '(t1,chat,active,"2026-07-19 14:00:00+00",*,token,continuous,1000,100,00:00:01)', 'a continuous policy ...');
SELECT is((SELECT (epoch_length, epoch_calendar, epoch_time_zone, estimator_digests, largest_reservation, largest_outstanding,
             hold_ttl, execution_ttl, hard_execution_limit, maximum_overdraft, priority, weight, fairness_budget,
             emergency_mode, retention)::text FROM limitledger.policy),
          '(01:00:00,,,{},600,,00:00:30,00:10:00,2000,500,5,1,0,disabled,168:00:00)', '... column by column');
SELECT is((SELECT document FROM limitledger.policy), pg_temp.document('{"policyGeneration": 1}'),
          'the document is kept, with its generation');

SELECT lives_ok($$SELECT limitledger.publish_policy(pg_temp.document(
  jsonb_build_object('subject', '*', 'route', 'mail', 'region', 'eu', 'unit', 'request',
    'refill', '{"kind": "window", "quota": 9223372036854775807}'::jsonb,
    'epoch', '{"calendar": "month", "timeZone": "America/Chicago"}'::jsonb,
    'estimatorDigests', jsonb_build_array('sha256:' || repeat('0a', 32), 'sha256:' || repeat('0B', 32)),
    'largestOutstanding', 9007199254740993, 'emergencyMode', 'enabled', 'emergencyShare', 40, 'shardTtl', 'PT15M', 'priority', -3, 'weight', 1e2,
    'fairnessBudget', 70.0, 'maximumOverdraft', 0), '{burst}'))$$);
SELECT is((SELECT (subject, region, unit, refill_kind, cap, refill_units, refill_interval, epoch_length, epoch_calendar,
             epoch_time_zone)::text FROM limitledger.policy WHERE generation = 2),
          '(*,eu,request,window,9223372036854775807,0,00:00:00,,month,America/Chicago)', 'a window policy ...');
SELECT is((SELECT (largest_outstanding, emergency_mode, emergency_share, shard_ttl, priority, weight, fairness_budget, maximum_overdraft)::text
           FROM limitledger.policy WHERE generation = 2),
          '(9007199254740993,enabled,40,00:15:00,-3,100,70,0)', '... column by column');
SELECT is((SELECT estimator_digests FROM limitledger.policy WHERE generation = 2),
          ARRAY[decode(repeat('0a', 32), 'hex'), decode(repeat('0b', 32), 'hex')], 'digests are bytes');
SELECT lives_ok($$SELECT limitledger.publish_policy(pg_temp.document(
  '{"route": "none", "refill": {"kind": "none"}, "epoch": {"calendar": "day", "timeZone": "UTC"}}'))$$);
SELECT is((SELECT (refill_kind, cap, refill_units, epoch_calendar, epoch_time_zone)::text
           FROM limitledger.policy WHERE generation = 3), '(none,1000,0,day,UTC)', 'a policy without refill');

-- A duration reads the same whatever the session is set to, and holds neither
-- days nor months, which would depend on a time zone.
CREATE TEMP TABLE durations (written text, meant interval);
INSERT INTO durations VALUES ('30 seconds', '00:00:30'), ('30s', '00:00:30'), ('PT30S', '00:00:30'), ('00:00:30', '00:00:30'),
  ('1 hour 30 minutes', '01:30:00'), ('PT1.5H', '01:30:00'), ('1 day', '24:00:00'), ('1.5 days', '36:00:00'),
  ('1 day 12:00:00.5', '36:00:00.5'), ('P1DT12H', '36:00:00'), ('P1W', '168:00:00'), ('2 weeks', '336:00:00'),
  ('5 ms', '00:00:00.005'), ('1 microsecond', '00:00:00.000001'), ('366 days', '8784:00:00');
CREATE TEMP TABLE read_durations (style text, written text, generation bigint);
SET LOCAL IntervalStyle = sql_standard; SET LOCAL TimeZone = 'Europe/Berlin'; SET LOCAL DateStyle = 'German';
INSERT INTO read_durations SELECT 'sql', written, (SELECT generation FROM limitledger.publish_policy(
  pg_temp.document(jsonb_build_object('subject', written, 'route', 'sql', 'retention', written)))) FROM durations;
SET LOCAL IntervalStyle = iso_8601; SET LOCAL TimeZone = 'America/Chicago'; SET LOCAL DateStyle = 'SQL, DMY';
INSERT INTO read_durations SELECT 'iso', written, (SELECT generation FROM limitledger.publish_policy(
  pg_temp.document(jsonb_build_object('subject', written, 'route', 'iso', 'retention', written)))) FROM durations;
SET LOCAL IntervalStyle = 'postgres'; SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO';
SELECT is_empty($$
  SELECT style, written, retention FROM read_durations JOIN durations USING (written) JOIN limitledger.policy USING (generation)
  WHERE retention::text <> meant::text$$, 'every duration is what was meant');
SELECT is((SELECT count(*) FROM read_durations), 30::bigint, 'and all were read');

-- ---- B1: generations and repeats -----------------------------------------------

SELECT is((SELECT array_agg(generation ORDER BY generation) FROM limitledger.policy),
          (SELECT array_agg(g::bigint) FROM generate_series(1, 33) AS g),
          'generations are unique in the database and have no gap');

CREATE TEMP TABLE before AS TABLE limitledger.policy;
SET LOCAL limitledger.clock_override = '2026-07-19 15:00:00+00';
SELECT results_eq(
  'SELECT * FROM limitledger.publish_policy(pg_temp.document())',
  $$VALUES (1::bigint, 'active', true, timestamptz '2026-07-19 14:00:00+00')$$, 'publishing again returns what stands');
SELECT results_eq(
  $$SELECT * FROM limitledger.publish_policy(pg_temp.document('{"policyGeneration": 1, "burst": 1000.0}'), false)$$,
  $$VALUES (1::bigint, 'active', true, timestamptz '2026-07-19 14:00:00+00')$$, 'with the right generation too');
SELECT is(pg_temp.publishing(pg_temp.document('{"policyGeneration": 34}')),
          'LL204 policy field policyGeneration is not the generation of this document', 'a repeat gets no new number');
SELECT is(pg_temp.publishing(pg_temp.document('{"policyGeneration": 35, "burst": 900}')),
          'LL204 policy field policyGeneration is not the generation of this document', 'no number is left out');
SELECT is(pg_temp.publishing(pg_temp.document('{"policyGeneration": 33, "burst": 900}')),
          'LL204 policy field policyGeneration is not the generation of this document', 'and none is reused');
SELECT is(pg_temp.publishing(pg_temp.document('{"unit": "request", "subject": "t2"}')),
          'LL203 policy field unit is not the unit of the route');
SELECT results_eq('TABLE limitledger.policy ORDER BY generation', 'TABLE before ORDER BY generation',
          'neither repeats nor errors changed a row');

-- ---- B4, B5: taking over --------------------------------------------------------

SELECT results_eq(
  $$SELECT * FROM limitledger.publish_policy(pg_temp.document('{"policyGeneration": 34, "burst": 900}'), false)$$,
  $$VALUES (34::bigint, 'published', false, NULL::timestamptz)$$, 'published, not active');
SELECT results_eq(
  $$SELECT * FROM limitledger.publish_policy(pg_temp.document('{"burst": 900}'), false)$$,
  $$VALUES (34::bigint, 'published', true, NULL::timestamptz)$$, 'a repeat that does not activate');
SELECT is((SELECT stage::text FROM limitledger.policy WHERE generation = 1), 'active', 'the one before still rules');
SELECT results_eq(
  $$SELECT * FROM limitledger.publish_policy(pg_temp.document('{"burst": 900}'))$$,
  $$VALUES (34::bigint, 'active', true, timestamptz '2026-07-19 15:00:00+00')$$, 'a repeat that activates');
SELECT is((SELECT stage::text FROM limitledger.policy WHERE generation = 1), 'draining', 'the one before drains');
SELECT results_eq(
  'SELECT * FROM limitledger.activate_policy(34)',
  $$VALUES (34::bigint, 'active', true, timestamptz '2026-07-19 15:00:00+00')$$, 'activating the active one is a repeat');

-- A clock that stepped back moves no switch before an earlier one of the route.
SET LOCAL limitledger.clock_override = '2026-07-19 12:00:00+00';
SELECT results_eq(
  $$SELECT generation, active_at FROM limitledger.publish_policy(pg_temp.document('{"subject": "t2"}'))$$,
  $$VALUES (35::bigint, timestamptz '2026-07-19 15:00:00+00')$$, 'the switch instant does not step back');
SELECT results_eq(
  $$SELECT generation, active_at FROM limitledger.publish_policy(pg_temp.document('{"route": "other"}'))$$,
  $$VALUES (36::bigint, timestamptz '2026-07-19 12:00:00+00')$$, 'another route knows nothing of it');
SET LOCAL limitledger.clock_override = '2026-07-19 16:00:00+00';

-- Out of order.
SELECT is(pg_temp.ending('SELECT limitledger.activate_policy(NULL)'), 'LL101 generation must not be null');
SELECT is(pg_temp.ending('SELECT limitledger.activate_policy(99)'), 'LL206 generation 99 does not exist');
SELECT is(pg_temp.ending('SELECT limitledger.activate_policy(1)'), 'LL205 generation 1 cannot be activated');
SELECT lives_ok($$SELECT limitledger.publish_policy(pg_temp.document('{"burst": 800}'), false)$$);    -- 37
SELECT lives_ok($$SELECT limitledger.publish_policy(pg_temp.document('{"burst": 700}'))$$);           -- 38
SELECT is(pg_temp.ending('SELECT limitledger.activate_policy(37)'), 'LL205 generation 37 is too old to be activated');
SELECT is((SELECT string_agg(generation || ' ' || stage, ', ' ORDER BY generation) FROM limitledger.policy
           WHERE route = 'chat' AND subject = 't1'),
          '1 draining, 34 draining, 37 published, 38 active', 'one generation of a pair is active');
SELECT results_eq(
  $$SELECT generation, already_published FROM limitledger.publish_policy(pg_temp.document('{"burst": 800}'))$$,
  $$VALUES (39::bigint, false)$$, 'older content is published anew');

-- Wildcard and exact policies go their own ways ...
SELECT lives_ok($$SELECT limitledger.publish_policy(pg_temp.document('{"subject": "t3"}'), false)$$);  -- 40
SELECT lives_ok($$SELECT limitledger.publish_policy(pg_temp.document('{"subject": "*"}'), false)$$);   -- 41
SELECT lives_ok($$SELECT limitledger.publish_policy(pg_temp.document('{"subject": "t4"}'))$$);         -- 42
SELECT results_eq('SELECT generation, stage FROM limitledger.activate_policy(41)', $$VALUES (41::bigint, 'active')$$,
          'an active exact policy does not hold up an older wildcard');
SELECT is((SELECT stage::text FROM limitledger.policy WHERE generation = 39), 'active', 'nor does the wildcard end it');
-- ... but a pair that may be under the wildcard already cannot go back to 40.
SELECT is(pg_temp.ending('SELECT limitledger.activate_policy(40)'), 'LL205 generation 40 is too old to be activated');
SELECT results_eq(
  $$SELECT generation, already_published FROM limitledger.publish_policy(pg_temp.document('{"subject": "t3"}'), false)$$,
  $$VALUES (40::bigint, true)$$, 'publishing it again without activation returns it');
SELECT results_eq(
  $$SELECT generation, stage, already_published FROM limitledger.publish_policy(pg_temp.document('{"subject": "t3"}'))$$,
  $$VALUES (43::bigint, 'active', false)$$, 'with activation it becomes a new generation');

-- A retired generation is over: the same content is a new one.
SELECT lives_ok($$UPDATE limitledger.policy SET stage = 'draining' WHERE generation = 36$$);
SELECT results_eq(
  $$SELECT generation, stage, already_published FROM limitledger.publish_policy(pg_temp.document('{"route": "other"}'))$$,
  $$VALUES (36::bigint, 'draining', true)$$, 'a repeat does not revive what drains');
SELECT lives_ok($$UPDATE limitledger.policy SET stage = 'retired', retired_at = active_at WHERE generation = 36$$);
SELECT results_eq(
  $$SELECT generation, stage, already_published FROM limitledger.publish_policy(pg_temp.document('{"route": "other"}'))$$,
  $$VALUES (44::bigint, 'active', false)$$, 'nor what is retired');

-- Many in one statement.
SELECT results_eq(
  $$SELECT generation FROM generate_series(1, 3) AS n,
      limitledger.publish_policy(pg_temp.document(jsonb_build_object('subject', 'many ' || n)))$$,
  ARRAY[45, 46, 47]::bigint[], 'several documents in one transaction');

-- Many in one transaction: all of them, or none.
CREATE FUNCTION pg_temp.fifty(wrong_burst bigint DEFAULT NULL) RETURNS bigint[] LANGUAGE sql AS $$
  SELECT array_agg(p.generation ORDER BY n)
  FROM generate_series(1, 50) AS n, limitledger.publish_policy(pg_temp.document(jsonb_build_object(
    'subject', 'bulk ' || n, 'route', 'bulk', 'burst', CASE WHEN n < 50 THEN 1000 ELSE coalesce(wrong_burst, 1000) END))) AS p
$$;
SAVEPOINT fifty;
SELECT is(pg_temp.ending('SELECT pg_temp.fifty(599)'), 'LL203 policy field burst must not be below largestReservation',
          'the last of fifty documents is wrong');
SELECT is((SELECT max(generation) FROM limitledger.policy), 47::bigint, 'then none is published');
SELECT is(pg_temp.fifty(), (SELECT array_agg(g::bigint) FROM generate_series(48, 97) AS g), 'fifty documents in their order');
SELECT is((SELECT (count(*), count(DISTINCT subject), count(DISTINCT active_at))::text FROM limitledger.policy
           WHERE route = 'bulk' AND stage = 'active'), '(50,50,1)', 'are in force together');
ROLLBACK TO fifty;

-- What is only published holds up nothing.
SELECT lives_ok($$SELECT limitledger.publish_policy(pg_temp.document('{"subject": "t5"}'), false)$$);                -- 48
SELECT lives_ok($$SELECT limitledger.publish_policy(pg_temp.document('{"subject": "t5", "burst": 800}'), false)$$);  -- 49
SELECT results_eq('SELECT generation, stage FROM limitledger.activate_policy(48)', $$VALUES (48::bigint, 'active')$$);
SELECT results_eq('SELECT generation, stage FROM limitledger.activate_policy(49)', $$VALUES (49::bigint, 'active')$$);

-- ---- The guards -------------------------------------------------------------------

CREATE TEMP TABLE frozen (col name, other text);
INSERT INTO frozen VALUES
  ('generation', '1000'), ('subject', '''x'''), ('route', '''x'''), ('published_at', 'published_at + interval ''1 s'''),
  ('document', 'document || ''{"weight": 1.0}'''), ('region', '''x'''), ('unit', '''x'''), ('refill_kind', '''none'''),
  ('cap', 'cap + 1'), ('refill_units', 'refill_units + 1'), ('refill_interval', 'refill_interval * 2'),
  ('epoch_length', 'epoch_length * 2'), ('epoch_calendar', '''day'''), ('epoch_time_zone', '''UTC'''),
  ('estimator_digests', 'estimator_digests || ''\x00''::bytea'), ('largest_reservation', 'largest_reservation - 1'),
  ('largest_outstanding', '5'), ('hold_ttl', 'hold_ttl * 2'), ('execution_ttl', 'execution_ttl * 2'),
  ('hard_execution_limit', 'hard_execution_limit + 1'), ('maximum_overdraft', 'maximum_overdraft + 1'),
  ('priority', 'priority + 1'), ('weight', 'weight + 1'), ('fairness_budget', 'fairness_budget + 1'),
  ('emergency_mode', '''enabled'''), ('emergency_share', '10'), ('shard_ttl', 'interval ''1 h'''), ('retention', 'interval ''7 days''');     -- equal, yet not the same
SELECT is(pg_temp.ending(format('UPDATE limitledger.policy SET %I = %s WHERE generation = 47', col, other)),
          'LL902 the policy of generation 47 is frozen', col::text) FROM frozen;
SELECT set_eq('SELECT col FROM frozen',
  $$SELECT attname FROM pg_attribute WHERE attrelid = 'limitledger.policy'::regclass AND attnum > 0
    AND NOT attisdropped AND attname NOT IN ('stage', 'active_at', 'retired_at', 'drained_by', 'canary_by', 'canary_percents', 'canary_since')$$, 'no column was left out');

SELECT is(pg_temp.ending('DELETE FROM limitledger.policy WHERE generation = 47'), 'LL902 a published policy is never deleted');
SELECT is(pg_temp.ending('TRUNCATE limitledger.policy'), 'LL902 a published policy is never deleted');
SELECT is(pg_temp.ending($$UPDATE limitledger.policy SET active_at = active_at + interval '1 s' WHERE generation = 47$$),
          'LL902 the switch instant of generation 47 is fixed');
SELECT is(pg_temp.ending($$UPDATE limitledger.policy SET stage = 'draining', active_at = active_at - interval '1 s'
                           WHERE generation = 47$$), 'LL902 the switch instant of generation 47 is fixed');
SELECT is(pg_temp.ending($$UPDATE limitledger.policy SET active_at = published_at WHERE generation = 37$$),
          'LL902 the switch instant of generation 37 is fixed');
SELECT is(pg_temp.ending($$UPDATE limitledger.policy SET retired_at = retired_at + interval '1 s' WHERE generation = 36$$),
          'LL902 the switch instant of generation 36 is fixed');
SELECT is(pg_temp.ending(format('UPDATE limitledger.policy SET %s WHERE generation = 1', change)),
          '23514 new row for relation "policy" violates check constraint "policy_retired_at" (no hint)', change)
FROM unnest(ARRAY['stage = ''retired''', 'retired_at = active_at',
                  'stage = ''retired'', retired_at = active_at - interval ''1 s''']) AS change;

-- Every move of a stage, from a policy that is there: 37 published, 47 active, 1 draining, 36 retired.
SELECT results_eq(
  $$SELECT f.stage || ' -> ' || t.stage
    FROM (VALUES (1, 'published', 37), (2, 'active', 47), (3, 'draining', 1), (4, 'retired', 36)) AS f (n, stage, generation),
         (VALUES (1, 'published'), (2, 'active'), (3, 'draining'), (4, 'retired')) AS t (n, stage)
    WHERE pg_temp.ending(format('UPDATE limitledger.policy SET stage = %L, active_at = %s, retired_at = %s WHERE generation = %s', t.stage,
      CASE WHEN t.stage = 'published' THEN 'NULL' ELSE 'coalesce(active_at, published_at)' END,
      CASE WHEN t.stage = 'retired' THEN 'coalesce(active_at, published_at)' ELSE 'NULL' END, f.generation)) = 'done'
      AND f.n <> t.n
    ORDER BY f.n, t.n$$,
  ARRAY['active -> draining', 'draining -> retired'], 'stages move forward, one step at a time');
-- published -> active is such a step, but not beside the active generation 39 of the same pair.
SELECT is(pg_temp.ending($$UPDATE limitledger.policy SET stage = 'active', active_at = published_at WHERE generation = 37$$),
          '23505 duplicate key value violates unique constraint "policy_one_active" (no hint)');

-- ---- I1, I2: who may, and through which names --------------------------------------

SELECT is_empty($$
  SELECT p.oid::regprocedure FROM pg_proc AS p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a
  WHERE p.pronamespace = 'limitledger'::regnamespace AND a.grantee = 0
    AND p.proname IN ('publish_policy', 'activate_policy', 'ledger_clock', 'canonical_json', 'request_digest',
                      'policy_changed', 'policy_guard', 'policy_read', 'policy_add', 'policy_activate', 'policy_touch')$$,
  'PUBLIC executes nothing');
SELECT is_empty($$
  SELECT p.oid::regprocedure FROM pg_proc AS p
  WHERE p.pronamespace = 'limitledger'::regnamespace
    AND (p.prosecdef OR p.proname LIKE 'policy\_%' AND p.prolang <> (SELECT oid FROM pg_language WHERE lanname = 'c'))
    AND NOT coalesce('search_path=pg_catalog, limitledger, pg_temp' = ANY (p.proconfig), false)$$,
  'every function with definer rights has a fixed path that ends in pg_temp');
SELECT is((SELECT count(*) FROM pg_proc WHERE pronamespace = 'limitledger'::regnamespace AND prosecdef
           AND proname IN ('publish_policy', 'activate_policy')), 2::bigint, 'and both calls are such functions');

-- Nothing that a caller puts in front is looked at.
CREATE TEMP TABLE policy (LIKE limitledger.policy);
CREATE TEMP VIEW pg_timezone_names AS SELECT 'Europe/Atlantis' AS name;
CREATE FUNCTION pg_temp.jsonb_typeof(jsonb) RETURNS text LANGUAGE sql AS $$ SELECT 'object' $$;
SET LOCAL search_path = pg_temp, public, limitledger, pg_catalog;
SELECT is(pg_temp.publishing(pg_temp.document('{"epoch": {"calendar": "day", "timeZone": "Europe/Atlantis"}}')),
          'LL203 policy field epoch.timeZone must be the full name of a time zone', 'no table of the caller');
SELECT is(pg_temp.publishing('7'), 'LL203 document must be a JSON object', 'no function of the caller');
SELECT results_eq(
  $$SELECT generation FROM limitledger.publish_policy(pg_temp.document('{"subject": "shadow"}'))$$,
  ARRAY[50]::bigint[], 'and the row goes where it belongs');
SET LOCAL search_path = public;

-- The backends' caches hear of every writer.
SELECT is((SELECT tgenabled::text FROM pg_trigger WHERE tgrelid = 'limitledger.policy'::regclass AND tgname = 'policy_changed'),
          'A', 'policy_changed fires for replication workers too');

SELECT is_empty($$
  SELECT p.oid::regprocedure FROM pg_proc AS p WHERE p.pronamespace = 'limitledger'::regnamespace
    AND p.proname IN ('publish_policy', 'activate_policy', 'ledger_clock', 'canonical_json', 'request_digest')
    AND obj_description(p.oid, 'pg_proc') IS NULL$$, 'each public function is described');

SELECT * FROM finish();
ROLLBACK;
