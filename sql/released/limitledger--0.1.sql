-- limitledger: one shared, linearizable capacity ledger.
--
-- This script is joined from sql/NN-chapter.sql.  Private tables are singular,
-- public views plural.  Every rule number (A1 ... J5) is one of docs/rules.md.

\echo Use "CREATE EXTENSION limitledger" to load this file. \quit

-- Nothing in this schema is for PUBLIC (I1).
REVOKE ALL ON SCHEMA @extschema@ FROM PUBLIC;
-- Policies: frozen admissionBudget.v1 documents, known by their generation (B).

CREATE TABLE policy (
  generation           bigint      PRIMARY KEY CHECK (generation > 0),
  subject              text        COLLATE "C" NOT NULL,  -- '*': every subject without one of its own
  route                text        COLLATE "C" NOT NULL,
  stage                text        COLLATE "C" NOT NULL
    CHECK (stage IN ('published', 'active', 'draining', 'retired')),
  published_at         timestamptz NOT NULL,
  active_at            timestamptz,                       -- the switch instant (B5)
  retired_at           timestamptz,                       -- its pairs may fall to a wildcard from then on (B4)

  -- What the document says, as the ledger reads it.  Never changed.
  document             jsonb       NOT NULL,
  region               text        COLLATE "C" NOT NULL,  -- '*': any
  unit                 text        COLLATE "C" NOT NULL,
  refill_kind          text        COLLATE "C" NOT NULL
    CHECK (refill_kind IN ('continuous', 'window', 'none')),
  cap                  bigint      NOT NULL CHECK (cap > 0),
  refill_units         bigint      NOT NULL CHECK (refill_units >= 0),
  refill_interval      interval    NOT NULL CHECK (refill_interval >= interval '0'),
  epoch_length         interval,                          -- fixed, aligned in UTC, or
  epoch_calendar       text        COLLATE "C" CHECK (epoch_calendar IN ('day', 'month')),
  epoch_time_zone      text        COLLATE "C",           -- of the calendar
  estimator_digests    bytea[]     NOT NULL,              -- empty: any
  largest_reservation  bigint      NOT NULL CHECK (largest_reservation BETWEEN 1 AND cap),
  largest_outstanding  bigint      CHECK (largest_outstanding > 0),  -- NULL: no limit
  hold_ttl             interval    NOT NULL CHECK (hold_ttl > interval '0'),
  execution_ttl        interval    NOT NULL CHECK (execution_ttl > interval '0'),
  hard_execution_limit bigint      NOT NULL CHECK (hard_execution_limit > 0),
  maximum_overdraft    bigint      NOT NULL CHECK (maximum_overdraft >= 0),
  priority             integer     NOT NULL,
  weight               integer     NOT NULL CHECK (weight > 0),
  fairness_budget      bigint      NOT NULL CHECK (fairness_budget >= 0),
  emergency_mode       text        COLLATE "C" NOT NULL CHECK (emergency_mode IN ('disabled', 'enabled')),
  retention            interval    NOT NULL CHECK (retention >= interval '0'),

  CONSTRAINT policy_active_at CHECK ((stage = 'published') = (active_at IS NULL)),
  CONSTRAINT policy_retired_at CHECK ((stage = 'retired') = (retired_at IS NOT NULL) AND retired_at >= active_at),
  CONSTRAINT policy_epoch CHECK ((epoch_length IS NULL) <> (epoch_calendar IS NULL)
                             AND (epoch_time_zone IS NULL) = (epoch_calendar IS NULL)),
  CONSTRAINT policy_refill CHECK ((refill_kind = 'continuous') = (refill_units > 0)
                             AND (refill_kind = 'continuous') = (refill_interval > interval '0'))
);
CREATE INDEX policy_pair ON policy (route, subject, generation);
SELECT pg_catalog.pg_extension_config_dump('policy', '');
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
    ARRAY['burst', 'largestOutstanding', 'emergencyMode', 'policyGeneration']);

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

  parsed.emergency_mode := coalesce(document ->> 'emergencyMode',
    CASE WHEN NOT document ? 'emergencyMode' THEN 'disabled' END);
  IF parsed.emergency_mode IS NULL OR parsed.emergency_mode NOT IN ('disabled', 'enabled') THEN
    PERFORM @extschema@.policy_refuse_value(document, 'emergencyMode', 'must be "disabled" or "enabled"',
      'Leave it out to keep emergency capacity disabled.');
  END IF;
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

-- Which policy of a route was activated or retired last, or failing that published last.
CREATE INDEX policy_moved ON policy (route, greatest(active_at, retired_at) DESC NULLS LAST, generation DESC);

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
    ORDER BY greatest(l.active_at, l.retired_at) DESC NULLS LAST, l.generation DESC LIMIT 1);
$$;

-- policy_instant returns the instant of a switch that is made now.  A clock that
-- stepped back moves none before an earlier one of the route (A3).
CREATE FUNCTION policy_instant(switched_route text)
RETURNS timestamptz LANGUAGE sql VOLATILE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
  SELECT greatest(@extschema@.ledger_clock(),
    (SELECT greatest(l.active_at, l.retired_at) FROM @extschema@.policy AS l WHERE l.route = switched_route
     ORDER BY greatest(l.active_at, l.retired_at) DESC NULLS LAST, l.generation DESC LIMIT 1));
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
    AND p.generation > one.generation AND p.active_at IS NOT NULL;
$$;

-- policy_activate moves one generation to active and its predecessor to draining.
CREATE FUNCTION policy_activate(one @extschema@.policy)
RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  overtaken_by bigint;
BEGIN
  IF one.stage = 'active' THEN
    RETURN;             -- a repeat
  END IF;
  IF one.stage <> 'published' THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL205', MESSAGE = format('generation %s cannot be activated again', one.generation),
      DETAIL = format('It is %s, and stages move only forward.', one.stage),
      HINT = 'Publish its content as a new generation.';
  END IF;
  PERFORM @extschema@.policy_touch(one.route);
  overtaken_by := @extschema@.policy_overtaken_by(one);
  IF overtaken_by IS NOT NULL THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL205', MESSAGE = format('generation %s is too old to be activated', one.generation),
      DETAIL = format('The later generation %s has been active for its subjects.', overtaken_by),
      HINT = 'Publish its content as a new generation.';
  END IF;

  UPDATE @extschema@.policy AS p SET stage = 'draining'
  WHERE p.route = one.route AND p.subject = one.subject AND p.stage = 'active';
  UPDATE @extschema@.policy AS p
  SET stage = 'active', active_at = @extschema@.policy_instant(one.route)
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
  OUT stage text,                    -- published, active, draining
  OUT already_published boolean,     -- true: nothing new was published
  OUT active_at timestamptz          -- the switch instant; NULL: not active yet
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  parsed @extschema@.policy;
  newest @extschema@.policy;
BEGIN
  IF document IS NULL OR activate IS NULL THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL101',
      MESSAGE = format('%s must not be null', CASE WHEN document IS NULL THEN 'document' ELSE 'activate' END),
      DETAIL = 'publish_policy takes a policy document and whether to activate it.',
      HINT = 'Leave activate out to activate at once.';
  END IF;
  parsed := @extschema@.policy_read(document);

  LOCK TABLE @extschema@.policy IN SHARE ROW EXCLUSIVE MODE;
  SELECT p.* INTO newest FROM @extschema@.policy AS p
  WHERE p.route = parsed.route AND p.subject = parsed.subject
  ORDER BY p.generation DESC LIMIT 1;

  -- A repeat gets what it got before.  It is none if that generation is over, or
  -- is to be activated and no longer can be.
  already_published := coalesce(
    newest.document - 'policyGeneration' = document - 'policyGeneration'
    AND newest.stage <> 'retired'
    AND NOT (activate AND newest.stage = 'published'
             AND @extschema@.policy_overtaken_by(newest) IS NOT NULL), false);
  IF already_published THEN
    PERFORM @extschema@.policy_check_generation(parsed.generation, newest.generation);
  ELSE
    newest := @extschema@.policy_add(parsed);
  END IF;
  IF activate AND newest.stage = 'published' THEN
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
emergencyMode: "disabled", as when left out, or "enabled".
policyGeneration: the generation that the caller expects.

Units are whole numbers up to 9223372036854775807. Durations are texts from 1 microsecond to 366 days like "30 seconds", "1 hour 30 minutes", "00:00:30" or "PT30S", a day being 24 hours; no months, years or signs.

Publishing again what is already the newest of its route and subject, policyGeneration aside, publishes nothing: it returns that generation with already_published true, and activates it if that is asked for and was not done. A retired generation, or one that can no longer be activated, is published anew.

Errors, each naming the field by its path, as refill.interval: LL101 an argument is null; LL201 a field is missing; LL202 a field is unknown; LL203 a field is invalid; LL204 policyGeneration is not the generation of the document; 40001 at REPEATABLE READ and above, when another call published meanwhile. An error publishes nothing.

The lock on policies is kept until the transaction ends: other publications wait, calls on pairs do not. Several documents can be published in one transaction.$$;

COMMENT ON FUNCTION activate_policy(bigint) IS
$$Activates a published generation (B4, B5): from active_at on it admits for its route and subject, and the generation active until then drains. A pair moves at its next call, accruing under the old rule up to active_at, which never lies before another switch of the route. Activating what is active changes nothing.

Errors: LL101 generation is null; LL205 the generation is draining or retired, or a later one has been active for its subject, or for "*" of its route; LL206 no such generation; 40001 at REPEATABLE READ and above, when another call published or activated meanwhile.$$;

-- ---- Guards -----------------------------------------------------------------

-- One generation at a time is active for a route and subject.
CREATE UNIQUE INDEX policy_one_active ON policy (route, subject) WHERE stage = 'active';

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
  IF NOT frozen *= NEW THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL902', MESSAGE = format('the policy of generation %s is frozen', OLD.generation),
      DETAIL = 'Only stage, active_at and retired_at of a published policy change.',
      HINT = 'Publish the change as a new generation.';
  END IF;

  IF NEW.stage <> OLD.stage
     AND (OLD.stage, NEW.stage) NOT IN (('published', 'active'), ('active', 'draining'), ('draining', 'retired')) THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL902', MESSAGE = format('the stage of generation %s cannot move so', OLD.generation),
      DETAIL = format('It would go from %s to %s.', OLD.stage, NEW.stage),
      HINT = 'Stages move published, active, draining, retired, one step at a time.';
  END IF;
  IF OLD.stage <> 'published' AND NEW.active_at IS DISTINCT FROM OLD.active_at
     OR OLD.stage = 'retired' AND NEW.retired_at IS DISTINCT FROM OLD.retired_at THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL902', MESSAGE = format('the switch instant of generation %s is fixed', OLD.generation),
      DETAIL = format('Pairs may have moved at its %s.',
        CASE WHEN NEW.active_at IS DISTINCT FROM OLD.active_at THEN 'active_at' ELSE 'retired_at' END),
      HINT = 'Publish a new generation to switch again.';
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
-- Rollout: what operators do with a generation that was published (B4, B6): drain
-- it, retire it, go back to an older one, and look first at what a document changes.
--
-- The calls that write hold the lock on policy, as publishing does and for the same
-- reasons (see 15-publish.sql).

-- ---- Steps ------------------------------------------------------------------

-- policy_check_reason demands a reason of 1 to 256 bytes.
CREATE FUNCTION policy_check_reason(reason text, call text)
RETURNS void LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
BEGIN
  IF reason IS NULL OR octet_length(reason) NOT BETWEEN 1 AND 256 THEN
    RAISE EXCEPTION USING
      ERRCODE = CASE WHEN reason IS NULL THEN 'LL101' ELSE 'LL106' END,
      MESSAGE = CASE WHEN reason IS NULL THEN 'reason must not be null' ELSE 'reason must have 1 to 256 bytes' END,
      DETAIL = format('%s keeps the reason in operator_actions.', call),
      HINT = 'Say why, for whoever reads operator_actions later.';
  END IF;
END;
$$;

-- policy_record writes down what was done to a generation.  The actor is the role
-- that called, not the owner whose rights the calls have.
CREATE FUNCTION policy_record(action text, one @extschema@.policy, reason text)
RETURNS void LANGUAGE sql VOLATILE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
  INSERT INTO @extschema@.operator_action (acted_at, actor, action, subject, route, reason)
  VALUES (@extschema@.ledger_clock(), coalesce(nullif(current_setting('role'), 'none'), session_user),
          action, one.subject, one.route, reason);
$$;

-- policy_refuse_stage raises LL205 for a generation whose stage forbids the call.
CREATE FUNCTION policy_refuse_stage(one @extschema@.policy, problem text, hint text)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
BEGIN
  RAISE EXCEPTION USING
    ERRCODE = 'LL205', MESSAGE = format('generation %s %s', one.generation, problem),
    DETAIL = format('It is %s, and stages move only forward, one step at a time.', one.stage),
    HINT = hint;
END;
$$;

-- policy_await waits until every transaction has ended that has written to a table
-- so far, and keeps nobody from writing meanwhile.
CREATE FUNCTION policy_await(written regclass)
RETURNS void LANGUAGE C VOLATILE STRICT
AS 'MODULE_PATHNAME', 'limitledger_policy_await';

-- policy_left adds up what the budgets of a generation still hold and owe, and how
-- many pairs they belong to.  The subject only leads to the rows.
CREATE FUNCTION policy_left(
  one @extschema@.policy,
  OUT reserved bigint, OUT unknown bigint, OUT debt bigint, OUT pairs bigint)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  most CONSTANT numeric := 9223372036854775807;
