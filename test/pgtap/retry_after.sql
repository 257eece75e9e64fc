-- Retry-After, to the microsecond (D4): with no other traffic a caller that waits
-- exactly that long is admitted the first time, a millisecond earlier it is not, and
-- a request that can never fit is told so.
--
-- Fails when: the wait is rounded down, forgets the fraction of a unit, the debt or
-- the windows that the debt takes, or is computed from another clock.

BEGIN;
\ir helpers.psql
SELECT plan(180);

-- wait exhausts a fresh pair at `moment`, makes it owe `owed`, then asks for `units`.
-- It returns what came of waiting: told wait, and the answers 1 ms before and then.
CREATE FUNCTION helpers.wait(policy jsonb, units bigint, owed bigint, moment timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  pair CONSTANT text := gen_random_uuid();
  told record;
  early text;
  cap bigint;
BEGIN
  PERFORM at(moment);
  PERFORM publish(pair, pair, '{"maximumOverdraft": 1000000}' || policy);
  SELECT b.cap INTO cap FROM limitledger.reserve_capacity(pair, pair, 'probe', 1, sha256('p')) b;
  PERFORM release(pair, 'probe');
  ASSERT reserve(pair, pair, 'all', cap, 'o') = 'ACCEPTED STARTED';
  PERFORM settle(pair, 'all', 'o', cap + owed);
  SELECT * INTO told FROM limitledger.reserve_capacity(pair, pair, 'r', units, sha256('r'));
  IF told.outcome <> 'REFUSED' OR told.retry_after_ms IS NULL THEN
    RETURN concat_ws(' ', told.outcome, told.dimension, told.retry_kind, coalesce(told.retry_after_ms::text, 'no wait'));
  END IF;
  PERFORM at(moment + (told.retry_after_ms - 1) * interval '1 millisecond');
  SELECT outcome INTO early FROM limitledger.reserve_capacity(pair, pair, 'r', units, sha256('r'));
  PERFORM at(moment + told.retry_after_ms * interval '1 millisecond');
  RETURN concat_ws(' ', told.dimension, told.retry_kind, told.retry_after_ms, early,
    (SELECT outcome FROM limitledger.reserve_capacity(pair, pair, 'r', units, sha256('r'))));
END $$;

-- the same wait, worked out by hand: whole milliseconds, rounded up
CREATE FUNCTION helpers.due(units numeric, every interval, amount bigint) RETURNS bigint
LANGUAGE sql AS $$
  SELECT ceil(amount * extract(epoch FROM every) * 1000 / units)
$$;

CREATE TEMP TABLE rate (name text, units bigint, every text, burst bigint) ON COMMIT DROP;
INSERT INTO rate VALUES
  ('1 a second', 1, '1 second', 10), ('7 a minute', 7, '1 minute', 14), ('1000 an hour', 1000, '1 hour', 50),
  ('3 in 7 seconds', 3, '7 seconds', 10), ('1000 a second', 1000, '1 second', 2000);
CREATE TEMP TABLE ask (units bigint) ON COMMIT DROP;
INSERT INTO ask VALUES (1), (5), (NULL);   -- NULL: the burst
CREATE TEMP TABLE owes (units bigint) ON COMMIT DROP;
INSERT INTO owes VALUES (0), (1), (37);

SELECT is(wait(continuous(r.units, r.every, r.burst), coalesce(a.units, r.burst), o.units, m.moment),
  concat_ws(' ', CASE o.units WHEN 0 THEN 'available' ELSE 'debt' END, 'refill',
    due(r.units, r.every::interval, coalesce(a.units, r.burst) + o.units), 'REFUSED ACCEPTED'),
  format('%s, ask for %s, owe %s, at %s', r.name, coalesce(a.units, r.burst), o.units, m.moment AT TIME ZONE 'UTC'))
FROM rate r, ask a, owes o,
  (VALUES ('2030-01-01 10:00:00+00'::timestamptz), ('2030-03-10 01:59:59.123457+00')) m (moment);

SELECT is(wait(continuous(r.units, r.every, r.burst), r.burst + 1, o.units, '2030-01-01 10:00:00+00'),
  'REFUSED largest_reservation never no wait', format('%s, ask for more than the burst, owe %s', r.name, o.units))
FROM rate r, owes o;

-- A fraction of a unit that has already come shortens the wait.
SELECT at('10:00:00');
SELECT publish('fraction', 'fraction', continuous(7, '1 minute', 7));
SELECT is(reserve('fraction', 'fraction', 'all', 7), 'ACCEPTED RESERVED', 'all 7 are held');
SELECT at('10:00:05');
SELECT is((SELECT retry_after_ms FROM limitledger.reserve_capacity('fraction', 'fraction', 'r', 1, sha256('r'))), 3572::bigint,
  'the first unit comes after 8571.43 ms, 5000 of them are gone');
SELECT at('10:00:09');
SELECT is(reserve('fraction', 'fraction', 'first', 1), 'ACCEPTED RESERVED', 'it came');
SELECT is((SELECT retry_after_ms FROM limitledger.reserve_capacity('fraction', 'fraction', 'r', 1, sha256('r'))), 8143::bigint,
  'the second comes at 17142.86 ms');
SELECT at('10:00:17.142');
SELECT is(reserve('fraction', 'fraction', 'second', 1), 'REFUSED available', 'not earlier');
SELECT at('10:00:17.143');
SELECT is(reserve('fraction', 'fraction', 'second', 1), 'ACCEPTED RESERVED', 'not later');

-- Windows: the next epoch's start; debt takes its share of each.
CREATE TEMP TABLE span (epoch jsonb, moment timestamptz, window_ms bigint[]) ON COMMIT DROP;
INSERT INTO span VALUES
  ('{"epoch": {"length": "1 second"}}', '2030-01-01 10:00:00.25+00', ARRAY[750, 1750, 2750]),
  ('{"epoch": {"length": "1 minute"}}', '2030-01-01 10:00:59.9995+00', ARRAY[1, 60001, 120001]),
  ('{"epoch": {"length": "1 hour"}}', '2030-01-01 10:30:00+00', ARRAY[1800000, 5400000, 9000000]),
  -- the days around both changes of the clock have 23 and 25 hours
  ('{"epoch": {"calendar": "day", "timeZone": "Europe/Berlin"}}', '2030-03-30 12:00:00+00', ARRAY[11, 11 + 23, 11 + 23 + 24] ::bigint[]),
  ('{"epoch": {"calendar": "day", "timeZone": "Europe/Berlin"}}', '2030-10-26 12:00:00+00', ARRAY[10, 10 + 25, 10 + 25 + 24]::bigint[]),
  ('{"epoch": {"calendar": "month", "timeZone": "UTC"}}', '2030-01-31 23:00:00+00', ARRAY[1, 1 + 28 * 24, 1 + (28 + 31) * 24]::bigint[]);
UPDATE span SET window_ms = ARRAY(SELECT h * 3600000 FROM unnest(window_ms) h) WHERE epoch -> 'epoch' ? 'calendar';

SELECT is(wait(quota(10) || epoch, c.asked, c.owed, moment),
  concat_ws(' ', CASE c.owed WHEN 0 THEN 'available' ELSE 'debt' END, 'refill', window_ms[c.windows], 'REFUSED ACCEPTED'),
  format('%s, ask for %s of 10, owe %s', epoch, c.asked, c.owed))
FROM span, (VALUES (1, 0, 1), (10, 0, 1), (5, 5, 1), (6, 5, 2), (10, 1, 2), (1, 10, 2), (10, 10, 2), (10, 11, 3), (1, 29, 3)) c (asked, owed, windows);
SELECT is(wait(quota(10) || epoch, 11, 0, moment), 'REFUSED largest_reservation never no wait', format('%s, more than the quota', epoch))
FROM span;

-- No refill rule: no wait is promised (D4).
SELECT is(wait('{}', 1, 0, '2030-01-01 10:00:00+00'), 'REFUSED available release no wait', 'without refill it waits for a release');
SELECT is(wait('{}', 1, 5, '2030-01-01 10:00:00+00'), 'REFUSED debt release no wait', 'or for the debt to be paid');

-- A frozen pair waits for an operator; a breach of the hard limit freezes (D8).
SELECT at('10:00:00');
SELECT publish('frozen', 'frozen', continuous(1, '1 second', 100) || '{"hardExecutionLimit": 50}');
SELECT is(reserve('frozen', 'frozen', 'r', 60, 'o'), 'ACCEPTED STARTED', 'started');
SELECT is(settle('frozen', 'r', 'o', 55), 'ACCEPTED SETTLED', 'one execution above its hard limit');
SELECT results_eq($$SELECT outcome, dimension, retry_kind, retry_after_ms FROM limitledger.reserve_capacity('frozen', 'frozen', 'n', 1, sha256('n'))$$,
  $$VALUES ('REFUSED', 'frozen', 'operator', NULL::bigint)$$, 'frozen: an operator has to act');

-- A clock that stepped back lengthens the wait (A3).
SELECT at('10:00:00');
SELECT publish('back', 'back', continuous(1, '1 second', 10));
SELECT is(reserve('back', 'back', 'all', 10), 'ACCEPTED RESERVED', 'all is held');
SELECT at('09:59:50');
SELECT is((SELECT retry_after_ms FROM limitledger.reserve_capacity('back', 'back', 'r', 2, sha256('r'))), 12000::bigint,
  'ten seconds until the clock is where it was, then two');
SELECT at('10:00:02');
SELECT is(reserve('back', 'back', 'r', 2), 'ACCEPTED RESERVED', 'admitted then');
SELECT sound('at the end');

SELECT * FROM finish();
ROLLBACK;
