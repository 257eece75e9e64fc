-- Epochs over the nights on which clocks change (A4): two different real hours never
-- share an hourly epoch, a local day has 23, 24 or 25 hours, and the session's
-- settings change no key.
--
-- Fails when: an hourly epoch is cut in local time, a day is taken as 24 hours, or a
-- key depends on TimeZone or DateStyle.

BEGIN;
\ir helpers.psql
SELECT plan(38);

-- From noon to noon around each change, in steps of ten minutes.
CREATE TEMP TABLE night (zone text, name text, first timestamptz, hours int) ON COMMIT DROP;
INSERT INTO night VALUES
  ('Europe/Berlin', 'fall back', '2026-10-24 12:00+00', 25), ('Europe/Berlin', 'spring forward', '2026-03-28 12:00+00', 23),
  ('America/Chicago', 'fall back', '2026-10-31 12:00+00', 25), ('America/Chicago', 'spring forward', '2026-03-07 12:00+00', 23),
  ('Australia/Lord_Howe', 'half an hour back', '2026-04-04 00:00+00', NULL);
CREATE TEMP TABLE seen (night text, zone text, kind text, instant timestamptz, epoch timestamptz, shown text) ON COMMIT DROP;

CREATE FUNCTION helpers.walk(night, kind text, period jsonb, local_zone text, style text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  pair CONSTANT text := gen_random_uuid();
BEGIN
  PERFORM at($1.first);
  PERFORM publish(pair, pair, quota(1000000) || jsonb_build_object('epoch', period));
  PERFORM set_config('TimeZone', local_zone, true), set_config('DateStyle', style, true);
  FOR step IN 0 .. 6 * 48 LOOP
    PERFORM at($1.first + step * interval '10 minutes');
    INSERT INTO seen
    SELECT $1.name, $1.zone, kind, $1.first + step * interval '10 minutes', r.epoch, r.generation || ' ' || r.outcome
    FROM limitledger.reserve_capacity(pair, pair, 'r' || step, 1, sha256('d')) r;
  END LOOP;
  PERFORM set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO, MDY', true);
END $$;

SET LOCAL TimeZone = 'UTC';
SELECT walk(n, 'hour', '{"length": "1 hour"}', n.zone, 'SQL, DMY') FROM night n;
SELECT walk(n, 'day', jsonb_build_object('calendar', 'day', 'timeZone', n.zone), 'Asia/Kolkata', 'German, DMY') FROM night n;
SELECT walk(n, 'month', jsonb_build_object('calendar', 'month', 'timeZone', n.zone), 'Pacific/Auckland', 'Postgres, MDY') FROM night n;

SELECT is((SELECT count(*) FROM seen WHERE shown NOT LIKE '% ACCEPTED'), 0::bigint, 'every step was admitted');
SELECT is((SELECT count(*) FROM seen s WHERE s.night = n.name AND s.zone = n.zone AND kind = 'hour'
             AND epoch IS DISTINCT FROM date_trunc('hour', instant, 'UTC')), 0::bigint,
  format('%s, %s: an hourly epoch is its real hour', n.zone, n.name)) FROM night n;
SELECT is((SELECT count(DISTINCT epoch) FROM seen s WHERE s.night = n.name AND s.zone = n.zone AND kind = 'hour'
             AND instant < n.first + interval '48 hours'), 48::bigint,
  format('%s, %s: 48 hours have 48 keys, none shared, none missing', n.zone, n.name)) FROM night n;
SELECT is((SELECT count(*) FROM (SELECT FROM seen s WHERE s.night = n.name AND s.zone = n.zone AND kind = 'hour'
             AND instant < n.first + interval '48 hours' GROUP BY epoch HAVING count(*) <> 6) uneven), 0::bigint,
  format('%s, %s: each key serves one hour', n.zone, n.name)) FROM night n;
SELECT is((SELECT count(*) FROM seen s WHERE s.night = n.name AND s.zone = n.zone AND kind = 'day'
             AND epoch IS DISTINCT FROM date_trunc('day', instant, n.zone)), 0::bigint,
  format('%s, %s: a daily epoch is its local day', n.zone, n.name)) FROM night n;
SELECT is((SELECT max(h) FROM (SELECT extract(epoch FROM lead(epoch) OVER (ORDER BY epoch) - epoch) / 3600 FROM
             (SELECT DISTINCT epoch FROM seen s WHERE s.night = n.name AND s.zone = n.zone AND kind = 'day') d) t (h)
             WHERE h <> 24), n.hours::numeric,
  format('%s, %s: the day of the change has %s hours', n.zone, n.name, n.hours)) FROM night n WHERE n.hours IS NOT NULL;
SELECT is((SELECT count(*) FROM seen s WHERE s.night = n.name AND s.zone = n.zone AND kind = 'month'
             AND epoch IS DISTINCT FROM date_trunc('month', instant, n.zone)), 0::bigint,
  format('%s, %s: a monthly epoch is its local month', n.zone, n.name)) FROM night n;

-- The same instants under other settings fall into the same epochs.
CREATE TEMP TABLE before AS SELECT night, zone, kind, instant, epoch FROM seen;
SELECT walk(n, 'hour', '{"length": "1 hour"}', 'UTC', 'ISO, YMD') FROM night n;
SELECT walk(n, 'day', jsonb_build_object('calendar', 'day', 'timeZone', n.zone), n.zone, 'ISO, MDY') FROM night n;
SELECT is_empty($$SELECT night, zone, kind, instant, epoch FROM seen EXCEPT SELECT * FROM before$$,
  'the session''s TimeZone and DateStyle change no key');

-- What the keys are for: a window's quota is one real period's, also that night.
SELECT at(timestamptz '2026-10-24 22:30:00+00');
SELECT publish('night', 'night', quota(10) || '{"epoch": {"calendar": "day", "timeZone": "Europe/Berlin"}}');
SELECT is(reserve('night', 'night', 'all', 10, 'o'), 'ACCEPTED STARTED', 'Sunday''s quota');
SELECT results_eq($$SELECT retry_after_ms, reset_at FROM limitledger.reserve_capacity('night', 'night', 'more', 1, sha256('m'))$$,
  $$VALUES (88200000::bigint, '2026-10-25 23:00:00+00'::timestamptz)$$, 'lasts until midnight, 24 and a half hours on');
SELECT at(timestamptz '2026-10-25 22:59:59.999999+00');
SELECT is(reserve('night', 'night', 'more', 1), 'REFUSED available', 'and not a moment less');
SELECT at(timestamptz '2026-10-25 23:00:00+00');
SELECT is(reserve('night', 'night', 'more', 1), 'ACCEPTED RESERVED', 'Monday''s quota');

SELECT at(timestamptz '2026-10-25 00:59:59+00');
SELECT publish('hourly', 'hourly', quota(10));
SELECT is(reserve('hourly', 'hourly', 'all', 10), 'ACCEPTED RESERVED', '02:59:59 summer time');
SELECT at(timestamptz '2026-10-25 01:00:00+00');
SELECT is(reserve('hourly', 'hourly', 'again', 10), 'ACCEPTED RESERVED', '02:00:00 winter time is another hour');
SELECT sound('at the end');

SELECT * FROM finish();
ROLLBACK;