BEGIN
  SELECT least(most, coalesce(sum(b.reserved), 0)), least(most, coalesce(sum(b.debt), 0)),
         count(DISTINCT b.subject),
         (SELECT least(most, coalesce(sum(r.reserved_units), 0)) FROM @extschema@.reservation AS r
          WHERE r.state = 'USAGE_UNKNOWN' AND r.generation = one.generation)
  INTO reserved, debt, pairs, unknown
  FROM @extschema@.budgets AS b
  WHERE b.route = one.route AND (one.subject = '*' OR b.subject = one.subject)
    AND b.generation = one.generation AND (b.reserved > 0 OR b.debt > 0);
END;
$$;

-- policy_in_force returns the generation that admits for a subject on a route; its
-- columns are NULL if there is none.  store/policy.c orders them by the same rule.
CREATE FUNCTION policy_in_force(of_subject text, of_route text)
RETURNS @extschema@.policy LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  own    @extschema@.policy;
  ruling @extschema@.policy;
BEGIN
  SELECT p.* INTO own FROM @extschema@.policy AS p
  WHERE p.route = of_route AND p.subject = of_subject AND p.active_at IS NOT NULL
  ORDER BY p.generation DESC LIMIT 1;
  IF own.generation IS NOT NULL AND own.stage <> 'retired' THEN
    ruling := own;
  ELSE
    SELECT p.* INTO ruling FROM @extschema@.policy AS p
    WHERE p.route = of_route AND p.subject = '*' AND p.active_at IS NOT NULL
      AND p.generation > coalesce(own.generation, 0)
    ORDER BY p.generation DESC LIMIT 1;
  END IF;
  IF ruling.stage <> 'active' THEN
    ruling := NULL;
  END IF;
  RETURN ruling;
END;
$$;

-- policy_fields takes a document apart, each field under its path.
CREATE FUNCTION policy_fields(document jsonb, OUT field text, OUT value jsonb)
RETURNS SETOF record LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
  SELECT concat_ws('.', d.key, e.key), coalesce(e.value, d.value)
  FROM jsonb_each(document - 'policyGeneration') AS d
    LEFT JOIN LATERAL jsonb_each(CASE jsonb_typeof(d.value) WHEN 'object' THEN d.value ELSE '{}' END) AS e ON true;
$$;

-- ---- The calls --------------------------------------------------------------

