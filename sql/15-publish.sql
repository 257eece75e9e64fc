-- Publishing: a document becomes a frozen policy under the next generation (B1,
-- B2), and an activated one takes over its route and subject (B4, B5).
--
-- Calls that change a policy hold the table IN SHARE ROW EXCLUSIVE MODE until their
-- transaction ends: they run one after the other, so that generations have no gap and
-- a switch has one order.  Readers, and so every call on a pair, are not blocked.
-- Whoever changes a route writes the row that was last before (see policy_touch),
-- so that at REPEATABLE READ and above a stale snapshot ends in 40001 (F5).
--
-- The path of each function is fixed and starts with pg_catalog: a bare name is
-- a built-in one.  No statement is put together from input (I2).

-- The ledger's clock: the server's, unless limitledger.clock_override is set (A3).
CREATE FUNCTION ledger_clock() RETURNS timestamptz
LANGUAGE C VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'limitledger_ledger_clock';

-- ---- Reading a document ---------------------------------------------------
-- A field is named by its path, as in refill.interval.

-- policy_refuse raises one error about one field.
CREATE FUNCTION policy_refuse(code text, field text, problem text, detail text, hint text)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
BEGIN
  RAISE EXCEPTION USING
    ERRCODE = code, MESSAGE = format('policy field %s %s', field, problem),
    DETAIL = detail, HINT = hint;
END;
$$;

-- policy_refuse_value raises LL203 and shows the beginning of the value.
CREATE FUNCTION policy_refuse_value(document jsonb, field text, problem text, hint text)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  written CONSTANT text := (document #> string_to_array(field, '.'))::text;
BEGIN
  PERFORM @extschema@.policy_refuse('LL203', field, problem,
    format('The document says %s.',
      CASE WHEN length(written) <= 60 THEN written ELSE left(written, 57) || '...' END),
    hint);
END;
$$;

-- policy_check_fields demands an object with exactly these fields; '' is the document.
CREATE FUNCTION policy_check_fields(document jsonb, field text, required text[], optional text[])
RETURNS void LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  value  CONSTANT jsonb := document #> string_to_array(field, '.');
  prefix CONSTANT text := CASE WHEN field = '' THEN '' ELSE field || '.' END;
  name   text;
BEGIN
  IF jsonb_typeof(value) IS DISTINCT FROM 'object' THEN
    PERFORM @extschema@.policy_refuse_value(document, field, 'must be an object',
      format('Give an object with the fields %s.', array_to_string(required, ', ')));
  END IF;

  SELECT min(k COLLATE "C") INTO name
  FROM jsonb_object_keys(value) AS k WHERE k <> ALL (required || optional);
  IF name IS NOT NULL THEN
    PERFORM @extschema@.policy_refuse('LL202',
      prefix || CASE WHEN name ~ '^[A-Za-z][A-Za-z0-9_]{0,62}$' THEN name
                     ELSE to_json(left(name, 63))::text END,
      'is unknown',
      format('The fields known here are %s.', array_to_string(required || optional, ', ')),
      'Remove the field or correct its name.');
  END IF;

  SELECT r INTO name
  FROM unnest(required) WITH ORDINALITY AS u (r, n) WHERE NOT value ? r ORDER BY n LIMIT 1;
  IF FOUND THEN
    PERFORM @extschema@.policy_refuse('LL201', prefix || name, 'is missing',
      format('The fields required here are %s.', array_to_string(required, ', ')),
      'Add the field: nothing that decides is left to a default.');
  END IF;
END;
$$;

-- policy_text reads a text of 1 to 256 bytes (A1).
CREATE FUNCTION policy_text(document jsonb, field text)
RETURNS text LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  value CONSTANT jsonb := document #> string_to_array(field, '.');
BEGIN
  IF jsonb_typeof(value) IS DISTINCT FROM 'string'
     OR octet_length(value #>> '{}') NOT BETWEEN 1 AND 256 THEN
    PERFORM @extschema@.policy_refuse_value(document, field, 'must be a text of 1 to 256 bytes',
      'Give a JSON string that is neither empty nor longer; it is never cut.');
  END IF;
  RETURN value #>> '{}';
END;
$$;

-- policy_integer reads a whole number between two bounds, both included.
CREATE FUNCTION policy_integer(document jsonb, field text, lowest bigint, highest bigint)
RETURNS bigint LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  value  CONSTANT jsonb := document #> string_to_array(field, '.');
  number numeric;
BEGIN
  IF jsonb_typeof(value) = 'number' THEN
    number := value::numeric;
    IF number = trunc(number) AND number BETWEEN lowest AND highest THEN
      RETURN number;
    END IF;
  END IF;
  PERFORM @extschema@.policy_refuse_value(document, field,
    format('must be a whole number from %s to %s', lowest, highest),
    'Give a JSON number without quotes and without a fraction.');
END;
$$;

-- policy_units reads a quantity of units: what bigint holds, since every sum is
-- checked where it is made (A2).
CREATE FUNCTION policy_units(document jsonb, field text, lowest bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
  SELECT @extschema@.policy_integer(document, field, lowest, 9223372036854775807);
$$;

-- policy_duration reads an interval of fixed length and returns it in hours and
-- below, where no time zone and no session setting can reach it (A4).  The three
-- forms carry neither sign nor month, the parts whose reading depends on either.
CREATE FUNCTION policy_duration(document jsonb, field text, lowest text)
RETURNS interval LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  value   CONSTANT jsonb := document #> string_to_array(field, '.');
  written CONSTANT text := CASE WHEN jsonb_typeof(value) = 'string' THEN value #>> '{}' END;
  number  CONSTANT text := '[0-9]+([.][0-9]+)?';
  -- 30 seconds, 1 hour 30 minutes
  item    CONSTANT text := number || ' ?(us|microseconds?|ms|milliseconds?|s|secs?|seconds?'
                           '|mins?|minutes?|h|hours?|d|days?|w|weeks?)';
  words   CONSTANT text := format('^%s( %s)*$', item, item);
  -- 00:00:30, 2 days 12:00:00
  clock   CONSTANT text := '^([0-9]+ days? )?[0-9]+:[0-5][0-9]:[0-5][0-9]([.][0-9]+)?$';
  -- PT30S, P1DT12H
  iso     CONSTANT text := replace('^P(?=.)(#W)?(#D)?(T(?=.)(#H)?(#M)?(#S)?)?$', '#', number);
  length  interval;
BEGIN
  IF octet_length(written) <= 256 AND (written ~ words OR written ~ clock OR written ~ iso) THEN
    BEGIN
      length := written::interval;
    EXCEPTION WHEN data_exception THEN
      length := NULL;   -- a unit given twice, or a number that no interval holds
    END;
  END IF;
  IF length IS NULL OR length NOT BETWEEN lowest::interval AND interval '366 days' THEN
    PERFORM @extschema@.policy_refuse_value(document, field,
      format('must be a duration from %s to 366 days', lowest),
      'Write it like "30 seconds", "1 hour 30 minutes", "00:00:30" or "PT30S".'
      ' Months and years are refused: their length varies.');
  END IF;
  RETURN make_interval(secs => extract(epoch FROM length)::float8);
END;
$$;

-- policy_digests reads a set of at most 256 digests (A5).
CREATE FUNCTION policy_digests(document jsonb, field text)
RETURNS bytea[] LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  value  CONSTANT jsonb := document #> string_to_array(field, '.');
  digest bytea;
  result bytea[] := '{}';
BEGIN
  IF jsonb_typeof(value) IS DISTINCT FROM 'array' OR jsonb_array_length(value) > 256 THEN
    PERFORM @extschema@.policy_refuse_value(document, field, 'must be an array of at most 256 digests',
      'Give the digests of the estimators in use, or [] to accept any.');
  END IF;
  FOR i IN 0 .. jsonb_array_length(value) - 1 LOOP
    IF jsonb_typeof(value -> i) <> 'string' OR value ->> i !~ '^sha256:[0-9A-Fa-f]{64}$' THEN
      PERFORM @extschema@.policy_refuse_value(document, format('%s.%s', field, i),
        'must be a SHA-256 digest',
        'Write "sha256:" and 64 hexadecimal digits.');
    END IF;
    digest := decode(substr(value ->> i, 8), 'hex');
    IF digest = ANY (result) THEN
      PERFORM @extschema@.policy_refuse_value(document, format('%s.%s', field, i),
        'is there twice', 'Remove the repeated digest.');
    END IF;
    result := result || digest;
  END LOOP;
  RETURN result;
END;
$$;

-- policy_read_refill reads how capacity comes back, and the cap (B2).
CREATE FUNCTION policy_read_refill(document jsonb, INOUT parsed @extschema@.policy)
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
BEGIN
  PERFORM @extschema@.policy_check_fields(document, 'refill',
    ARRAY['kind'], ARRAY['units', 'interval', 'quota']);
  parsed.refill_kind := document #>> '{refill,kind}';
  parsed.refill_units := 0;
  parsed.refill_interval := interval '0';

  CASE parsed.refill_kind
    WHEN 'continuous' THEN
      PERFORM @extschema@.policy_check_fields(document, 'refill',
        ARRAY['kind', 'units', 'interval'], '{}');
      -- More units than the cap are in order: 600 a minute through a burst of 20.
      parsed.refill_units := @extschema@.policy_units(document, 'refill.units', 1);
      parsed.refill_interval := @extschema@.policy_duration(document, 'refill.interval', '1 microsecond');
    WHEN 'window' THEN
      PERFORM @extschema@.policy_check_fields(document, 'refill', ARRAY['kind', 'quota'], '{}');
    WHEN 'none' THEN
      PERFORM @extschema@.policy_check_fields(document, 'refill', ARRAY['kind'], '{}');
    ELSE
      PERFORM @extschema@.policy_refuse_value(document, 'refill.kind',
        'must be "continuous", "window" or "none"',
        'Choose how units come back: steadily, once an epoch, or only when they are given back.');
  END CASE;

  IF parsed.refill_kind = 'window' THEN
    IF document ? 'burst' THEN
      PERFORM @extschema@.policy_refuse('LL202', 'burst', 'is unknown with refill.kind "window"',
        'The cap of a window is its quota.', 'Remove burst and set refill.quota.');
    END IF;
    parsed.cap := @extschema@.policy_units(document, 'refill.quota', 1);
  ELSE
    IF NOT document ? 'burst' THEN
      PERFORM @extschema@.policy_refuse('LL201', 'burst', 'is missing',
        'It is the cap of this refill.kind.', 'Add burst: the most units that can be available at once.');
    END IF;
    parsed.cap := @extschema@.policy_units(document, 'burst', 1);
  END IF;
END;
$$;

-- policy_read_epoch reads the accounting period (A4).  A time zone needs the form
-- Area/Location or UTC: a short name like CET means a zone to one reader and a
-- fixed offset to the next.
CREATE FUNCTION policy_read_epoch(document jsonb, INOUT parsed @extschema@.policy)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  calendar CONSTANT boolean := document #> '{epoch}' ?| ARRAY['calendar', 'timeZone'];
BEGIN
  IF calendar THEN
    PERFORM @extschema@.policy_check_fields(document, 'epoch', ARRAY['calendar', 'timeZone'], '{}');
  ELSE
    PERFORM @extschema@.policy_check_fields(document, 'epoch', ARRAY['length'], ARRAY['calendar', 'timeZone']);
    parsed.epoch_length := @extschema@.policy_duration(document, 'epoch.length', '1 second');
    RETURN;
  END IF;

  parsed.epoch_calendar := document #>> '{epoch,calendar}';
  IF parsed.epoch_calendar IS NULL OR parsed.epoch_calendar NOT IN ('day', 'month') THEN
    PERFORM @extschema@.policy_refuse_value(document, 'epoch.calendar', 'must be "day" or "month"',
      'For a period of fixed length give epoch.length instead.');
  END IF;

  parsed.epoch_time_zone := @extschema@.policy_text(document, 'epoch.timeZone');
  IF parsed.epoch_time_zone <> 'UTC'
     AND (parsed.epoch_time_zone NOT LIKE '%/%'
          OR NOT EXISTS (SELECT FROM pg_timezone_names AS z WHERE z.name = parsed.epoch_time_zone)) THEN
    PERFORM @extschema@.policy_refuse_value(document, 'epoch.timeZone', 'must be the full name of a time zone',
      'Write it like "Europe/Berlin", as pg_timezone_names has it, or "UTC".');
  END IF;
END;
$$;

-- policy_read_limits reads the units and times that bound a pair (B2, D8).
CREATE FUNCTION policy_read_limits(document jsonb, INOUT parsed @extschema@.policy)
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  cap CONSTANT text := CASE parsed.refill_kind WHEN 'window' THEN 'refill.quota' ELSE 'burst' END;
BEGIN
  parsed.largest_reservation := @extschema@.policy_units(document, 'largestReservation', 1);
  IF parsed.cap < parsed.largest_reservation THEN
    PERFORM @extschema@.policy_refuse_value(document, cap, 'must not be below largestReservation',
      'A reservation above the cap could never be admitted: raise the one or lower the other.');
  END IF;

  IF document ? 'largestOutstanding' THEN
    parsed.largest_outstanding := @extschema@.policy_units(document, 'largestOutstanding', 1);
    IF parsed.largest_outstanding < parsed.largest_reservation THEN
      PERFORM @extschema@.policy_refuse_value(document, 'largestOutstanding',
        'must not be below largestReservation',
        'A reservation above it could never be admitted: raise the one or lower the other.');
    END IF;
  END IF;

  parsed.hold_ttl := @extschema@.policy_duration(document, 'holdTtl', '1 microsecond');
  parsed.execution_ttl := @extschema@.policy_duration(document, 'executionTtl', '1 microsecond');
  parsed.retention := @extschema@.policy_duration(document, 'retention', '1 microsecond');
  parsed.hard_execution_limit := @extschema@.policy_units(document, 'hardExecutionLimit', 1);
  parsed.maximum_overdraft := @extschema@.policy_units(document, 'maximumOverdraft', 0);
  parsed.fairness_budget := @extschema@.policy_units(document, 'fairnessBudget', 0);
  parsed.priority := @extschema@.policy_integer(document, 'priority', -2147483648, 2147483647);
  parsed.weight := @extschema@.policy_integer(document, 'weight', 1, 1000000);
END;
$$;

-- policy_read_emergency reads what may go into shards: nothing, unless it is enabled (G2).
CREATE FUNCTION policy_read_emergency(document jsonb, INOUT parsed @extschema@.policy)
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  field text;
BEGIN
  parsed.emergency_mode := coalesce(document ->> 'emergencyMode',
    CASE WHEN NOT document ? 'emergencyMode' THEN 'disabled' END);
  IF parsed.emergency_mode IS NULL OR parsed.emergency_mode NOT IN ('disabled', 'enabled') THEN
    PERFORM @extschema@.policy_refuse_value(document, 'emergencyMode', 'must be "disabled" or "enabled"',
      'Leave it out to keep emergency capacity disabled.');
  END IF;
  FOREACH field IN ARRAY ARRAY['emergencyShare', 'shardTtl'] LOOP
    IF parsed.emergency_mode = 'enabled' AND NOT document ? field THEN
      PERFORM @extschema@.policy_refuse('LL201', field, 'is missing',
        'emergencyMode is "enabled".',
        'Say how much may go into shards, and for how long one may be spent.');
    ELSIF parsed.emergency_mode = 'disabled' AND document ? field THEN
      PERFORM @extschema@.policy_refuse_value(document, field, 'must be left out while emergencyMode is "disabled"',
        'Set emergencyMode to "enabled", or leave the field out.');
    END IF;
  END LOOP;
  IF parsed.emergency_mode = 'enabled' THEN
    parsed.emergency_share := @extschema@.policy_integer(document, 'emergencyShare', 1, 100);
    parsed.shard_ttl := @extschema@.policy_duration(document, 'shardTtl', '1 microsecond');
  END IF;
END;
$$;

-- policy_read checks a whole document and returns it as the ledger reads it.
-- It looks at no table of the ledger.
CREATE FUNCTION policy_read(document jsonb)
RETURNS @extschema@.policy LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  parsed @extschema@.policy;
BEGIN
  IF jsonb_typeof(document) <> 'object' THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL203', MESSAGE = 'document must be a JSON object',
      DETAIL = format('It is of the JSON type %s.', jsonb_typeof(document)),
      HINT = 'Give one admissionBudget.v1 document.';
  END IF;
  -- Another version of the document has other fields: first things first.
  IF document -> 'schema' <> '"admissionBudget.v1"' THEN
    PERFORM @extschema@.policy_refuse_value(document, 'schema', 'must be "admissionBudget.v1"',
      'This ledger reads no other policy document.');
  END IF;
  PERFORM @extschema@.policy_check_fields(document, '',
    ARRAY['schema', 'subject', 'route', 'region', 'unit', 'refill', 'epoch', 'estimatorDigests',
          'largestReservation', 'holdTtl', 'executionTtl', 'hardExecutionLimit', 'maximumOverdraft',
          'priority', 'weight', 'fairnessBudget', 'retention'],
    ARRAY['burst', 'largestOutstanding', 'emergencyMode', 'emergencyShare', 'shardTtl', 'policyGeneration']);

  parsed.subject := @extschema@.policy_text(document, 'subject');
  parsed.route := @extschema@.policy_text(document, 'route');
  IF parsed.route = '*' THEN
    PERFORM @extschema@.policy_refuse_value(document, 'route', 'must name one route',
      'Only subject and region can be "*".');
  END IF;
  parsed.region := @extschema@.policy_text(document, 'region');
  parsed.unit := @extschema@.policy_text(document, 'unit');
  parsed := @extschema@.policy_read_refill(document, parsed);
  parsed := @extschema@.policy_read_epoch(document, parsed);
  parsed.estimator_digests := @extschema@.policy_digests(document, 'estimatorDigests');
  parsed := @extschema@.policy_read_limits(document, parsed);

  parsed := @extschema@.policy_read_emergency(document, parsed);
  IF document ? 'policyGeneration' THEN
    parsed.generation := @extschema@.policy_units(document, 'policyGeneration', 1);
  END IF;
  parsed.document := document;
  RETURN parsed;
END;
$$;

-- ---- Taking over ------------------------------------------------------------

-- policy_lock takes the lock on policy and returns one generation.
CREATE FUNCTION policy_lock(generation bigint, call text)
RETURNS @extschema@.policy LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  one @extschema@.policy;
BEGIN
  IF generation IS NULL THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL101', MESSAGE = 'generation must not be null',
      DETAIL = format('%s takes the generation of one published policy.', call),
      HINT = 'Give the generation that publish_policy returned.';
  END IF;

  LOCK TABLE @extschema@.policy IN SHARE ROW EXCLUSIVE MODE;
  SELECT p.* INTO one FROM @extschema@.policy AS p WHERE p.generation = policy_lock.generation;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL206', MESSAGE = format('generation %s does not exist', generation),
      DETAIL = 'No policy was published under it.',
      HINT = 'Give the generation that publish_policy returned.';
  END IF;
  RETURN one;
END;
$$;

-- Everything below expects the lock on policy.

-- Which policy of a route was activated, taken further as a canary or retired last, or
-- failing that published last.
CREATE INDEX policy_moved ON policy (route, greatest(active_at, retired_at, canary_since[cardinality(canary_since)]) DESC NULLS LAST, generation DESC);

-- policy_touch writes that row as it is.  At REPEATABLE READ a call whose snapshot
-- is older than another's change of the route would decide on what is gone; both
-- write the row that was last before, so the later one gets 40001.
CREATE FUNCTION policy_touch(touched_route text)
RETURNS void LANGUAGE sql VOLATILE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
  UPDATE @extschema@.policy AS p SET stage = p.stage
  WHERE p.generation = (
    SELECT l.generation FROM @extschema@.policy AS l WHERE l.route = touched_route
    ORDER BY greatest(l.active_at, l.retired_at, l.canary_since[cardinality(l.canary_since)]) DESC NULLS LAST, l.generation DESC LIMIT 1);
$$;

-- policy_instant returns the instant of a switch of `one` that is made now.  A clock
-- that stepped back moves none before an earlier one of the route (A3).  A wildcard and
-- a policy of one subject never have the same, nor has what follows a retirement: which
-- came first says whether a pair has followed the wildcard.
CREATE FUNCTION policy_instant(one @extschema@.policy)
RETURNS timestamptz LANGUAGE sql VOLATILE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
  SELECT greatest(@extschema@.ledger_clock(),
    (SELECT greatest(l.active_at, l.retired_at, l.canary_since[cardinality(l.canary_since)])
            + CASE WHEN (l.subject = '*') <> (one.subject = '*') OR l.retired_at IS NOT NULL
                   THEN interval '1 microsecond' ELSE interval '0' END
     FROM @extschema@.policy AS l WHERE l.route = one.route
     ORDER BY greatest(l.active_at, l.retired_at, l.canary_since[cardinality(l.canary_since)]) DESC NULLS LAST, l.generation DESC LIMIT 1));
$$;

-- policy_overtaken_by returns the newest generation that keeps `one` from ever
-- being activated: budgets follow one another in the order of their generations,
-- and a pair of `one` may already have a budget under that generation.  NULL: none.
CREATE FUNCTION policy_overtaken_by(one @extschema@.policy)
RETURNS bigint LANGUAGE sql STABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
  SELECT max(p.generation) FROM @extschema@.policy AS p
  WHERE p.route = one.route AND p.subject IN (one.subject, '*')
    AND p.generation > one.generation AND (p.active_at IS NOT NULL OR p.canary_by IS NOT NULL);
$$;

-- policy_check_move refuses to take `one` further where it can no longer go.
CREATE FUNCTION policy_check_move(one @extschema@.policy, stages text[], moved text)
RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  overtaken_by bigint;
BEGIN
  IF one.stage <> ALL (stages) THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL205', MESSAGE = format('generation %s cannot be %s', one.generation, moved),
      DETAIL = format('It is %s, and stages move only forward.', one.stage),
      HINT = 'Publish its content as a new generation.';
  END IF;
  PERFORM @extschema@.policy_touch(one.route);
  overtaken_by := @extschema@.policy_overtaken_by(one);
  IF overtaken_by IS NOT NULL THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL205', MESSAGE = format('generation %s is too old to be %s', one.generation, moved),
      DETAIL = format('The later generation %s has been active for its subjects.', overtaken_by),
      HINT = 'Publish its content as a new generation.';
  END IF;
END;
$$;

-- policy_drain drains what has these stages for the route and subject of `one`, but for itself.
CREATE FUNCTION policy_drain(one @extschema@.policy, stages text[])
RETURNS void LANGUAGE sql VOLATILE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
  UPDATE @extschema@.policy AS p SET stage = 'draining', drained_by = pg_current_xact_id()
  WHERE p.route = one.route AND p.subject = one.subject AND p.stage = ANY (stages)
    AND p.generation <> one.generation;
$$;

-- policy_activate moves one generation to active and its predecessors to draining.
CREATE FUNCTION policy_activate(one @extschema@.policy)
RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
BEGIN
  IF one.stage = 'active' THEN
    RETURN;             -- a repeat
  END IF;
  PERFORM @extschema@.policy_check_move(one, '{published,shadow,canary}', 'activated');
  PERFORM @extschema@.policy_drain(one, '{active,canary,shadow}');
  UPDATE @extschema@.policy AS p
  SET stage = 'active', active_at = @extschema@.policy_instant(one)
  WHERE p.generation = one.generation;
END;
$$;

-- policy_check_generation compares the number that a document carries, if any.
CREATE FUNCTION policy_check_generation(expected bigint, actual bigint)
RETURNS void LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
BEGIN
  IF expected <> actual THEN
    PERFORM @extschema@.policy_refuse('LL204', 'policyGeneration', 'is not the generation of this document',
      format('The document says %s; its generation is %s.', expected, actual),
      'Look at what was published meanwhile, then correct the number or leave it out.');
  END IF;
END;
$$;

-- policy_add stores a document as the next generation.
CREATE FUNCTION policy_add(INOUT parsed @extschema@.policy)
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  next_generation bigint;
BEGIN
  PERFORM @extschema@.policy_touch(parsed.route);
  IF parsed.unit <> (SELECT p.unit FROM @extschema@.policy AS p WHERE p.route = parsed.route LIMIT 1) THEN
    PERFORM @extschema@.policy_refuse_value(parsed.document, 'unit', 'is not the unit of the route',
      'The first policy of a route fixes its unit: use that, or another route.');
  END IF;
  SELECT coalesce(max(p.generation), 0) + 1 INTO next_generation FROM @extschema@.policy AS p;
  PERFORM @extschema@.policy_check_generation(parsed.generation, next_generation);

  parsed.generation := next_generation;
  parsed.stage := 'published';
  parsed.published_at := @extschema@.ledger_clock();
  parsed.canary_percents := '{}';
  parsed.canary_since := '{}';
  parsed.document := parsed.document || jsonb_build_object('policyGeneration', next_generation);
  -- Under the lock the number is free.  Only a snapshot older than the lock can
  -- meet it taken, and this form then raises 40001 where a plain insert would
  -- raise 23505.
  INSERT INTO @extschema@.policy SELECT parsed.* ON CONFLICT ON CONSTRAINT policy_pkey DO NOTHING;
END;
$$;

-- ---- The calls --------------------------------------------------------------

CREATE FUNCTION publish_policy(
  document jsonb, activate boolean DEFAULT true,
  OUT generation bigint,
  OUT stage text,                    -- published, shadow, canary, active, draining
  OUT already_published boolean,     -- true: nothing new was published
  OUT active_at timestamptz          -- the switch instant; NULL: not active yet
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  parsed @extschema@.policy;
  newest @extschema@.policy;
BEGIN
  PERFORM @extschema@.binding_refuse('publish_policy()');
  IF document IS NULL OR activate IS NULL THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL101',
      MESSAGE = format('%s must not be null', CASE WHEN document IS NULL THEN 'document' ELSE 'activate' END),
      DETAIL = 'publish_policy takes a policy document and whether to activate it.',
      HINT = 'Give the document; leave activate out to activate at once.';
  END IF;
  parsed := @extschema@.policy_read(document);

  LOCK TABLE @extschema@.policy IN SHARE ROW EXCLUSIVE MODE;
  SELECT p.* INTO newest FROM @extschema@.policy AS p
  WHERE p.route = parsed.route AND p.subject = parsed.subject
  ORDER BY p.generation DESC LIMIT 1;

  -- A repeat gets what it got before.  It is none if that generation is over, or
  -- is to be activated and no longer can be.  One that was a shadow alone and drains
  -- is over: no call leads on from there.
  already_published := coalesce(
    newest.document - 'policyGeneration' = document - 'policyGeneration'
    AND newest.stage <> 'retired'
    AND NOT (newest.stage = 'draining' AND newest.active_at IS NULL AND newest.canary_by IS NULL)
    AND NOT (activate AND newest.stage IN ('published', 'shadow', 'canary')
             AND @extschema@.policy_overtaken_by(newest) IS NOT NULL), false);
  IF already_published THEN
    PERFORM @extschema@.policy_check_generation(parsed.generation, newest.generation);
  ELSE
    newest := @extschema@.policy_add(parsed);
  END IF;
  IF activate AND newest.stage IN ('published', 'shadow', 'canary') THEN
    PERFORM @extschema@.policy_activate(newest);
  END IF;

  SELECT p.generation, p.stage, p.active_at INTO generation, stage, active_at
  FROM @extschema@.policy AS p WHERE p.generation = newest.generation;
END;
$$;

CREATE FUNCTION activate_policy(
  INOUT generation bigint,
  OUT stage text,
  OUT already_published boolean,     -- always true: it was published before
  OUT active_at timestamptz
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  one @extschema@.policy;
BEGIN
  PERFORM @extschema@.binding_refuse('activate_policy()');
  one := @extschema@.policy_lock(generation, 'activate_policy');
  PERFORM @extschema@.policy_activate(one);

  SELECT p.stage, true, p.active_at INTO stage, already_published, active_at
  FROM @extschema@.policy AS p WHERE p.generation = one.generation;
END;
$$;

COMMENT ON FUNCTION ledger_clock() IS
'The ledger''s present instant (A3): clock_timestamp(), or limitledger.clock_override where a superuser has set it.';

COMMENT ON FUNCTION publish_policy(jsonb, boolean) IS
$$Publishes one admissionBudget.v1 document as a frozen policy under the next generation, and activates it unless told otherwise (B1, B2, B5).

Required fields:
schema: "admissionBudget.v1".
subject: who is limited, or "*" for every subject of the route without a policy of its own. route: what is limited; never "*". region: where, or "*" for anywhere. unit: what is counted; all policies of a route have the same. Each a text of 1 to 256 bytes.
refill: {"kind": "continuous", "units": U, "interval": D} brings back U units every D; {"kind": "window", "quota": U} opens each epoch with U units; {"kind": "none"} brings back nothing by itself.
burst: the cap, in units; with kind "window" it is left out, as the quota is the cap.
epoch: {"length": D} for periods of fixed length, at least 1 second, aligned in UTC; {"calendar": "day" or "month", "timeZone": "Europe/Berlin"} for those of a calendar, in a zone of pg_timezone_names written Area/Location, or UTC (A4).
estimatorDigests: up to 256 distinct "sha256:<64 hexadecimal digits>"; [] accepts any.
largestReservation: units of one reservation, 1 to the cap.
holdTtl, executionTtl: how long a reservation waits for its start, and an execution for its receipt. retention: how long a settled reservation is kept.
hardExecutionLimit: units that one execution may use, at least 1; more freezes the pair (D8). maximumOverdraft: debt of a pair, 0 or more, above which it is frozen.
priority: an integer of 32 bits. weight: 1 to 1000000. fairnessBudget: units, 0 or more (H1).
Optional fields:
largestOutstanding: units that a pair may hold reserved at once, at least largestReservation; left out, no limit.
emergencyMode: "disabled", as when left out, or "enabled": units may go into emergency shards (G2). Then emergencyShare is required, the largest part of the cap that a pair may have in shards that are not settled, 1 to 100 percent; and shardTtl, how long a shard may be spent.
policyGeneration: the generation that the caller expects.

Units are whole numbers up to 9223372036854775807. Durations are texts from 1 microsecond to 366 days like "30 seconds", "1 hour 30 minutes", "00:00:30" or "PT30S", a day being 24 hours; no months, years or signs.

Publishing again what is already the newest of its route and subject, policyGeneration aside, publishes nothing: it returns that generation with already_published true, and activates it if that is asked for and was not done. So what is in shadow or a canary is activated by it; without activate it stays as it is. A retired generation, one that can no longer be activated, or a shadow that drains is published anew.

Errors, each naming the field by its path, as refill.interval: LL101 an argument is null; LL201 a field is missing; LL202 a field is unknown; LL203 a field is invalid; LL204 policyGeneration is not the generation of the document; 40001 at REPEATABLE READ and above, when another call published meanwhile. An error publishes nothing.

The lock on policies is kept until the transaction ends: other publications wait, calls on pairs do not. Several documents can be published in one transaction.$$;

COMMENT ON FUNCTION activate_policy(bigint) IS
$$Activates a published generation (B4, B5): from active_at on it admits for its route and subject, and the generation active until then drains. A pair moves at its next call, accruing under the old rule up to active_at, which never lies before another switch of the route. Activating what is active changes nothing.

Errors: LL101 generation is null; LL205 the generation is draining or retired, or a later one has been active for its subject, or for "*" of its route; LL206 no such generation; 40001 at REPEATABLE READ and above, when another call published or activated meanwhile.$$;

-- ---- Guards -----------------------------------------------------------------

-- One generation at a time is active for a route and subject.
CREATE UNIQUE INDEX policy_one_active ON policy (route, subject) WHERE stage = 'active';
-- Beside it, one at a time is tried.
CREATE UNIQUE INDEX policy_one_trial ON policy (route, subject) WHERE stage IN ('shadow', 'canary');

-- policy_guard refuses what no call of the ledger does: a frozen column that
-- changes, a row that goes, a stage that moves back or skips one (B1, B4, C3).
CREATE FUNCTION policy_guard() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  frozen @extschema@.policy;
BEGIN
  IF TG_OP IN ('DELETE', 'TRUNCATE') THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL902', MESSAGE = 'a published policy is never deleted',
      DETAIL = 'Budgets and reservations refer to its generation.',
      HINT = 'Publish a policy that takes its place.';
  END IF;

  frozen := OLD;
  frozen.stage := NEW.stage;
  frozen.active_at := NEW.active_at;
  frozen.retired_at := NEW.retired_at;
  frozen.drained_by := NEW.drained_by;
  frozen.canary_by := NEW.canary_by;
  frozen.canary_percents := NEW.canary_percents;
  frozen.canary_since := NEW.canary_since;
  IF NOT frozen *= NEW THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL902', MESSAGE = format('the policy of generation %s is frozen', OLD.generation),
      DETAIL = 'Only its stage, with the instants and steps of it, changes once a policy is published.',
      HINT = 'Publish the change as a new generation.';
  END IF;

  IF NEW.stage <> OLD.stage
     AND (OLD.stage, NEW.stage) NOT IN (('published', 'shadow'), ('published', 'canary'), ('published', 'active'),
       ('shadow', 'canary'), ('shadow', 'active'), ('shadow', 'draining'), ('canary', 'active'), ('canary', 'draining'),
       ('active', 'draining'), ('draining', 'retired')) THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL902', MESSAGE = format('the stage of generation %s cannot move so', OLD.generation),
      DETAIL = format('It would go from %s to %s.', OLD.stage, NEW.stage),
      HINT = 'Stages move published, shadow, canary, active, draining, retired; shadow and canary may be left out.';
  END IF;
  IF NEW.active_at IS DISTINCT FROM OLD.active_at AND (OLD.active_at IS NOT NULL OR NEW.stage <> 'active')
     OR OLD.stage = 'retired' AND NEW.retired_at IS DISTINCT FROM OLD.retired_at THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL902', MESSAGE = format('the switch instant of generation %s is fixed', OLD.generation),
      DETAIL = format('Pairs may have moved at its %s.',
        CASE WHEN NEW.active_at IS DISTINCT FROM OLD.active_at THEN 'active_at' ELSE 'retired_at' END),
      HINT = 'Publish a new generation to switch again.';
  END IF;
  IF NEW.canary_by <> OLD.canary_by OR (OLD.canary_by IS NOT NULL AND NEW.canary_by IS NULL)
     OR NEW.canary_percents[1:cardinality(OLD.canary_percents)] <> OLD.canary_percents
     OR NEW.canary_since[1:cardinality(OLD.canary_since)] <> OLD.canary_since
     OR (NEW.canary_percents <> OLD.canary_percents OR NEW.canary_since <> OLD.canary_since)
        AND (NEW.stage <> 'canary' OR cardinality(NEW.canary_percents) <> cardinality(OLD.canary_percents) + 1
             OR NEW.canary_percents[cardinality(NEW.canary_percents)] <= OLD.canary_percents[cardinality(OLD.canary_percents)]
             OR NEW.canary_since[cardinality(NEW.canary_since)] < OLD.canary_since[cardinality(OLD.canary_since)]) THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL902', MESSAGE = format('the canary steps of generation %s are fixed', OLD.generation),
      DETAIL = 'Pairs may have moved at them.',
      HINT = 'Take it further with canary_policy.';
  END IF;
  RETURN NEW;
END;
$$;

CREATE TRIGGER policy_guard BEFORE UPDATE OR DELETE ON policy
  FOR EACH ROW EXECUTE FUNCTION @extschema@.policy_guard();
CREATE TRIGGER policy_guard_truncate BEFORE TRUNCATE ON policy
  FOR EACH STATEMENT EXECUTE FUNCTION @extschema@.policy_guard();

-- policy_changed tells every backend that its cached policies may be out of date.
CREATE FUNCTION policy_changed() RETURNS trigger
LANGUAGE C AS 'MODULE_PATHNAME', 'limitledger_policy_changed';
CREATE TRIGGER policy_changed AFTER INSERT OR UPDATE OR DELETE ON policy
  FOR EACH ROW EXECUTE FUNCTION @extschema@.policy_changed();
CREATE TRIGGER policy_changed_truncate AFTER TRUNCATE ON policy
  FOR EACH STATEMENT EXECUTE FUNCTION @extschema@.policy_changed();
-- Whoever writes, a replication worker included: a cache that missed it is wrong.
ALTER TABLE policy ENABLE ALWAYS TRIGGER policy_changed;
ALTER TABLE policy ENABLE ALWAYS TRIGGER policy_changed_truncate;