CREATE FUNCTION drain_policy(
  INOUT generation bigint, reason text,
  OUT stage text,                    -- draining, or retired already
  OUT already_draining boolean       -- true: nothing has changed
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  one @extschema@.policy;
BEGIN
  PERFORM @extschema@.policy_check_reason(reason, 'drain_policy');
  one := @extschema@.policy_lock(generation, 'drain_policy');
  IF one.stage = 'published' THEN
    PERFORM @extschema@.policy_refuse_stage(one, 'cannot be drained',
      'It admits nothing as it is: leave it, or publish another policy.');
  END IF;
  already_draining := one.stage <> 'active';
  IF NOT already_draining THEN
    PERFORM @extschema@.policy_touch(one.route);
    UPDATE @extschema@.policy AS p SET stage = 'draining' WHERE p.generation = one.generation;
    PERFORM @extschema@.policy_record('drain_policy', one, reason);
  END IF;

  SELECT p.stage INTO stage FROM @extschema@.policy AS p WHERE p.generation = one.generation;
END;
$$;

CREATE FUNCTION retire_policy(
  INOUT generation bigint,
  OUT outcome text,                  -- ACCEPTED, or REFUSED while anything is left
  OUT stage text,                    -- retired, or still draining
  OUT retired_at timestamptz,        -- the instant; NULL: not retired
  OUT left_reserved bigint,          -- units that its reservations hold
  OUT left_unknown bigint,           -- those among them whose usage is unknown
  OUT left_debt bigint,              -- units that its budgets owe
  OUT pairs bigint                   -- that have any of it
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  one @extschema@.policy;
BEGIN
  one := @extschema@.policy_lock(generation, 'retire_policy');
  IF one.stage NOT IN ('draining', 'retired') THEN
    PERFORM @extschema@.policy_refuse_stage(one, 'cannot be retired',
      CASE one.stage WHEN 'active' THEN 'Drain it with drain_policy, or publish the policy that follows it.'
                     ELSE 'It was never in force, so there is nothing to retire.' END);
  END IF;

  outcome := 'ACCEPTED';
  left_reserved := 0; left_unknown := 0; left_debt := 0; pairs := 0;
  IF one.stage = 'draining' THEN
    -- A call that came before the draining may still be about to commit.
    PERFORM @extschema@.policy_await('@extschema@.head_budget'::regclass);
    SELECT l.reserved, l.unknown, l.debt, l.pairs INTO left_reserved, left_unknown, left_debt, pairs
    FROM @extschema@.policy_left(one) AS l;
    IF pairs > 0 THEN
      outcome := 'REFUSED';
    ELSE
      PERFORM @extschema@.policy_touch(one.route);
      UPDATE @extschema@.policy AS p
      SET stage = 'retired', retired_at = @extschema@.policy_instant(one.route)
      WHERE p.generation = one.generation;
    END IF;
  END IF;

  SELECT p.stage, p.retired_at INTO stage, retired_at
  FROM @extschema@.policy AS p WHERE p.generation = one.generation;
END;
$$;

CREATE FUNCTION rollback_policy(
  INOUT generation bigint,           -- in: to go back to; out: the new one
  reason text,
  OUT rolled_back_from bigint,       -- the generation that drains now; NULL: none had come after it
  OUT content_of bigint              -- the generation whose content the new one has
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  older  @extschema@.policy;
  active @extschema@.policy;
BEGIN
  PERFORM @extschema@.policy_check_reason(reason, 'rollback_policy');
  older := @extschema@.policy_lock(generation, 'rollback_policy');
  IF older.stage = 'published' THEN
    PERFORM @extschema@.policy_refuse_stage(older, 'was never in force',
      'Activate it with activate_policy, or give a generation that was.');
  END IF;
  content_of := older.generation;
  PERFORM @extschema@.policy_touch(older.route);

  SELECT p.* INTO active FROM @extschema@.policy AS p
  WHERE p.route = older.route AND p.subject = older.subject AND p.stage = 'active';
  IF active.document - 'policyGeneration' = older.document - 'policyGeneration' THEN
    generation := active.generation;      -- a repeat
    SELECT max(p.generation) INTO rolled_back_from FROM @extschema@.policy AS p
    WHERE p.route = older.route AND p.subject = older.subject AND p.active_at IS NOT NULL
      AND p.generation BETWEEN content_of + 1 AND active.generation - 1;
    RETURN;
  END IF;

  SELECT max(p.generation) INTO rolled_back_from FROM @extschema@.policy AS p
  WHERE p.route = older.route AND p.subject = older.subject AND p.active_at IS NOT NULL;
  active := @extschema@.policy_add(@extschema@.policy_read(older.document - 'policyGeneration'));
  PERFORM @extschema@.policy_activate(active);
  PERFORM @extschema@.policy_record('rollback_policy', active, reason);
  generation := active.generation;
END;
$$;

CREATE FUNCTION policy_diff(
  document jsonb,
  OUT field text,                    -- by its path, as refill.interval
  OUT in_force text,                 -- NULL: nothing is in force, or it lacks the field
  OUT proposed text                  -- NULL: the document lacks it
) RETURNS SETOF record LANGUAGE plpgsql STABLE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  parsed @extschema@.policy;
  ruling @extschema@.policy;
BEGIN
  IF document IS NULL THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL101', MESSAGE = 'document must not be null',
      DETAIL = 'policy_diff takes a policy document.',
      HINT = 'Give the document that is to be published.';
  END IF;
  parsed := @extschema@.policy_read(document);
  ruling := @extschema@.policy_in_force(parsed.subject, parsed.route);

  RETURN QUERY
    SELECT f.field, o.value #>> '{}', n.value #>> '{}'
    FROM @extschema@.policy_fields(ruling.document) AS o
      FULL JOIN @extschema@.policy_fields(document) AS n USING (field),
      LATERAL (SELECT coalesce(o.field, n.field)) AS f (field)
    WHERE o.value IS DISTINCT FROM n.value
    ORDER BY f.field COLLATE "C";
END;
$$;

COMMENT ON FUNCTION drain_policy(bigint, text) IS
$$Stops admission under an active generation that nothing follows: it drains (B4, B6).

Requests are REFUSED draining from the next call of each pair on, an operator being what they wait for; reservations are started, settled, released and expired, and debt is repaid. reason: 1 to 256 bytes, kept in operator_actions. To a generation that drains or is retired already nothing happens.

The way back is rollback_policy with this generation, or any publish; the way on is retire_policy. Errors: LL101, LL106; LL205 it was never active; LL206 no such generation; 40001 at REPEATABLE READ and above, when another call changed a policy of the route meanwhile.$$;

COMMENT ON FUNCTION retire_policy(bigint) IS
$$Retires a draining generation once its budgets hold and owe nothing, and says until then what is left (B4, B6).

REFUSED: left_reserved, left_unknown and left_debt add up, in units and as stored, what the budgets of this generation hold and owe; pairs counts those that have any of it. What is due (holds that have run out, refill that pays) counts until maintain() or a call of the pair has booked it.

ACCEPTED: from retired_at on the subjects of an exact policy fall to the newest wildcard generation of the route that was published after it, each pair at its next call, accruing under the retired rule up to that instant, with nothing given away. Where there is none, requests are REFUSED no_policy. Retiring what is retired changes nothing.

It waits for the transactions that were writing to budgets when it was called, since one of them may hold an admission from before the draining; call drain_policy in a transaction of its own, before. Errors: LL101; LL205 it is published or active; LL206 no such generation; 40001 at REPEATABLE READ and above, when anything was committed meanwhile.$$;

COMMENT ON FUNCTION rollback_policy(bigint, text) IS
$$Goes back to the content of an older generation: publishes it under a new one, active at once, and drains the newer one (B4, B5).

generation: one that was in force, of the subject and route in question; returned is the new one. What was used under the newer generation stays used: the new budget carries over as with any publish. If that content is in force already, nothing changes, so a lost reply is harmless; rolled_back_from is then what drained before it. A generation that was drained or retired comes back in the same way. reason: 1 to 256 bytes, kept in operator_actions.

Errors: LL101, LL106; LL205 it was never in force; LL206 no such generation; LL203 if its document no longer reads, as with a time zone that is gone; 40001 at REPEATABLE READ and above, when another call changed a policy of the route meanwhile.$$;

COMMENT ON FUNCTION policy_diff(jsonb) IS
$$Compares a policy document with what is in force for its subject and route: a row for each field that differs, none when they are equal (B1, B4).

The document is read as strictly as publish_policy does; policyGeneration is not compared. In force is the active generation that a new request would be decided by: that of the subject, else the wildcard that it comes under, so a first policy of its own differs in subject, too. With nothing in force every field is a row. Values are compared as JSON: "30 seconds" and "PT30S" differ, as they do for publish_policy.

Errors: LL101; LL201, LL202, LL203 as publish_policy.$$;
-- Budgets: one row per pair, epoch and generation (C).
--
-- The head of a pair is its lock (F1).  When an epoch or a generation ends, the
-- closing values go into a row of closed_budget and the head row goes on under
-- the new key, so that whoever was queued on it finds the present state.
-- No column that a call changes is indexed: updates of the head are heap-only,
-- and half of each page is kept free for them.

CREATE TABLE head_budget (
  subject               text        COLLATE "C" NOT NULL,
  route                 text        COLLATE "C" NOT NULL,
  generation            bigint      NOT NULL,
  epoch                 timestamptz NOT NULL,               -- start of the accounting period
  opened_at             timestamptz NOT NULL,
  line                  bigint      NOT NULL,               -- grows when a window opens with its quota
  whole                 boolean     NOT NULL,
  follows_generation    bigint,                             -- the budget that it took over from (B5)
  follows_epoch         timestamptz,
  carried               bigint      NOT NULL,               -- what was taken over
  deficit               bigint      NOT NULL DEFAULT 0,
  opening               bigint      NOT NULL,
  minted                bigint      NOT NULL DEFAULT 0,
  overdraft_issued      bigint      NOT NULL DEFAULT 0,
  available             bigint      NOT NULL,
  reserved              bigint      NOT NULL DEFAULT 0,
  spent                 bigint      NOT NULL DEFAULT 0,
  retired_for_emergency bigint      NOT NULL DEFAULT 0,
  overdraft_repaid      bigint      NOT NULL DEFAULT 0,
  burned                bigint      NOT NULL DEFAULT 0,     -- un-minted at the cap
  purged_spent          bigint      NOT NULL DEFAULT 0,

  -- What belongs to the pair rather than to one of its budgets.
  older_debt            bigint      NOT NULL DEFAULT 0,     -- of its closed budgets
  older_reserved        bigint      NOT NULL DEFAULT 0,
  remainder             bigint      NOT NULL DEFAULT 0,     -- fraction of a unit (C4)
  seen_at               timestamptz NOT NULL,               -- latest instant seen (A3)
  accrued_at            timestamptz NOT NULL,
  frozen_at             timestamptz,
  frozen_reason         text,

  PRIMARY KEY (subject, route),

  CONSTRAINT opening_sign               CHECK (opening >= 0),
  CONSTRAINT minted_sign                CHECK (minted >= 0),
  CONSTRAINT overdraft_issued_sign      CHECK (overdraft_issued >= 0),
  CONSTRAINT available_sign             CHECK (available >= 0),
  CONSTRAINT reserved_sign              CHECK (reserved >= 0),
  CONSTRAINT spent_sign                 CHECK (spent >= 0),
  CONSTRAINT retired_for_emergency_sign CHECK (retired_for_emergency >= 0),
  CONSTRAINT overdraft_repaid_sign      CHECK (overdraft_repaid >= 0),
  CONSTRAINT conservation CHECK (
    opening + minted + overdraft_issued
    = available + reserved + spent + retired_for_emergency + overdraft_repaid),
  CONSTRAINT repaid_at_most_issued CHECK (overdraft_repaid <= overdraft_issued),
  CONSTRAINT debt_leaves_nothing CHECK (
    available = 0 OR (overdraft_issued = overdraft_repaid AND older_debt = 0)),
  CONSTRAINT counters_sign CHECK (
    burned >= 0 AND purged_spent >= 0 AND carried >= opening AND deficit >= 0
    AND older_debt >= 0 AND older_reserved >= 0 AND remainder >= 0),
  CONSTRAINT frozen_with_reason CHECK ((frozen_at IS NULL) = (frozen_reason IS NULL))
) WITH (fillfactor = 50);

-- For maintain(): pairs that owe.  Its columns change only while there is debt.
CREATE INDEX head_budget_debt ON head_budget (subject, route)
  WHERE overdraft_issued > overdraft_repaid OR older_debt > 0;

CREATE TABLE closed_budget (
  subject               text        COLLATE "C" NOT NULL,
  route                 text        COLLATE "C" NOT NULL,
  generation            bigint      NOT NULL,
  epoch                 timestamptz NOT NULL,
  opened_at             timestamptz NOT NULL,
  line                  bigint      NOT NULL,
  whole                 boolean     NOT NULL,
  follows_generation    bigint,
  follows_epoch         timestamptz,
  carried               bigint      NOT NULL,
  deficit               bigint      NOT NULL,               -- what was missing when it closed
  opening               bigint      NOT NULL,
  minted                bigint      NOT NULL,
  overdraft_issued      bigint      NOT NULL,
  available             bigint      NOT NULL,               -- its closing balance, which only grows
  reserved              bigint      NOT NULL,
  spent                 bigint      NOT NULL,
  retired_for_emergency bigint      NOT NULL,
  overdraft_repaid      bigint      NOT NULL,
  burned                bigint      NOT NULL,
  purged_spent          bigint      NOT NULL,

  closed_at             timestamptz NOT NULL,
  closing_available     bigint      NOT NULL,               -- at that instant, for the audit of B5

  -- Opening order of a pair: generations grow, epochs grow within one.
  PRIMARY KEY (subject, route, generation, epoch),

  CONSTRAINT opening_sign               CHECK (opening >= 0),
  CONSTRAINT minted_sign                CHECK (minted >= 0),
  CONSTRAINT overdraft_issued_sign      CHECK (overdraft_issued >= 0),
  CONSTRAINT available_sign             CHECK (available >= 0),
  CONSTRAINT reserved_sign              CHECK (reserved >= 0),
  CONSTRAINT spent_sign                 CHECK (spent >= 0),
  CONSTRAINT retired_for_emergency_sign CHECK (retired_for_emergency >= 0),
  CONSTRAINT overdraft_repaid_sign      CHECK (overdraft_repaid >= 0),
  CONSTRAINT conservation CHECK (
    opening + minted + overdraft_issued
    = available + reserved + spent + retired_for_emergency + overdraft_repaid),
  CONSTRAINT repaid_at_most_issued CHECK (overdraft_repaid <= overdraft_issued),
  CONSTRAINT counters_sign CHECK (
    burned >= 0 AND purged_spent >= 0 AND carried >= opening AND deficit >= 0
    AND closing_available BETWEEN 0 AND available)
) WITH (fillfactor = 80);

CREATE INDEX closed_budget_debt ON closed_budget (subject, route, generation, epoch)
  WHERE overdraft_issued > overdraft_repaid;

SELECT pg_catalog.pg_extension_config_dump('head_budget', '');
SELECT pg_catalog.pg_extension_config_dump('closed_budget', '');
-- Reservations: one limitReservation.v1 per row, named by the caller (A1, D).

CREATE TABLE reservation (
  subject           text        COLLATE "C" NOT NULL,
  reservation_id    text        COLLATE "C" NOT NULL,     -- the idempotency key
  route             text        COLLATE "C",              -- its budget; all three NULL in a fence (D11)
  generation        bigint,
  epoch             timestamptz,
  state             text        COLLATE "C" NOT NULL,
  asked_units       bigint,                               -- what the request asked for (D2)
  reserved_units    bigint      NOT NULL,
  actual_units      bigint,
  request_digest    bytea       NOT NULL,
  operation_id      text        COLLATE "C",
  priority          integer     NOT NULL,
  expires_at        timestamptz NOT NULL,                 -- of the hold, then of the execution
  reserved_at       timestamptz NOT NULL,
  started_at        timestamptz,
  unknown_at        timestamptz,
  ended_at          timestamptz,
  excess_units      bigint      NOT NULL DEFAULT 0,       -- above the reservation (D7), and
  excess_generation bigint,                               -- the budget that bore it
  excess_epoch      timestamptz,
  receipt_digest    bytea,
  receipt_source    text        COLLATE "C",
  progress_units    bigint      NOT NULL DEFAULT 0,       -- used so far, as reported (D10)

  PRIMARY KEY (subject, reservation_id),

  CONSTRAINT state_known CHECK (state IN ('RESERVED', 'STARTED', 'USAGE_UNKNOWN', 'EXPIRING',
    'SETTLED', 'SETTLED_WITH_DEBT', 'RELEASED', 'EXPIRED')),
  CONSTRAINT digest_length CHECK (octet_length(request_digest) = 32),
  CONSTRAINT reserved_units_sign CHECK (reserved_units >= 0),
  CONSTRAINT progress_units_sign CHECK (progress_units >= 0),
  CONSTRAINT actual_when_settled CHECK (
    (actual_units IS NOT NULL) = (state IN ('SETTLED', 'SETTLED_WITH_DEBT')) AND actual_units >= 0),
  CONSTRAINT operation_when_started CHECK (
    (operation_id IS NOT NULL) = (state IN ('STARTED', 'USAGE_UNKNOWN', 'SETTLED', 'SETTLED_WITH_DEBT'))),
  CONSTRAINT excess_has_budget CHECK (
    excess_units >= 0 AND (excess_units > 0) = (excess_generation IS NOT NULL)
    AND (excess_units > 0) = (excess_epoch IS NOT NULL)),
  CONSTRAINT budget_or_fence CHECK (
    CASE WHEN route IS NULL
      THEN generation IS NULL AND epoch IS NULL AND asked_units IS NULL
           AND state = 'RELEASED' AND reserved_units = 0
      ELSE generation IS NOT NULL AND epoch IS NOT NULL AND asked_units >= 1
    END)
) WITH (fillfactor = 80);

-- What is due next, over all pairs: an index for each open state, so that one
-- can't hide another, and with one short column, because each reserve writes one.
CREATE INDEX reservation_reserved ON reservation (expires_at) WHERE state = 'RESERVED';
CREATE INDEX reservation_expiring ON reservation (expires_at) WHERE state = 'EXPIRING';
CREATE INDEX reservation_started  ON reservation (expires_at) WHERE state = 'STARTED';
CREATE INDEX reservation_unknown  ON reservation (unknown_at) WHERE state = 'USAGE_UNKNOWN';

-- And within one pair, for the reserve that finds it full (D14).
CREATE INDEX reservation_pair_due ON reservation (subject, route, expires_at)
  WHERE state IN ('RESERVED', 'EXPIRING');

-- What an operation id is bound to: one thing per subject, whoever asks first.
-- Either a reservation (D5), or usage that was never reserved (D12).
CREATE TABLE operation (
  subject        text        COLLATE "C" NOT NULL,
  operation_id   text        COLLATE "C" NOT NULL,
  reservation_id text        COLLATE "C",
  bound_at       timestamptz NOT NULL,
  usage_units    bigint,                               -- what ran, and the budget that bore it:
  route          text        COLLATE "C",
  generation     bigint,
  epoch          timestamptz,
  PRIMARY KEY (subject, operation_id),
  CONSTRAINT reservation_or_usage CHECK (
    CASE WHEN reservation_id IS NOT NULL
      THEN usage_units IS NULL AND route IS NULL AND generation IS NULL AND epoch IS NULL
      ELSE usage_units >= 0 AND route IS NOT NULL AND generation IS NOT NULL AND epoch IS NOT NULL
    END)
);

-- Extensions that took effect, by the id that the caller chose (D13).
CREATE TABLE extension (
  subject        text        COLLATE "C" NOT NULL,
  reservation_id text        COLLATE "C" NOT NULL,
  extension_id   text        COLLATE "C" NOT NULL,
  units          bigint      NOT NULL CHECK (units >= 0),
  expires_at     timestamptz,                          -- as asked for; NULL: as it was
  extended_at    timestamptz NOT NULL,
  PRIMARY KEY (subject, reservation_id, extension_id)
);

-- Units that operators granted, by the id that they chose (E3).
CREATE TABLE capacity_grant (
  subject       text        COLLATE "C" NOT NULL,
  route         text        COLLATE "C" NOT NULL,
  grant_id      text        COLLATE "C" NOT NULL,
  units         bigint      NOT NULL CHECK (units >= 1),
  granted_units bigint      NOT NULL CHECK (granted_units BETWEEN 0 AND units),
  granted_at    timestamptz NOT NULL,
  actor         text        NOT NULL,
  reason        text        NOT NULL,
  PRIMARY KEY (subject, route, grant_id)
);

-- What operators did, and why (D8).
CREATE TABLE operator_action (
  action_id uuid        PRIMARY KEY DEFAULT pg_catalog.gen_random_uuid(),
  acted_at  timestamptz NOT NULL,
  actor     text        NOT NULL,
  action    text        COLLATE "C" NOT NULL,
  subject   text        COLLATE "C" NOT NULL,
  route     text        COLLATE "C" NOT NULL,
  reason    text        NOT NULL
);

SELECT pg_catalog.pg_extension_config_dump('reservation', '');
SELECT pg_catalog.pg_extension_config_dump('operation', '');
SELECT pg_catalog.pg_extension_config_dump('extension', '');
SELECT pg_catalog.pg_extension_config_dump('capacity_grant', '');
SELECT pg_catalog.pg_extension_config_dump('operator_action', '');
-- Guards: they refuse what no call does, whoever tries (C3).

CREATE FUNCTION guard_head() RETURNS trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'limitledger_guard_head';
CREATE FUNCTION guard_closed() RETURNS trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'limitledger_guard_closed';
CREATE FUNCTION guard_reservation() RETURNS trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'limitledger_guard_reservation';
CREATE FUNCTION guard_bound() RETURNS trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'limitledger_guard_bound';

CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON head_budget
  FOR EACH ROW EXECUTE FUNCTION guard_head();
CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON closed_budget
  FOR EACH ROW EXECUTE FUNCTION guard_closed();
CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON reservation
  FOR EACH ROW EXECUTE FUNCTION guard_reservation();
CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON operation
  FOR EACH ROW EXECUTE FUNCTION guard_bound();
CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON extension
  FOR EACH ROW EXECUTE FUNCTION guard_bound();
CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON capacity_grant
  FOR EACH ROW EXECUTE FUNCTION guard_bound();
CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON operator_action
  FOR EACH ROW EXECUTE FUNCTION guard_bound();

CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON head_budget
  FOR EACH STATEMENT EXECUTE FUNCTION guard_head();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON closed_budget
  FOR EACH STATEMENT EXECUTE FUNCTION guard_closed();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON reservation
  FOR EACH STATEMENT EXECUTE FUNCTION guard_reservation();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON operation
  FOR EACH STATEMENT EXECUTE FUNCTION guard_bound();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON operator_action
  FOR EACH STATEMENT EXECUTE FUNCTION guard_bound();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON extension
  FOR EACH STATEMENT EXECUTE FUNCTION guard_bound();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON capacity_grant
  FOR EACH STATEMENT EXECUTE FUNCTION guard_bound();
-- The life of a reservation.  Every call answers with one receipt (J1).
-- `SELECT * FROM f(...)` is the documented form.  @receipt@ is sql/receipt.inc.

CREATE FUNCTION reserve_capacity(
  subject text, route text, reservation_id text, units bigint, digest bytea,
  region text DEFAULT NULL, estimator_digest bytea DEFAULT NULL,
  deadline timestamptz DEFAULT NULL, priority integer DEFAULT NULL,
  start_operation text DEFAULT NULL,
  OUT outcome text,                  -- ACCEPTED, REFUSED, CONFLICT, UNKNOWN: see outcomes()
  OUT dimension text,                -- the rule that said no; NULL when ACCEPTED
  OUT state text,                    -- of the reservation now; REQUESTED if it was refused, RESERVATION_UNKNOWN if there is none
  OUT replayed boolean,              -- true: an earlier call did it, this is what stands
  OUT generation bigint,             -- of the policy that matched or that the reservation is under
  OUT epoch timestamptz,             -- start of the accounting period
  OUT reserved_units bigint,
  OUT actual_units bigint,           -- once settled
  OUT operation text,                -- the operation bound to it
  OUT expires_at timestamptz,        -- of the hold; once started, the execution deadline
  OUT ledger_at timestamptz,         -- the ledger's clock at the decision
  OUT available bigint,              -- of this pair, after the call
  OUT cap bigint,                    -- burst, or the quota of a window
  OUT reset_at timestamptz,          -- when the pair is full again with no more traffic, by refill alone
  OUT retry_after_ms bigint,         -- an upper bound, rounded up; NULL where none is known
  OUT retry_kind text,               -- refill, release, operator, never
  OUT hard_limit bigint,             -- units that one execution may use
  OUT excess_units bigint,           -- used above the reservation, and the budget that bore it:
  OUT excess_generation bigint,
  OUT excess_epoch timestamptz
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_reserve_capacity';

CREATE FUNCTION start_reservation(
  subject text, reservation_id text, operation_id text,
  OUT outcome text,                  -- ACCEPTED, REFUSED, CONFLICT, UNKNOWN: see outcomes()
  OUT dimension text,                -- the rule that said no; NULL when ACCEPTED
  OUT state text,                    -- of the reservation now; REQUESTED if it was refused, RESERVATION_UNKNOWN if there is none
  OUT replayed boolean,              -- true: an earlier call did it, this is what stands
  OUT generation bigint,             -- of the policy that matched or that the reservation is under
  OUT epoch timestamptz,             -- start of the accounting period
  OUT reserved_units bigint,
  OUT actual_units bigint,           -- once settled
  OUT operation text,                -- the operation bound to it
  OUT expires_at timestamptz,        -- of the hold; once started, the execution deadline
  OUT ledger_at timestamptz,         -- the ledger's clock at the decision
  OUT available bigint,              -- of this pair, after the call
  OUT cap bigint,                    -- burst, or the quota of a window
  OUT reset_at timestamptz,          -- when the pair is full again with no more traffic, by refill alone
  OUT retry_after_ms bigint,         -- an upper bound, rounded up; NULL where none is known
  OUT retry_kind text,               -- refill, release, operator, never
  OUT hard_limit bigint,             -- units that one execution may use
  OUT excess_units bigint,           -- used above the reservation, and the budget that bore it:
  OUT excess_generation bigint,
  OUT excess_epoch timestamptz
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_start_reservation';

CREATE FUNCTION settle_usage(
  subject text, reservation_id text, operation_id text, actual bigint,
  receipt_digest bytea DEFAULT NULL, source text DEFAULT 'executor',
  OUT outcome text,                  -- ACCEPTED, REFUSED, CONFLICT, UNKNOWN: see outcomes()
  OUT dimension text,                -- the rule that said no; NULL when ACCEPTED
  OUT state text,                    -- of the reservation now; REQUESTED if it was refused, RESERVATION_UNKNOWN if there is none
  OUT replayed boolean,              -- true: an earlier call did it, this is what stands
  OUT generation bigint,             -- of the policy that matched or that the reservation is under
  OUT epoch timestamptz,             -- start of the accounting period
  OUT reserved_units bigint,
  OUT actual_units bigint,           -- once settled
  OUT operation text,                -- the operation bound to it
  OUT expires_at timestamptz,        -- of the hold; once started, the execution deadline
  OUT ledger_at timestamptz,         -- the ledger's clock at the decision
  OUT available bigint,              -- of this pair, after the call
  OUT cap bigint,                    -- burst, or the quota of a window
  OUT reset_at timestamptz,          -- when the pair is full again with no more traffic, by refill alone
  OUT retry_after_ms bigint,         -- an upper bound, rounded up; NULL where none is known
  OUT retry_kind text,               -- refill, release, operator, never
  OUT hard_limit bigint,             -- units that one execution may use
  OUT excess_units bigint,           -- used above the reservation, and the budget that bore it:
  OUT excess_generation bigint,
  OUT excess_epoch timestamptz
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_settle_usage';

CREATE FUNCTION release_reservation(
  subject text, reservation_id text,
  OUT outcome text,                  -- ACCEPTED, REFUSED, CONFLICT, UNKNOWN: see outcomes()
  OUT dimension text,                -- the rule that said no; NULL when ACCEPTED
  OUT state text,                    -- of the reservation now; REQUESTED if it was refused, RESERVATION_UNKNOWN if there is none
  OUT replayed boolean,              -- true: an earlier call did it, this is what stands
  OUT generation bigint,             -- of the policy that matched or that the reservation is under
  OUT epoch timestamptz,             -- start of the accounting period
  OUT reserved_units bigint,
  OUT actual_units bigint,           -- once settled
  OUT operation text,                -- the operation bound to it
  OUT expires_at timestamptz,        -- of the hold; once started, the execution deadline
  OUT ledger_at timestamptz,         -- the ledger's clock at the decision
  OUT available bigint,              -- of this pair, after the call
  OUT cap bigint,                    -- burst, or the quota of a window
  OUT reset_at timestamptz,          -- when the pair is full again with no more traffic, by refill alone
  OUT retry_after_ms bigint,         -- an upper bound, rounded up; NULL where none is known
  OUT retry_kind text,               -- refill, release, operator, never
  OUT hard_limit bigint,             -- units that one execution may use
  OUT excess_units bigint,           -- used above the reservation, and the budget that bore it:
  OUT excess_generation bigint,
  OUT excess_epoch timestamptz
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_release_reservation';

CREATE FUNCTION report_usage_unknown(
  subject text, reservation_id text, operation_id text,
  OUT outcome text,                  -- ACCEPTED, REFUSED, CONFLICT, UNKNOWN: see outcomes()
  OUT dimension text,                -- the rule that said no; NULL when ACCEPTED
  OUT state text,                    -- of the reservation now; REQUESTED if it was refused, RESERVATION_UNKNOWN if there is none
  OUT replayed boolean,              -- true: an earlier call did it, this is what stands
  OUT generation bigint,             -- of the policy that matched or that the reservation is under
  OUT epoch timestamptz,             -- start of the accounting period
  OUT reserved_units bigint,
  OUT actual_units bigint,           -- once settled
  OUT operation text,                -- the operation bound to it
  OUT expires_at timestamptz,        -- of the hold; once started, the execution deadline
  OUT ledger_at timestamptz,         -- the ledger's clock at the decision
  OUT available bigint,              -- of this pair, after the call
  OUT cap bigint,                    -- burst, or the quota of a window
  OUT reset_at timestamptz,          -- when the pair is full again with no more traffic, by refill alone
  OUT retry_after_ms bigint,         -- an upper bound, rounded up; NULL where none is known
  OUT retry_kind text,               -- refill, release, operator, never
  OUT hard_limit bigint,             -- units that one execution may use
  OUT excess_units bigint,           -- used above the reservation, and the budget that bore it:
  OUT excess_generation bigint,
  OUT excess_epoch timestamptz
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_report_usage_unknown';

CREATE FUNCTION report_progress(
  subject text, reservation_id text, operation_id text, units bigint,
  OUT outcome text,                  -- ACCEPTED, REFUSED, CONFLICT, UNKNOWN: see outcomes()
  OUT dimension text,                -- the rule that said no; NULL when ACCEPTED
  OUT state text,                    -- of the reservation now; REQUESTED if it was refused, RESERVATION_UNKNOWN if there is none
  OUT replayed boolean,              -- true: an earlier call did it, this is what stands
  OUT generation bigint,             -- of the policy that matched or that the reservation is under
  OUT epoch timestamptz,             -- start of the accounting period
  OUT reserved_units bigint,
  OUT actual_units bigint,           -- once settled
  OUT operation text,                -- the operation bound to it
  OUT expires_at timestamptz,        -- of the hold; once started, the execution deadline
  OUT ledger_at timestamptz,         -- the ledger's clock at the decision
  OUT available bigint,              -- of this pair, after the call
  OUT cap bigint,                    -- burst, or the quota of a window
  OUT reset_at timestamptz,          -- when the pair is full again with no more traffic, by refill alone
  OUT retry_after_ms bigint,         -- an upper bound, rounded up; NULL where none is known
  OUT retry_kind text,               -- refill, release, operator, never
  OUT hard_limit bigint,             -- units that one execution may use
  OUT excess_units bigint,           -- used above the reservation, and the budget that bore it:
  OUT excess_generation bigint,
  OUT excess_epoch timestamptz
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_report_progress';

CREATE FUNCTION extend_reservation(
  subject text, reservation_id text, extension_id text,
  units bigint DEFAULT 0, until timestamptz DEFAULT NULL,
  OUT outcome text,                  -- ACCEPTED, REFUSED, CONFLICT, UNKNOWN: see outcomes()
  OUT dimension text,                -- the rule that said no; NULL when ACCEPTED
  OUT state text,                    -- of the reservation now; REQUESTED if it was refused, RESERVATION_UNKNOWN if there is none
  OUT replayed boolean,              -- true: an earlier call did it, this is what stands
  OUT generation bigint,             -- of the policy that matched or that the reservation is under
  OUT epoch timestamptz,             -- start of the accounting period
  OUT reserved_units bigint,
  OUT actual_units bigint,           -- once settled
  OUT operation text,                -- the operation bound to it
  OUT expires_at timestamptz,        -- of the hold; once started, the execution deadline
  OUT ledger_at timestamptz,         -- the ledger's clock at the decision
  OUT available bigint,              -- of this pair, after the call
  OUT cap bigint,                    -- burst, or the quota of a window
  OUT reset_at timestamptz,          -- when the pair is full again with no more traffic, by refill alone
  OUT retry_after_ms bigint,         -- an upper bound, rounded up; NULL where none is known
  OUT retry_kind text,               -- refill, release, operator, never
  OUT hard_limit bigint,             -- units that one execution may use
  OUT excess_units bigint,           -- used above the reservation, and the budget that bore it:
  OUT excess_generation bigint,
  OUT excess_epoch timestamptz
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_extend_reservation';

CREATE FUNCTION record_usage(
  subject text, route text, operation_id text, units bigint,
  OUT outcome text,                  -- ACCEPTED, REFUSED, CONFLICT, UNKNOWN: see outcomes()
  OUT dimension text,                -- the rule that said no; NULL when ACCEPTED
  OUT state text,                    -- of the reservation now; REQUESTED if it was refused, RESERVATION_UNKNOWN if there is none
  OUT replayed boolean,              -- true: an earlier call did it, this is what stands
  OUT generation bigint,             -- of the policy that matched or that the reservation is under
  OUT epoch timestamptz,             -- start of the accounting period
  OUT reserved_units bigint,
  OUT actual_units bigint,           -- once settled
  OUT operation text,                -- the operation bound to it
  OUT expires_at timestamptz,        -- of the hold; once started, the execution deadline
  OUT ledger_at timestamptz,         -- the ledger's clock at the decision
  OUT available bigint,              -- of this pair, after the call
  OUT cap bigint,                    -- burst, or the quota of a window
  OUT reset_at timestamptz,          -- when the pair is full again with no more traffic, by refill alone
  OUT retry_after_ms bigint,         -- an upper bound, rounded up; NULL where none is known
  OUT retry_kind text,               -- refill, release, operator, never
  OUT hard_limit bigint,             -- units that one execution may use
  OUT excess_units bigint,           -- used above the reservation, and the budget that bore it:
  OUT excess_generation bigint,
  OUT excess_epoch timestamptz
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_record_usage';

CREATE FUNCTION get_reservation(
  subject text, reservation_id text,
  OUT outcome text,                  -- ACCEPTED, REFUSED, CONFLICT, UNKNOWN: see outcomes()
  OUT dimension text,                -- the rule that said no; NULL when ACCEPTED
  OUT state text,                    -- of the reservation now; REQUESTED if it was refused, RESERVATION_UNKNOWN if there is none
  OUT replayed boolean,              -- true: an earlier call did it, this is what stands
  OUT generation bigint,             -- of the policy that matched or that the reservation is under
  OUT epoch timestamptz,             -- start of the accounting period
  OUT reserved_units bigint,
  OUT actual_units bigint,           -- once settled
  OUT operation text,                -- the operation bound to it
  OUT expires_at timestamptz,        -- of the hold; once started, the execution deadline
  OUT ledger_at timestamptz,         -- the ledger's clock at the decision
  OUT available bigint,              -- of this pair, after the call
  OUT cap bigint,                    -- burst, or the quota of a window
  OUT reset_at timestamptz,          -- when the pair is full again with no more traffic, by refill alone
  OUT retry_after_ms bigint,         -- an upper bound, rounded up; NULL where none is known
  OUT retry_kind text,               -- refill, release, operator, never
  OUT hard_limit bigint,             -- units that one execution may use
  OUT excess_units bigint,           -- used above the reservation, and the budget that bore it:
  OUT excess_generation bigint,
  OUT excess_epoch timestamptz
) LANGUAGE C STABLE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_get_reservation';

CREATE FUNCTION resolve_reservation(
  subject text, reservation_id text, digest bytea,
  OUT outcome text,                  -- ACCEPTED, REFUSED, CONFLICT, UNKNOWN: see outcomes()
  OUT dimension text,                -- the rule that said no; NULL when ACCEPTED
  OUT state text,                    -- of the reservation now; REQUESTED if it was refused, RESERVATION_UNKNOWN if there is none
  OUT replayed boolean,              -- true: an earlier call did it, this is what stands
  OUT generation bigint,             -- of the policy that matched or that the reservation is under
  OUT epoch timestamptz,             -- start of the accounting period
  OUT reserved_units bigint,
  OUT actual_units bigint,           -- once settled
  OUT operation text,                -- the operation bound to it
  OUT expires_at timestamptz,        -- of the hold; once started, the execution deadline
  OUT ledger_at timestamptz,         -- the ledger's clock at the decision
  OUT available bigint,              -- of this pair, after the call
  OUT cap bigint,                    -- burst, or the quota of a window
  OUT reset_at timestamptz,          -- when the pair is full again with no more traffic, by refill alone
  OUT retry_after_ms bigint,         -- an upper bound, rounded up; NULL where none is known
  OUT retry_kind text,               -- refill, release, operator, never
  OUT hard_limit bigint,             -- units that one execution may use
  OUT excess_units bigint,           -- used above the reservation, and the budget that bore it:
  OUT excess_generation bigint,
  OUT excess_epoch timestamptz
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_resolve_reservation';

-- The batch forms: parallel arrays in, one receipt per element in their order (J2).
-- An optional array may be NULL as a whole or element by element.

CREATE FUNCTION reserve_capacity_batch(
  subjects text[], routes text[], reservation_ids text[], units bigint[], digests bytea[],
  regions text[] DEFAULT NULL, estimator_digests bytea[] DEFAULT NULL,
  deadlines timestamptz[] DEFAULT NULL, priorities integer[] DEFAULT NULL,
  start_operations text[] DEFAULT NULL,
  require_all boolean DEFAULT false, -- several limits in one decision: all or nothing
  OUT element integer,               -- from 1
  OUT outcome text,                  -- ACCEPTED, REFUSED, CONFLICT, UNKNOWN: see outcomes()
  OUT dimension text,                -- the rule that said no; NULL when ACCEPTED
  OUT state text,                    -- of the reservation now; REQUESTED if it was refused, RESERVATION_UNKNOWN if there is none
  OUT replayed boolean,              -- true: an earlier call did it, this is what stands
  OUT generation bigint,             -- of the policy that matched or that the reservation is under
  OUT epoch timestamptz,             -- start of the accounting period
  OUT reserved_units bigint,
  OUT actual_units bigint,           -- once settled
  OUT operation text,                -- the operation bound to it
  OUT expires_at timestamptz,        -- of the hold; once started, the execution deadline
  OUT ledger_at timestamptz,         -- the ledger's clock at the decision
  OUT available bigint,              -- of this pair, after the call
  OUT cap bigint,                    -- burst, or the quota of a window
  OUT reset_at timestamptz,          -- when the pair is full again with no more traffic, by refill alone
  OUT retry_after_ms bigint,         -- an upper bound, rounded up; NULL where none is known
  OUT retry_kind text,               -- refill, release, operator, never
  OUT hard_limit bigint,             -- units that one execution may use
  OUT excess_units bigint,           -- used above the reservation, and the budget that bore it:
  OUT excess_generation bigint,
  OUT excess_epoch timestamptz
) RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_reserve_capacity_batch';

CREATE FUNCTION start_reservation_batch(
  subjects text[], reservation_ids text[], operation_ids text[],
  OUT element integer,
  OUT outcome text,                  -- ACCEPTED, REFUSED, CONFLICT, UNKNOWN: see outcomes()
  OUT dimension text,                -- the rule that said no; NULL when ACCEPTED
  OUT state text,                    -- of the reservation now; REQUESTED if it was refused, RESERVATION_UNKNOWN if there is none
  OUT replayed boolean,              -- true: an earlier call did it, this is what stands
  OUT generation bigint,             -- of the policy that matched or that the reservation is under
  OUT epoch timestamptz,             -- start of the accounting period
  OUT reserved_units bigint,
  OUT actual_units bigint,           -- once settled
  OUT operation text,                -- the operation bound to it
  OUT expires_at timestamptz,        -- of the hold; once started, the execution deadline
  OUT ledger_at timestamptz,         -- the ledger's clock at the decision
  OUT available bigint,              -- of this pair, after the call
  OUT cap bigint,                    -- burst, or the quota of a window
  OUT reset_at timestamptz,          -- when the pair is full again with no more traffic, by refill alone
  OUT retry_after_ms bigint,         -- an upper bound, rounded up; NULL where none is known
  OUT retry_kind text,               -- refill, release, operator, never
  OUT hard_limit bigint,             -- units that one execution may use
  OUT excess_units bigint,           -- used above the reservation, and the budget that bore it:
  OUT excess_generation bigint,
  OUT excess_epoch timestamptz
) RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_start_reservation_batch';

CREATE FUNCTION settle_usage_batch(
  subjects text[], reservation_ids text[], operation_ids text[], actuals bigint[],
  receipt_digests bytea[] DEFAULT NULL, sources text[] DEFAULT NULL,
  OUT element integer,
  OUT outcome text,                  -- ACCEPTED, REFUSED, CONFLICT, UNKNOWN: see outcomes()
  OUT dimension text,                -- the rule that said no; NULL when ACCEPTED
  OUT state text,                    -- of the reservation now; REQUESTED if it was refused, RESERVATION_UNKNOWN if there is none
  OUT replayed boolean,              -- true: an earlier call did it, this is what stands
  OUT generation bigint,             -- of the policy that matched or that the reservation is under
  OUT epoch timestamptz,             -- start of the accounting period
  OUT reserved_units bigint,
  OUT actual_units bigint,           -- once settled
  OUT operation text,                -- the operation bound to it
  OUT expires_at timestamptz,        -- of the hold; once started, the execution deadline
  OUT ledger_at timestamptz,         -- the ledger's clock at the decision
  OUT available bigint,              -- of this pair, after the call
  OUT cap bigint,                    -- burst, or the quota of a window
  OUT reset_at timestamptz,          -- when the pair is full again with no more traffic, by refill alone
  OUT retry_after_ms bigint,         -- an upper bound, rounded up; NULL where none is known
  OUT retry_kind text,               -- refill, release, operator, never
  OUT hard_limit bigint,             -- units that one execution may use
  OUT excess_units bigint,           -- used above the reservation, and the budget that bore it:
  OUT excess_generation bigint,
  OUT excess_epoch timestamptz
) RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_settle_usage_batch';

CREATE FUNCTION release_reservation_batch(
  subjects text[], reservation_ids text[],
  OUT element integer,
  OUT outcome text,                  -- ACCEPTED, REFUSED, CONFLICT, UNKNOWN: see outcomes()
  OUT dimension text,                -- the rule that said no; NULL when ACCEPTED
  OUT state text,                    -- of the reservation now; REQUESTED if it was refused, RESERVATION_UNKNOWN if there is none
  OUT replayed boolean,              -- true: an earlier call did it, this is what stands
  OUT generation bigint,             -- of the policy that matched or that the reservation is under
  OUT epoch timestamptz,             -- start of the accounting period
  OUT reserved_units bigint,
  OUT actual_units bigint,           -- once settled
  OUT operation text,                -- the operation bound to it
  OUT expires_at timestamptz,        -- of the hold; once started, the execution deadline
  OUT ledger_at timestamptz,         -- the ledger's clock at the decision
  OUT available bigint,              -- of this pair, after the call
  OUT cap bigint,                    -- burst, or the quota of a window
  OUT reset_at timestamptz,          -- when the pair is full again with no more traffic, by refill alone
  OUT retry_after_ms bigint,         -- an upper bound, rounded up; NULL where none is known
  OUT retry_kind text,               -- refill, release, operator, never
  OUT hard_limit bigint,             -- units that one execution may use
  OUT excess_units bigint,           -- used above the reservation, and the budget that bore it:
  OUT excess_generation bigint,
  OUT excess_epoch timestamptz
) RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_release_reservation_batch';

-- Pairs: what stands, what is owed.

CREATE FUNCTION get_budget(
  subject text, route text,
  OUT generation bigint, OUT epoch timestamptz, OUT refill_kind text, OUT cap bigint,
  OUT opening bigint, OUT minted bigint, OUT overdraft_issued bigint,
  OUT available bigint,              -- refill counted up to ledger_at
  OUT reserved bigint, OUT spent bigint, OUT retired_for_emergency bigint,
  OUT overdraft_repaid bigint,
  OUT burned bigint, OUT deficit bigint,
  OUT debt bigint,                   -- of the pair, over all its budgets
  OUT outstanding bigint,            -- reserved over all its budgets
  OUT due_units bigint,              -- held by RESERVED rows that are due: the next reserve that needs them ends them
  OUT admission text,                -- open, suspended (debt), frozen, draining, no_policy
  OUT frozen_reason text,
  OUT reset_at timestamptz,
  OUT ledger_at timestamptz
) RETURNS SETOF record LANGUAGE C STABLE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_get_budget';

CREATE FUNCTION repay_debt(
  subject text, route text,
  OUT outcome text, OUT dimension text,
  OUT repaid_units bigint,           -- by this call
  OUT debt bigint,                   -- that is left
  OUT available bigint,
  OUT admission text,
  OUT ledger_at timestamptz
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_repay_debt';

CREATE FUNCTION grant_capacity(
  subject text, route text, grant_id text, units bigint, reason text,
  OUT outcome text, OUT dimension text, OUT replayed boolean,
  OUT granted_units bigint,          -- that found room: debt, deficit, available up to the cap
  OUT debt bigint, OUT available bigint, OUT admission text, OUT ledger_at timestamptz
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_grant_capacity';

CREATE FUNCTION freeze(
  subject text, route text, reason text,
  OUT outcome text, OUT dimension text,
  OUT debt bigint, OUT available bigint, OUT admission text, OUT ledger_at timestamptz
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_freeze';

CREATE FUNCTION unfreeze(
  subject text, route text, reason text,
  OUT outcome text, OUT dimension text,
  OUT debt bigint, OUT available bigint, OUT admission text, OUT ledger_at timestamptz
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_unfreeze';

-- Expiry (D14) and execution deadlines (D10), in bounded batches.

CREATE FUNCTION claim_expiring(batch_limit integer, OUT claimed bigint)
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_claim_expiring';

CREATE FUNCTION finish_expiring(batch_limit integer, OUT expired bigint, OUT expired_units bigint)
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_finish_expiring';

CREATE FUNCTION expire_reservations(
  batch_limit integer DEFAULT 1000,
  OUT claimed bigint,                -- RESERVED -> EXPIRING by this call
  OUT expired bigint,                -- EXPIRING -> EXPIRED, units back
  OUT expired_units bigint
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_expire_reservations';

CREATE FUNCTION expire_executions(batch_limit integer, OUT unknown bigint)
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_expire_executions';

-- Pairs that owe, in key order after (after_subject, after_route).
CREATE FUNCTION repay_debtors(
  batch_limit integer, after_subject text, after_route text,
  OUT pairs bigint, OUT repaid_units bigint, OUT last_subject text, OUT last_route text)
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_repay_debtors';
-- The protocol as tables, printed by the code that obeys them.

CREATE FUNCTION transitions(
  OUT state text, OUT event text, OUT outcome text, OUT dimension text,
  OUT next_state text, OUT next_state_with_debt text, OUT rule text)
RETURNS SETOF record LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'limitledger_transitions';

CREATE FUNCTION outcomes(
  OUT outcome text, OUT dimension text, OUT retry_kind text, OUT rule text, OUT meaning text)
RETURNS SETOF record LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'limitledger_outcomes';

CREATE FUNCTION sqlstates(OUT sqlstate text, OUT name text, OUT meaning text)
RETURNS SETOF record LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'limitledger_sqlstates';
-- The ledger for people: public views, and the audit that proves it.

CREATE VIEW policies AS
SELECT p.generation, p.subject, p.route, p.stage, p.region, p.unit, p.refill_kind, p.cap,
       p.refill_units, p.refill_interval,
       coalesce(p.epoch_length::text, p.epoch_calendar || ' in ' || p.epoch_time_zone) AS epoch,
       p.largest_reservation, p.largest_outstanding, p.hold_ttl, p.execution_ttl,
       p.hard_execution_limit, p.maximum_overdraft, p.priority, p.weight, p.fairness_budget,
       p.emergency_mode, p.retention, p.published_at, p.active_at, p.retired_at, p.document
FROM policy p;

-- As stored: refill that is due is counted in by get_budget(), and written by the next call.
CREATE VIEW budgets AS
SELECT b.subject, b.route, b.generation, b.epoch, true AS is_head,
       b.opening, b.minted, b.overdraft_issued,
       b.available, b.reserved, b.spent, b.retired_for_emergency, b.overdraft_repaid,
       b.overdraft_issued - b.overdraft_repaid AS debt, b.burned, b.deficit, b.purged_spent,
       b.carried, b.line, b.whole, b.follows_generation, b.follows_epoch,
       b.opened_at, NULL::timestamptz AS closed_at, b.frozen_at, b.frozen_reason
FROM head_budget b
UNION ALL
SELECT b.subject, b.route, b.generation, b.epoch, false,
       b.opening, b.minted, b.overdraft_issued,
       b.available, b.reserved, b.spent, b.retired_for_emergency, b.overdraft_repaid,
       b.overdraft_issued - b.overdraft_repaid, b.burned, b.deficit, b.purged_spent,
       b.carried, b.line, b.whole, b.follows_generation, b.follows_epoch,
       b.opened_at, b.closed_at, NULL, NULL
FROM closed_budget b;

CREATE VIEW reservations AS
SELECT r.subject, r.reservation_id, r.route, r.generation, r.epoch, r.state,
       r.reserved_units, r.progress_units, r.actual_units, r.operation_id, r.priority, r.expires_at,
       'sha256:' || encode(r.request_digest, 'hex') AS request_digest,
       r.asked_units, r.reserved_at, r.started_at, r.unknown_at, r.ended_at,
       r.excess_units, r.excess_generation, r.excess_epoch,
       'sha256:' || encode(r.receipt_digest, 'hex') AS receipt_digest, r.receipt_source
FROM reservation r;

-- Usage that was never reserved, and units that operators granted.
CREATE VIEW unreserved_usage AS
SELECT o.bound_at AS recorded_at, o.subject, o.route, o.operation_id, o.usage_units,
       o.generation, o.epoch
FROM operation o WHERE o.usage_units IS NOT NULL;

CREATE VIEW capacity_grants AS
SELECT g.granted_at, g.actor, g.subject, g.route, g.grant_id, g.units, g.granted_units, g.reason
FROM capacity_grant g;

CREATE VIEW operator_actions AS
SELECT a.acted_at, a.actor, a.action, a.subject, a.route, a.reason
FROM operator_action a;

-- verify_conservation() proves the rules over the whole database, in one
-- snapshot: a row for each discrepancy, none when all is well.

CREATE FUNCTION verify_conservation(
  OUT rule text, OUT subject text, OUT route text, OUT generation bigint, OUT epoch timestamptz,
  OUT detail text)
RETURNS SETOF record
LANGUAGE sql STABLE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
WITH
-- what each budget's reservations say
held AS (
  SELECT r.subject, r.route, r.generation, r.epoch,
         sum(r.reserved_units) FILTER (
           WHERE r.state IN ('RESERVED', 'EXPIRING', 'STARTED', 'USAGE_UNKNOWN')) AS reserved,
         sum(least(r.actual_units, r.reserved_units)) FILTER (
           WHERE r.actual_units IS NOT NULL) AS spent
  FROM reservation r WHERE r.route IS NOT NULL
  GROUP BY 1, 2, 3, 4),
excess AS (
  SELECT r.subject, r.route, r.excess_generation AS generation, r.excess_epoch AS epoch,
         sum(r.excess_units) AS spent
  FROM reservation r WHERE r.excess_units > 0
  GROUP BY 1, 2, 3, 4),
unreserved AS (
  SELECT o.subject, o.route, o.generation, o.epoch, sum(o.usage_units) AS spent
  FROM operation o WHERE o.usage_units IS NOT NULL
  GROUP BY 1, 2, 3, 4),
-- what the closed budgets of a pair add up to
older AS (
  SELECT c.subject, c.route, sum(c.overdraft_issued::numeric - c.overdraft_repaid) AS debt,
         sum(c.reserved) AS reserved
  FROM closed_budget c GROUP BY 1, 2),
-- each budget with the one that it took over from
chain AS (
  SELECT b.subject, b.route, b.generation, b.epoch, b.is_head, b.line, b.whole,
         b.carried, b.opening, b.follows_generation, b.opened_at, p.cap, p.refill_kind,
         f.subject IS NOT NULL AS found, f.line AS line_before, f.closed_at,
         f.closing_available, f.deficit AS deficit_before, q.cap AS cap_before,
         count(*) OVER (PARTITION BY b.subject, b.route, b.follows_generation, b.follows_epoch) AS twins
  FROM budgets b
  JOIN policy p ON p.generation = b.generation
  LEFT JOIN closed_budget f ON (f.subject, f.route, f.generation, f.epoch)
                             = (b.subject, b.route, b.follows_generation, b.follows_epoch)
  LEFT JOIN policy q ON q.generation = f.generation)

SELECT 'B1', b.subject, b.route, b.generation, b.epoch, 'its generation has no policy'
FROM budgets b
WHERE NOT EXISTS (SELECT FROM policy p WHERE p.generation = b.generation)

UNION ALL
SELECT 'C1', b.subject, b.route, b.generation, b.epoch,
       format('%s + %s + %s came, %s + %s + %s + %s + %s went', b.opening, b.minted, b.overdraft_issued,
              b.available, b.reserved, b.spent, b.retired_for_emergency, b.overdraft_repaid)
FROM budgets b
WHERE b.opening::numeric + b.minted + b.overdraft_issued
   <> b.available::numeric + b.reserved + b.spent + b.retired_for_emergency + b.overdraft_repaid
   OR least(b.opening, b.minted, b.overdraft_issued, b.available, b.reserved, b.spent,
            b.retired_for_emergency, b.overdraft_repaid, b.debt, b.deficit, b.burned) < 0

UNION ALL
SELECT 'C2', b.subject, b.route, b.generation, b.epoch,
       format('reserved is %s, its open reservations hold %s', b.reserved, coalesce(h.reserved, 0))
FROM budgets b LEFT JOIN held h USING (subject, route, generation, epoch)
WHERE b.reserved <> coalesce(h.reserved, 0)

UNION ALL
SELECT 'C2', b.subject, b.route, b.generation, b.epoch,
       format('spent is %s, its settlements say %s', b.spent,
              coalesce(h.spent, 0) + coalesce(x.spent, 0) + coalesce(u.spent, 0) + b.purged_spent)
FROM budgets b LEFT JOIN held h USING (subject, route, generation, epoch)
               LEFT JOIN excess x USING (subject, route, generation, epoch)
               LEFT JOIN unreserved u USING (subject, route, generation, epoch)
WHERE b.spent <> coalesce(h.spent, 0) + coalesce(x.spent, 0) + coalesce(u.spent, 0) + b.purged_spent

UNION ALL
SELECT 'C2', h.subject, h.route, h.generation, h.epoch, 'reservations without their budget'
FROM (SELECT subject, route, generation, epoch FROM held
      UNION SELECT subject, route, generation, epoch FROM excess
      UNION SELECT subject, route, generation, epoch FROM unreserved) h
WHERE NOT EXISTS (SELECT FROM budgets b WHERE (b.subject, b.route, b.generation, b.epoch)
                                            = (h.subject, h.route, h.generation, h.epoch))

UNION ALL
SELECT 'C2', c.subject, c.route, NULL, NULL, 'closed budgets without a head'
FROM older c
WHERE NOT EXISTS (SELECT FROM head_budget b WHERE (b.subject, b.route) = (c.subject, c.route))

UNION ALL
SELECT 'C2', b.subject, b.route, b.generation, b.epoch,
       format('the head counts %s reserved and %s owed in closed budgets, they have %s and %s',
              b.older_reserved, b.older_debt, coalesce(o.reserved, 0), coalesce(o.debt, 0))
FROM head_budget b LEFT JOIN older o USING (subject, route)
WHERE (b.older_reserved, b.older_debt) IS DISTINCT FROM (coalesce(o.reserved, 0), coalesce(o.debt, 0))

UNION ALL
SELECT 'C4', b.subject, b.route, b.generation, b.epoch,
       format('available is %s, the cap %s', b.available, p.cap)
FROM head_budget b JOIN policy p USING (generation)
WHERE b.available > p.cap

UNION ALL
SELECT 'E2', b.subject, b.route, b.generation, b.epoch,
       format('available is %s while the pair owes %s', b.available,
              b.overdraft_issued::numeric - b.overdraft_repaid + coalesce(o.debt, 0))
FROM head_budget b LEFT JOIN older o USING (subject, route)
WHERE b.available > 0 AND b.overdraft_issued::numeric - b.overdraft_repaid + coalesce(o.debt, 0) > 0

UNION ALL
SELECT 'B5', c.subject, c.route, c.generation, c.epoch,
       CASE WHEN NOT c.found THEN 'the budget that it follows does not exist'
            WHEN c.twins > 1 THEN 'two budgets follow the same one'
            ELSE 'it opened before the one that it follows had closed' END
FROM chain c
WHERE c.follows_generation IS NOT NULL
  AND (NOT c.found OR c.twins > 1 OR c.opened_at <> c.closed_at)

UNION ALL
SELECT 'B5', c.subject, c.route, min(c.generation), NULL, 'more than one budget follows none'
FROM chain c
WHERE c.follows_generation IS NULL
GROUP BY c.subject, c.route HAVING count(*) > 1

UNION ALL
SELECT 'B5', c.subject, c.route, c.generation, c.epoch,
       format('it opened with %s of %s carried, at a cap of %s', c.opening, c.carried, c.cap)
FROM chain c
WHERE c.opening > c.carried
   OR c.carried <> CASE
        WHEN c.follows_generation IS NULL THEN c.carried
        WHEN c.line <> c.line_before AND c.refill_kind = 'window' THEN c.cap
        WHEN c.line <> c.line_before THEN -1
        WHEN c.whole THEN greatest(0, least(c.cap, c.closing_available::numeric - c.deficit_before
                                                   + c.cap - c.cap_before))
        ELSE least(c.cap, c.closing_available) END
   OR (c.follows_generation IS NULL AND c.carried > c.cap)

UNION ALL
SELECT 'D5', r.subject, r.route, r.generation, r.epoch,
       format('operation %L of reservation %L is not bound to it', r.operation_id, r.reservation_id)
FROM reservation r LEFT JOIN operation o USING (subject, operation_id)
WHERE r.operation_id IS NOT NULL AND o.reservation_id IS DISTINCT FROM r.reservation_id

UNION ALL
SELECT 'D5', o.subject, NULL, NULL, NULL,
       format('operation %L is bound to reservation %L, which is not bound to it',
              o.operation_id, o.reservation_id)
FROM operation o LEFT JOIN reservation r USING (subject, reservation_id)
WHERE o.reservation_id IS NOT NULL AND r.operation_id IS DISTINCT FROM o.operation_id
$$;
-- What needs a look, for people: one view a kind of problem, newest first.  age is
-- how long each has lasted; the clock is read once a listing, so that ages compare.
--
-- The views run with their owner's rights on tables.  The clock and get_budget() are
-- called as whoever reads them, so a reader needs EXECUTE on both: the auditor has it.

-- A state by a state, since each has an index of its own: what has ended, which is
-- nearly all, is not read.
CREATE VIEW open_reservations AS
SELECT r.subject, r.route, r.reservation_id, r.state, r.reserved_units, r.progress_units,
       r.operation_id, r.generation, r.epoch, r.reserved_at, r.started_at, r.expires_at,
       c.now - r.reserved_at AS age, r.expires_at - c.now AS time_left
FROM ledger_clock() AS c (now), reservation r
WHERE r.state = 'RESERVED' OR r.state = 'EXPIRING' OR r.state = 'STARTED' OR r.state = 'USAGE_UNKNOWN'
ORDER BY r.reserved_at DESC, r.subject, r.reservation_id;

CREATE VIEW unknown_usage AS
SELECT r.subject, r.route, r.reservation_id, r.operation_id, r.reserved_units,
       r.progress_units, r.generation, r.epoch, r.started_at, r.unknown_at, c.now - r.unknown_at AS age
FROM ledger_clock() AS c (now), reservation r
WHERE r.state = 'USAGE_UNKNOWN'
ORDER BY r.unknown_at DESC, r.subject, r.reservation_id;

-- RESERVED, or EXPIRING since a sweep claimed it: it holds until it is EXPIRED (D14).
CREATE VIEW expired_unstarted AS
SELECT r.subject, r.route, r.reservation_id, r.state, r.reserved_units,
       r.generation, r.epoch, r.reserved_at, r.expires_at, c.now - r.expires_at AS age
FROM ledger_clock() AS c (now), reservation r
WHERE (r.state = 'RESERVED' AND r.expires_at <= c.now) OR r.state = 'EXPIRING'
ORDER BY r.expires_at DESC, r.subject, r.reservation_id;

-- What a pair owes is shown as of now: refill that is due has paid its part (E2).
CREATE VIEW frozen_pairs AS
SELECT b.subject, b.route, b.frozen_reason, g.debt, g.outstanding, g.generation,
       b.frozen_at, c.now - b.frozen_at AS age
FROM ledger_clock() AS c (now), head_budget b, get_budget(b.subject, b.route) g
WHERE b.frozen_at IS NOT NULL
ORDER BY b.frozen_at DESC, b.subject, b.route;

-- When a debt arose is not stored.  A refusal writes nothing, so seen_at of a pair
-- that owes is when one of its balances moved last.
CREATE VIEW pairs_in_debt AS
SELECT b.subject, b.route, g.debt, g.admission, g.outstanding, g.generation, g.reset_at,
       b.seen_at AS changed_at, c.now - b.seen_at AS age
FROM ledger_clock() AS c (now), head_budget b, get_budget(b.subject, b.route) g
WHERE (b.overdraft_issued > b.overdraft_repaid OR b.older_debt > 0) AND g.debt > 0
ORDER BY b.seen_at DESC, b.subject, b.route;

COMMENT ON VIEW open_reservations IS
'Every reservation that holds units (RESERVED, EXPIRING, STARTED, USAGE_UNKNOWN), the newest first (C2).';

COMMENT ON VIEW unknown_usage IS
'Every execution whose usage is unknown, the newest first: its units stay reserved until it is settled (D10).';

COMMENT ON VIEW expired_unstarted IS
'Every hold that has run out, was never started and is not given back yet, the newest first (D14).';

COMMENT ON VIEW frozen_pairs IS
'Every pair that a breach or an operator has frozen, the newest first, with what it owes now (D8).';

COMMENT ON VIEW pairs_in_debt IS
'Every pair that owes units, refill that is due counted in; the one that changed last comes first (E1).';
-- limitReservation.v1: a reservation as the document that other systems keep.

CREATE FUNCTION get_reservation_document(subject text, reservation_id text) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
  -- get_reservation judges the arguments; the row and the document are of one snapshot
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
    'operationId', r.operation_id,
    'expiresAt', to_char(r.expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    'state', coalesce(r.state, g.state)))
  FROM @extschema@.get_reservation($1, $2) g
  LEFT JOIN @extschema@.reservation r ON r.subject = $1 AND r.reservation_id = $2
$$;

COMMENT ON FUNCTION get_reservation_document IS
$$Reads a reservation as a limitReservation.v1 document; writes nothing and locks nothing (D11, J1).

Units are strings, so that no reader rounds them; instants are in UTC. What is not known yet is left out. An id that this ledger does not hold has the state RESERVATION_UNKNOWN. Errors: LL101, LL102.$$;
-- maintain(): what is due, from cron, with no worker (J4).
--
-- It runs with the caller's rights, because a procedure with rights or settings
-- of its own can't commit.  Each step is one bounded batch and one transaction:
-- a crash between two steps is finished by the next run.

CREATE PROCEDURE maintain(
  batch_limit integer DEFAULT 1000, time_limit interval DEFAULT '10 seconds',
  INOUT claimed bigint DEFAULT 0, INOUT expired bigint DEFAULT 0, INOUT unknown bigint DEFAULT 0,
  INOUT debtors bigint DEFAULT 0, INOUT repaid_units bigint DEFAULT 0)
LANGUAGE plpgsql
AS $$
DECLARE
  ends_at  CONSTANT pg_catalog.timestamptz := pg_catalog.clock_timestamp() OPERATOR(pg_catalog.+) time_limit;
  step     pg_catalog.record;
  worked   boolean;
  debtor   pg_catalog.record;
BEGIN
  IF time_limit IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'LL101', MESSAGE = 'time_limit must not be NULL',
      DETAIL = 'NULL is neither zero nor a default here.',
      HINT = 'Leave it out for 10 seconds.';
  END IF;
  IF time_limit OPERATOR(pg_catalog.<) interval '0' THEN
    RAISE EXCEPTION USING ERRCODE = 'LL106', MESSAGE = 'time_limit must not be negative',
      DETAIL = pg_catalog.format('It is %s.', time_limit),
      HINT = 'A time of 0 works off one batch of each kind.';
  END IF;
  claimed := 0; expired := 0; unknown := 0; debtors := 0; repaid_units := 0;
  LOOP
    worked := false;

    SELECT c.claimed AS n INTO step FROM @extschema@.claim_expiring(batch_limit) c;
    claimed := claimed OPERATOR(pg_catalog.+) step.n;
    worked := worked OR step.n OPERATOR(pg_catalog.>) 0;
    COMMIT;

    SELECT f.expired AS n INTO step FROM @extschema@.finish_expiring(batch_limit) f;
    expired := expired OPERATOR(pg_catalog.+) step.n;
    worked := worked OR step.n OPERATOR(pg_catalog.>) 0;
    COMMIT;

    SELECT e.unknown AS n INTO step FROM @extschema@.expire_executions(batch_limit) e;
    unknown := unknown OPERATOR(pg_catalog.+) step.n;
    worked := worked OR step.n OPERATOR(pg_catalog.>) 0;
    COMMIT;

    EXIT WHEN NOT worked OR pg_catalog.clock_timestamp() OPERATOR(pg_catalog.>=) ends_at;
  END LOOP;

  SELECT '' AS last_subject, '' AS last_route INTO debtor;
  WHILE debtor.last_subject IS NOT NULL LOOP
    SELECT r.* INTO debtor
    FROM @extschema@.repay_debtors(batch_limit, debtor.last_subject, debtor.last_route) r;
    debtors := debtors OPERATOR(pg_catalog.+) debtor.pairs;
    repaid_units := repaid_units OPERATOR(pg_catalog.+) debtor.repaid_units;
    COMMIT;
    EXIT WHEN pg_catalog.clock_timestamp() OPERATOR(pg_catalog.>=) ends_at;
  END LOOP;
END;
$$;
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
      WHEN dimension IN ('draining', 'estimator', 'deadline') THEN 503
      WHEN retry_kind IN ('operator', 'never') THEN 403
      ELSE 409 END
    END;
BEGIN
  IF status IS NULL THEN   -- no problem
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
$$Writes an answer other than ACCEPTED as the problem document of RFC 9457, status included; NULL for ACCEPTED (D3, J3).

Members: type, title, status, detail, dimension, generation, retry_kind, retry_after_ms and, with status 429 and a route, violated-policies. generation and retry_after_ms are strings; what is NULL is left out; no balance is shown. No errors. Needs EXECUTE on structured_string, too.$$;

COMMENT ON FUNCTION structured_string IS
$$Writes a text as a String of RFC 9651, in quotes: a byte outside printable ASCII, and the percent sign, become %XX (J3).

Quotes and backslashes are escaped. Any percent-decoder gives the text back. NULL gives NULL. No errors.$$;
-- What \df+ and \dv+ say about each public call and view.  publish_policy, activate_policy,
-- ledger_clock, canonical_json and request_digest carry theirs in their own chapter.
--
-- The first sentence of each is also its line in README.md; test/t/900_docs.pl
-- compares the two.  Rule numbers are those of docs/rules.md.

-- ---- The life of a reservation ---------------------------------------------

COMMENT ON FUNCTION reserve_capacity IS
$$Admits one request and holds its units, or refuses it: the only way in which capacity is given out (D2, D3).

subject, route, reservation_id, start_operation: 1 to 256 bytes, compared byte for byte; the subject is never "*". units: 1 or more. digest, estimator_digest: 32 bytes or sha256:<64 hexadecimal digits>. region: NULL matches only a policy for "*". deadline: an instant from which on nothing is taken. priority: NULL stands for the policy's. start_operation: if given, the reservation is STARTED at once and bound to that operation.

The same id with the same digest, route and units gets the receipt that stands, replayed: look at state, since the hold may have ended meanwhile. With others it is a CONFLICT. A refusal stores nothing under the id, so the same id may be tried again.

Errors: LL101, LL102, LL103, LL104 for a bad argument; LL107 on overflow; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION reserve_capacity_batch IS
$$Admits many requests, those of a pair in their order and each pair locked once; one receipt per element (J2, D2, D3).

Parallel arrays of one length, 0 to 100000 elements; an optional array may be NULL as a whole or element by element. A refusal or conflict answers its own element and leaves the others alone. require_all makes one decision of them: all are admitted, or nothing is written, and those that would have been admitted are REFUSED require_all with the longest wait.

Errors, for the whole batch: those of reserve_capacity, naming the element; LL105 for arrays that do not match.$$;

COMMENT ON FUNCTION start_reservation IS
$$Moves RESERVED to STARTED and binds the operation, if the hold has not run out; run only what it accepts (D5).

subject, reservation_id, operation_id: 1 to 256 bytes. The receipt carries hard_limit, in units, and the execution deadline in expires_at. The same operation again gets the same answer; another one is a CONFLICT. No balance moves.

Errors: LL101, LL102; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION start_reservation_batch IS
$$Starts many reservations; one receipt per element, in their order (J2, D5).

Parallel arrays of one length, 0 to 100000 elements. Errors, for the whole batch: those of start_reservation, naming the element; LL105 for arrays that do not match.$$;

COMMENT ON FUNCTION settle_usage IS
$$Spends what an operation really used and gives the difference back, once (D6, D7, D8).

actual: units, 0 or more; NULL is an error, never zero. receipt_digest: of the executor's own receipt, kept and compared. source: executor, reconciler or operator, who vouches for the figure.

The same operation, actual and receipt_digest again get the same receipt; others are a CONFLICT that shows what is stored. Less than the reported progress is REFUSED progress from the operator, and taken from the others. Above the reservation the excess takes what is available, and the rest is debt (SETTLED_WITH_DEBT), which stops admission. Debt above maximumOverdraft, or an actual above hardExecutionLimit, freezes the pair; it is booked all the same.

Errors: LL301 if the reservation was never started, and nothing is booked; LL101, LL102, LL103, LL104, LL106 for a bad argument; LL107 on overflow; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION settle_usage_batch IS
$$Settles many executions, each pair locked once; one receipt per element, in their order (J2, D6).

Parallel arrays of one length, 0 to 100000 elements; receipt_digests and sources may be NULL as a whole or element by element. An element that was never started is REFUSED not_started here, not an error. Errors, for the whole batch: those of settle_usage but LL301, naming the element; LL105 for arrays that do not match.$$;

COMMENT ON FUNCTION release_reservation IS
$$Gives all units of a hold back that was never started, once (D9).

After the start it is REFUSED already_started: who gives up on a call has not stopped it. Released again it gets the same receipt. Errors: LL101, LL102; LL107 on overflow; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION release_reservation_batch IS
$$Releases many holds, each pair locked once; one receipt per element, in their order (J2, D9).

Parallel arrays of one length, 0 to 100000 elements. Errors, for the whole batch: those of release_reservation, naming the element; LL105 for arrays that do not match.$$;

COMMENT ON FUNCTION report_usage_unknown IS
$$Says that nobody knows what an execution used: STARTED becomes USAGE_UNKNOWN, and its units stay reserved (D10).

Only settle_usage with the bound operation ends it. operation_id must be the bound one, else CONFLICT. Past the execution deadline maintain() says the same. Errors: LL101, LL102; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION report_progress IS
$$Records what an execution has used so far: the figure never falls, and no balance moves (D10).

units: in sum since the start, 0 or more; it may exceed what is reserved. A figure that is no higher than the stored one changes nothing and is replayed. operation_id must be the bound one, else CONFLICT. Taken from STARTED and USAGE_UNKNOWN alike; settle_usage with the source operator can't go below it. Errors: LL101, LL102, LL103; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION extend_reservation IS
$$Gives a reservation that has not run out more units, a later deadline, or both, decided like a new reserve (D13).

extension_id: 1 to 256 bytes, the idempotency key within the reservation. units: added to what is reserved, 0 or more, while its budget is the head. until: no later than the holdTtl, or once started the executionTtl, of its own generation from now; NULL, or an instant before the present deadline, leaves that as it is. The same extension again is replayed, whatever has become of the reservation; other units or another deadline under its id are a CONFLICT. A refusal stores nothing.

Errors: LL106 if there is nothing to extend; LL101, LL102, LL103 for a bad argument; LL107 on overflow; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION record_usage IS
$$Books usage that was never reserved, once per operation: what is available is spent, the rest is debt (D12).

operation_id: 1 to 256 bytes, unique within the subject. units: 0 or more. All of it is booked, on a frozen, indebted or draining pair as well; debt above maximumOverdraft, or units above hardExecutionLimit, freeze the pair. The same operation, route and units again are replayed; others are a CONFLICT that shows what is stored. An operation that is bound to a reservation is a CONFLICT: settle that. The receipt has no state, since there is no reservation.

Errors: LL101, LL102, LL103 for a bad argument; LL107 on overflow; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION get_reservation IS
$$Reads the receipt that is committed under an id, or UNKNOWN; writes nothing and locks nothing (D11).

UNKNOWN does not say that a call in flight will not store one: ask resolve_reservation for the final word. Errors: LL101, LL102.$$;

COMMENT ON FUNCTION resolve_reservation IS
$$Gives the final word after a lost reply: the receipt, or a fence that keeps the id from ever taking anything (D11).

It waits for a transaction that is using the id. If there is no reservation, the id becomes RELEASED with 0 units under the given digest, and a late original gets that receipt. Another digest than the stored one is a CONFLICT.

Errors: LL101, LL102, LL104; 25006 in a read-only transaction.$$;

-- ---- Pairs -------------------------------------------------------------------

COMMENT ON FUNCTION get_budget IS
$$Shows a pair as of now: refill and epochs that are due are counted in, nothing is written or locked (C1, C4).

All quantities are units. generation to deficit describe the head; debt and outstanding are sums over all budgets of the pair. admission is open, suspended (debt), frozen, draining or no_policy (retired). A pair that no call has met yet shows what its first one would find; without a policy there is no row. Errors: LL101, LL102.$$;

COMMENT ON FUNCTION repay_debt IS
$$Lets the refill that is due pay the debt of a pair, and stores it (E2, E3).

The next reserve does the same, so this is for those who do not want to wait for one. repaid_units and debt are units; repeated, it pays nothing twice. UNKNOWN: no call has met the pair yet. Errors: LL101, LL102; LL107 on overflow; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION grant_capacity IS
$$Mints units for a pair, once per grant id, and records who did it and why: for debt first, then a deficit, then available up to the cap (E3).

grant_id: 1 to 256 bytes, the idempotency key within the pair. units: 1 or more. reason: 1 to 256 bytes, kept in capacity_grants. granted_units is what found room; the rest is not granted, and a repeat does not try again. The same grant_id with other units is a CONFLICT. A frozen pair stays frozen. REFUSED no_policy: no policy covers the pair. Errors: LL101, LL102, LL103, LL106; LL107 on overflow; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION freeze IS
$$Stops admission for a pair until unfreeze, and records who did it and why; settlement goes on (D8).

reason: 1 to 256 bytes, kept in operator_actions and shown by get_budget. What is held can be started, settled and released. A pair that no call has met is opened for it. On a pair that is frozen it changes and records nothing. REFUSED no_policy: no policy covers the pair. Errors: LL101, LL102, LL106; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION unfreeze IS
$$Opens a frozen pair again, once its debt is zero, and records who did it and why (D8).

reason: 1 to 256 bytes, kept in operator_actions. With debt it is REFUSED debt. On a pair that is not frozen it changes and records nothing. UNKNOWN: no call has met the pair yet. Errors: LL101, LL102; 25006 in a read-only transaction.$$;

-- ---- Maintenance ---------------------------------------------------------------

COMMENT ON PROCEDURE maintain IS
$$Does all that is due, in bounded steps of one transaction each: holds expire, executions become unknown, debt is repaid (J4, D10, D14, E3).

batch_limit: rows or pairs of one step, 1 to 100000. time_limit: 0 or more; no step begins after it. Rows and pairs that somebody else has locked are left to the next run. CALL it outside a transaction block, from cron; the caller needs EXECUTE on claim_expiring, finish_expiring, expire_executions and repay_debtors, too. The ledger is right without it.

Returns holds claimed and expired, executions that became unknown, pairs that repaid and the units they repaid. Errors: LL106; 2D000 inside a transaction block; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION expire_reservations IS
$$Claims holds that have run out and gives their units back, in one transaction; never waits for a lock (D14).

batch_limit: 1 to 100000 holds. Call it until claimed and expired are 0. Errors: LL101, LL106; LL107 on overflow; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION claim_expiring IS
$$First step of expiry: RESERVED rows that have run out become EXPIRING; locks no budget and waits for nobody (D14).

batch_limit: 1 to 100000 rows. Errors: LL101, LL106; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION finish_expiring IS
$$Second step of expiry: EXPIRING rows become EXPIRED and their units come back, pair by pair; waits for nobody (D14).

batch_limit: 1 to 100000 rows that are looked at for their pairs, and rows of one pair. Errors: LL101, LL106; LL107 on overflow; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION expire_executions IS
$$Executions past their deadline become USAGE_UNKNOWN; their units stay reserved; waits for nobody (D10).

batch_limit: 1 to 100000 rows. Errors: LL101, LL106; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION repay_debtors IS
$$Lets the refill that is due pay the debts of a bounded number of pairs, in key order after the given one; waits for nobody (E3).

batch_limit: 1 to 100000 pairs. Begin after '' and '', go on after last_subject and last_route, end when they are NULL. Errors: LL101, LL106; LL107 on overflow; 25006 in a read-only transaction.$$;

-- ---- The protocol as tables ------------------------------------------------------

COMMENT ON FUNCTION transitions IS
$$Prints the state machine: what each event does in each state (D1).

next_state_with_debt is set where a settlement can end in two ways. outcome ACCEPTED without a change of state is a replay.$$;

COMMENT ON FUNCTION outcomes IS
$$Prints the closed list of answers: the outcome, the rule that said no and what a refused caller waits for (D3).

retry_kind: refill, release, operator or never; NULL where waiting changes nothing.$$;

COMMENT ON FUNCTION sqlstates IS
$$Prints the errors of the ledger, SQLSTATE class LL: misuse and broken invariants, never a refusal (D3).$$;

-- ---- The ledger for people ---------------------------------------------------------

COMMENT ON FUNCTION verify_conservation IS
$$Proves the rules over the whole database in one snapshot: a row for each discrepancy, none when all is well (C1, C2, B5).

rule names the rule that does not hold, detail the figures. Runs with the owner's rights, takes no lock that a call would wait for, and reads every budget and reservation once.$$;

COMMENT ON VIEW policies IS
'Every published generation, with its stage (published, active, draining, retired), its switch instant, that of its retirement and its document as published (B1, B4).';

COMMENT ON VIEW budgets IS
'Every budget, as stored: the head of each pair and those that it closed, each with the equation opening + minted + overdraft_issued = available + reserved + spent + retired_for_emergency + overdraft_repaid, in units (C1); refill that is due is shown by get_budget().';

COMMENT ON VIEW reservations IS
'Every reservation, as stored, one limitReservation.v1 per row (D1); route, generation and epoch are NULL in a fence (D11).';

COMMENT ON VIEW unreserved_usage IS
'Usage that was never reserved, as record_usage booked it, with the budget that bore it (D12).';

COMMENT ON VIEW capacity_grants IS
'Units that operators granted to a pair, when and why: asked for and granted (E3).';

COMMENT ON VIEW operator_actions IS
'What operators did to a pair, when and why (D8).';
-- Who may do what: four bundles of privileges, and the calls that grant them (I1).
--
-- No role is created here, and none is remembered: roles belong to the cluster,
-- and GRANT alone, which a dump carries, says who has what (I3).
--
-- GRANT takes no parameters, so the two calls at the end have to put statements
-- together.  Nothing that a caller wrote becomes a part of one: the object comes
-- out of the catalogue by its oid, which regprocedure, regclass and regnamespace
-- print qualified and quoted, the privilege from a list of three words, and the
-- role is one that exists, quoted by %I.

-- bundles() is the only place that says what belongs to which bundle.  What is
-- named here and does not exist is left out; what exists and is not named here is
-- in no bundle, which test/pgtap/roles.sql reports by name.
CREATE FUNCTION bundles(OUT bundle text, OUT object_kind text, OUT signature text)
RETURNS SETOF record LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
WITH said (bundles, names) AS (VALUES
  -- admits requests, gives back what was not started, tells the caller in HTTP
  ('{gateway}', '{reserve_capacity, reserve_capacity_batch, release_reservation, release_reservation_batch,
    resolve_reservation,
    http_headers, rate_limit, rate_limit_policy, retry_after, problem_details, structured_string}'),
  -- runs what was admitted, and says what it used
  ('{executor}', '{start_reservation, start_reservation_batch, report_progress, report_usage_unknown,
    record_usage}'),
  -- sets the rules, stops and opens pairs, sweeps
  ('{operator}', '{publish_policy, activate_policy, drain_policy, retire_policy, rollback_policy, policy_diff,
    freeze, unfreeze, freeze_route, unfreeze_route, grant_capacity, repay_debt,
    maintain, expire_reservations, claim_expiring, finish_expiring, expire_executions, repay_debtors}'),
  -- reads everything and proves it
  ('{auditor}', '{verify_conservation, bundle_privileges,
    policies, budgets, reservations, unreserved_usage, capacity_grants, operator_actions,
    open_reservations, unknown_usage, expired_unstarted, frozen_pairs, pairs_in_debt}'),

  ('{gateway,executor}', '{extend_reservation, request_digest, canonical_json}'),
  -- the operator as the last resort for a usage that is unknown (D10)
  ('{executor,operator}', '{settle_usage, settle_usage_batch}'),
  ('{gateway,operator,auditor}', '{get_budget}'),
  ('{gateway,executor,operator,auditor}', '{get_reservation,get_reservation_document}'),
  -- what shows no row of the ledger
  ('{gateway,executor,operator,auditor}', '{ledger_clock, transitions, outcomes, sqlstates, bundles}')),
existing (name, object_kind, signature) AS (
  SELECT p.proname, CASE p.prokind WHEN 'p' THEN 'procedure' ELSE 'function' END, p.oid::regprocedure::text
  FROM pg_proc p WHERE p.pronamespace = '@extschema@'::regnamespace
  UNION ALL
  SELECT c.relname, 'view', c.oid::regclass::text
  FROM pg_class c WHERE c.relnamespace = '@extschema@'::regnamespace AND c.relkind = 'v')
SELECT b.name, 'schema', '@extschema@'
FROM unnest('{gateway,executor,operator,auditor}'::text[]) AS b (name)
UNION ALL
SELECT b.name, e.object_kind, e.signature
FROM said s, unnest(s.bundles::text[]) AS b (name), unnest(s.names::text[]) AS n (name)
JOIN existing e ON e.name = n.name
ORDER BY 1, 2, 3
$$;

-- bundle_privileges() compares a bundle with what its role has been granted.
--
-- A role has another bundle too if it holds anything that belongs to that one
-- alone; each bundle has such objects.
CREATE FUNCTION bundle_privileges(
  role_name name, bundle text,
  OUT object_kind text, OUT signature text,
  OUT privilege text,                -- USAGE, EXECUTE or SELECT
  OUT granted boolean,               -- to this role itself, by whomever
  OUT other_bundle text              -- that the role has and that gives the same; NULL: none
) RETURNS SETOF record LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  missing CONSTANT text := CASE WHEN role_name IS NULL THEN 'role_name' WHEN bundle IS NULL THEN 'bundle' END;
  known   CONSTANT text[] := ARRAY(SELECT DISTINCT b.bundle FROM @extschema@.bundles() b ORDER BY 1);
  held_by oid;
BEGIN
  IF missing IS NOT NULL THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL101', MESSAGE = format('%s must not be null', missing),
      DETAIL = 'A bundle is granted to one role.',
      HINT = 'Give the name of a role and of a bundle.';
  END IF;
  IF bundle <> ALL (known) THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL106', MESSAGE = 'bundle is not known',
      DETAIL = format('The bundles are %s.', array_to_string(known, ', ')),
      HINT = 'SELECT * FROM @extschema@.bundles() shows what is in them.';
  END IF;
  SELECT r.oid INTO held_by FROM pg_roles r WHERE r.rolname = role_name;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL106', MESSAGE = 'role_name is not a role',
      DETAIL = format('There is no role %I in this cluster.', role_name),
      HINT = 'Create it first. Names are taken as they are written, upper case included.';
  END IF;

  RETURN QUERY
  WITH object AS (
    SELECT b.bundle, b.object_kind, b.signature,
           CASE b.object_kind WHEN 'schema' THEN 'USAGE' WHEN 'view' THEN 'SELECT' ELSE 'EXECUTE' END AS privilege,
           count(*) OVER (PARTITION BY b.object_kind, b.signature) AS sharers
    FROM @extschema@.bundles() b),
  held AS (
    SELECT o.*, a.owner = held_by AS owned,
           EXISTS (SELECT FROM aclexplode(a.acl) x
                   WHERE x.grantee = held_by AND x.privilege_type = o.privilege) AS granted
    FROM object o,
      LATERAL (SELECT n.nspowner, n.nspacl FROM pg_namespace n
               WHERE o.object_kind = 'schema' AND n.oid = o.signature::regnamespace
               UNION ALL
               SELECT c.relowner, c.relacl FROM pg_class c
               WHERE o.object_kind = 'view' AND c.oid = o.signature::regclass
               UNION ALL
               SELECT p.proowner, p.proacl FROM pg_proc p
               WHERE o.object_kind IN ('function', 'procedure') AND p.oid = o.signature::regprocedure) AS a (owner, acl))
  SELECT h.object_kind, h.signature, h.privilege, h.granted,
         (SELECT min(same.bundle) FROM held same
          WHERE (same.object_kind, same.signature) = (h.object_kind, h.signature) AND same.bundle <> h.bundle
            AND EXISTS (SELECT FROM held own
                        WHERE own.bundle = same.bundle AND own.sharers = 1 AND own.granted))
  FROM held h
  WHERE h.bundle = bundle_privileges.bundle AND NOT h.owned
  ORDER BY 1, 2;
END;
$$;

-- grant_bundle() grants what the role does not hold yet.
CREATE FUNCTION grant_bundle(role_name name, bundle text, OUT granted bigint)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  one record;
BEGIN
  granted := 0;
  FOR one IN
    SELECT p.* FROM @extschema@.bundle_privileges(role_name, bundle) p WHERE NOT p.granted
  LOOP
    EXECUTE CASE one.object_kind
      WHEN 'schema' THEN format('GRANT USAGE ON SCHEMA %s TO %I', one.signature::regnamespace, role_name)
      WHEN 'view' THEN format('GRANT SELECT ON TABLE %s TO %I', one.signature::regclass, role_name)
      ELSE format('GRANT EXECUTE ON ROUTINE %s TO %I', one.signature::regprocedure, role_name) END;
    granted := granted + 1;
  END LOOP;

  -- Without the right to grant, GRANT only warns.
  SELECT p.* INTO one FROM @extschema@.bundle_privileges(role_name, bundle) p WHERE NOT p.granted LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING
      ERRCODE = 'insufficient_privilege', MESSAGE = format('bundle cannot be granted to role %I', role_name),
      DETAIL = format('%s on %s was not granted; nothing was.', one.privilege, one.signature),
      HINT = 'Call it as the owner of the extension, or with the grant option on all of the bundle.';
  END IF;
END;
$$;

-- revoke_bundle() takes away what no other bundle of the role gives.
CREATE FUNCTION revoke_bundle(role_name name, bundle text, OUT revoked bigint)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  one record;
BEGIN
  revoked := 0;
  FOR one IN
    SELECT p.* FROM @extschema@.bundle_privileges(role_name, bundle) p
    WHERE p.granted AND p.other_bundle IS NULL
  LOOP
    EXECUTE CASE one.object_kind
      WHEN 'schema' THEN format('REVOKE USAGE ON SCHEMA %s FROM %I', one.signature::regnamespace, role_name)
      WHEN 'view' THEN format('REVOKE SELECT ON TABLE %s FROM %I', one.signature::regclass, role_name)
      ELSE format('REVOKE EXECUTE ON ROUTINE %s FROM %I', one.signature::regprocedure, role_name) END;
    revoked := revoked + 1;
  END LOOP;

  -- REVOKE takes back what its caller granted, and says nothing of what others did.
  SELECT p.* INTO one FROM @extschema@.bundle_privileges(role_name, bundle) p
  WHERE p.granted AND p.other_bundle IS NULL LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING
      ERRCODE = 'insufficient_privilege', MESSAGE = format('bundle cannot be revoked from role %I', role_name),
      DETAIL = format('It still holds %s on %s, which another role granted; nothing was revoked.',
                      one.privilege, one.signature),
      HINT = 'Call it as that role; \dp and \df+ show who granted what.';
  END IF;
END;
$$;

COMMENT ON FUNCTION bundles IS
$$Prints the four bundles of privileges, gateway, executor, operator and auditor: what each of them may call and read (I1).

object_kind: schema, function, procedure or view. signature: the object, qualified; it can be cast to regprocedure or regclass, or given to has_function_privilege and its like. A bundle gives USAGE on the schema, EXECUTE on functions and procedures, SELECT on views, and nothing on a table. grant_bundle and revoke_bundle are in none of them.$$;

COMMENT ON FUNCTION bundle_privileges IS
$$Shows what a bundle gives, and which of it has been granted to a role (I1, I3).

role_name: a role of the cluster. bundle: gateway, executor, operator or auditor. granted: true if the role itself holds the privilege, by whomever it was granted; what it has through another role does not count. other_bundle: another bundle that the role has and that gives the same, so that revoke_bundle leaves it. A role has a bundle if it holds something that belongs to that bundle alone. What the role owns is left out.

Errors: LL101, LL106 for a bundle or a role that does not exist.$$;

COMMENT ON FUNCTION grant_bundle IS
$$Grants all of a bundle to a role that exists, and returns how many privileges it lacked (I1, I3).

Runs with the rights of its caller: the owner of the extension, a superuser, or whoever has the grant option on all of it. Repeated, it grants what is missing: nothing, or what an update of the extension has added. To a role that owns the extension's objects there is nothing to grant.

Errors: LL101; LL106 for a bundle or a role that does not exist; 42501 if the caller may not grant it. An error grants nothing.$$;

COMMENT ON FUNCTION revoke_bundle IS
$$Revokes a bundle from a role, but for what another bundle of that role gives as well, and returns how many privileges it took (I1, I3).

Runs with the rights of its caller. Repeated, it takes nothing. The schema goes with the last bundle.

Errors: LL101; LL106 for a bundle or a role that does not exist; 42501 if another role granted a part of it; 2BP01 if the role has handed a part of it on. An error revokes nothing.$$;
-- Nothing is executable or readable by PUBLIC (I1): roles get what they are granted.

REVOKE ALL ON ALL TABLES IN SCHEMA @extschema@ FROM PUBLIC;
REVOKE ALL ON ALL ROUTINES IN SCHEMA @extschema@ FROM PUBLIC;
