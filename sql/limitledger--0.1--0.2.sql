-- From 0.1 to 0.2: shadow and canary, routes that are frozen, bindings of logins, imports,
-- claims of unknown usage, retention, what monitors read, and emergency shards.
--
-- Calls fail while it runs, since the library knows the new columns alone: let
-- gateways wait.  New columns stand behind those of 0.1, where a fresh install has
-- them, too.

\echo Use "ALTER EXTENSION limitledger UPDATE TO '0.2'" to load this file. \quit

-- ---- Tables of 0.1 ------------------------------------------------------------

DROP FUNCTION policy_instant(text);

ALTER TABLE policy
  ADD COLUMN drained_by xid8,
  ADD COLUMN canary_by text COLLATE "C" CHECK (canary_by IN ('route', 'pair')),
  ADD COLUMN canary_percents integer[] NOT NULL DEFAULT '{}',
  ADD COLUMN canary_since timestamptz[] NOT NULL DEFAULT '{}',
  ADD COLUMN emergency_share integer CHECK (emergency_share BETWEEN 1 AND 100),
  ADD COLUMN shard_ttl interval CHECK (shard_ttl > interval '0'),
  DROP CONSTRAINT policy_stage_check,
  DROP CONSTRAINT policy_active_at,
  ADD CONSTRAINT policy_stage_check
    CHECK (stage IN ('published', 'shadow', 'canary', 'active', 'draining', 'retired')),
  ADD CONSTRAINT policy_active_at CHECK (
    CASE WHEN stage IN ('published', 'shadow', 'canary') THEN active_at IS NULL
         ELSE stage <> 'active' OR active_at IS NOT NULL END),
  ADD CONSTRAINT policy_canary CHECK (
    cardinality(canary_percents) = cardinality(canary_since)
    AND (cardinality(canary_percents) > 0) = (canary_by IS NOT NULL)
    AND (stage <> 'canary' OR canary_by IS NOT NULL)
    AND (stage NOT IN ('published', 'shadow') OR canary_by IS NULL));

DROP INDEX policy_moved;
CREATE INDEX policy_moved ON policy (route, greatest(active_at, retired_at, canary_since[cardinality(canary_since)]) DESC NULLS LAST, generation DESC);

ALTER TABLE head_budget
  DROP CONSTRAINT spent_sign,
  ADD CONSTRAINT spent_sign CHECK (spent >= 0 AND spent >= purged_spent);

-- A default that is the same for all rows writes none of them.
ALTER TABLE closed_budget
  ADD COLUMN changed_at timestamptz DEFAULT now(),
  ADD COLUMN follows_purged boolean NOT NULL DEFAULT false,
  DROP CONSTRAINT spent_sign,
  ADD CONSTRAINT spent_sign CHECK (spent >= 0 AND spent >= purged_spent),
  ADD CONSTRAINT purged_was_followed CHECK (NOT follows_purged OR follows_generation IS NOT NULL);

-- What ended in a budget that has closed did so no later than its pair was seen last.
ALTER TABLE closed_budget DISABLE TRIGGER guard;
UPDATE closed_budget AS c SET changed_at = greatest(c.closed_at, h.seen_at)
FROM head_budget AS h WHERE (h.subject, h.route) = (c.subject, c.route);
ALTER TABLE closed_budget ENABLE TRIGGER guard;
ALTER TABLE closed_budget
  ALTER COLUMN changed_at SET DEFAULT clock_timestamp(),
  ALTER COLUMN changed_at SET NOT NULL;

ALTER TABLE reservation
  ADD COLUMN shadow_generation bigint,
  ADD COLUMN shadow_line bigint,
  ADD COLUMN claimed_by text COLLATE "C",
  ADD COLUMN claimed_until timestamptz,
  ADD CONSTRAINT claim_of_unknown CHECK (
    (claimed_by IS NULL) = (claimed_until IS NULL) AND (claimed_by IS NULL OR unknown_at IS NOT NULL));

-- These two say more than they did: the new ones take over who may call the old ones.
ALTER PROCEDURE maintain(integer, interval, bigint, bigint, bigint, bigint, bigint) RENAME TO maintain_before;
ALTER FUNCTION retire_policy(bigint) RENAME TO retire_policy_before;
DROP FUNCTION policy_left(policy);

-- ---- What is new, and what has changed, in the order of the install script ------

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
CREATE OR REPLACE FUNCTION policy_read(document jsonb)
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

-- policy_touch writes that row as it is.  At REPEATABLE READ a call whose snapshot
-- is older than another's change of the route would decide on what is gone; both
-- write the row that was last before, so the later one gets 40001.
CREATE OR REPLACE FUNCTION policy_touch(touched_route text)
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
CREATE OR REPLACE FUNCTION policy_instant(one @extschema@.policy)
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
CREATE OR REPLACE FUNCTION policy_overtaken_by(one @extschema@.policy)
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
CREATE OR REPLACE FUNCTION policy_activate(one @extschema@.policy)
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

-- policy_add stores a document as the next generation.
CREATE OR REPLACE FUNCTION policy_add(INOUT parsed @extschema@.policy)
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
CREATE OR REPLACE FUNCTION publish_policy(
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

CREATE OR REPLACE FUNCTION activate_policy(
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

-- Beside it, one at a time is tried.
CREATE UNIQUE INDEX policy_one_trial ON policy (route, subject) WHERE stage IN ('shadow', 'canary');

-- policy_guard refuses what no call of the ledger does: a frozen column that
-- changes, a row that goes, a stage that moves back or skips one (B1, B4, C3).
CREATE OR REPLACE FUNCTION policy_guard() RETURNS trigger
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

-- policy_actor is the role that called, not the owner whose rights the calls have.
CREATE FUNCTION policy_actor()
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
  SELECT coalesce(nullif(current_setting('role'), 'none'), session_user);
$$;

-- policy_record writes down what was done to a generation.
CREATE OR REPLACE FUNCTION policy_record(action text, one @extschema@.policy, reason text)
RETURNS void LANGUAGE sql VOLATILE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
  INSERT INTO @extschema@.operator_action (acted_at, actor, action, subject, route, reason)
  VALUES (@extschema@.ledger_clock(), @extschema@.policy_actor(), action, one.subject, one.route, reason);
$$;

-- policy_refuse_stage raises LL205 for a generation whose stage forbids the call.
CREATE OR REPLACE FUNCTION policy_refuse_stage(one @extschema@.policy, problem text, hint text)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
BEGIN
  RAISE EXCEPTION USING
    ERRCODE = 'LL205', MESSAGE = format('generation %s %s', one.generation, problem),
    DETAIL = format('Its stage is %s, and stages move only forward.', one.stage),
    HINT = hint;
END;
$$;

-- policy_check_trial refuses a trial beside another generation's canary: it has pairs.
CREATE FUNCTION policy_check_trial(one @extschema@.policy)
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  other @extschema@.policy;
BEGIN
  SELECT p.* INTO other FROM @extschema@.policy AS p
  WHERE p.route = one.route AND p.subject = one.subject AND p.stage = 'canary' AND p.generation <> one.generation;
  IF FOUND THEN
    PERFORM @extschema@.policy_refuse_stage(other, 'is a canary of the same route and subject',
      'Go on with activate_policy or back with rollback_policy, then try another one.');
  END IF;
END;
$$;

-- policy_check_percent demands a part, and what it is a part of.
CREATE FUNCTION policy_check_percent(percent integer, pick_by text)
RETURNS void LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
BEGIN
  IF percent IS NULL OR percent NOT BETWEEN 1 AND 99 THEN
    RAISE EXCEPTION USING
      ERRCODE = CASE WHEN percent IS NULL THEN 'LL101' ELSE 'LL106' END,
      MESSAGE = CASE WHEN percent IS NULL THEN 'percent must not be null' ELSE 'percent must be between 1 and 99' END,
      DETAIL = coalesce(format('It is %s.', percent), 'A canary takes in a part.'),
      HINT = 'activate_policy takes in all, shadow_policy nobody.';
  END IF;
  IF pick_by NOT IN ('route', 'pair') THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL106', MESSAGE = 'pick_by must be route or pair',
      DETAIL = 'By route the percent picks among routes, by pair among the subjects of this one.',
      HINT = 'Leave it out for route.';
  END IF;
END;
$$;

-- policy_left adds up what the budgets of a generation still hold and owe, and how
-- many pairs they belong to.  The subject only leads to the rows.
CREATE FUNCTION policy_left(
  one @extschema@.policy,
  OUT reserved bigint, OUT unknown bigint, OUT debt bigint, OUT pairs bigint, OUT shards bigint)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  most CONSTANT numeric := 9223372036854775807;
BEGIN
  SELECT least(most, coalesce(sum(b.reserved), 0)), least(most, coalesce(sum(b.debt), 0)),
         count(DISTINCT b.subject),
         (SELECT least(most, coalesce(sum(r.reserved_units), 0)) FROM @extschema@.reservation AS r
          WHERE r.state = 'USAGE_UNKNOWN' AND r.generation = one.generation),
         (SELECT least(most, coalesce(sum(e.allocated_units), 0)) FROM @extschema@.emergency_shard AS e
          WHERE e.settled_at IS NULL AND e.generation = one.generation)
  INTO reserved, debt, pairs, unknown, shards
  FROM @extschema@.budgets AS b
  WHERE b.route = one.route AND (one.subject = '*' OR b.subject = one.subject)
    AND b.generation = one.generation AND (b.reserved > 0 OR b.debt > 0);
END;
$$;

-- ---- The calls --------------------------------------------------------------
CREATE OR REPLACE FUNCTION drain_policy(
  INOUT generation bigint, reason text,
  OUT stage text,                    -- draining, or retired already
  OUT already_draining boolean       -- true: nothing has changed
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  one @extschema@.policy;
BEGIN
  PERFORM @extschema@.binding_refuse('drain_policy()');
  PERFORM @extschema@.policy_check_reason(reason, 'drain_policy');
  one := @extschema@.policy_lock(generation, 'drain_policy');
  IF one.stage = 'published' OR one.stage = 'canary' AND EXISTS (
       SELECT FROM @extschema@.policy AS p
       WHERE p.route = one.route AND p.subject = one.subject AND p.stage = 'active') THEN
    PERFORM @extschema@.policy_refuse_stage(one, 'cannot be drained',
      CASE one.stage WHEN 'published' THEN 'It admits nothing as it is: leave it, or publish another policy.'
                     ELSE 'Its pairs would be left without a policy: go back with rollback_policy, or on with activate_policy.' END);
  END IF;
  already_draining := one.stage NOT IN ('active', 'shadow', 'canary');
  IF NOT already_draining THEN
    PERFORM @extschema@.policy_touch(one.route);
    UPDATE @extschema@.policy AS p SET stage = 'draining', drained_by = pg_current_xact_id()
    WHERE p.generation = one.generation;
    PERFORM @extschema@.policy_record('drain_policy', one, reason);
  END IF;

  SELECT p.stage INTO stage FROM @extschema@.policy AS p WHERE p.generation = one.generation;
END;
$$;

CREATE FUNCTION shadow_policy(
  INOUT generation bigint, reason text,
  OUT stage text,                    -- shadow
  OUT already_shadow boolean         -- true: nothing has changed
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  one @extschema@.policy;
BEGIN
  PERFORM @extschema@.binding_refuse('shadow_policy()');
  PERFORM @extschema@.policy_check_reason(reason, 'shadow_policy');
  one := @extschema@.policy_lock(generation, 'shadow_policy');
  stage := 'shadow';
  already_shadow := one.stage = 'shadow';
  IF NOT already_shadow THEN
    PERFORM @extschema@.policy_check_move(one, '{published}', 'put in shadow');
    PERFORM @extschema@.policy_check_trial(one);
    PERFORM @extschema@.policy_drain(one, '{shadow}');
    UPDATE @extschema@.policy AS p SET stage = 'shadow' WHERE p.generation = one.generation;
    PERFORM @extschema@.policy_record('shadow_policy', one, reason);
  END IF;
END;
$$;

CREATE FUNCTION canary_policy(
  INOUT generation bigint, INOUT percent integer, reason text,
  INOUT pick_by text DEFAULT NULL,   -- route or pair; NULL: as before, and route at first
  OUT stage text,                    -- canary
  OUT already_in boolean,            -- true: nothing has changed
  OUT since timestamptz              -- when this part was taken in
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  one     @extschema@.policy;
  present integer;
BEGIN
  PERFORM @extschema@.binding_refuse('canary_policy()');
  PERFORM @extschema@.policy_check_reason(reason, 'canary_policy');
  PERFORM @extschema@.policy_check_percent(percent, pick_by);
  one := @extschema@.policy_lock(generation, 'canary_policy');
  present := one.canary_percents[cardinality(one.canary_percents)];
  pick_by := coalesce(pick_by, one.canary_by, 'route');
  IF one.stage = 'canary' AND (pick_by <> one.canary_by OR percent < present) THEN
    PERFORM @extschema@.policy_refuse_stage(one, format('takes in %s %% by %s already', present, one.canary_by),
      'What is in stays in. Go back with rollback_policy.');
  END IF;
  stage := 'canary';
  already_in := one.stage = 'canary' AND percent = present;
  IF already_in THEN
    since := one.canary_since[cardinality(one.canary_since)];
    RETURN;
  END IF;

  PERFORM @extschema@.policy_check_move(one, '{published,shadow,canary}', 'a canary');
  PERFORM @extschema@.policy_check_trial(one);
  PERFORM @extschema@.policy_drain(one, '{shadow}');
  since := @extschema@.policy_instant(one);
  UPDATE @extschema@.policy AS p
  SET stage = 'canary', canary_by = pick_by,
      canary_percents = p.canary_percents || percent, canary_since = p.canary_since || since
  WHERE p.generation = one.generation;
  PERFORM @extschema@.policy_record('canary_policy', one, reason);
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
  OUT pairs bigint,                  -- that hold or owe
  OUT left_shards bigint             -- units in shards that are not settled
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  one @extschema@.policy;
BEGIN
  PERFORM @extschema@.binding_refuse('retire_policy()');
  -- A call that came before the draining may still be about to commit.  It is waited
  -- for before the lock on policy is taken: it may want that lock itself.
  SELECT p.* INTO one FROM @extschema@.policy AS p WHERE p.generation = retire_policy.generation;
  IF one.drained_by = pg_current_xact_id() THEN
    PERFORM @extschema@.policy_refuse_stage(one, 'was drained by this transaction',
      'Commit first: until then other sessions are still admitted under it.');
  ELSIF one.stage = 'draining' THEN
    PERFORM @extschema@.policy_await('@extschema@.head_budget'::regclass);
  ELSIF one.stage <> 'retired' THEN
    PERFORM @extschema@.policy_refuse_stage(one, 'cannot be retired',
      CASE one.stage WHEN 'active' THEN 'Drain it with drain_policy, or publish the policy that follows it.'
                     WHEN 'shadow' THEN 'End the shadow with drain_policy first.'
                     WHEN 'canary' THEN 'Go on with activate_policy or back with rollback_policy first.'
                     ELSE 'It was never in force, so there is nothing to retire.' END);
  END IF;
  one := @extschema@.policy_lock(generation, 'retire_policy');

  outcome := 'ACCEPTED';
  left_reserved := 0; left_unknown := 0; left_debt := 0; pairs := 0; left_shards := 0;
  IF one.stage = 'draining' THEN
    SELECT l.reserved, l.unknown, l.debt, l.pairs, l.shards
    INTO left_reserved, left_unknown, left_debt, pairs, left_shards
    FROM @extschema@.policy_left(one) AS l;
    IF pairs > 0 OR left_shards > 0 THEN
      outcome := 'REFUSED';
    ELSE
      PERFORM @extschema@.policy_touch(one.route);
      UPDATE @extschema@.policy AS p
      SET stage = 'retired', retired_at = @extschema@.policy_instant(one)
      WHERE p.generation = one.generation;
      DELETE FROM @extschema@.shadow_budget AS s WHERE s.generation = one.generation;
    END IF;
  END IF;

  SELECT p.stage, p.retired_at INTO stage, retired_at
  FROM @extschema@.policy AS p WHERE p.generation = one.generation;
END;
$$;

CREATE OR REPLACE FUNCTION rollback_policy(
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
  PERFORM @extschema@.binding_refuse('rollback_policy()');
  PERFORM @extschema@.policy_check_reason(reason, 'rollback_policy');
  older := @extschema@.policy_lock(generation, 'rollback_policy');
  IF older.active_at IS NULL AND older.canary_by IS NULL THEN
    PERFORM @extschema@.policy_refuse_stage(older, 'was never in force',
      'Activate it with activate_policy, or give a generation that was.');
  END IF;
  content_of := older.generation;
  PERFORM @extschema@.policy_touch(older.route);

  SELECT p.* INTO active FROM @extschema@.policy AS p
  WHERE p.route = older.route AND p.subject = older.subject AND p.stage = 'active';
  IF active.document - 'policyGeneration' = older.document - 'policyGeneration'
     AND NOT EXISTS (SELECT FROM @extschema@.policy AS p
                     WHERE p.route = older.route AND p.subject = older.subject AND p.stage = 'canary') THEN
    generation := active.generation;      -- a repeat
    SELECT max(p.generation) INTO rolled_back_from FROM @extschema@.policy AS p
    WHERE p.route = older.route AND p.subject = older.subject AND (p.active_at IS NOT NULL OR p.canary_by IS NOT NULL)
      AND p.generation BETWEEN content_of + 1 AND active.generation - 1;
    RETURN;
  END IF;

  SELECT max(p.generation) INTO rolled_back_from FROM @extschema@.policy AS p
  WHERE p.route = older.route AND p.subject = older.subject AND (p.active_at IS NOT NULL OR p.canary_by IS NOT NULL);
  active := @extschema@.policy_add(@extschema@.policy_read(older.document - 'policyGeneration'));
  PERFORM @extschema@.policy_activate(active);
  PERFORM @extschema@.policy_record('rollback_policy', active, reason);
  generation := active.generation;
END;
$$;

CREATE OR REPLACE FUNCTION policy_diff(
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
  PERFORM @extschema@.binding_refuse('policy_diff()');
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
$$Stops admission under an active generation that nothing follows, or ends a shadow: it drains (B4, B6).

Requests are REFUSED draining from the next call of each pair on, an operator being what they wait for; reservations are started, settled, released and expired, and debt is repaid. reason: 1 to 256 bytes, kept in operator_actions. To a generation that drains or is retired already nothing happens.

The way back is rollback_policy with this generation, or any publish; the way on is retire_policy. Errors: LL101, LL106; LL205 it is only published, or is a canary beside an active generation, which its pairs could not go back to; LL206 no such generation; 40001 at REPEATABLE READ and above, when another call changed a policy of the route meanwhile.$$;

COMMENT ON FUNCTION shadow_policy(bigint, text) IS
$$Tries a published generation in shadow: evaluated beside the one in force, and deciding nothing (B4, B7).

Each request is also put to budgets of its own, which settlement, release and expiry of the real reservation correct; rollout_status compares. Pairs without a policy in force get UNENFORCED shadow, unless they are frozen: the caller's own limiter decides, nothing is stored under the id, and a repeat counts again. A generation that was in shadow before for the same route and subject drains. reason: 1 to 256 bytes, kept in operator_actions. What is in shadow changes nothing.

The way on is canary_policy or activate_policy, the way out drain_policy. Errors: LL101, LL106; LL205 it was taken further already, a later one has been active, or another one is a canary; LL206 no such generation; 40001 at REPEATABLE READ and above, when another call changed a policy of the route meanwhile.$$;

COMMENT ON FUNCTION canary_policy(bigint, integer, text, text) IS
$$Puts a generation in force for a part of its traffic, and leaves it in shadow for the rest (B4).

percent: 1 to 99, never less than before. pick_by: route, so that the percent picks among routes by a stable hash, each wholly in or out; or pair, by a stable hash of route and subject; fixed with the first step. What is in stays in. A pair that is taken in moves at its next call, accruing under the old rule up to since, and carries over as with any publish. reason: 1 to 256 bytes, kept in operator_actions. The same percent again changes nothing.

The way on is a higher percent or activate_policy, the way back rollback_policy with the older generation. Errors: LL101, LL106; LL205 it takes in more or by something else already, it is over, a later one has been active, or another one is a canary; LL206 no such generation; 40001 at REPEATABLE READ and above, when another call changed a policy of the route meanwhile.$$;

COMMENT ON FUNCTION retire_policy(bigint) IS
$$Retires a draining generation once its budgets hold and owe nothing and its shards are reconciled, and says until then what is left (B4, B6).

REFUSED: left_reserved, left_unknown and left_debt add up, in units and as stored, what the budgets of this generation hold and owe; pairs counts those that have any of it. left_shards adds up what was allocated to its shards, and to the old limiter, that are neither settled nor written off. What is due (holds that have run out, refill that pays) counts until maintain() or a call of the pair has booked it.

ACCEPTED: from retired_at on the subjects of an exact policy fall to the newest wildcard generation of the route that was published after it, each pair at its next call, accruing under the retired rule up to that instant, with nothing given away. Where there is none, requests are REFUSED no_policy. Retiring what is retired changes nothing.

It waits for the transactions that were writing to budgets when it was called, since one of them may hold an admission from before the draining, and holds no lock meanwhile. Errors: LL101; LL205 it is neither draining nor retired, or was drained in the same transaction, which has to commit first; LL206 no such generation; 40001 at REPEATABLE READ and above, when anything was committed meanwhile.$$;

COMMENT ON FUNCTION policy_diff(jsonb) IS
$$Compares a policy document with what is in force for its subject and route: a row for each field that differs, none when they are equal (B1, B4).

The document is read as strictly as publish_policy does; policyGeneration is not compared. In force is the active generation that a new request would be decided by: that of the subject, else the wildcard that it comes under, so a first policy of its own differs in subject, too. A canary beside it is not compared. With nothing in force every field is a row. Values are compared as JSON: "30 seconds" and "PT30S" differ, as they do for publish_policy.

Errors: LL101; LL201, LL202, LL203 as publish_policy.$$;

-- Routes that an operator has frozen: the kill switch (D8).
--
-- A row stops admission on every pair of its route.  Like a policy it is read
-- by each call after the pair's lock, so from its commit on nothing is admitted;
-- what was admitted before goes on.  It belongs to the route and to no balance:
-- a pair that is frozen itself stays so when its route is opened.
CREATE TABLE frozen_route (
  route     text        COLLATE "C" PRIMARY KEY,
  frozen_at timestamptz NOT NULL,
  actor     text        NOT NULL,
  reason    text        NOT NULL
);

SELECT pg_catalog.pg_extension_config_dump('frozen_route', '');

CREATE TRIGGER policy_changed AFTER INSERT OR UPDATE OR DELETE ON frozen_route
  FOR EACH ROW EXECUTE FUNCTION @extschema@.policy_changed();

CREATE TRIGGER policy_changed_truncate AFTER TRUNCATE ON frozen_route
  FOR EACH STATEMENT EXECUTE FUNCTION @extschema@.policy_changed();

ALTER TABLE frozen_route ENABLE ALWAYS TRIGGER policy_changed;

ALTER TABLE frozen_route ENABLE ALWAYS TRIGGER policy_changed_truncate;

-- policy_check_route demands a route of 1 to 256 bytes.
CREATE FUNCTION policy_check_route(route text, call text)
RETURNS void LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
BEGIN
  IF route IS NULL OR octet_length(route) NOT BETWEEN 1 AND 256 OR route = '*' THEN
    RAISE EXCEPTION USING
      ERRCODE = CASE WHEN route IS NULL THEN 'LL101' ELSE 'LL102' END,
      MESSAGE = CASE WHEN route IS NULL THEN 'route must not be null'
                     WHEN route = '*' THEN 'route must not be "*"'
                     ELSE 'route must have 1 to 256 bytes' END,
      DETAIL = format('%s takes one route.', call),
      HINT = 'Give the route as it stands in its policy.';
  END IF;
END;
$$;

-- policy_record_route writes down what was done to a whole route.
CREATE FUNCTION policy_record_route(action text, route text, reason text)
RETURNS void LANGUAGE sql VOLATILE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
  INSERT INTO @extschema@.operator_action (acted_at, actor, action, subject, route, reason)
  VALUES (@extschema@.ledger_clock(), @extschema@.policy_actor(), action, '*', policy_record_route.route, policy_record_route.reason);
$$;

CREATE FUNCTION freeze_route(
  INOUT route text, reason text,
  OUT outcome text,                  -- ACCEPTED
  OUT already_frozen boolean,        -- true: nothing has changed, the first reason stands
  OUT frozen_at timestamptz
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
#variable_conflict use_column
BEGIN
  PERFORM @extschema@.binding_refuse('freeze_route()');
  PERFORM @extschema@.policy_check_route(freeze_route.route, 'freeze_route');
  PERFORM @extschema@.policy_check_reason(freeze_route.reason, 'freeze_route');
  outcome := 'ACCEPTED';
  -- A row that is there is locked and left as it is: it stands until this call commits.
  INSERT INTO @extschema@.frozen_route AS f (route, frozen_at, actor, reason)
  VALUES (freeze_route.route, @extschema@.ledger_clock(), @extschema@.policy_actor(), freeze_route.reason)
  ON CONFLICT (route) DO UPDATE SET route = f.route WHERE false
  RETURNING f.frozen_at INTO freeze_route.frozen_at;
  already_frozen := NOT FOUND;
  IF already_frozen THEN
    SELECT f.frozen_at INTO freeze_route.frozen_at
    FROM @extschema@.frozen_route AS f WHERE f.route = freeze_route.route;
  ELSE
    PERFORM @extschema@.policy_record_route('freeze_route', freeze_route.route, freeze_route.reason);
  END IF;
END;
$$;

CREATE FUNCTION unfreeze_route(
  INOUT route text, reason text,
  OUT outcome text,                  -- ACCEPTED
  OUT was_frozen boolean             -- false: nothing has changed
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
#variable_conflict use_column
BEGIN
  PERFORM @extschema@.binding_refuse('unfreeze_route()');
  PERFORM @extschema@.policy_check_route(unfreeze_route.route, 'unfreeze_route');
  PERFORM @extschema@.policy_check_reason(unfreeze_route.reason, 'unfreeze_route');
  outcome := 'ACCEPTED';

  DELETE FROM @extschema@.frozen_route AS f WHERE f.route = unfreeze_route.route;
  was_frozen := FOUND;
  IF was_frozen THEN
    PERFORM @extschema@.policy_record_route('unfreeze_route', unfreeze_route.route, unfreeze_route.reason);
  END IF;
END;
$$;

COMMENT ON FUNCTION freeze_route(text, text) IS
$$Stops admission on every pair of a route until unfreeze_route, and records who did it and why: the kill switch (D8).

route: 1 to 256 bytes; it need not have a policy yet. reason: 1 to 256 bytes, kept in operator_actions and shown by get_budget and frozen_routes. From its commit on reserves and extensions are REFUSED frozen, an operator being what they wait for; what is held can be started, settled and released, and debt is repaid. It waits for no call and locks no pair, so one that had decided before may still commit. On a route that is frozen it changes and records nothing.

Errors: LL101, LL102, LL106; 25006 in a read-only transaction; 40001 at REPEATABLE READ and above, when another call froze the route meanwhile.$$;

COMMENT ON FUNCTION unfreeze_route(text, text) IS
$$Opens a frozen route again, and records who did it and why (D8).

Pairs that are frozen themselves stay so, and debt goes on stopping those that owe. reason: 1 to 256 bytes, kept in operator_actions. On an open route it changes and records nothing. Errors: LL101, LL102, LL106; 25006 in a read-only transaction; 40001 at REPEATABLE READ and above, when another call opened the route meanwhile.$$;

-- For whoever watches: pairs that are frozen.
CREATE INDEX head_budget_frozen ON head_budget (frozen_at) WHERE frozen_at IS NOT NULL;

-- For the purge: a budget that was followed by one that has closed, too, in the
-- order in which it closed itself.  No column here changes but the last one, once.
CREATE INDEX closed_budget_followed ON closed_budget (follows_generation, opened_at)
  WHERE follows_generation IS NOT NULL AND NOT follows_purged;

-- What a generation in shadow would have made of a pair, beside its real budgets (B7):
-- a head like any other, which holds nothing, and how often it would have admitted and
-- rejected requests that were admitted, refused, or left to the caller's own limiter.
CREATE TABLE shadow_budget (
  LIKE head_budget INCLUDING CONSTRAINTS INCLUDING STORAGE,
  would_admit_admitted    bigint NOT NULL,
  would_admit_refused     bigint NOT NULL,
  would_admit_unenforced  bigint NOT NULL,
  would_reject_admitted   bigint NOT NULL,
  would_reject_refused    bigint NOT NULL,
  would_reject_unenforced bigint NOT NULL,
  PRIMARY KEY (subject, route, generation)
) WITH (fillfactor = 50);

SELECT pg_catalog.pg_extension_config_dump('shadow_budget', '');

-- Emergency shards, on the side of the ledger: units that gateways may spend while they
-- can't reach it (G).  They leave available once, with a row here, and come back only as
-- far as signed reports prove that they can never be used.
--
-- A gateway's row is locked first, for its fence; a shard's row under its pair's lock.
CREATE TABLE gateway (
  gateway       text        COLLATE "C" PRIMARY KEY,
  boot_epoch    uuid,                                 -- NULL: it has announced no boot
  booted_at     timestamptz,
  last_fence    bigint      NOT NULL DEFAULT 0 CHECK (last_fence >= 0),
  registered_at timestamptz NOT NULL,
  actor         text        NOT NULL,
  past_boots    uuid[]      NOT NULL DEFAULT '{}',    -- an announcement that comes late is known
  CONSTRAINT boot_with_instant CHECK ((boot_epoch IS NULL) = (booted_at IS NULL))
);

CREATE TABLE emergency_shard (
  subject            text        COLLATE "C" NOT NULL,
  shard_id           text        COLLATE "C" NOT NULL,  -- chosen by the caller: the idempotency key
  route              text        COLLATE "C" NOT NULL,
  generation         bigint      NOT NULL,              -- the budget that gave the units,
  epoch              timestamptz NOT NULL,
  line               bigint      NOT NULL,              -- and in which window's quota
  gateway            text        COLLATE "C",           -- NULL: a share of the old limiter (B8)
  boot_epoch         uuid,
  fence              bigint,
  allocated_units    bigint      NOT NULL CHECK (allocated_units >= 1),
  issued_at          timestamptz NOT NULL,
  expires_at         timestamptz,
  issued_by          xid8        NOT NULL,              -- the transaction, for G8
  actor              text        NOT NULL,

  -- As the last report had it: the equation G1.
  sequence           bigint      NOT NULL DEFAULT 0 CHECK (sequence >= 0),
  sealed             boolean     NOT NULL DEFAULT false,
  local_available    bigint      NOT NULL,
  local_reserved     bigint      NOT NULL DEFAULT 0,
  local_spent        bigint      NOT NULL DEFAULT 0,
  local_retired      bigint      NOT NULL DEFAULT 0,
  local_excess       bigint      NOT NULL DEFAULT 0,

  receipted_units    bigint      NOT NULL DEFAULT 0,    -- what all receipts say was used
  confirmed_units    bigint      NOT NULL DEFAULT 0,    -- proven unused
  reminted_units     bigint      NOT NULL DEFAULT 0,    -- and minted again
  written_off_at     timestamptz,
  written_off_reason text,
  settled_at         timestamptz,                       -- nothing is left to come (B6)

  PRIMARY KEY (subject, shard_id),
  CONSTRAINT emergency_shard_fence UNIQUE (gateway, fence),
  CONSTRAINT gateway_has_boot CHECK (
    (gateway IS NULL) = (boot_epoch IS NULL) AND (gateway IS NULL) = (fence IS NULL)
    AND (gateway IS NULL) = (expires_at IS NULL) AND fence >= 1 AND expires_at > issued_at),
  CONSTRAINT local_sign CHECK (
    least(local_available, local_reserved, local_spent, local_retired, local_excess) >= 0),
  CONSTRAINT local_conservation CHECK (
    allocated_units = local_available + local_reserved + local_spent + local_retired),
  CONSTRAINT sealed_has_none CHECK (NOT sealed OR local_available = 0),
  CONSTRAINT reminted_at_most_confirmed CHECK (
    reminted_units BETWEEN 0 AND confirmed_units AND confirmed_units <= local_retired),
  CONSTRAINT receipted_at_most_used CHECK (receipted_units BETWEEN 0 AND local_spent + local_excess),
  CONSTRAINT written_off_with_reason CHECK ((written_off_at IS NULL) = (written_off_reason IS NULL))
);

-- What is still out: of a pair, for the next issue, and of a generation, before it is retired.
CREATE INDEX emergency_shard_open ON emergency_shard (subject, route) WHERE settled_at IS NULL;

CREATE INDEX emergency_shard_generation ON emergency_shard (generation) WHERE settled_at IS NULL;

-- Reports that were reconciled, and what each of them did.
CREATE TABLE shard_report (
  subject         text        COLLATE "C" NOT NULL,
  shard_id        text        COLLATE "C" NOT NULL,
  sequence        bigint      NOT NULL CHECK (sequence >= 1),
  digest          bytea       CHECK (octet_length(digest) = 32),  -- of the document that was signed; NULL: none was (B8)
  reconciled_at   timestamptz NOT NULL,
  route           text        COLLATE "C" NOT NULL,
  generation      bigint      NOT NULL,                 -- the budget that bore the excess
  epoch           timestamptz NOT NULL,                 -- and took what was minted
  excess_units    bigint      NOT NULL CHECK (excess_units >= 0),
  confirmed_units bigint      NOT NULL CHECK (confirmed_units >= 0),
  reminted_units  bigint      NOT NULL CHECK (reminted_units BETWEEN 0 AND confirmed_units),
  PRIMARY KEY (subject, shard_id, sequence)
);

-- How each reservation of a shard ended.
CREATE TABLE shard_receipt (
  subject        text        COLLATE "C" NOT NULL,
  shard_id       text        COLLATE "C" NOT NULL,
  reservation_id text        COLLATE "C" NOT NULL,
  sequence       bigint      NOT NULL,
  state          text        COLLATE "C" NOT NULL
    CHECK (state IN ('SETTLED', 'SETTLED_WITH_DEBT', 'RELEASED', 'EXPIRED')),
  operation_id   text        COLLATE "C",
  reserved_units bigint      NOT NULL CHECK (reserved_units >= 0),
  actual_units   bigint      CHECK (actual_units >= 0),
  PRIMARY KEY (subject, shard_id, reservation_id),
  CONSTRAINT actual_when_settled CHECK (
    (actual_units IS NOT NULL) = (state IN ('SETTLED', 'SETTLED_WITH_DEBT'))
    AND (actual_units IS NULL) = (operation_id IS NULL))
);

SELECT pg_catalog.pg_extension_config_dump('gateway', '');

SELECT pg_catalog.pg_extension_config_dump('emergency_shard', '');

SELECT pg_catalog.pg_extension_config_dump('shard_report', '');

SELECT pg_catalog.pg_extension_config_dump('shard_receipt', '');

-- Emergency shards, on the side of a gateway: the same extension on the gateway's own
-- server, which spends what it was given and nothing else (G4).
--
-- The row of local_gateway is locked first, by what accepts a shard or begins a boot; the
-- shards of a pair in the order of their fences; then reservations and operations by key.
-- Which gateway this database is, if it is one, and its present boot (G5).  A boot is one
-- start of the server, of this database and this very table: what was copied, by CREATE
-- DATABASE or from a dump, has another one.
CREATE TABLE local_gateway (
  only_one       boolean     PRIMARY KEY DEFAULT true CHECK (only_one),
  gateway        text        COLLATE "C" NOT NULL,
  boot_epoch     uuid        NOT NULL,
  server_started timestamptz NOT NULL,                -- of which start of the server it is,
  database_oid   oid         NOT NULL,                -- in which database,
  relation_oid   oid         NOT NULL,                -- and in which local_gateway
  booted_at      timestamptz NOT NULL,
  last_fence     bigint      NOT NULL DEFAULT 0 CHECK (last_fence >= 0)
);

CREATE TABLE local_shard (
  subject              text        COLLATE "C" NOT NULL,
  shard_id             text        COLLATE "C" NOT NULL,
  route                text        COLLATE "C" NOT NULL,
  generation           bigint      NOT NULL,
  epoch                timestamptz NOT NULL,
  boot_epoch           uuid        NOT NULL,
  fence                bigint      NOT NULL CHECK (fence >= 1),
  allocated_units      bigint      NOT NULL CHECK (allocated_units >= 1),
  largest_reservation  bigint      NOT NULL CHECK (largest_reservation >= 1),
  hard_execution_limit bigint      NOT NULL CHECK (hard_execution_limit >= 1),
  hold_ttl             interval    NOT NULL CHECK (hold_ttl > interval '0'),
  execution_ttl        interval    NOT NULL CHECK (execution_ttl > interval '0'),
  issued_at            timestamptz NOT NULL,
  expires_at           timestamptz NOT NULL,
  accepted_at          timestamptz NOT NULL,

  local_available      bigint      NOT NULL,
  local_reserved       bigint      NOT NULL DEFAULT 0,
  local_spent          bigint      NOT NULL DEFAULT 0,
  local_retired        bigint      NOT NULL DEFAULT 0,
  local_excess         bigint      NOT NULL DEFAULT 0,
  sealed_at            timestamptz,
  sealed_by            text        COLLATE "C" CHECK (sealed_by IN ('operator', 'expiry', 'boot')),
  seen_at              timestamptz NOT NULL,          -- latest instant seen (A3)
  last_sequence        bigint      NOT NULL DEFAULT 0 CHECK (last_sequence >= 0),

  PRIMARY KEY (subject, shard_id),
  CONSTRAINT local_shard_fence UNIQUE (fence),
  CONSTRAINT local_sign CHECK (
    least(local_available, local_reserved, local_spent, local_retired, local_excess) >= 0),
  CONSTRAINT local_conservation CHECK (
    allocated_units = local_available + local_reserved + local_spent + local_retired),
  CONSTRAINT sealed_has_none CHECK (sealed_at IS NULL OR local_available = 0),
  CONSTRAINT sealed_by_whom CHECK ((sealed_at IS NULL) = (sealed_by IS NULL))
) WITH (fillfactor = 50);

-- What can be spent, in the order in which it is locked.  No column here changes but the last, once.
CREATE INDEX local_shard_open ON local_shard (subject, route, fence) WHERE sealed_at IS NULL;

-- The last one of a pair says why there is none that can be spent.
CREATE INDEX local_shard_pair ON local_shard (subject, route, fence);

-- Reservations against shards, named by the caller like those of the ledger (D).
CREATE TABLE shard_reservation (
  subject        text        COLLATE "C" NOT NULL,
  reservation_id text        COLLATE "C" NOT NULL,
  shard_id       text        COLLATE "C" NOT NULL,
  state          text        COLLATE "C" NOT NULL,
  reserved_units bigint      NOT NULL CHECK (reserved_units >= 1),
  actual_units   bigint,
  excess_units   bigint      NOT NULL DEFAULT 0 CHECK (excess_units >= 0),
  request_digest bytea       NOT NULL,
  operation_id   text        COLLATE "C",
  expires_at     timestamptz NOT NULL,
  reserved_at    timestamptz NOT NULL,
  started_at     timestamptz,
  unknown_at     timestamptz,
  ended_at       timestamptz,
  receipt_digest bytea,
  receipt_source text        COLLATE "C",
  sequence       bigint,                              -- of the report that tells of its end
  PRIMARY KEY (subject, reservation_id),
  CONSTRAINT state_known CHECK (state IN ('RESERVED', 'STARTED', 'USAGE_UNKNOWN',
    'SETTLED', 'SETTLED_WITH_DEBT', 'RELEASED', 'EXPIRED')),
  CONSTRAINT digest_length CHECK (octet_length(request_digest) = 32),
  CONSTRAINT actual_when_settled CHECK (
    (actual_units IS NOT NULL) = (state IN ('SETTLED', 'SETTLED_WITH_DEBT')) AND actual_units >= 0),
  CONSTRAINT operation_when_started CHECK (
    CASE WHEN state IN ('STARTED', 'SETTLED', 'SETTLED_WITH_DEBT') THEN operation_id IS NOT NULL
         WHEN state <> 'USAGE_UNKNOWN' THEN operation_id IS NULL ELSE true END),
  CONSTRAINT ended_when_final CHECK (
    (ended_at IS NOT NULL) = (state IN ('SETTLED', 'SETTLED_WITH_DEBT', 'RELEASED', 'EXPIRED'))),
  CONSTRAINT reported_when_final CHECK (sequence IS NULL OR ended_at IS NOT NULL)
) WITH (fillfactor = 80);

-- What a boot ends, what time ends in one shard and in all, and what no report tells of yet.
CREATE INDEX shard_reservation_open ON shard_reservation (subject, shard_id, expires_at)
  WHERE state IN ('RESERVED', 'STARTED');

CREATE INDEX shard_reservation_due ON shard_reservation (expires_at) WHERE state IN ('RESERVED', 'STARTED');

CREATE INDEX shard_reservation_unreported ON shard_reservation (subject, shard_id, reservation_id)
  WHERE ended_at IS NOT NULL AND sequence IS NULL;

CREATE INDEX shard_reservation_reported ON shard_reservation (subject, shard_id, sequence)
  WHERE sequence IS NOT NULL;

-- What an operation id is bound to on this gateway: one reservation per subject (D5).
CREATE TABLE shard_operation (
  subject        text        COLLATE "C" NOT NULL,
  operation_id   text        COLLATE "C" NOT NULL,
  reservation_id text        COLLATE "C" NOT NULL,
  PRIMARY KEY (subject, operation_id)
);

-- Reports as they were cut: what is signed is committed here before (G8).
CREATE TABLE local_report (
  subject         text        COLLATE "C" NOT NULL,
  shard_id        text        COLLATE "C" NOT NULL,
  sequence        bigint      NOT NULL CHECK (sequence >= 1),
  cut_at          timestamptz NOT NULL,
  cut_by          xid8        NOT NULL,               -- the transaction
  sealed          boolean     NOT NULL,
  local_available bigint      NOT NULL,
  local_reserved  bigint      NOT NULL,
  local_spent     bigint      NOT NULL,
  local_retired   bigint      NOT NULL,
  local_excess    bigint      NOT NULL,
  PRIMARY KEY (subject, shard_id, sequence)
);

SELECT pg_catalog.pg_extension_config_dump('local_gateway', '');

SELECT pg_catalog.pg_extension_config_dump('local_shard', '');

SELECT pg_catalog.pg_extension_config_dump('shard_reservation', '');

SELECT pg_catalog.pg_extension_config_dump('shard_operation', '');

SELECT pg_catalog.pg_extension_config_dump('local_report', '');

-- Whose signatures count, and whether this database is the original (G3, G7).
-- Public keys that are trusted, for as long as they are.  No secret key is in any table.
CREATE TABLE trusted_key (
  kid           text        COLLATE "C" PRIMARY KEY,
  public_key    bytea       NOT NULL UNIQUE CHECK (octet_length(public_key) = 32),
  gateway       text        COLLATE "C",              -- whose reports it signs; NULL: the ledger's, for shards
  trusted_from  timestamptz NOT NULL,
  trusted_until timestamptz,                          -- NULL: until further notice
  actor         text        NOT NULL
);

-- What this database takes itself for.  A witness file outside the data folder has to agree.
CREATE TABLE incarnation (
  only_one          boolean     PRIMARY KEY DEFAULT true CHECK (only_one),
  incarnation       uuid        NOT NULL,
  system_identifier bigint      NOT NULL,
  database_oid      oid         NOT NULL,
  table_oid         oid         NOT NULL,               -- this table: a dump brings the number of another
  data_folder       text        NOT NULL,
  timeline          integer     NOT NULL,
  server_started    timestamptz NOT NULL,
  acknowledged_at   timestamptz NOT NULL,
  actor             text        NOT NULL,
  reason            text        NOT NULL
);

SELECT pg_catalog.pg_extension_config_dump('trusted_key', '');

SELECT pg_catalog.pg_extension_config_dump('incarnation', '');

-- For reconcilers (D10).  Items that nobody has claimed are one end of it, oldest first;
-- at the other end are the claimed ones, by the end of their lease: those that lapsed
-- come before those that run, so a claim never walks over what others work on.
CREATE INDEX reservation_claimable ON reservation (claimed_until, unknown_at) WHERE state = 'USAGE_UNKNOWN';

-- Whatever was unknown once, by route: what still is (no ended_at) from the oldest, and
-- what has converged by when it did.
CREATE INDEX reservation_converged ON reservation (route, ended_at, unknown_at) WHERE unknown_at IS NOT NULL;

-- And what has ended, for the purge: each generation has a retention of its own, so
-- each is read from its oldest row to the first that is not due (D15).
CREATE INDEX reservation_ended ON reservation (generation, ended_at) WHERE ended_at IS NOT NULL;

-- For the purge: usage that was never reserved, the oldest of a generation first (D15).
CREATE INDEX operation_usage ON operation (generation, bound_at) WHERE usage_units IS NOT NULL;

-- Of shards, on the side of the ledger (G).
CREATE FUNCTION guard_shard() RETURNS trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'limitledger_guard_shard';

CREATE FUNCTION guard_gateway() RETURNS trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'limitledger_guard_gateway';

CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON emergency_shard
  FOR EACH ROW EXECUTE FUNCTION guard_shard();

CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON gateway
  FOR EACH ROW EXECUTE FUNCTION guard_gateway();

CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON shard_report
  FOR EACH ROW EXECUTE FUNCTION guard_bound();

CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON shard_receipt
  FOR EACH ROW EXECUTE FUNCTION guard_bound();

CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON emergency_shard
  FOR EACH STATEMENT EXECUTE FUNCTION guard_shard();

CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON gateway
  FOR EACH STATEMENT EXECUTE FUNCTION guard_gateway();

CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON shard_report
  FOR EACH STATEMENT EXECUTE FUNCTION guard_bound();

CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON shard_receipt
  FOR EACH STATEMENT EXECUTE FUNCTION guard_bound();

CREATE FUNCTION import_usage(
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
AS 'MODULE_PATHNAME', 'limitledger_import_usage';

CREATE FUNCTION record_usage_batch(
  subjects text[], routes text[], operation_ids text[], units bigint[],
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
AS 'MODULE_PATHNAME', 'limitledger_record_usage_batch';

CREATE FUNCTION import_usage_batch(
  subjects text[], routes text[], operation_ids text[], units bigint[],
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
AS 'MODULE_PATHNAME', 'limitledger_import_usage_batch';

-- Unknown usage for reconcilers: claimed between two transactions, so by a lease (D10).
CREATE FUNCTION claim_unknown_usage(
  batch_limit integer DEFAULT 100, lease interval DEFAULT '2 minutes', reconciler text DEFAULT NULL,
  OUT subject text, OUT reservation_id text, OUT route text, OUT operation_id text,
  OUT reserved_units bigint,
  OUT progress_units bigint,         -- used so far, as reported: it used no less
  OUT hard_limit bigint,             -- units that the execution was allowed
  OUT unknown_at timestamptz,
  OUT claimed_until timestamptz      -- from then on somebody else may claim it
) RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_claim_unknown_usage';

-- Whose signatures count, and what signs here (G3).
--
-- A key has an id, an owner and a life.  All three are judged when an envelope is
-- opened, at the ledger's clock.  An id stands for one key for ever, a key has one id
-- and one owner, and trust that has ended does not come back: a call that is repeated
-- late, or a script that is run again, must not revive a key that was given up.
--
-- Secret keys are in files; src/api/signing.c reads one at each signing.
CREATE FUNCTION guard_trusted_key() RETURNS trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'limitledger_guard_trusted_key';

CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON trusted_key
  FOR EACH ROW EXECUTE FUNCTION guard_trusted_key();

CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON trusted_key
  FOR EACH STATEMENT EXECUTE FUNCTION guard_trusted_key();

CREATE VIEW trusted_keys AS
SELECT k.kid, k.gateway,
       k.trusted_until IS NULL OR c.now < k.trusted_until AS trusted,
       k.trusted_from, k.trusted_until, k.actor,
       format('limitledger-ed25519-public-v1 %s %s', k.kid,
              translate(encode(k.public_key, 'base64'), '+/=', '-_')) COLLATE "C" AS public_key
FROM ledger_clock() AS c (now), trusted_key k
ORDER BY k.gateway NULLS FIRST, k.trusted_from, k.kid;

-- ---- Envelopes, for the calls that decide about them ---------------------------
-- No role is granted these.
-- open_emergency_shard verifies an envelope, and takes it apart; problem is NULL, or a
-- word of docs/envelope.md and then no field is known.
CREATE FUNCTION open_emergency_shard(
  envelope text,
  OUT problem text, OUT member text, OUT kid text,
  OUT shard_id text, OUT subject text, OUT route text, OUT generation bigint, OUT epoch timestamptz,
  OUT allocated_units bigint, OUT gateway text, OUT boot_epoch uuid, OUT fence bigint,
  OUT issued_at timestamptz, OUT expires_at timestamptz, OUT hold_ttl interval, OUT execution_ttl interval,
  OUT hard_execution_limit bigint, OUT largest_reservation bigint
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_open_emergency_shard';

-- envelope_subject checks what names a shard, and gives the subject to go on with: an
-- empty one, if the login may not name this one (I1).
CREATE FUNCTION envelope_subject(subject text, shard_id text) RETURNS text
LANGUAGE C VOLATILE
AS 'MODULE_PATHNAME', 'limitledger_envelope_subject';

-- envelope_confirm waits until what was committed by others is as durable as it gets.
CREATE FUNCTION envelope_confirm() RETURNS void
LANGUAGE C VOLATILE
AS 'MODULE_PATHNAME', 'limitledger_envelope_confirm';

-- envelope_open_report verifies a report as a reconciling call does: for a superuser who
-- asks why one was refused.
CREATE FUNCTION envelope_open_report(
  envelope text,
  OUT problem text, OUT member text, OUT kid text,
  OUT gateway text,                  -- whose key it is
  OUT reported_gateway text, OUT shard_id text, OUT boot_epoch uuid, OUT fence bigint, OUT sequence bigint,
  OUT sealed boolean, OUT receipts integer
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_envelope_open_report';

-- seal_emergency_shard signs these figures, of a row that is committed (G8).
CREATE FUNCTION seal_emergency_shard(
  shard_id text, subject text, route text, generation bigint, epoch timestamptz,
  allocated_units bigint, gateway text, boot_epoch uuid, fence bigint,
  issued_at timestamptz, expires_at timestamptz, hold_ttl interval, execution_ttl interval,
  hard_execution_limit bigint, largest_reservation bigint,
  OUT kid text, OUT envelope text
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_seal_emergency_shard';

-- envelope_seal_report signs figures and receipts of a report; their order is free.
CREATE FUNCTION envelope_seal_report(
  shard_id text, gateway text, boot_epoch uuid, fence bigint, sequence bigint, sealed boolean,
  allocated_units bigint, local_available bigint, local_reserved bigint, local_spent bigint,
  local_retired bigint, local_excess bigint,
  reservation_ids text[], operation_ids text[], states text[], reserved_units bigint[], actual_units bigint[],
  OUT kid text, OUT envelope text
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_envelope_seal_report';

-- seal_shard_report signs a report of this gateway as it was cut (G6, G8).  It is the
-- same text each time.  NULL: there is no such report.
CREATE FUNCTION seal_shard_report(
  subject text, shard_id text, sequence bigint,
  OUT kid text, OUT envelope text
) LANGUAGE sql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
  SELECT e.kid, e.envelope
  FROM @extschema@.local_report AS r
  JOIN @extschema@.local_shard AS s ON s.subject = r.subject AND s.shard_id = r.shard_id
  CROSS JOIN @extschema@.local_gateway AS g
  CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(v.reservation_id), '{}') AS ids, coalesce(array_agg(v.operation_id), '{}') AS operations,
           coalesce(array_agg(v.state), '{}') AS states, coalesce(array_agg(v.reserved_units), '{}') AS reserved,
           coalesce(array_agg(v.actual_units), '{}') AS actual
    FROM @extschema@.shard_reservation AS v
    WHERE v.subject = r.subject AND v.shard_id = r.shard_id AND v.sequence = r.sequence) AS a
  CROSS JOIN LATERAL @extschema@.envelope_seal_report(
    s.shard_id, g.gateway, s.boot_epoch, s.fence, r.sequence, r.sealed,
    s.allocated_units, r.local_available, r.local_reserved, r.local_spent, r.local_retired, r.local_excess,
    a.ids, a.operations, a.states, a.reserved, a.actual) AS e
  WHERE r.subject = seal_shard_report.subject AND r.shard_id = seal_shard_report.shard_id
    AND r.sequence = seal_shard_report.sequence
$$;

-- ---- Steps ------------------------------------------------------------------
-- envelope_public_key takes the line of a public key apart, or raises LL402.
CREATE FUNCTION envelope_public_key(public_key text, OUT kid text, OUT key_bytes bytea)
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'limitledger_envelope_public_key';

-- envelope_refuse_key raises LL402 for a key that can't be trusted as it is asked.
CREATE FUNCTION envelope_refuse_key(problem text, detail text, hint text)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
BEGIN
  RAISE EXCEPTION USING
    ERRCODE = 'LL402', MESSAGE = 'public_key ' || problem, DETAIL = detail, HINT = hint;
END;
$$;

-- envelope_check_life demands an end of trust that is still to come, and not before the one that stands.
CREATE FUNCTION envelope_check_life(trusted_until timestamptz, now timestamptz, stands timestamptz)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
BEGIN
  IF trusted_until <= now THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL106', MESSAGE = 'trusted_until must be later than now',
      DETAIL = 'Now is what ledger_clock() shows.',
      HINT = 'Leave it out to trust the key until distrust_key().';
  END IF;
  IF trusted_until < coalesce(stands, 'infinity') THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL106', MESSAGE = 'trusted_until must not be earlier than it is',
      DETAIL = format('The key is trusted %s.', coalesce('until ' || stands, 'until distrust_key() ends it')),
      HINT = 'distrust_key() ends it at once.';
  END IF;
END;
$$;

-- envelope_record writes down what was done to a key.
CREATE FUNCTION envelope_record(action text, kid text, reason text)
RETURNS void LANGUAGE sql VOLATILE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
  INSERT INTO @extschema@.operator_action (acted_at, actor, action, subject, route, reason)
  VALUES (@extschema@.ledger_clock(), @extschema@.policy_actor(), action, '*', '*', kid || ': ' || reason);
$$;

-- ---- The calls --------------------------------------------------------------
-- They lock the key's row, and the table no more than any call does: envelopes are opened
-- meanwhile.
CREATE FUNCTION trust_key(
  public_key text, gateway text DEFAULT NULL, trusted_until timestamptz DEFAULT NULL,
  OUT outcome text,                  -- ACCEPTED
  OUT kid text,
  OUT already_trusted boolean        -- true: the key was trusted before, if for another time
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  named  record;
  stands @extschema@.trusted_key;
  now    timestamptz;
  ends   CONSTANT timestamptz := nullif(trust_key.trusted_until, 'infinity');
BEGIN
  PERFORM @extschema@.binding_refuse('trust_key()');
  SELECT p.kid, p.key_bytes INTO named FROM @extschema@.envelope_public_key(trust_key.public_key) AS p;
  IF octet_length(trust_key.gateway) NOT BETWEEN 1 AND 256 THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL102', MESSAGE = 'gateway must have 1 to 256 bytes',
      DETAIL = format('It has %s.', octet_length(trust_key.gateway)),
      HINT = 'Leave it out for a key of the ledger, which signs shards.';
  END IF;

  now := @extschema@.ledger_clock();
  PERFORM @extschema@.envelope_check_life(ends, now, '-infinity');
  outcome := 'ACCEPTED';
  kid := named.kid;
  -- Whoever comes second, with the id or with the key, waits and finds what stands.
  INSERT INTO @extschema@.trusted_key (kid, public_key, gateway, trusted_from, trusted_until, actor)
  VALUES (named.kid, named.key_bytes, trust_key.gateway, now, ends, @extschema@.policy_actor())
  ON CONFLICT DO NOTHING;
  already_trusted := NOT FOUND;
  IF already_trusted THEN
    SELECT k.* INTO stands FROM @extschema@.trusted_key AS k WHERE k.kid = named.kid FOR UPDATE;
    now := @extschema@.ledger_clock();
  END IF;

  IF NOT already_trusted THEN
    NULL;
  ELSIF stands.kid IS NULL THEN
    PERFORM @extschema@.envelope_refuse_key('has another id already',
      'A key has one id and one owner.', 'Make a new key with tools/make-signing-key.');
  ELSIF stands.public_key <> named.key_bytes THEN
    PERFORM @extschema@.envelope_refuse_key('has the id of another key',
      'An id stands for one key for ever.', 'Make the new key with an id of its own.');
  ELSIF stands.gateway IS DISTINCT FROM trust_key.gateway THEN
    PERFORM @extschema@.envelope_refuse_key('belongs to another gateway',
      'A key has one owner: one gateway, or the ledger if gateway is NULL.', 'Make a key of its own for each gateway.');
  ELSIF stands.trusted_until <= now THEN
    PERFORM @extschema@.envelope_refuse_key('has lost its trust',
      'Trust that has ended does not come back.', 'Make a new key with an id of its own.');
  ELSIF stands.trusted_until IS NOT DISTINCT FROM ends THEN
    RETURN;
  ELSE
    PERFORM @extschema@.envelope_check_life(ends, now, stands.trusted_until);
    UPDATE @extschema@.trusted_key AS k SET trusted_until = ends WHERE k.kid = named.kid;
  END IF;
  PERFORM @extschema@.envelope_record('trust_key', named.kid,
    concat_ws(' ', 'trusted', 'for ' || trust_key.gateway,
      'until ' || coalesce(to_char(ends AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), 'further notice')));
END;
$$;

CREATE FUNCTION distrust_key(
  kid text, reason text,
  OUT outcome text,                  -- ACCEPTED
  OUT already_distrusted boolean,    -- true: nothing has changed
  OUT trusted_until timestamptz      -- when its life ended
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  now timestamptz;
BEGIN
  PERFORM @extschema@.binding_refuse('distrust_key()');
  IF distrust_key.kid IS NULL THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL101', MESSAGE = 'kid must not be null',
      DETAIL = 'It names the key that is trusted no more.',
      HINT = 'The view trusted_keys lists them.';
  END IF;
  PERFORM @extschema@.policy_check_reason(distrust_key.reason, 'distrust_key');

  SELECT k.trusted_until INTO distrust_key.trusted_until
  FROM @extschema@.trusted_key AS k WHERE k.kid = distrust_key.kid FOR UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL106', MESSAGE = 'kid is not the id of a key',
      DETAIL = 'No key of this id was ever trusted here.',
      HINT = 'The view trusted_keys lists them. Ids are taken as they are written, upper case included.';
  END IF;
  now := @extschema@.ledger_clock();
  outcome := 'ACCEPTED';
  already_distrusted := coalesce(trusted_until <= now, false);
  IF NOT already_distrusted THEN
    UPDATE @extschema@.trusted_key AS k SET trusted_until = now WHERE k.kid = distrust_key.kid;
    distrust_key.trusted_until := now;
    PERFORM @extschema@.envelope_record('distrust_key', distrust_key.kid, distrust_key.reason);
  END IF;
END;
$$;

CREATE FUNCTION signing_key_id(
  OUT kid text,
  OUT public_key text                -- the line by which others trust the key
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_signing_key_id';

COMMENT ON FUNCTION trust_key IS
$$Trusts a public key, as one of the ledger or of a gateway, until an instant or until distrust_key (G3).

public_key: the line that tools/make-signing-key prints. gateway: whose reports it signs, 1 to 256 bytes; NULL: the ledger's, for shards. trusted_until: later than now; NULL: until further notice. kid is the id that the line gives the key. The same call again changes nothing; with a later trusted_until, or none, it lengthens the life of the key, never of one that has ended. Kept in operator_actions.

Errors: LL101, LL102; LL106 trusted_until is past, or earlier than it was; LL402 the line has another form, the id stands for another key, the key has another id or gateway, or has lost its trust; 42501 if the caller is bound.$$;

COMMENT ON FUNCTION distrust_key IS
$$Ends the trust in a key at once and for good, and records who did it and why (G3).

kid: the id of a key of trusted_keys. reason: 1 to 256 bytes, kept in operator_actions behind the id. From its commit on no envelope that the key has signed is opened, whenever it was signed; a call that had opened one before may still commit. Repeated, it changes nothing. Errors: LL101; LL106 the reason, or no such key; 42501 if the caller is bound.$$;

COMMENT ON FUNCTION signing_key_id IS
$$Reads the key file of limitledger.signing_key_file, and shows the id of the key and the line by which others trust it (G3).

Nothing that is secret. What a signing would say of the file, this says: use it after a key was replaced. Errors: LL401, with a word of docs/envelope.md; 42501 if the caller is bound.$$;

COMMENT ON VIEW trusted_keys IS
'Every key that is or was trusted: whose it is, its life, and whether it is trusted now (G3).';

-- Whether this database is the original, or may be a copy of it (G7).
--
-- src/store/recovery.c compares the row of incarnation with a witness file outside the
-- data folder.  Calls that issue, remint, accept or sign ask recovery_look(), and take
-- anything but normal for a refusal.
CREATE FUNCTION guard_incarnation() RETURNS trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'limitledger_guard_incarnation';

CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON incarnation
  FOR EACH ROW EXECUTE FUNCTION guard_incarnation();

CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON incarnation
  FOR EACH STATEMENT EXECUTE FUNCTION guard_incarnation();

CREATE FUNCTION recovery_status(
  OUT status text,                   -- normal, unset, promoted, quarantined, or standby
  OUT detail text,                   -- why it is not normal
  OUT incarnation uuid,              -- what this database takes itself for; NULL: nothing was acknowledged
  OUT timeline integer,              -- that was acknowledged
  OUT acknowledged_at timestamptz)
LANGUAGE C STABLE
AS 'MODULE_PATHNAME', 'limitledger_recovery_status';

-- recovery_look is the look of calls that write: it returns the status, lets the witness
-- file follow, and gives the ledger a new incarnation after a start of the server.
CREATE FUNCTION recovery_look() RETURNS text
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_recovery_look';

-- recovery_acknowledge writes row and witness file.
CREATE FUNCTION recovery_acknowledge(actor text, reason text, OUT status_before text, OUT incarnation uuid)
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_recovery_acknowledge';

CREATE FUNCTION acknowledge_recovery(
  reason text,
  OUT outcome text,                  -- ACCEPTED
  OUT status_before text,            -- as recovery_status had it
  OUT incarnation uuid               -- the new one
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
BEGIN
  PERFORM @extschema@.binding_refuse('acknowledge_recovery()');
  PERFORM @extschema@.policy_check_reason(acknowledge_recovery.reason, 'acknowledge_recovery');
  outcome := 'ACCEPTED';
  SELECT a.status_before, a.incarnation INTO acknowledge_recovery.status_before, acknowledge_recovery.incarnation
  FROM @extschema@.recovery_acknowledge(@extschema@.policy_actor(), acknowledge_recovery.reason) AS a;

  -- An older state has forgotten fences that gateways have seen.
  IF status_before IN ('quarantined', 'promoted') THEN
    UPDATE @extschema@.gateway AS g SET last_fence = g.last_fence + 1000000;
  END IF;
  INSERT INTO @extschema@.operator_action (acted_at, actor, action, subject, route, reason)
  VALUES (@extschema@.ledger_clock(), @extschema@.policy_actor(), 'acknowledge_recovery', '*', '*', acknowledge_recovery.reason);
END;
$$;

COMMENT ON FUNCTION recovery_status IS
$$Tells whether this database is the original or may be a copy, by its witness file, and writes nothing (G7).

normal: the witness agrees. unset: limitledger.witness_file is not set, or nothing was acknowledged. promoted: the server is on another timeline. quarantined: the database is not the one that the witness names. standby: the server is one, and judges nothing. Unless it is normal no shard is issued, signed, accepted or reconciled; settlement goes on, and admission as limitledger.admit_in_recovery says. detail says in words what is wrong. Errors: none.$$;

COMMENT ON FUNCTION acknowledge_recovery IS
$$Makes this database the original: a new incarnation, in its row and in the witness file (G7).

Any other database that the file had named is quarantined from the commit on. For the first set-up, after a promotion, and for a restored or moved ledger once the one that it came from is stopped for good. reason: 1 to 256 bytes, kept in operator_actions. If the ledger was quarantined or promoted, the fences of all gateways go up by 1,000,000, since an older state does not know the last ones. A ROLLBACK leaves all as it was. Repeated, it makes another incarnation and does no harm.

Errors: LL101, LL106; LL403 limitledger.witness_file is not set, or can't be written; 25006 in a read-only transaction; 40001 at REPEATABLE READ and above, or if two calls make the first incarnation at once; 42501 for a bound login.$$;

-- Emergency shards, on the side of the ledger: who gets them, how they are issued and
-- signed, and how what became of them comes back (G).  Besides, the old limiter's share (B8).
-- policy_check_text demands a text of 1 to 256 bytes.
CREATE FUNCTION policy_check_text(field text, given text, call text)
RETURNS void LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
BEGIN
  IF given IS NULL OR octet_length(given) NOT BETWEEN 1 AND 256 THEN
    RAISE EXCEPTION USING
      ERRCODE = CASE WHEN given IS NULL THEN 'LL101' ELSE 'LL102' END,
      MESSAGE = CASE WHEN given IS NULL THEN format('%s must not be null', field)
                     ELSE format('%s must have 1 to 256 bytes', field) END,
      DETAIL = format('%s() takes one.', call),
      HINT = 'Names and ids are compared byte for byte and never cut.';
  END IF;
END;
$$;

CREATE FUNCTION register_gateway(
  gateway text,
  public_key text,                   -- the line of the key that signs its reports
  OUT outcome text,                  -- ACCEPTED
  OUT already_registered boolean,    -- true: only its key may be new
  OUT kid text
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
BEGIN
  PERFORM @extschema@.binding_refuse('register_gateway()');
  PERFORM @extschema@.policy_check_text('gateway', gateway, 'register_gateway');
  SELECT t.kid INTO kid FROM @extschema@.trust_key(public_key, gateway) AS t;

  INSERT INTO @extschema@.gateway AS g (gateway, registered_at, actor)
  VALUES (register_gateway.gateway, @extschema@.ledger_clock(), @extschema@.policy_actor())
  ON CONFLICT ON CONSTRAINT gateway_pkey DO NOTHING;
  already_registered := NOT FOUND;
  outcome := 'ACCEPTED';
END;
$$;

CREATE FUNCTION announce_boot(
  gateway text,
  boot_epoch uuid,                   -- that local_gateway has now
  OUT outcome text,                  -- ACCEPTED, or REFUSED
  OUT dimension text,                -- why not
  OUT already_announced boolean
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  known @extschema@.gateway;
BEGIN
  PERFORM @extschema@.binding_refuse('announce_boot()');
  PERFORM @extschema@.policy_check_text('gateway', gateway, 'announce_boot');
  PERFORM @extschema@.policy_check_text('boot_epoch', boot_epoch::text, 'announce_boot');
  SELECT g.* INTO known FROM @extschema@.gateway AS g WHERE g.gateway = announce_boot.gateway FOR NO KEY UPDATE;

  outcome := 'REFUSED'; already_announced := false;
  IF known.gateway IS NULL THEN
    dimension := 'gateway';
  ELSIF boot_epoch = ANY (known.past_boots) THEN
    dimension := 'boot_epoch';            -- an announcement that was overtaken
  ELSE
    outcome := 'ACCEPTED';
    already_announced := known.boot_epoch IS NOT DISTINCT FROM announce_boot.boot_epoch;
    IF NOT already_announced THEN
      UPDATE @extschema@.gateway AS g
      SET boot_epoch = announce_boot.boot_epoch, booted_at = @extschema@.ledger_clock(),
          past_boots = CASE WHEN g.boot_epoch IS NULL THEN g.past_boots ELSE g.past_boots || g.boot_epoch END
      WHERE g.gateway = announce_boot.gateway;
    END IF;
  END IF;
END;
$$;

CREATE FUNCTION issue_emergency_shard(
  subject text, route text, shard_id text, gateway text, units bigint,
  OUT outcome text,                  -- ACCEPTED, REFUSED or CONFLICT
  OUT dimension text,                -- why not
  OUT replayed boolean,              -- true: it was issued before
  OUT generation bigint,             -- the budget that gave the units
  OUT epoch timestamptz,
  OUT fence bigint,
  OUT issued_at timestamptz,
  OUT expires_at timestamptz,
  OUT debt bigint,                   -- of the pair, now
  OUT available bigint,
  OUT admission text,                -- open, suspended, frozen, draining or no_policy
  OUT ledger_at timestamptz
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_issue_emergency_shard';

CREATE FUNCTION sign_emergency_shard(
  subject text, shard_id text,
  OUT outcome text,                  -- ACCEPTED, REFUSED or UNKNOWN
  OUT dimension text,                -- why not
  OUT kid text,                      -- of the key that has signed
  OUT envelope text                  -- for accept_emergency_shard on the gateway
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  about   CONSTANT text := @extschema@.envelope_subject(sign_emergency_shard.subject, sign_emergency_shard.shard_id);
  shard   @extschema@.emergency_shard;
  terms   @extschema@.policy;
  present uuid;
BEGIN
  SELECT e.* INTO shard FROM @extschema@.emergency_shard AS e
  WHERE e.subject = about AND e.shard_id = sign_emergency_shard.shard_id;
  SELECT p.* INTO terms FROM @extschema@.policy AS p WHERE p.generation = shard.generation;
  SELECT g.boot_epoch INTO present FROM @extschema@.gateway AS g WHERE g.gateway = shard.gateway;

  outcome := 'REFUSED';
  IF shard.gateway IS NULL THEN
    outcome := 'UNKNOWN'; dimension := 'emergency_shard';
  ELSIF shard.issued_by = pg_current_xact_id() THEN
    dimension := 'not_committed';         -- an envelope would survive a ROLLBACK (G8)
  ELSIF shard.sealed OR shard.settled_at IS NOT NULL THEN
    dimension := 'sealed';
  ELSIF shard.boot_epoch <> present THEN
    dimension := 'boot_epoch';
  ELSIF shard.expires_at <= @extschema@.ledger_clock() THEN
    dimension := 'shard_expired';
  ELSIF @extschema@.recovery_look() <> 'normal' THEN
    dimension := 'recovery';
  ELSE
    outcome := 'ACCEPTED';
    -- Who has issued it may have given up waiting for the standby (F4).
    PERFORM @extschema@.envelope_confirm();
    SELECT s.kid, s.envelope INTO kid, envelope
    FROM @extschema@.seal_emergency_shard(
      shard.shard_id, shard.subject, shard.route, shard.generation, shard.epoch, shard.allocated_units,
      shard.gateway, shard.boot_epoch, shard.fence, shard.issued_at, shard.expires_at,
      terms.hold_ttl, terms.execution_ttl, terms.hard_execution_limit, terms.largest_reservation) AS s;
  END IF;
END;
$$;

CREATE FUNCTION reconcile_emergency_shard(
  subject text,
  report text,                       -- the envelope of report_shard
  OUT outcome text,                  -- ACCEPTED, REFUSED, CONFLICT or UNKNOWN
  OUT dimension text,                -- the rule that it breaks
  OUT replayed boolean,              -- true: this report was reconciled before
  OUT detail text,                   -- what is wrong with the envelope, and in which member
  OUT shard_id text,
  OUT sequence bigint,
  OUT excess_units bigint,           -- what this report made the pair bear
  OUT confirmed_units bigint,        -- what it proved unused
  OUT reminted_units bigint,         -- and what of that was minted; the rest was burned, filled a deficit or lapsed
  OUT settled boolean,               -- nothing of the shard is left to come
  OUT debt bigint,                   -- of the pair, now
  OUT available bigint,
  OUT admission text,
  OUT ledger_at timestamptz
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_reconcile_emergency_shard';

CREATE FUNCTION write_off_shard(
  subject text, shard_id text, reason text,
  OUT outcome text,                  -- ACCEPTED or UNKNOWN
  OUT dimension text,
  OUT replayed boolean,              -- true: it was settled already
  OUT lost_units bigint,             -- neither reported as spent nor proven unused: retired for ever
  OUT written_off_at timestamptz     -- NULL: it was settled by its reports
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_write_off_shard';

CREATE FUNCTION grant_legacy_share(
  subject text, route text, share_id text, units bigint, reason text,
  OUT outcome text,                  -- ACCEPTED, REFUSED or CONFLICT
  OUT dimension text,
  OUT replayed boolean,
  OUT generation bigint,
  OUT epoch timestamptz,
  OUT debt bigint,
  OUT available bigint,
  OUT admission text,
  OUT ledger_at timestamptz
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_grant_legacy_share';

CREATE FUNCTION report_legacy_share(
  subject text, share_id text,
  operation_ids text[], reserved_units bigint[], actual_units bigint[],
  OUT outcome text,                  -- ACCEPTED, REFUSED, CONFLICT or UNKNOWN
  OUT dimension text,
  OUT replayed boolean,              -- true: all of these receipts were booked before
  OUT excess_units bigint,
  OUT confirmed_units bigint,
  OUT reminted_units bigint,
  OUT settled boolean,
  OUT debt bigint,
  OUT available bigint,
  OUT admission text,
  OUT ledger_at timestamptz
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_report_legacy_share';

-- What is out, the oldest first; then what is settled.
CREATE VIEW emergency_shards AS
SELECT e.subject, e.shard_id, e.route, e.gateway,
       CASE WHEN e.written_off_at IS NOT NULL THEN 'written_off' WHEN e.settled_at IS NOT NULL THEN 'settled'
            WHEN e.sealed THEN 'sealed' ELSE 'issued' END AS state,
       e.allocated_units, e.local_available, e.local_reserved, e.local_spent, e.local_retired, e.local_excess,
       e.receipted_units, e.confirmed_units, e.reminted_units, e.sequence,
       e.generation, e.epoch, e.boot_epoch, e.fence, e.issued_at, e.expires_at, e.actor,
       e.written_off_at, e.written_off_reason, e.settled_at
FROM emergency_shard e
ORDER BY e.settled_at IS NOT NULL, e.issued_at;

CREATE VIEW gateways AS
SELECT g.gateway, g.boot_epoch, g.booted_at, g.last_fence, g.registered_at, g.actor,
       count(e.shard_id) AS open_shards, coalesce(sum(e.allocated_units), 0) AS open_units
FROM gateway g LEFT JOIN emergency_shard e ON e.gateway = g.gateway AND e.settled_at IS NULL
GROUP BY g.gateway
ORDER BY g.gateway;

CREATE VIEW shard_reports AS
SELECT p.reconciled_at, p.subject, p.shard_id, p.sequence, p.excess_units, p.confirmed_units, p.reminted_units,
       p.generation, p.epoch, 'sha256:' || encode(p.digest, 'hex') AS digest
FROM shard_report p
ORDER BY p.reconciled_at DESC;

CREATE VIEW shard_receipts AS
SELECT r.subject, r.shard_id, r.sequence, r.reservation_id, r.state, r.operation_id, r.reserved_units, r.actual_units
FROM shard_receipt r;

COMMENT ON FUNCTION register_gateway IS
$$Registers a gateway that may get emergency shards, and trusts the key that signs its reports (G2, G3).

gateway: 1 to 256 bytes. public_key: the line that make-signing-key prints. Again, it only trusts another key of the same gateway: that is how keys are rotated. Until announce_boot it gets no shard. Errors: LL101, LL102; LL402 the key is malformed, or its id taken.$$;

COMMENT ON FUNCTION announce_boot IS
$$Says which boot of a gateway is running, so that shards are issued for it (G5).

boot_epoch: as open_gateway or renew_boot returned it on the gateway. Shards of an earlier boot stay out until they are reconciled or written off. REFUSED gateway: it is not registered. REFUSED boot_epoch: that boot is over, another one was announced after it; so an announcement that comes late or twice changes nothing; after a wrong one, renew_boot on the gateway and announce that. Errors: LL101, LL102; 40001 at REPEATABLE READ and above.$$;

COMMENT ON FUNCTION issue_emergency_shard IS
$$Moves units of a pair from available into a shard that one gateway may spend while it can't reach the ledger (G2).

shard_id: 1 to 256 bytes, the idempotency key; the same again is the same answer, another gateway, route or number of units a CONFLICT shard. units: at least 1, and with what the pair has in shards that are not settled at most emergencyShare percent of the cap. It signs nothing: commit, then call sign_emergency_shard.

REFUSED: no_policy, draining, emergency_mode (the policy has it disabled, or is not active), frozen, cap, emergency_share, debt, available, recovery (set up the witness, or acknowledge), standby (limitledger.shard_needs_standby is on), gateway (not registered, or no boot announced). Errors: LL101, LL102, LL103; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION sign_emergency_shard IS
$$Signs a shard whose issue is committed, and returns the envelope for the gateway (G3, G8).

It writes nothing, and the same shard gives the same envelope as long as the key is the same. REFUSED: not_committed in the transaction that issued it; sealed once a report has sealed or settled it; boot_epoch once another boot is announced; shard_expired; recovery. UNKNOWN emergency_shard: there is none. Errors: LL101, LL102; LL401 the key file can't be used.$$;

COMMENT ON FUNCTION reconcile_emergency_shard IS
$$Takes in a gateway's signed report: excess becomes usage of the pair, units that are proven unused are minted again (G6).

report: the envelope that report_shard returned, up to 4314352 bytes. Reports of a shard come in the order of their numbers; the same one again is the same answer. excess_units take available units of the head, the rest is debt. confirmed_units are what local_retired grew by in a sealed report, once all that was used has its receipt; they fill a deficit, pay debt, and fill available up to the cap. spent and unknown units stay retired.

REFUSED: envelope (detail says what), gateway, boot_epoch, fence, sequence (one before it is missing), conservation (G1 does not hold), falls, receipts, recovery. CONFLICT report: another one was reconciled under this number. UNKNOWN emergency_shard. A refusal books nothing. Errors: LL101, LL102; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION write_off_shard IS
$$Gives up a shard that its gateway never reports, or a share of the old limiter: its units stay retired (G6, B8).

reason: 1 to 256 bytes, kept in operator_actions. From then on it hinders neither a new issue nor the retirement of its generation. If a report comes after all, its excess is booked and nothing is minted. A shard that is settled stays as it is. Errors: LL101, LL102, LL106.$$;

COMMENT ON FUNCTION grant_legacy_share IS
$$Moves units of a pair from available to the limiter that is being replaced, which may spend them by its own rules (B8).

share_id: the idempotency key, among the shards of the subject. units: at least 1. reason: 1 to 256 bytes. The units are retired here; they come back only against receipts, report_legacy_share, never as a block. REFUSED: no_policy, draining, frozen, cap, debt, available, recovery. CONFLICT shard: the id stands for something else. Errors: LL101, LL102, LL103, LL106.$$;

COMMENT ON FUNCTION report_legacy_share IS
$$Books receipts of the old limiter against its share, each operation once: what was reserved and not used comes back (B8).

operation_ids, reserved_units, actual_units: one element per receipt, units at least 0. What an operation used above what it had reserved, or above what the share had left, is borne by the pair. Units that no receipt names stay retired; write_off_shard ends the share. REFUSED recovery: the ledger may be a copy. CONFLICT figures: an operation was booked with other units; operation_elsewhere: in another share of the subject. Then nothing of the call is booked. Errors: LL101, LL102, LL103, LL105.$$;

COMMENT ON VIEW gateways IS
'Gateways that are registered, their present boot, and what they have out (G2, G5).';

COMMENT ON VIEW emergency_shards IS
'Shards and shares of the old limiter as the last report has them: what is out, the oldest first, then what is settled (G1, B8).';

COMMENT ON VIEW shard_reports IS
'Reports of shards that were reconciled, and what each of them booked on which budget (G6).';

COMMENT ON VIEW shard_receipts IS
'How each reservation of a shard ended, as its gateway reported it (G6).';

-- The gateway's side of emergency shards: what was given is spent here, and nothing
-- else (G4, G5).  The life of a reservation against a shard is C, as in 40-calls.sql; what
-- opens envelopes and cuts reports is written here.
-- ---- Guards (C3) -------------------------------------------------------------
CREATE FUNCTION guard_local_gateway() RETURNS trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'limitledger_guard_local_gateway';

CREATE FUNCTION guard_local_shard() RETURNS trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'limitledger_guard_local_shard';

CREATE FUNCTION guard_shard_reservation() RETURNS trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'limitledger_guard_shard_reservation';

CREATE FUNCTION guard_local_record() RETURNS trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'limitledger_guard_local_record';

-- Where rows are inserted in SQL, the insertion is noted, to be as durable as a call (F4).
CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON local_gateway
  FOR EACH ROW EXECUTE FUNCTION guard_local_gateway();

CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON local_shard
  FOR EACH ROW EXECUTE FUNCTION guard_local_shard();

CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON local_report
  FOR EACH ROW EXECUTE FUNCTION guard_local_record();

CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON shard_reservation
  FOR EACH ROW EXECUTE FUNCTION guard_shard_reservation();

CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON shard_operation
  FOR EACH ROW EXECUTE FUNCTION guard_local_record();

CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON local_gateway
  FOR EACH STATEMENT EXECUTE FUNCTION guard_local_gateway();

CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON local_shard
  FOR EACH STATEMENT EXECUTE FUNCTION guard_local_shard();

CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON local_report
  FOR EACH STATEMENT EXECUTE FUNCTION guard_local_record();

CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON shard_reservation
  FOR EACH STATEMENT EXECUTE FUNCTION guard_shard_reservation();

CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON shard_operation
  FOR EACH STATEMENT EXECUTE FUNCTION guard_local_record();

-- ---- Reservations against shards ----------------------------------------------
-- A receipt's generation, epoch and hard_limit are the shard's, available is what that
-- has left, cap what it was given.
CREATE FUNCTION shard_reserve(
  subject text, route text, reservation_id text, units bigint, digest bytea,
  deadline timestamptz DEFAULT NULL, start_operation text DEFAULT NULL,
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
AS 'MODULE_PATHNAME', 'limitledger_shard_reserve';

CREATE FUNCTION shard_start(
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
AS 'MODULE_PATHNAME', 'limitledger_shard_start';

CREATE FUNCTION shard_settle(
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
AS 'MODULE_PATHNAME', 'limitledger_shard_settle';

CREATE FUNCTION shard_release(
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
AS 'MODULE_PATHNAME', 'limitledger_shard_release';

CREATE FUNCTION shard_report_unknown(
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
AS 'MODULE_PATHNAME', 'limitledger_shard_report_unknown';

CREATE FUNCTION shard_reserve_batch(
  subjects text[], routes text[], reservation_ids text[], units bigint[], digests bytea[],
  deadlines timestamptz[] DEFAULT NULL, start_operations text[] DEFAULT NULL,
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
AS 'MODULE_PATHNAME', 'limitledger_shard_reserve_batch';

CREATE FUNCTION shard_settle_batch(
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
AS 'MODULE_PATHNAME', 'limitledger_shard_settle_batch';

-- ---- Steps ----------------------------------------------------------------------
-- local_boot begins a boot if the server was started since the last one, or in any case.
CREATE FUNCTION local_boot(
  renew boolean, OUT boot_epoch uuid,
  OUT sealed bigint, OUT unknown bigint  -- shards and reservations of the boot before, by this call
) LANGUAGE C VOLATILE STRICT
AS 'MODULE_PATHNAME', 'limitledger_local_boot';

-- local_begin checks what names a shard, begins a boot if one is due, and
-- gives the subject to go on with: an empty one, if the login may not name this one.
CREATE FUNCTION local_begin(subject text, shard_id text) RETURNS text
LANGUAGE C VOLATILE
AS 'MODULE_PATHNAME', 'limitledger_local_begin';

-- ---- The gateway and its boots (G5) -----------------------------------------------
CREATE FUNCTION open_gateway(
  gateway text,
  OUT outcome text,                  -- ACCEPTED
  OUT already_open boolean,          -- true: it was this gateway before
  OUT boot_epoch uuid                -- to be announced to the ledger
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  is_gateway text;
BEGIN
  PERFORM @extschema@.binding_refuse('open_gateway()');
  IF open_gateway.gateway IS NULL OR octet_length(open_gateway.gateway) NOT BETWEEN 1 AND 256 THEN
    RAISE EXCEPTION USING
      ERRCODE = CASE WHEN open_gateway.gateway IS NULL THEN 'LL101' ELSE 'LL102' END,
      MESSAGE = CASE WHEN open_gateway.gateway IS NULL THEN 'gateway must not be null'
                     ELSE 'gateway must have 1 to 256 bytes' END,
      DETAIL = 'It is the id by which the ledger knows this gateway.',
      HINT = 'Give each gateway an id of its own, and the same one to register_gateway in the ledger.';
  END IF;

  -- The epoch that is drawn here is replaced by the boot below: all boots begin alike.
  INSERT INTO @extschema@.local_gateway (gateway, boot_epoch, server_started, database_oid, relation_oid, booted_at)
  VALUES (open_gateway.gateway, gen_random_uuid(), '-infinity', 0, 0, @extschema@.ledger_clock())
  ON CONFLICT (only_one) DO NOTHING;
  already_open := NOT FOUND;
  SELECT g.gateway INTO is_gateway FROM @extschema@.local_gateway AS g;
  IF is_gateway IS DISTINCT FROM open_gateway.gateway THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL404', MESSAGE = 'gateway is not the one that this database is already',
      DETAIL = 'A database is one gateway for good: the ledger counts its fences.',
      HINT = 'Open another gateway in a database of its own.';
  END IF;
  SELECT b.boot_epoch INTO open_gateway.boot_epoch FROM @extschema@.local_boot(false) AS b;
  outcome := 'ACCEPTED';
END;
$$;

CREATE FUNCTION renew_boot(
  reason text,
  OUT outcome text,                  -- ACCEPTED
  OUT boot_epoch uuid,
  OUT sealed bigint,                 -- shards of the boot before
  OUT unknown bigint                 -- reservations that it held
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
#variable_conflict use_column
BEGIN
  PERFORM @extschema@.binding_refuse('renew_boot()');
  PERFORM @extschema@.policy_check_reason(renew_boot.reason, 'renew_boot');
  SELECT b.boot_epoch, b.sealed, b.unknown
  INTO renew_boot.boot_epoch, renew_boot.sealed, renew_boot.unknown
  FROM @extschema@.local_boot(true) AS b;
  PERFORM @extschema@.policy_record_route('renew_boot', '*', renew_boot.reason);
  outcome := 'ACCEPTED';
END;
$$;

-- ---- Shards: accepted, sealed ------------------------------------------------------
CREATE FUNCTION accept_emergency_shard(
  envelope text,
  OUT outcome text,                  -- ACCEPTED, REFUSED, CONFLICT
  OUT dimension text,
  OUT detail text,                   -- of an envelope that does not open: why, and the member
  OUT replayed boolean,
  OUT shard_id text, OUT subject text, OUT route text, OUT units bigint, OUT fence bigint,
  OUT expires_at timestamptz
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  here  record;
  shard record;
  stored record;
  now   timestamptz;
BEGIN
  PERFORM @extschema@.binding_refuse('accept_emergency_shard()');
  IF accept_emergency_shard.envelope IS NULL THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL101', MESSAGE = 'envelope must not be null',
      DETAIL = 'A shard comes in the envelope that the ledger signed.',
      HINT = 'Pass what sign_emergency_shard returned, as it is.';
  END IF;
  outcome := 'REFUSED';
  replayed := false;

  -- The boot first; then nobody begins another one until this has committed.
  PERFORM @extschema@.local_boot(false);
  SELECT g.gateway, g.boot_epoch, g.last_fence INTO here
  FROM @extschema@.local_gateway AS g FOR NO KEY UPDATE;
  IF @extschema@.recovery_look() <> 'normal' THEN
    dimension := 'recovery';
    RETURN;
  END IF;
  SELECT o.* INTO shard FROM @extschema@.open_emergency_shard(accept_emergency_shard.envelope) AS o;
  IF shard.problem IS NOT NULL THEN
    dimension := 'envelope';
    detail := concat_ws(': ', shard.problem, shard.member);
    RETURN;
  END IF;
  shard_id := shard.shard_id;
  subject := shard.subject;
  route := shard.route;
  units := shard.allocated_units;
  fence := shard.fence;
  expires_at := shard.expires_at;

  -- Accepted before, it is a replay whatever has become of it and of its boot.
  SELECT s.* INTO stored FROM @extschema@.local_shard AS s
  WHERE (s.subject, s.shard_id) = (shard.subject, shard.shard_id);
  IF FOUND THEN
    replayed := (stored.route, stored.generation, stored.epoch, stored.boot_epoch, stored.fence,
                 stored.allocated_units, stored.issued_at, stored.expires_at)
              = (shard.route, shard.generation, shard.epoch, shard.boot_epoch, shard.fence,
                 shard.allocated_units, shard.issued_at, shard.expires_at)
            AND shard.gateway = here.gateway;
    outcome := CASE WHEN replayed THEN 'ACCEPTED' ELSE 'CONFLICT' END;
    dimension := CASE WHEN NOT replayed THEN 'shard' END;
    PERFORM @extschema@.envelope_confirm();
    RETURN;
  END IF;

  now := greatest(@extschema@.ledger_clock(), shard.issued_at);
  dimension := CASE
    WHEN shard.gateway <> here.gateway THEN 'gateway'
    WHEN shard.boot_epoch <> here.boot_epoch THEN 'boot_epoch'
    WHEN shard.fence <= here.last_fence THEN 'fence'
    WHEN shard.expires_at <= now THEN 'shard_expired' END;
  IF dimension IS NOT NULL THEN
    RETURN;
  END IF;

  INSERT INTO @extschema@.local_shard (subject, shard_id, route, generation, epoch, boot_epoch, fence,
    allocated_units, largest_reservation, hard_execution_limit, hold_ttl, execution_ttl,
    issued_at, expires_at, accepted_at, local_available, seen_at)
  VALUES (shard.subject, shard.shard_id, shard.route, shard.generation, shard.epoch, shard.boot_epoch, shard.fence,
    shard.allocated_units, shard.largest_reservation, shard.hard_execution_limit, shard.hold_ttl, shard.execution_ttl,
    shard.issued_at, shard.expires_at, now, shard.allocated_units, now);
  UPDATE @extschema@.local_gateway AS g SET last_fence = shard.fence;
  outcome := 'ACCEPTED';
END;
$$;

CREATE FUNCTION seal_shard(
  subject text, shard_id text,
  OUT outcome text, OUT dimension text, OUT replayed boolean,
  OUT retired_units bigint,          -- by this call
  OUT local_reserved bigint,         -- still open, or of unknown usage
  OUT sealed_by text,                -- operator, expiry, boot
  OUT sealed_at timestamptz
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_seal_shard';

CREATE FUNCTION sweep_shards(
  batch_limit integer,
  OUT expired bigint,                -- holds that were given back
  OUT unknown bigint,                -- executions past their deadline, and what a boot ended
  OUT sealed bigint                  -- shards
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_sweep_shards';

-- ---- Reports (G6, G8) ----------------------------------------------------------------
-- What is signed was committed before, so cutting a report and signing it are two calls.
CREATE FUNCTION cut_shard_report(
  subject text, shard_id text,
  OUT outcome text, OUT dimension text,
  OUT replayed boolean,              -- true: nothing has changed since that report
  OUT sequence bigint,
  OUT receipts bigint,               -- of reservations that ended, in this report
  OUT more boolean,                  -- true: there are others, for the next report
  OUT sealed boolean
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  about CONSTANT text := @extschema@.local_begin(cut_shard_report.subject, cut_shard_report.shard_id);
  at_most CONSTANT bigint := 1000;   -- receipts of one report
  shard record;
BEGIN
  replayed := false;
  IF @extschema@.recovery_look() <> 'normal' THEN
    outcome := 'REFUSED';
    dimension := 'recovery';
    RETURN;
  END IF;
  -- Whoever ends a reservation holds this lock, so figures and receipts agree.
  SELECT s.* INTO shard FROM @extschema@.local_shard AS s
  WHERE (s.subject, s.shard_id) = (about, cut_shard_report.shard_id) FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    outcome := 'UNKNOWN';
    dimension := 'emergency_shard';
    RETURN;
  END IF;
  outcome := 'ACCEPTED';
  sequence := shard.last_sequence + 1;
  sealed := shard.sealed_at IS NOT NULL;

  UPDATE @extschema@.shard_reservation AS r SET sequence = cut_shard_report.sequence
  WHERE r.subject = about AND r.reservation_id IN (
    SELECT n.reservation_id FROM @extschema@.shard_reservation AS n
    WHERE (n.subject, n.shard_id) = (about, cut_shard_report.shard_id) AND n.ended_at IS NOT NULL AND n.sequence IS NULL
    ORDER BY n.reservation_id LIMIT at_most);
  GET DIAGNOSTICS receipts = ROW_COUNT;
  more := receipts = at_most AND EXISTS (
    SELECT FROM @extschema@.shard_reservation AS n
    WHERE (n.subject, n.shard_id) = (about, cut_shard_report.shard_id) AND n.ended_at IS NOT NULL AND n.sequence IS NULL);

  IF receipts = 0 AND EXISTS (
    SELECT FROM @extschema@.local_report AS p
    WHERE (p.subject, p.shard_id, p.sequence) = (about, cut_shard_report.shard_id, shard.last_sequence)
      AND (p.sealed, p.local_available, p.local_reserved, p.local_spent, p.local_retired, p.local_excess)
        = (cut_shard_report.sealed, shard.local_available, shard.local_reserved, shard.local_spent,
           shard.local_retired, shard.local_excess))
  THEN
    replayed := true;
    sequence := shard.last_sequence;
    SELECT count(*) INTO receipts FROM @extschema@.shard_reservation AS r
    WHERE (r.subject, r.shard_id, r.sequence) = (about, cut_shard_report.shard_id, shard.last_sequence);
    PERFORM @extschema@.envelope_confirm();
    RETURN;
  END IF;

  INSERT INTO @extschema@.local_report (subject, shard_id, sequence, cut_at, cut_by, sealed,
    local_available, local_reserved, local_spent, local_retired, local_excess)
  VALUES (about, cut_shard_report.shard_id, cut_shard_report.sequence,
    greatest(@extschema@.ledger_clock(), shard.seen_at), pg_current_xact_id(), cut_shard_report.sealed,
    shard.local_available, shard.local_reserved, shard.local_spent, shard.local_retired, shard.local_excess);
  UPDATE @extschema@.local_shard AS s SET last_sequence = cut_shard_report.sequence
  WHERE (s.subject, s.shard_id) = (about, cut_shard_report.shard_id);
END;
$$;

CREATE FUNCTION report_shard(
  subject text, shard_id text,
  INOUT sequence bigint DEFAULT NULL,  -- NULL: the newest that is committed
  OUT outcome text, OUT dimension text,
  OUT kid text, OUT envelope text
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  about CONSTANT text := @extschema@.envelope_subject(report_shard.subject, report_shard.shard_id);
  this CONSTANT xid8 := pg_current_xact_id_if_assigned();
  cut record;
BEGIN
  outcome := 'REFUSED';
  IF @extschema@.recovery_look() <> 'normal' THEN
    dimension := 'recovery';
    RETURN;
  END IF;
  IF NOT EXISTS (SELECT FROM @extschema@.local_shard AS s
                 WHERE (s.subject, s.shard_id) = (about, report_shard.shard_id))
  THEN
    outcome := 'UNKNOWN';
    dimension := 'emergency_shard';
    RETURN;
  END IF;
  -- A row of this transaction is not committed, and may never be (G8).
  SELECT p.sequence, p.cut_by IS NOT DISTINCT FROM this AS mine INTO cut FROM @extschema@.local_report AS p
  WHERE (p.subject, p.shard_id) = (about, report_shard.shard_id)
    AND (p.sequence = report_shard.sequence OR report_shard.sequence IS NULL AND p.cut_by IS DISTINCT FROM this)
  ORDER BY p.sequence DESC LIMIT 1;
  IF NOT FOUND OR cut.mine THEN
    dimension := 'not_committed';
    RETURN;
  END IF;
  PERFORM @extschema@.envelope_confirm();
  SELECT s.kid, s.envelope INTO report_shard.kid, report_shard.envelope
  FROM @extschema@.seal_shard_report(about, report_shard.shard_id, cut.sequence) AS s;
  sequence := cut.sequence;
  outcome := 'ACCEPTED';
END;
$$;

-- ---- For people ------------------------------------------------------------------------
CREATE VIEW local_shards AS
SELECT s.subject, s.shard_id, s.route, s.generation, s.epoch, s.boot_epoch, s.fence,
       s.allocated_units, s.local_available, s.local_reserved, s.local_spent, s.local_retired, s.local_excess,
       s.largest_reservation, s.hard_execution_limit, s.hold_ttl, s.execution_ttl,
       s.issued_at, s.expires_at, s.accepted_at, s.sealed_at, s.sealed_by, s.last_sequence
FROM local_shard s;

CREATE VIEW shard_reservations AS
SELECT r.subject, r.reservation_id, r.shard_id, r.state, r.reserved_units, r.actual_units, r.excess_units,
       r.operation_id, r.expires_at, 'sha256:' || encode(r.request_digest, 'hex') AS request_digest,
       r.reserved_at, r.started_at, r.unknown_at, r.ended_at,
       'sha256:' || encode(r.receipt_digest, 'hex') AS receipt_digest, r.receipt_source, r.sequence
FROM shard_reservation r;

CREATE VIEW local_reports AS
SELECT p.subject, p.shard_id, p.sequence, p.cut_at, p.sealed,
       p.local_available, p.local_reserved, p.local_spent, p.local_retired, p.local_excess,
       (SELECT count(*) FROM shard_reservation r
        WHERE (r.subject, r.shard_id, r.sequence) = (p.subject, p.shard_id, p.sequence)) AS receipts
FROM local_report p;

-- The ledger for people: public views, and the audit that proves it.
CREATE OR REPLACE VIEW policies AS
SELECT p.generation, p.subject, p.route, p.stage, p.region, p.unit, p.refill_kind, p.cap,
       p.refill_units, p.refill_interval,
       coalesce(p.epoch_length::text, p.epoch_calendar || ' in ' || p.epoch_time_zone) AS epoch,
       p.largest_reservation, p.largest_outstanding, p.hold_ttl, p.execution_ttl,
       p.hard_execution_limit, p.maximum_overdraft, p.priority, p.weight, p.fairness_budget,
       p.emergency_mode, p.retention, p.published_at, p.active_at, p.retired_at, p.document,
       p.canary_percents[cardinality(p.canary_percents)] AS canary_percent, p.canary_by,
       p.emergency_share, p.shard_ttl
FROM policy p;

-- Each generation: how far it is, what it holds, and what a shadow would have decided.
CREATE VIEW rollout_status AS
SELECT p.generation, p.route, p.subject, p.stage,
       p.canary_percents[cardinality(p.canary_percents)] AS canary_percent, p.canary_by,
       coalesce(b.pairs, 0) AS pairs, coalesce(b.spent, 0) AS spent,
       coalesce(b.reserved, 0) AS left_reserved,
       coalesce(u.unknown, 0) AS left_unknown,
       coalesce(b.debt, 0) AS left_debt,
       s.would_admit_admitted, s.would_admit_refused, s.would_admit_unenforced,
       s.would_reject_admitted, s.would_reject_refused, s.would_reject_unenforced,
       coalesce(e.shards, 0) AS left_shards
FROM policy p
LEFT JOIN (SELECT u.generation, count(DISTINCT u.subject) AS pairs, sum(u.spent) AS spent, sum(u.reserved) AS reserved, sum(u.debt) AS debt
           FROM (SELECT h.generation, h.subject, h.spent, h.reserved, h.overdraft_issued - h.overdraft_repaid AS debt FROM head_budget h
                 UNION ALL
                 SELECT c.generation, c.subject, c.spent, c.reserved, c.overdraft_issued - c.overdraft_repaid FROM closed_budget c) u
           GROUP BY u.generation) b USING (generation)
LEFT JOIN (SELECT r.generation, sum(r.reserved_units) AS unknown FROM reservation r
           WHERE r.state = 'USAGE_UNKNOWN' GROUP BY r.generation) u USING (generation)
LEFT JOIN (SELECT e.generation, sum(e.allocated_units) AS shards FROM emergency_shard e
           WHERE e.settled_at IS NULL GROUP BY e.generation) e USING (generation)
LEFT JOIN (SELECT d.generation,
                  sum(d.would_admit_admitted) AS would_admit_admitted, sum(d.would_admit_refused) AS would_admit_refused,
                  sum(d.would_admit_unenforced) AS would_admit_unenforced,
                  sum(d.would_reject_admitted) AS would_reject_admitted, sum(d.would_reject_refused) AS would_reject_refused,
                  sum(d.would_reject_unenforced) AS would_reject_unenforced
           FROM shadow_budget d GROUP BY d.generation) s USING (generation)
ORDER BY p.route, p.subject, p.generation DESC;

-- The same for monitors, who are told of no subject and no route.
CREATE VIEW rollout_totals AS
SELECT s.generation, s.stage, s.canary_percent, s.canary_by, s.pairs, s.left_reserved, s.left_unknown, s.left_debt,
       s.would_admit_admitted, s.would_admit_refused, s.would_admit_unenforced,
       s.would_reject_admitted, s.would_reject_refused, s.would_reject_unenforced, s.left_shards
FROM rollout_status s
ORDER BY s.generation DESC;

-- As stored: refill that is due is counted in by get_budget(), and written by the next call.
CREATE OR REPLACE VIEW budgets AS
SELECT b.subject, b.route, b.generation, b.epoch, true AS is_head,
       b.opening, b.minted, b.overdraft_issued,
       b.available, b.reserved, b.spent, b.retired_for_emergency, b.overdraft_repaid,
       b.overdraft_issued - b.overdraft_repaid AS debt, b.burned, b.deficit, b.purged_spent,
       b.carried, b.line, b.whole, b.follows_generation, b.follows_epoch,
       b.opened_at, NULL::timestamptz AS closed_at, b.frozen_at, b.frozen_reason,
       false AS follows_purged
FROM head_budget b
UNION ALL
SELECT b.subject, b.route, b.generation, b.epoch, false,
       b.opening, b.minted, b.overdraft_issued,
       b.available, b.reserved, b.spent, b.retired_for_emergency, b.overdraft_repaid,
       b.overdraft_issued - b.overdraft_repaid, b.burned, b.deficit, b.purged_spent,
       b.carried, b.line, b.whole, b.follows_generation, b.follows_epoch,
       b.opened_at, b.closed_at, NULL, NULL, b.follows_purged
FROM closed_budget b;

CREATE OR REPLACE VIEW reservations AS
SELECT r.subject, r.reservation_id, r.route, r.generation, r.epoch, r.state,
       r.reserved_units, r.progress_units, r.actual_units, r.operation_id, r.priority, r.expires_at,
       'sha256:' || encode(r.request_digest, 'hex') AS request_digest,
       r.asked_units, r.reserved_at, r.started_at, r.unknown_at, r.ended_at,
       r.excess_units, r.excess_generation, r.excess_epoch,
       'sha256:' || encode(r.receipt_digest, 'hex') AS receipt_digest, r.receipt_source,
       r.claimed_by, r.claimed_until
FROM reservation r;

-- verify_conservation() proves the rules over the whole database, in one
-- snapshot: a row for each discrepancy, none when all is well.
CREATE OR REPLACE FUNCTION verify_conservation(
  OUT rule text, OUT subject text, OUT route text, OUT generation bigint, OUT epoch timestamptz,
  OUT detail text)
RETURNS SETOF record
LANGUAGE sql STABLE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
WITH
-- the audit:
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
-- what left budgets in shards, and what the reports of a shard say in sum
retired AS (
  SELECT e.subject, e.route, e.generation, e.epoch, sum(e.allocated_units) AS units
  FROM emergency_shard e GROUP BY 1, 2, 3, 4),
reported AS (
  SELECT p.subject, p.shard_id, count(*) AS reports, max(p.sequence) AS sequence, sum(p.excess_units) AS excess,
         sum(p.confirmed_units) AS confirmed, sum(p.reminted_units) AS reminted
  FROM shard_report p GROUP BY 1, 2),
receipted AS (
  SELECT r.subject, r.shard_id, sum(r.actual_units) AS units, max(r.sequence) AS sequence
  FROM shard_receipt r GROUP BY 1, 2),
shard_excess AS (
  SELECT p.subject, p.route, p.generation, p.epoch, sum(p.excess_units) AS spent
  FROM shard_report p WHERE p.excess_units > 0
  GROUP BY 1, 2, 3, 4),
-- what the closed budgets of a pair add up to
older AS (
  SELECT c.subject, c.route, sum(c.overdraft_issued::numeric - c.overdraft_repaid) AS debt,
         sum(c.reserved) AS reserved
  FROM closed_budget c GROUP BY 1, 2),
-- each budget with the one that it took over from; the oldest one that a purge has
-- left says itself that this one is gone, so one that is missing is still found
chain AS (
  SELECT b.subject, b.route, b.generation, b.epoch, b.is_head, b.line, b.whole,
         b.carried, b.opening, b.follows_generation, b.follows_purged, b.opened_at, p.cap, p.refill_kind,
         f.subject IS NOT NULL AS found, f.line AS line_before, f.closed_at,
         f.closing_available, f.deficit AS deficit_before, q.cap AS cap_before,
         count(*) OVER (PARTITION BY b.subject, b.route, b.follows_generation, b.follows_epoch) AS twins
  FROM budgets b
  JOIN policy p ON p.generation = b.generation
  LEFT JOIN closed_budget f ON (f.subject, f.route, f.generation, f.epoch)
                             = (b.subject, b.route, b.follows_generation, b.follows_epoch)
  LEFT JOIN policy q ON q.generation = f.generation),
-- what the reservations against each shard of this gateway say
locally AS (
  SELECT r.subject, r.shard_id,
         sum(r.reserved_units) FILTER (WHERE r.ended_at IS NULL) AS reserved,
         sum(r.actual_units) AS used
  FROM shard_reservation r GROUP BY 1, 2)

SELECT 'B1', b.subject, b.route, b.generation, b.epoch, 'its generation has no policy'
FROM budgets b
WHERE NOT EXISTS (SELECT FROM policy p WHERE p.generation = b.generation)

UNION ALL
SELECT 'B6', b.subject, b.route, b.generation, b.epoch,
       format('its generation is retired, and %s units are reserved', b.reserved)
FROM budgets b JOIN policy p USING (generation)
WHERE p.stage = 'retired' AND b.reserved > 0

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
              coalesce(h.spent, 0) + coalesce(x.spent, 0) + coalesce(u.spent, 0) + coalesce(s.spent, 0) + b.purged_spent)
FROM budgets b LEFT JOIN held h USING (subject, route, generation, epoch)
               LEFT JOIN excess x USING (subject, route, generation, epoch)
               LEFT JOIN unreserved u USING (subject, route, generation, epoch)
               LEFT JOIN shard_excess s USING (subject, route, generation, epoch)
WHERE b.spent <> coalesce(h.spent, 0) + coalesce(x.spent, 0) + coalesce(u.spent, 0) + coalesce(s.spent, 0) + b.purged_spent

UNION ALL
SELECT 'C2', h.subject, h.route, h.generation, h.epoch, 'reservations without their budget'
FROM (SELECT subject, route, generation, epoch FROM held
      UNION SELECT subject, route, generation, epoch FROM excess
      UNION SELECT subject, route, generation, epoch FROM unreserved
      UNION SELECT subject, route, generation, epoch FROM shard_excess
      UNION SELECT subject, route, generation, epoch FROM retired) h
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
       CASE WHEN c.follows_purged AND c.found THEN 'it says that the budget that it follows is purged'
            WHEN NOT c.found AND NOT c.follows_purged THEN 'the budget that it follows does not exist'
            WHEN c.twins > 1 THEN 'two budgets follow the same one'
            ELSE 'it opened before the one that it follows had closed' END
FROM chain c
WHERE c.follows_generation IS NOT NULL
  AND (c.found = c.follows_purged OR c.twins > 1 OR c.opened_at <> c.closed_at)

UNION ALL
SELECT 'B5', c.subject, c.route, min(c.generation), NULL, 'more than one budget follows none or a purged one'
FROM chain c
WHERE c.follows_generation IS NULL OR c.follows_purged
GROUP BY c.subject, c.route HAVING count(*) > 1

UNION ALL
SELECT 'B5', c.subject, c.route, c.generation, c.epoch,
       format('it opened with %s of %s carried, at a cap of %s', c.opening, c.carried, c.cap)
FROM chain c
WHERE c.opening > c.carried
   OR c.carried <> CASE
        WHEN NOT c.found THEN c.carried
        WHEN c.line <> c.line_before AND c.refill_kind = 'window' THEN c.cap
        WHEN c.line <> c.line_before THEN -1
        WHEN c.whole THEN greatest(0, least(c.cap, c.closing_available::numeric - c.deficit_before
                                                   + c.cap - c.cap_before))
        ELSE least(c.cap, c.closing_available) END
   OR (NOT c.found AND c.carried > c.cap)

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

UNION ALL
SELECT 'B6', e.subject, e.route, e.generation, e.epoch, format('its generation is retired, and shard %L is not settled', e.shard_id)
FROM emergency_shard e JOIN policy p USING (generation)
WHERE p.stage = 'retired' AND e.settled_at IS NULL

UNION ALL
SELECT 'G1', e.subject, e.route, e.generation, e.epoch,
       format('shard %L was allocated %s: %s available, %s reserved, %s spent, %s retired', e.shard_id,
              e.allocated_units, e.local_available, e.local_reserved, e.local_spent, e.local_retired)
FROM emergency_shard e
WHERE e.allocated_units <> e.local_available::numeric + e.local_reserved + e.local_spent + e.local_retired
   OR least(e.local_available, e.local_reserved, e.local_spent, e.local_retired, e.local_excess) < 0
   OR (e.sealed AND e.local_available > 0)

UNION ALL
SELECT 'G2', b.subject, b.route, b.generation, b.epoch,
       format('retired_for_emergency is %s, its shards were allocated %s', b.retired_for_emergency, coalesce(t.units, 0))
FROM budgets b LEFT JOIN retired t USING (subject, route, generation, epoch)
WHERE b.retired_for_emergency <> coalesce(t.units, 0)

UNION ALL
SELECT 'G6', e.subject, e.route, e.generation, e.epoch,
       format('shard %L has the figures of %s reports, there are %s', e.shard_id, e.sequence, coalesce(t.reports, 0))
FROM emergency_shard e LEFT JOIN reported t USING (subject, shard_id)
WHERE e.sequence <> coalesce(t.reports, 0) OR e.sequence <> coalesce(t.sequence, 0)
   OR e.local_excess <> coalesce(t.excess, 0) OR e.confirmed_units <> coalesce(t.confirmed, 0)
   OR e.reminted_units <> coalesce(t.reminted, 0)

UNION ALL
SELECT 'G6', e.subject, e.route, e.generation, e.epoch,
       format('shard %L: %s units confirmed, %s reminted, of %s retired', e.shard_id, e.confirmed_units,
              e.reminted_units, e.local_retired)
FROM emergency_shard e
WHERE e.reminted_units > e.confirmed_units OR e.confirmed_units > least(e.local_retired, e.allocated_units - e.local_spent)

UNION ALL
SELECT 'G6', e.subject, e.route, e.generation, e.epoch,
       format('shard %L: receipts say that %s units were used, its row %s, its reports %s', e.shard_id,
              coalesce(t.units, 0), e.receipted_units, e.local_spent + e.local_excess)
FROM emergency_shard e LEFT JOIN receipted t USING (subject, shard_id)
WHERE e.receipted_units <> coalesce(t.units, 0) OR e.receipted_units > e.local_spent + e.local_excess
   OR coalesce(t.sequence, 0) > e.sequence

UNION ALL
SELECT 'G6', t.subject, NULL, NULL, NULL, format('shard %L has reports or receipts, and does not exist', t.shard_id)
FROM (SELECT subject, shard_id FROM reported UNION SELECT subject, shard_id FROM receipted) t
WHERE NOT EXISTS (SELECT FROM emergency_shard e WHERE (e.subject, e.shard_id) = (t.subject, t.shard_id))

-- shards on this gateway
UNION ALL
SELECT 'G1', s.subject, s.route, s.generation, s.epoch,
       format('shard %L was given %s and has %s + %s + %s + %s', s.shard_id, s.allocated_units,
              s.local_available, s.local_reserved, s.local_spent, s.local_retired)
FROM local_shard s
WHERE s.allocated_units <> s.local_available::numeric + s.local_reserved + s.local_spent + s.local_retired
   OR least(s.local_available, s.local_reserved, s.local_spent, s.local_retired, s.local_excess) < 0
   OR (s.sealed_at IS NOT NULL AND s.local_available > 0)

UNION ALL
SELECT 'G1', s.subject, s.route, s.generation, s.epoch,
       format('shard %L has %s reserved, %s spent and %s in excess, its reservations say %s and %s', s.shard_id,
              s.local_reserved, s.local_spent, s.local_excess, coalesce(l.reserved, 0), coalesce(l.used, 0))
FROM local_shard s LEFT JOIN locally l USING (subject, shard_id)
WHERE s.local_reserved <> coalesce(l.reserved, 0)
   OR s.local_spent::numeric + s.local_excess <> coalesce(l.used, 0)

UNION ALL
SELECT 'G1', l.subject, NULL, NULL, NULL, format('reservations against shard %L, which is not here', l.shard_id)
FROM locally l
WHERE NOT EXISTS (SELECT FROM local_shard s WHERE (s.subject, s.shard_id) = (l.subject, l.shard_id))

UNION ALL
SELECT 'D5', r.subject, NULL, NULL, NULL,
       format('operation %L of reservation %L is not bound to it', r.operation_id, r.reservation_id)
FROM shard_reservation r LEFT JOIN shard_operation o USING (subject, operation_id)
WHERE r.operation_id IS NOT NULL AND o.reservation_id IS DISTINCT FROM r.reservation_id

UNION ALL
SELECT 'D5', o.subject, NULL, NULL, NULL,
       format('operation %L is bound to reservation %L, which is not bound to it',
              o.operation_id, o.reservation_id)
FROM shard_operation o LEFT JOIN shard_reservation r USING (subject, reservation_id)
WHERE r.operation_id IS DISTINCT FROM o.operation_id

UNION ALL
SELECT 'G5', s.subject, s.route, s.generation, s.epoch, format('shard %L is of another boot, and not sealed', s.shard_id)
FROM local_shard s
WHERE s.sealed_at IS NULL
  AND NOT EXISTS (SELECT FROM local_gateway g WHERE g.boot_epoch = s.boot_epoch)

UNION ALL
SELECT 'G6', s.subject, s.route, s.generation, s.epoch,
       format('shard %L counts %s reports, and %s are here', s.shard_id, s.last_sequence, coalesce(p.reports, 0))
FROM local_shard s
LEFT JOIN (SELECT p.subject, p.shard_id, count(*) AS reports, max(p.sequence) AS last
           FROM local_report p GROUP BY 1, 2) p USING (subject, shard_id)
WHERE s.last_sequence <> coalesce(p.reports, 0) OR s.last_sequence <> coalesce(p.last, 0)

UNION ALL
SELECT 'G6', r.subject, NULL, NULL, NULL,
       format('reservation %L was reported by report %s of shard %L, which is not here', r.reservation_id, r.sequence, r.shard_id)
FROM shard_reservation r
WHERE r.sequence IS NOT NULL
  AND NOT EXISTS (SELECT FROM local_report p WHERE (p.subject, p.shard_id, p.sequence) = (r.subject, r.shard_id, r.sequence))
-- :the audit
$$;

-- verify_subjects() is the same audit of some subjects: every rule is one of a
-- subject's own rows, so ranges that meet make a whole.  The Makefile puts the
-- lines between the two marks above in here.
CREATE FUNCTION verify_subjects(
  after_subject text DEFAULT NULL,   -- from the first one behind it; NULL: from the beginning
  last_subject text DEFAULT NULL,    -- up to this one; NULL: to the end
  OUT rule text, OUT subject text, OUT route text, OUT generation bigint, OUT epoch timestamptz,
  OUT detail text)
RETURNS SETOF record
LANGUAGE sql STABLE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
WITH
-- never NULL while there is a row: a range that an index knows at both ends
last_one AS (
  SELECT coalesce($2, greatest((SELECT max(r.subject) FROM @extschema@.reservation r),
                               (SELECT max(o.subject) FROM @extschema@.operation o),
                               (SELECT max(b.subject) FROM @extschema@.head_budget b),
                               (SELECT max(b.subject) FROM @extschema@.closed_budget b),
                               (SELECT max(e.subject) FROM @extschema@.emergency_shard e),
                               (SELECT max(s.subject) FROM @extschema@.local_shard s),
                               (SELECT max(r.subject) FROM @extschema@.shard_reservation r),
                               (SELECT max(o.subject) FROM @extschema@.shard_operation o),
                               (SELECT max(p.subject) FROM @extschema@.local_report p))) AS subject),
reservation AS NOT MATERIALIZED (
  SELECT * FROM @extschema@.reservation r
  WHERE r.subject > coalesce($1, '') AND r.subject <= (SELECT l.subject FROM last_one l)),
operation AS NOT MATERIALIZED (
  SELECT * FROM @extschema@.operation o
  WHERE o.subject > coalesce($1, '') AND o.subject <= (SELECT l.subject FROM last_one l)),
head_budget AS NOT MATERIALIZED (
  SELECT * FROM @extschema@.head_budget b
  WHERE b.subject > coalesce($1, '') AND b.subject <= (SELECT l.subject FROM last_one l)),
closed_budget AS NOT MATERIALIZED (
  SELECT * FROM @extschema@.closed_budget b
  WHERE b.subject > coalesce($1, '') AND b.subject <= (SELECT l.subject FROM last_one l)),
emergency_shard AS NOT MATERIALIZED (
  SELECT * FROM @extschema@.emergency_shard e
  WHERE e.subject > coalesce($1, '') AND e.subject <= (SELECT l.subject FROM last_one l)),
shard_report AS NOT MATERIALIZED (
  SELECT * FROM @extschema@.shard_report p
  WHERE p.subject > coalesce($1, '') AND p.subject <= (SELECT l.subject FROM last_one l)),
shard_receipt AS NOT MATERIALIZED (
  SELECT * FROM @extschema@.shard_receipt r
  WHERE r.subject > coalesce($1, '') AND r.subject <= (SELECT l.subject FROM last_one l)),
budgets AS NOT MATERIALIZED (
  SELECT * FROM @extschema@.budgets b
  WHERE b.subject > coalesce($1, '') AND b.subject <= (SELECT l.subject FROM last_one l)),
local_shard AS NOT MATERIALIZED (
  SELECT * FROM @extschema@.local_shard s
  WHERE s.subject > coalesce($1, '') AND s.subject <= (SELECT l.subject FROM last_one l)),
shard_reservation AS NOT MATERIALIZED (
  SELECT * FROM @extschema@.shard_reservation r
  WHERE r.subject > coalesce($1, '') AND r.subject <= (SELECT l.subject FROM last_one l)),
shard_operation AS NOT MATERIALIZED (
  SELECT * FROM @extschema@.shard_operation o
  WHERE o.subject > coalesce($1, '') AND o.subject <= (SELECT l.subject FROM last_one l)),
local_report AS NOT MATERIALIZED (
  SELECT * FROM @extschema@.local_report p
  WHERE p.subject > coalesce($1, '') AND p.subject <= (SELECT l.subject FROM last_one l)),
-- the audit:
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
-- what left budgets in shards, and what the reports of a shard say in sum
retired AS (
  SELECT e.subject, e.route, e.generation, e.epoch, sum(e.allocated_units) AS units
  FROM emergency_shard e GROUP BY 1, 2, 3, 4),
reported AS (
  SELECT p.subject, p.shard_id, count(*) AS reports, max(p.sequence) AS sequence, sum(p.excess_units) AS excess,
         sum(p.confirmed_units) AS confirmed, sum(p.reminted_units) AS reminted
  FROM shard_report p GROUP BY 1, 2),
receipted AS (
  SELECT r.subject, r.shard_id, sum(r.actual_units) AS units, max(r.sequence) AS sequence
  FROM shard_receipt r GROUP BY 1, 2),
shard_excess AS (
  SELECT p.subject, p.route, p.generation, p.epoch, sum(p.excess_units) AS spent
  FROM shard_report p WHERE p.excess_units > 0
  GROUP BY 1, 2, 3, 4),
-- what the closed budgets of a pair add up to
older AS (
  SELECT c.subject, c.route, sum(c.overdraft_issued::numeric - c.overdraft_repaid) AS debt,
         sum(c.reserved) AS reserved
  FROM closed_budget c GROUP BY 1, 2),
-- each budget with the one that it took over from; the oldest one that a purge has
-- left says itself that this one is gone, so one that is missing is still found
chain AS (
  SELECT b.subject, b.route, b.generation, b.epoch, b.is_head, b.line, b.whole,
         b.carried, b.opening, b.follows_generation, b.follows_purged, b.opened_at, p.cap, p.refill_kind,
         f.subject IS NOT NULL AS found, f.line AS line_before, f.closed_at,
         f.closing_available, f.deficit AS deficit_before, q.cap AS cap_before,
         count(*) OVER (PARTITION BY b.subject, b.route, b.follows_generation, b.follows_epoch) AS twins
  FROM budgets b
  JOIN policy p ON p.generation = b.generation
  LEFT JOIN closed_budget f ON (f.subject, f.route, f.generation, f.epoch)
                             = (b.subject, b.route, b.follows_generation, b.follows_epoch)
  LEFT JOIN policy q ON q.generation = f.generation),
-- what the reservations against each shard of this gateway say
locally AS (
  SELECT r.subject, r.shard_id,
         sum(r.reserved_units) FILTER (WHERE r.ended_at IS NULL) AS reserved,
         sum(r.actual_units) AS used
  FROM shard_reservation r GROUP BY 1, 2)

SELECT 'B1', b.subject, b.route, b.generation, b.epoch, 'its generation has no policy'
FROM budgets b
WHERE NOT EXISTS (SELECT FROM policy p WHERE p.generation = b.generation)

UNION ALL
SELECT 'B6', b.subject, b.route, b.generation, b.epoch,
       format('its generation is retired, and %s units are reserved', b.reserved)
FROM budgets b JOIN policy p USING (generation)
WHERE p.stage = 'retired' AND b.reserved > 0

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
              coalesce(h.spent, 0) + coalesce(x.spent, 0) + coalesce(u.spent, 0) + coalesce(s.spent, 0) + b.purged_spent)
FROM budgets b LEFT JOIN held h USING (subject, route, generation, epoch)
               LEFT JOIN excess x USING (subject, route, generation, epoch)
               LEFT JOIN unreserved u USING (subject, route, generation, epoch)
               LEFT JOIN shard_excess s USING (subject, route, generation, epoch)
WHERE b.spent <> coalesce(h.spent, 0) + coalesce(x.spent, 0) + coalesce(u.spent, 0) + coalesce(s.spent, 0) + b.purged_spent

UNION ALL
SELECT 'C2', h.subject, h.route, h.generation, h.epoch, 'reservations without their budget'
FROM (SELECT subject, route, generation, epoch FROM held
      UNION SELECT subject, route, generation, epoch FROM excess
      UNION SELECT subject, route, generation, epoch FROM unreserved
      UNION SELECT subject, route, generation, epoch FROM shard_excess
      UNION SELECT subject, route, generation, epoch FROM retired) h
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
       CASE WHEN c.follows_purged AND c.found THEN 'it says that the budget that it follows is purged'
            WHEN NOT c.found AND NOT c.follows_purged THEN 'the budget that it follows does not exist'
            WHEN c.twins > 1 THEN 'two budgets follow the same one'
            ELSE 'it opened before the one that it follows had closed' END
FROM chain c
WHERE c.follows_generation IS NOT NULL
  AND (c.found = c.follows_purged OR c.twins > 1 OR c.opened_at <> c.closed_at)

UNION ALL
SELECT 'B5', c.subject, c.route, min(c.generation), NULL, 'more than one budget follows none or a purged one'
FROM chain c
WHERE c.follows_generation IS NULL OR c.follows_purged
GROUP BY c.subject, c.route HAVING count(*) > 1

UNION ALL
SELECT 'B5', c.subject, c.route, c.generation, c.epoch,
       format('it opened with %s of %s carried, at a cap of %s', c.opening, c.carried, c.cap)
FROM chain c
WHERE c.opening > c.carried
   OR c.carried <> CASE
        WHEN NOT c.found THEN c.carried
        WHEN c.line <> c.line_before AND c.refill_kind = 'window' THEN c.cap
        WHEN c.line <> c.line_before THEN -1
        WHEN c.whole THEN greatest(0, least(c.cap, c.closing_available::numeric - c.deficit_before
                                                   + c.cap - c.cap_before))
        ELSE least(c.cap, c.closing_available) END
   OR (NOT c.found AND c.carried > c.cap)

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

UNION ALL
SELECT 'B6', e.subject, e.route, e.generation, e.epoch, format('its generation is retired, and shard %L is not settled', e.shard_id)
FROM emergency_shard e JOIN policy p USING (generation)
WHERE p.stage = 'retired' AND e.settled_at IS NULL

UNION ALL
SELECT 'G1', e.subject, e.route, e.generation, e.epoch,
       format('shard %L was allocated %s: %s available, %s reserved, %s spent, %s retired', e.shard_id,
              e.allocated_units, e.local_available, e.local_reserved, e.local_spent, e.local_retired)
FROM emergency_shard e
WHERE e.allocated_units <> e.local_available::numeric + e.local_reserved + e.local_spent + e.local_retired
   OR least(e.local_available, e.local_reserved, e.local_spent, e.local_retired, e.local_excess) < 0
   OR (e.sealed AND e.local_available > 0)

UNION ALL
SELECT 'G2', b.subject, b.route, b.generation, b.epoch,
       format('retired_for_emergency is %s, its shards were allocated %s', b.retired_for_emergency, coalesce(t.units, 0))
FROM budgets b LEFT JOIN retired t USING (subject, route, generation, epoch)
WHERE b.retired_for_emergency <> coalesce(t.units, 0)

UNION ALL
SELECT 'G6', e.subject, e.route, e.generation, e.epoch,
       format('shard %L has the figures of %s reports, there are %s', e.shard_id, e.sequence, coalesce(t.reports, 0))
FROM emergency_shard e LEFT JOIN reported t USING (subject, shard_id)
WHERE e.sequence <> coalesce(t.reports, 0) OR e.sequence <> coalesce(t.sequence, 0)
   OR e.local_excess <> coalesce(t.excess, 0) OR e.confirmed_units <> coalesce(t.confirmed, 0)
   OR e.reminted_units <> coalesce(t.reminted, 0)

UNION ALL
SELECT 'G6', e.subject, e.route, e.generation, e.epoch,
       format('shard %L: %s units confirmed, %s reminted, of %s retired', e.shard_id, e.confirmed_units,
              e.reminted_units, e.local_retired)
FROM emergency_shard e
WHERE e.reminted_units > e.confirmed_units OR e.confirmed_units > least(e.local_retired, e.allocated_units - e.local_spent)

UNION ALL
SELECT 'G6', e.subject, e.route, e.generation, e.epoch,
       format('shard %L: receipts say that %s units were used, its row %s, its reports %s', e.shard_id,
              coalesce(t.units, 0), e.receipted_units, e.local_spent + e.local_excess)
FROM emergency_shard e LEFT JOIN receipted t USING (subject, shard_id)
WHERE e.receipted_units <> coalesce(t.units, 0) OR e.receipted_units > e.local_spent + e.local_excess
   OR coalesce(t.sequence, 0) > e.sequence

UNION ALL
SELECT 'G6', t.subject, NULL, NULL, NULL, format('shard %L has reports or receipts, and does not exist', t.shard_id)
FROM (SELECT subject, shard_id FROM reported UNION SELECT subject, shard_id FROM receipted) t
WHERE NOT EXISTS (SELECT FROM emergency_shard e WHERE (e.subject, e.shard_id) = (t.subject, t.shard_id))

-- shards on this gateway
UNION ALL
SELECT 'G1', s.subject, s.route, s.generation, s.epoch,
       format('shard %L was given %s and has %s + %s + %s + %s', s.shard_id, s.allocated_units,
              s.local_available, s.local_reserved, s.local_spent, s.local_retired)
FROM local_shard s
WHERE s.allocated_units <> s.local_available::numeric + s.local_reserved + s.local_spent + s.local_retired
   OR least(s.local_available, s.local_reserved, s.local_spent, s.local_retired, s.local_excess) < 0
   OR (s.sealed_at IS NOT NULL AND s.local_available > 0)

UNION ALL
SELECT 'G1', s.subject, s.route, s.generation, s.epoch,
       format('shard %L has %s reserved, %s spent and %s in excess, its reservations say %s and %s', s.shard_id,
              s.local_reserved, s.local_spent, s.local_excess, coalesce(l.reserved, 0), coalesce(l.used, 0))
FROM local_shard s LEFT JOIN locally l USING (subject, shard_id)
WHERE s.local_reserved <> coalesce(l.reserved, 0)
   OR s.local_spent::numeric + s.local_excess <> coalesce(l.used, 0)

UNION ALL
SELECT 'G1', l.subject, NULL, NULL, NULL, format('reservations against shard %L, which is not here', l.shard_id)
FROM locally l
WHERE NOT EXISTS (SELECT FROM local_shard s WHERE (s.subject, s.shard_id) = (l.subject, l.shard_id))

UNION ALL
SELECT 'D5', r.subject, NULL, NULL, NULL,
       format('operation %L of reservation %L is not bound to it', r.operation_id, r.reservation_id)
FROM shard_reservation r LEFT JOIN shard_operation o USING (subject, operation_id)
WHERE r.operation_id IS NOT NULL AND o.reservation_id IS DISTINCT FROM r.reservation_id

UNION ALL
SELECT 'D5', o.subject, NULL, NULL, NULL,
       format('operation %L is bound to reservation %L, which is not bound to it',
              o.operation_id, o.reservation_id)
FROM shard_operation o LEFT JOIN shard_reservation r USING (subject, reservation_id)
WHERE r.operation_id IS DISTINCT FROM o.operation_id

UNION ALL
SELECT 'G5', s.subject, s.route, s.generation, s.epoch, format('shard %L is of another boot, and not sealed', s.shard_id)
FROM local_shard s
WHERE s.sealed_at IS NULL
  AND NOT EXISTS (SELECT FROM local_gateway g WHERE g.boot_epoch = s.boot_epoch)

UNION ALL
SELECT 'G6', s.subject, s.route, s.generation, s.epoch,
       format('shard %L counts %s reports, and %s are here', s.shard_id, s.last_sequence, coalesce(p.reports, 0))
FROM local_shard s
LEFT JOIN (SELECT p.subject, p.shard_id, count(*) AS reports, max(p.sequence) AS last
           FROM local_report p GROUP BY 1, 2) p USING (subject, shard_id)
WHERE s.last_sequence <> coalesce(p.reports, 0) OR s.last_sequence <> coalesce(p.last, 0)

UNION ALL
SELECT 'G6', r.subject, NULL, NULL, NULL,
       format('reservation %L was reported by report %s of shard %L, which is not here', r.reservation_id, r.sequence, r.shard_id)
FROM shard_reservation r
WHERE r.sequence IS NOT NULL
  AND NOT EXISTS (SELECT FROM local_report p WHERE (p.subject, p.shard_id, p.sequence) = (r.subject, r.shard_id, r.sequence))
-- :the audit
$$;

CREATE OR REPLACE VIEW unknown_usage AS
SELECT r.subject, r.route, r.reservation_id, r.operation_id, r.reserved_units,
       r.progress_units, r.generation, r.epoch, r.started_at, r.unknown_at, c.now - r.unknown_at AS age,
       r.claimed_by, r.claimed_until
FROM ledger_clock() AS c (now), reservation r
WHERE r.state = 'USAGE_UNKNOWN'
ORDER BY r.unknown_at DESC, r.subject, r.reservation_id;

CREATE VIEW frozen_routes AS
SELECT f.route, f.reason, f.actor, f.frozen_at, c.now - f.frozen_at AS age
FROM ledger_clock() AS c (now), frozen_route f
ORDER BY f.frozen_at DESC, f.route;

COMMENT ON VIEW frozen_routes IS
'Every route that an operator has frozen, the newest first (D8).';

-- limitReservation.v1: a reservation as the document that other systems keep.
CREATE OR REPLACE FUNCTION get_reservation_document(subject text, reservation_id text) RETURNS jsonb
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

-- What a monitor reads every few seconds: totals, ages and counters, each by an index or
-- from memory, whatever the ledger has stored.
--
-- ledger_totals and decision_counters show no subject, route or id, and pg_monitor reads
-- them; the rest names routes or pairs, and is the auditor's alone.
-- The oldest of each kind by the instant that matters.  Debt is as stored: refill that is
-- due has not paid its part yet; pairs_in_debt counts it in.
CREATE VIEW ledger_totals AS
SELECT h.reserved_at AS oldest_hold_at, c.now - h.reserved_at AS oldest_hold_age,
       greatest(c.now - h.expires_at, interval '0') AS hold_overdue,
       e.started_at AS oldest_execution_at, c.now - e.started_at AS oldest_execution_age,
       greatest(c.now - e.expires_at, interval '0') AS execution_overdue,
       u.unknown_at AS oldest_unknown_at, c.now - u.unknown_at AS oldest_unknown_age,
       d.pairs AS pairs_in_debt, d.units AS debt_units, f.pairs AS frozen_pairs,
       s.shards AS open_shards, s.units AS shard_units, s.overdue AS shard_overdue
FROM ledger_clock() AS c (now)
LEFT JOIN LATERAL (
  SELECT o.* FROM (
    (SELECT r.reserved_at, r.expires_at FROM reservation r WHERE r.state = 'RESERVED' ORDER BY r.expires_at LIMIT 1)
    UNION ALL
    (SELECT r.reserved_at, r.expires_at FROM reservation r WHERE r.state = 'EXPIRING' ORDER BY r.expires_at LIMIT 1)) o
  ORDER BY o.expires_at LIMIT 1) h ON true
LEFT JOIN LATERAL (
  SELECT r.started_at, r.expires_at FROM reservation r WHERE r.state = 'STARTED' ORDER BY r.expires_at LIMIT 1) e ON true
LEFT JOIN LATERAL (
  SELECT r.unknown_at FROM reservation r WHERE r.state = 'USAGE_UNKNOWN' ORDER BY r.unknown_at LIMIT 1) u ON true
CROSS JOIN LATERAL (
  SELECT count(*) AS pairs, coalesce(sum(b.overdraft_issued::numeric - b.overdraft_repaid + b.older_debt), 0) AS units
  FROM head_budget b WHERE b.overdraft_issued > b.overdraft_repaid OR b.older_debt > 0) d
CROSS JOIN LATERAL (
  SELECT count(*) AS pairs FROM head_budget b WHERE b.frozen_at IS NOT NULL) f
CROSS JOIN LATERAL (
  SELECT count(*) AS shards, coalesce(sum(e.allocated_units), 0) AS units,
         greatest(c.now - min(e.expires_at), interval '0') AS overdue
  FROM emergency_shard e WHERE e.settled_at IS NULL) s;

-- By route: what is unknown still, and what converged within the last day.  Routes are
-- stepped through in the index, one look each, and so is the oldest item of each.
CREATE VIEW unknown_usage_convergence AS
WITH RECURSIVE routes (route) AS (
  (SELECT r.route FROM reservation r WHERE r.unknown_at IS NOT NULL ORDER BY r.route LIMIT 1)
  UNION ALL
  SELECT (SELECT r.route FROM reservation r WHERE r.unknown_at IS NOT NULL AND r.route > p.route ORDER BY r.route LIMIT 1)
  FROM routes p WHERE p.route IS NOT NULL)
SELECT p.route, u.unknown_at AS oldest_unknown_at, c.now - u.unknown_at AS oldest_unknown_age,
       s.converged, s.attested, s.p50, s.p99, s.slowest
FROM ledger_clock() AS c (now), routes p
LEFT JOIN LATERAL (
  SELECT r.unknown_at FROM reservation r
  WHERE r.route = p.route AND r.ended_at IS NULL AND r.unknown_at IS NOT NULL
  ORDER BY r.ended_at, r.unknown_at LIMIT 1) u ON true
CROSS JOIN LATERAL (
  SELECT count(*) AS converged, count(*) FILTER (WHERE r.receipt_source = 'operator') AS attested,
         percentile_cont(0.5) WITHIN GROUP (ORDER BY r.ended_at - r.unknown_at) AS p50,
         percentile_cont(0.99) WITHIN GROUP (ORDER BY r.ended_at - r.unknown_at) AS p99,
         max(r.ended_at - r.unknown_at) AS slowest
  FROM reservation r
  WHERE r.route = p.route AND r.unknown_at IS NOT NULL AND r.ended_at > c.now - interval '1 day') s
WHERE p.route IS NOT NULL AND (u.unknown_at IS NOT NULL OR s.converged > 0)
ORDER BY p.route;

-- What the calls have answered in this database, counted in shared memory if the library
-- is preloaded: no row is written for it.  Without preload there is nothing.
CREATE FUNCTION count_decisions(
  OUT call text, OUT outcome text, OUT dimension text, OUT replayed boolean,
  OUT answers bigint, OUT since timestamptz)
RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_count_decisions';

CREATE VIEW decision_counters AS
SELECT d.call, d.outcome, d.dimension, d.replayed, d.answers, d.since
FROM count_decisions() d
ORDER BY d.call, d.outcome, d.dimension NULLS FIRST, d.replayed;

COMMENT ON VIEW ledger_totals IS
'The oldest hold, execution and unknown usage, and how many pairs owe or are frozen: one row without a name of anybody, cheap whatever is stored (C2, D8, D10, E1).';

COMMENT ON VIEW unknown_usage_convergence IS
'By route: the oldest usage that is unknown still, and how long what ended within the last day had been unknown (D10).';

COMMENT ON VIEW decision_counters IS
'How often each call has given each answer in this database since the server started, by outcome and dimension, replays apart; empty unless the library is preloaded (D3).';

COMMENT ON FUNCTION count_decisions IS
$$Counts what the calls have answered in this database since the server started; decision_counters shows it (D3).

An answer counts when the call gives it, also if its transaction is rolled back afterwards; each element of a batch is one; an error is none. Readers such as get_reservation are not counted. since: when the counting began, at the start of the server or after a crash. No row unless limitledger is in shared_preload_libraries.$$;

-- maintain(): what is due, from cron, with no worker (J4).
--
-- It runs with the caller's rights, because a procedure with rights or settings
-- of its own can't commit.  Each step is one bounded batch and one transaction:
-- a crash between two steps is finished by the next run.
CREATE PROCEDURE maintain(
  batch_limit integer DEFAULT 1000, time_limit interval DEFAULT '10 seconds',
  INOUT claimed bigint DEFAULT 0, INOUT expired bigint DEFAULT 0, INOUT unknown bigint DEFAULT 0,
  INOUT debtors bigint DEFAULT 0, INOUT repaid_units bigint DEFAULT 0,
  INOUT purged bigint DEFAULT 0, INOUT purged_budgets bigint DEFAULT 0)
LANGUAGE plpgsql
AS $$
DECLARE
  ends_at  CONSTANT pg_catalog.timestamptz := pg_catalog.clock_timestamp() OPERATOR(pg_catalog.+) time_limit;
  step     pg_catalog.record;
  worked   boolean;
  debtor   pg_catalog.record;
  purge    pg_catalog.record;
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
  purged := 0; purged_budgets := 0;
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

    SELECT s.expired, s.unknown, s.sealed INTO step FROM @extschema@.sweep_shards(batch_limit) s;
    expired := expired OPERATOR(pg_catalog.+) step.expired;
    unknown := unknown OPERATOR(pg_catalog.+) step.unknown;
    worked := worked OR step.expired OPERATOR(pg_catalog.+) step.unknown OPERATOR(pg_catalog.+) step.sealed OPERATOR(pg_catalog.>) 0;
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

  SELECT 0::bigint AS next_generation, NULL::pg_catalog.timestamptz AS next_instant INTO purge;
  WHILE purge.next_generation IS NOT NULL LOOP
    SELECT p.* INTO purge
    FROM @extschema@.purge_reservations(batch_limit, purge.next_generation, purge.next_instant) p;
    purged := purged OPERATOR(pg_catalog.+) purge.purged;
    COMMIT;
    EXIT WHEN pg_catalog.clock_timestamp() OPERATOR(pg_catalog.>=) ends_at;
  END LOOP;

  SELECT 0::bigint AS next_generation, NULL::pg_catalog.timestamptz AS next_instant INTO purge;
  WHILE purge.next_generation IS NOT NULL LOOP
    SELECT p.* INTO purge
    FROM @extschema@.purge_usage(batch_limit, purge.next_generation, purge.next_instant) p;
    purged := purged OPERATOR(pg_catalog.+) purge.purged;
    COMMIT;
    EXIT WHEN pg_catalog.clock_timestamp() OPERATOR(pg_catalog.>=) ends_at;
  END LOOP;

  SELECT 0::bigint AS next_generation, NULL::pg_catalog.timestamptz AS next_instant INTO purge;
  WHILE purge.next_generation IS NOT NULL LOOP
    SELECT p.* INTO purge
    FROM @extschema@.purge_budgets(batch_limit, purge.next_generation, purge.next_instant) p;
    purged_budgets := purged_budgets OPERATOR(pg_catalog.+) purge.purged;
    COMMIT;
    EXIT WHEN pg_catalog.clock_timestamp() OPERATOR(pg_catalog.>=) ends_at;
  END LOOP;
END;
$$;

-- Retention: bounded steps, each a transaction, in the order of generations and of
-- time (D15).  maintain() calls them until there is nowhere to go on.
CREATE FUNCTION purge_reservations(
  batch_limit integer, from_generation bigint, from_instant timestamptz,
  OUT purged bigint, OUT purged_units bigint, OUT next_generation bigint, OUT next_instant timestamptz)
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_purge_reservations';

CREATE FUNCTION purge_usage(
  batch_limit integer, from_generation bigint, from_instant timestamptz,
  OUT purged bigint, OUT purged_units bigint, OUT next_generation bigint, OUT next_instant timestamptz)
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_purge_usage';

CREATE FUNCTION purge_budgets(
  batch_limit integer, from_generation bigint, from_instant timestamptz,
  OUT purged bigint, OUT purged_units bigint, OUT next_generation bigint, OUT next_instant timestamptz)
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_purge_budgets';

-- Bindings: a login that may name some subjects, and no other (I1).
--
-- A role is bound by any row of it that was not freed, also by that of a subject
-- that was taken from it again: the last unbinding leaves it nothing, not everything.
-- Only free_role() opens it.  Every call about a subject asks src/store/binding.c,
-- which goes by the session user and keeps what it read until this table is written.
--
-- regrole is dumped as a name, and follows RENAME.  A role that was dropped leaves
-- its rows; they bind nobody, and the next call here removes them.
CREATE TABLE subject_binding (
  role       regrole     NOT NULL,
  subject    text        COLLATE "C" NOT NULL CHECK (octet_length(subject) BETWEEN 1 AND 256 AND subject <> '*'),
  state      text        COLLATE "C" NOT NULL CHECK (state IN ('bound', 'unbound', 'freed')),
  changed_at timestamptz NOT NULL,
  actor      text        NOT NULL,
  PRIMARY KEY (role, subject)
);

SELECT pg_catalog.pg_extension_config_dump('subject_binding', '');

-- Tells every backend to look again, and makes the change as durable as a call.
CREATE TRIGGER binding_changed AFTER INSERT OR UPDATE OR DELETE ON subject_binding
  FOR EACH ROW EXECUTE FUNCTION @extschema@.policy_changed();

CREATE TRIGGER binding_changed_truncate AFTER TRUNCATE ON subject_binding
  FOR EACH STATEMENT EXECUTE FUNCTION @extschema@.policy_changed();

-- Whoever writes, a replication worker included: a cache that missed it is wrong.
ALTER TABLE subject_binding ENABLE ALWAYS TRIGGER binding_changed;

ALTER TABLE subject_binding ENABLE ALWAYS TRIGGER binding_changed_truncate;

CREATE VIEW subject_bindings AS
SELECT r.rolname AS role_name, b.subject, b.state,
       EXISTS (SELECT FROM pg_catalog.pg_roles m          -- as itself, or after SET ROLE
               WHERE pg_catalog.pg_has_role(b.role, m.oid, 'MEMBER')
                 AND pg_catalog.has_table_privilege(m.oid, '@extschema@.reservations'::pg_catalog.regclass, 'SELECT')) AS reads_all,
       b.changed_at, b.actor
FROM subject_binding b LEFT JOIN pg_catalog.pg_roles r ON r.oid = b.role
ORDER BY r.rolname, b.subject;

-- ---- Steps ------------------------------------------------------------------
-- binding_refuse raises 42501 if the login is bound: for calls that are about the
-- ledger as a whole, and so about subjects that a bound login can't name.
CREATE FUNCTION binding_refuse(call text) RETURNS void
LANGUAGE C VOLATILE STRICT
AS 'MODULE_PATHNAME', 'limitledger_binding_refuse';

-- binding_check demands a role that exists and, if it is to be bound, one that a binding
-- would hold: that logs in itself, and is no superuser, as sweeping workers are.
CREATE FUNCTION binding_check(role_name name, to_bind boolean) RETURNS regrole
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  found record;
BEGIN
  IF role_name IS NULL THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL101', MESSAGE = 'role_name must not be null',
      DETAIL = 'A binding belongs to one role.',
      HINT = 'Give the name of the role that logs in.';
  END IF;
  SELECT r.oid, r.rolcanlogin, r.rolsuper INTO found FROM pg_roles AS r WHERE r.rolname = role_name;
  IF found.oid IS NULL THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL106', MESSAGE = 'role_name is not a role',
      DETAIL = format('There is no role %I in this cluster.', role_name),
      HINT = 'Create it first. Names are taken as they are written, upper case included.';
  END IF;
  IF to_bind AND NOT found.rolcanlogin THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL106', MESSAGE = 'role_name is a role that cannot log in',
      DETAIL = 'A binding holds for the role that a session logged in as, not for roles that it is a member of.',
      HINT = 'Bind each login, or ALTER ROLE ... LOGIN first.';
  END IF;
  IF to_bind AND found.rolsuper THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL106', MESSAGE = 'role_name is a superuser',
      DETAIL = 'Nothing holds a superuser: it may read every table, and pose as any login.',
      HINT = 'Let the tenant log in as a role of its own.';
  END IF;
  RETURN found.oid::regrole;
END;
$$;

-- binding_check_subject demands a subject, as src/api/args.c does.
CREATE FUNCTION binding_check_subject(subject text) RETURNS void
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
BEGIN
  IF subject IS NULL THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL101', MESSAGE = 'subject must not be null',
      DETAIL = 'NULL is neither zero nor a default here.',
      HINT = 'Pass a value for it.';
  END IF;
  IF octet_length(subject) NOT BETWEEN 1 AND 256 OR subject = '*' THEN
    RAISE EXCEPTION USING
      ERRCODE = 'LL102', MESSAGE = 'subject must have 1 to 256 bytes, and not be "*"',
      DETAIL = format('It has %s.', octet_length(subject)),
      HINT = 'A role that is to reach every subject is one that is not bound.';
  END IF;
END;
$$;

-- binding_reach counts the subjects that a role is bound to; NULL: it is not bound.
-- On the way it forgets roles that are gone: a dump would carry their numbers, which
-- may stand for others where it is restored.
CREATE FUNCTION binding_reach(of_role regrole) RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  subjects bigint;
BEGIN
  DELETE FROM @extschema@.subject_binding AS b
  WHERE NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.oid = b.role);

  SELECT CASE WHEN count(*) > 0 THEN count(*) FILTER (WHERE b.state = 'bound') END INTO subjects
  FROM @extschema@.subject_binding AS b WHERE b.role = of_role AND b.state <> 'freed';
  RETURN subjects;
END;
$$;

-- ---- The calls --------------------------------------------------------------
CREATE FUNCTION bind_subject(
  role_name name, subject text,
  OUT already_bound boolean,         -- true: nothing has changed
  OUT bound_subjects bigint          -- that the role is bound to now
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  bound_role regrole;
BEGIN
  PERFORM @extschema@.binding_refuse('bind_subject()');
  bound_role := @extschema@.binding_check(role_name, true);
  PERFORM @extschema@.binding_check_subject(subject);

  INSERT INTO @extschema@.subject_binding AS b (role, subject, state, changed_at, actor)
  VALUES (bound_role, subject, 'bound', @extschema@.ledger_clock(), @extschema@.policy_actor())
  ON CONFLICT ON CONSTRAINT subject_binding_pkey DO UPDATE
  SET state = excluded.state, changed_at = excluded.changed_at, actor = excluded.actor
  WHERE b.state <> 'bound';
  already_bound := NOT FOUND;
  bound_subjects := @extschema@.binding_reach(bound_role);
END;
$$;

CREATE FUNCTION unbind_subject(
  role_name name, subject text,
  OUT already_unbound boolean,       -- true: nothing has changed
  OUT bound_subjects bigint          -- that the role is bound to now; NULL: it is not bound, and reaches all
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  bound_role regrole;
BEGIN
  PERFORM @extschema@.binding_refuse('unbind_subject()');
  bound_role := @extschema@.binding_check(role_name, false);
  PERFORM @extschema@.binding_check_subject(subject);

  UPDATE @extschema@.subject_binding AS b
  SET state = 'unbound', changed_at = @extschema@.ledger_clock(), actor = @extschema@.policy_actor()
  WHERE b.role = bound_role AND b.subject = unbind_subject.subject AND b.state = 'bound';
  already_unbound := NOT FOUND;
  bound_subjects := @extschema@.binding_reach(bound_role);
END;
$$;

CREATE FUNCTION free_role(
  role_name name,
  OUT already_free boolean           -- true: nothing has changed
) LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
DECLARE
  bound_role regrole;
BEGIN
  PERFORM @extschema@.binding_refuse('free_role()');
  bound_role := @extschema@.binding_check(role_name, false);

  UPDATE @extschema@.subject_binding AS b
  SET state = 'freed', changed_at = @extschema@.ledger_clock(), actor = @extschema@.policy_actor()
  WHERE b.role = bound_role AND b.state <> 'freed';
  already_free := NOT FOUND;
  PERFORM @extschema@.binding_reach(bound_role);
END;
$$;

COMMENT ON FUNCTION bind_subject IS
$$Binds a login to a subject: it may name that one and those that it was bound to before, and to it every other is as if it were not there (I1).

role_name: a role that can log in; the binding holds for sessions that logged in as it, whatever they SET ROLE to. subject: 1 to 256 bytes, never "*". The first binding of a role is what shuts it off from all other subjects. bound_subjects counts what it is bound to now. It holds from the next call of each session on; a call that is under way came before. Repeated, it changes nothing.

Errors: LL101, LL102; LL106 there is no such role, or it can't log in, or is a superuser; 42501 if the caller is bound itself.$$;

COMMENT ON FUNCTION unbind_subject IS
$$Takes a subject from a login that is bound; without its last one it reaches none, until free_role opens it (I1).

role_name, subject: as in bind_subject. bound_subjects counts what the role is bound to now: 0 is none at all, NULL means that it is not bound and reaches every subject. Repeated, or for a subject that the role was not bound to, it changes nothing.

Errors: LL101, LL102; LL106 there is no such role; 42501 if the caller is bound itself.$$;

COMMENT ON FUNCTION free_role IS
$$Frees a login from all of its bindings: it reaches every subject again (I1).

role_name: a role of the cluster. The rows stay, as freed, with when and by whom. Repeated, it changes nothing. Errors: LL101; LL106 there is no such role; 42501 if the caller is bound itself.$$;

COMMENT ON VIEW subject_bindings IS
'Which login is bound to which subject, since when and by whom; and whether it reads all the same, by the views of the ledger (I1).';

-- What the background workers did here, and when they come next.
--
-- It is shared memory: cheap to read, and gone with a restart of the server.
CREATE FUNCTION worker_status(
  OUT job text,                      -- what it does: the name of the call that does the same
  OUT backend_type text,             -- of the worker, in pg_stat_activity
  OUT pid integer,                   -- of the worker, if it is here
  OUT status text,                   -- working, waiting, away, failing, off, unknown, not_preloaded
  OUT next_at timestamptz,           -- when it is due next, as far as it is known
  OUT last_run_at timestamptz,       -- when it did something
  OUT last_rows bigint,              -- what it did then; of the audit: discrepancies
  OUT total_rows bigint,             -- since the server started
  OUT lag interval,                  -- how long after its deadline that began
  OUT failures integer,              -- in a row
  OUT last_error text,               -- SQLSTATE of the last failure
  OUT last_error_at timestamptz)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_worker_status';

CREATE VIEW workers AS
SELECT s.job, s.backend_type, s.pid, s.status, s.next_at, s.last_run_at, s.last_rows, s.total_rows,
       s.lag, s.failures, s.last_error, s.last_error_at
FROM worker_status() s;

-- Those who watch the server see them without a bundle; pg_monitor is there in every cluster.
GRANT SELECT ON workers TO pg_monitor;

GRANT EXECUTE ON FUNCTION worker_status TO pg_monitor;

COMMENT ON FUNCTION worker_status IS
$$Shows what each job of the background workers did in this database, and when it is due next (J4).

status: working, while its worker runs a step; waiting, while the worker is here and nothing is due; away, if the worker has left until next_at; failing, if a step of it failed, and it rests or passes by the pair at which it did; off, if limitledger.workers is; not_preloaded, if the library is not in shared_preload_libraries; unknown, if no worker has been here yet. lag: how long after its deadline the last batch began. Of verify_conservation, last_rows are the discrepancies of the last audit, and total_rows those of all of them. Counters begin at zero when the server starts.

Errors: none.$$;

COMMENT ON VIEW workers IS
'What each job of the background workers did in this database, and when it is due next (J4).';

-- Who can change the answer?  Time (429), another attempt (503), an operator or
-- another request (403), or nobody (409, 404).  The status goes by retry_kind, so
-- that a dimension to come has one, too.
CREATE OR REPLACE FUNCTION problem_details(
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

COMMENT ON FUNCTION problem_details IS
$$Writes an answer that is a problem as the problem document of RFC 9457, status included; NULL for ACCEPTED and UNENFORCED (D3, J3).

Members: type, title, status, detail, dimension, generation, retry_kind, retry_after_ms and, with status 429 and a route, violated-policies. generation and retry_after_ms are strings; what is NULL is left out; no balance is shown. No errors. Needs EXECUTE on structured_string, too.$$;

COMMENT ON FUNCTION settle_usage IS
$$Spends what an operation really used and gives the difference back, once (D6, D7, D8).

actual: units, 0 or more; NULL is an error, never zero. receipt_digest: of the executor's own receipt, kept and compared. source: executor, reconciler or operator, who vouches for the figure; an operator's is kept with its role in operator_actions.

The same operation, actual and receipt_digest again get the same receipt; others are a CONFLICT that shows what is stored. Less than the reported progress is REFUSED progress from the operator, and taken from the others. Above the reservation the excess takes what is available, and the rest is debt (SETTLED_WITH_DEBT), which stops admission. Debt above maximumOverdraft, or an actual above hardExecutionLimit, freezes the pair; it is booked all the same.

Errors: LL301 if the reservation was never started, and nothing is booked; LL101, LL102, LL103, LL104, LL106 for a bad argument; LL107 on overflow; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION claim_unknown_usage IS
$$Claims unknown usage for a reconciler, the oldest first, each item for one reconciler at a time; waits for nobody (D10).

batch_limit: 1 to 100000 items. lease: 1 second to 1 day, without months; when it ends, an item that is still unknown may be claimed again, so a crashed reconciler loses nothing. reconciler: 1 to 256 bytes, shown as claimed_by; NULL: the caller's role. No row means that there is nothing to claim.

No balance moves, and the claim gates nothing: ask the provider, then settle_usage with the operation and the source reconciler. A receipt of the executor that comes first settles as always, and the reconciler's is then a replay or a CONFLICT that shows it. Errors: LL101, LL102, LL106; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION record_usage_batch IS
$$Books many usages that were never reserved, each pair locked once; one receipt per element, in their order (J2, D12).

Parallel arrays of one length, 0 to 100000 elements. A conflict or a missing policy answers its own element. Errors, for the whole batch: those of record_usage, naming the element; LL105 for arrays that do not match.$$;

COMMENT ON FUNCTION import_usage IS
$$Opens a pair with what was already spent under another limiter, in the middle of a window or of a refill (B2).

units: 0 or more, what is missing from a full bucket, or the part of the quota that is used. The first budget opens at the cap and the units are spent there at once, under operation_id as record_usage does: what exceeds the cap is debt, above maximumOverdraft it freezes the pair, and hardExecutionLimit does not count. Import after the policy is active and before the first request: a pair that has a budget is REFUSED opened, and record_usage books what is missing. The same operation, route and units again are replayed.

Errors: LL101, LL102, LL103 for a bad argument; LL107 on overflow; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION import_usage_batch IS
$$Imports what many pairs have spent under another limiter; one receipt per element, in their order (J2, B2).

Parallel arrays of one length, 0 to 100000 elements. A refusal or conflict answers its own element; of several for one pair the first by operation id opens it. Errors, for the whole batch: those of import_usage, naming the element; LL105 for arrays that do not match.$$;

-- ---- Maintenance ---------------------------------------------------------------
COMMENT ON PROCEDURE maintain IS
$$Does all that is due, in bounded steps of one transaction each: holds expire, executions become unknown, debt is repaid, what is no longer kept is purged (J4, D10, D14, D15, E3).

batch_limit: rows or pairs of one step, 1 to 100000. time_limit: 0 or more; no step begins after it. Rows and pairs that somebody else has locked are left to the next run. CALL it outside a transaction block, from cron; the caller needs EXECUTE on claim_expiring, finish_expiring, expire_executions, repay_debtors, purge_reservations, purge_usage and purge_budgets, too. The ledger is right without it.

Returns holds claimed and expired, executions that became unknown, pairs that repaid and the units they repaid, reservations and usages that were purged, and closed budgets that were. Errors: LL106; 2D000 inside a transaction block; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION purge_reservations IS
$$Deletes reservations that ended longer ago than their policy keeps them, a bounded number in the order of generations and of time; their budgets keep the sum (D15).

batch_limit: 1 to 100000 rows, and as many generations. Begin at 0 and NULL, go on at next_generation and next_instant, end when they are NULL. Operations and extensions go with their reservation. What is open is never purged, and what somebody uses is left to the next run. Fences are kept as long as the generations that are not retired ask for at most. purged_units: what the rows had spent, now in purged_spent of their budgets. Errors: LL101, LL106; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION purge_usage IS
$$Deletes records of unreserved usage that are older than their policy keeps what has ended, a bounded number as purge_reservations does (D15, D12).

batch_limit: 1 to 100000 rows, and as many generations. Begin at 0 and NULL, go on at next_generation and next_instant, end when they are NULL. purged_units: what was recorded, now in purged_spent of the budgets. Errors: LL101, LL106; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION purge_budgets IS
$$Deletes closed budgets that hold and owe nothing and that no stored row tells of, the oldest of their pairs first; each pair keeps the one that its head follows (D15, B5).

batch_limit: 1 to 100000 budgets, and as many generations. Begin at 0 and NULL, go on at next_generation and next_instant, end when they are NULL. A budget goes once nothing has changed it for the retention of its policy. purged_units: what they had spent. Errors: LL101, LL106; 25006 in a read-only transaction.$$;

-- ---- Gateways -----------------------------------------------------------------
COMMENT ON FUNCTION open_gateway IS
$$Makes this database a gateway under the id by which the ledger knows it, and returns its boot epoch (G4, G5).

gateway: 1 to 256 bytes. Repeated, it changes nothing but begins a boot if the server was started since; announce the boot epoch to the ledger after each start. Errors: LL101, LL102; LL404 if the database is another gateway already; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION renew_boot IS
$$Begins a new boot: shards of the one before are sealed, what they held becomes USAGE_UNKNOWN, all in one transaction (G5).

reason: 1 to 256 bytes, kept in operator_actions. The first call after a start of the server does the same by itself. Announce the new boot epoch to the ledger, which issues shards for no other. Errors: LL101, LL106; LL404 if the database is no gateway; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION accept_emergency_shard IS
$$Takes in a shard that the ledger signed for this gateway and its present boot, with a fence above all before (G4).

envelope: as sign_emergency_shard returned it. REFUSED recovery: set up the witness, or acknowledge. REFUSED envelope says in detail why it does not open, in a word of docs/envelope.md, and the member. The same shard again is a replay, whatever has become of it; another one under its id is a CONFLICT. Errors: LL101; LL403 if the witness file can't be written; LL404 if the database is no gateway; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION shard_reserve IS
$$Admits one request against the shards of this gateway and holds its units, or refuses it, with no ledger in reach (G4, D2).

Arguments and answers are those of reserve_capacity; region, estimator and priority were decided by the policy that gave the shard. Of the pair's open shards, in the order of their fences, the first that has enough gives the units; one that was used above what it had stops the pair. generation, epoch, hard_limit, available and cap of the receipt are the shard's. The same id again gets the receipt that stands, also when its shard is sealed, has run out or is of another boot.

Errors: LL101, LL102, LL103, LL104 for a bad argument; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION shard_reserve_batch IS
$$Admits many requests against the shards of this gateway, each shard locked once; one receipt per element (J2, G4).

Parallel arrays of one length, 0 to 100000 elements; an optional array may be NULL as a whole or element by element. Errors, for the whole batch: those of shard_reserve, naming the element; LL105 for arrays that do not match.$$;

COMMENT ON FUNCTION shard_start IS
$$Moves RESERVED to STARTED and binds the operation, on a gateway; run only what it accepts (D5, G4).

As start_reservation. What a boot made unknown before its start is REFUSED boot_epoch. An ACCEPTED replay says in state what has become of the execution since. Errors: LL101, LL102; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION shard_settle IS
$$Spends what an operation really used against its shard and gives the difference back, once (D6, D7, G1).

As settle_usage, whatever has become of the shard: what comes back to a sealed one is retired. Above the reservation the excess takes what the shard has available; the rest stands beside the equation (SETTLED_WITH_DEBT), is reported, and becomes debt of the pair in the ledger; which budget bears it is not known here, so excess_generation and excess_epoch are NULL. An item that a boot made unknown before its start is bound to the operation that settles it.

Errors: LL301 if the reservation was never started, and nothing is booked; LL101, LL102, LL103, LL104, LL106 for a bad argument; LL107 on overflow; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION shard_settle_batch IS
$$Settles many executions of this gateway, each shard locked once; one receipt per element, in their order (J2, D6).

Parallel arrays of one length, 0 to 100000 elements; receipt_digests and sources may be NULL as a whole or element by element. An element that was never started is REFUSED not_started here, not an error. Errors, for the whole batch: those of shard_settle but LL301, naming the element; LL105 for arrays that do not match; 40001 if another call bound one of its operations meanwhile.$$;

COMMENT ON FUNCTION shard_release IS
$$Gives all units of a hold that was never started back to its shard, once (D9, G6).

As release_reservation; to a sealed shard they come back for good. Errors: LL101, LL102; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION shard_report_unknown IS
$$Says that nobody knows what an execution of this gateway used: STARTED becomes USAGE_UNKNOWN (D10, G4).

As report_usage_unknown. Only shard_settle ends it. Errors: LL101, LL102; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION seal_shard IS
$$Ends a shard of this gateway for good: what is available is retired, and nothing more is reserved from it (G6).

What it holds goes on, and is retired when it comes back. Sealed before, it changes nothing, and says by whom. Errors: LL101, LL102; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION cut_shard_report IS
$$Writes the next numbered report of a shard: its figures, and up to 1000 receipts of what ended since the last one (G6, G8).

With nothing new since the last report it is a replay of that one. more: call again, for the receipts that are left. Commit, then sign it with report_shard. Errors: LL101, LL102; LL403 if the witness file can't be written; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION report_shard IS
$$Signs a report that was cut and committed; the same number gives the same bytes, as often as it is asked for (G8, G3).

sequence: NULL for the newest that is committed, so in the transaction that cuts a report the one before it. REFUSED not_committed: it was cut by this very transaction, or there is none of that number. Reads limitledger.signing_key_file. Errors: LL101, LL102; LL401 if the key file can't be used; LL403 if the witness file can't be written.$$;

COMMENT ON FUNCTION sweep_shards IS
$$Ends what time ends on a gateway, in one bounded batch: holds, executions past their deadline, shards that have run out (D14, D10, G6).

batch_limit: 1 to 100000 reservations, and as many shards. Waits for nobody; what is locked is left to the next run. After a start of the server it begins the boot first. Errors: LL101, LL106; 42501 for a login that is bound to subjects; 25006 in a read-only transaction.$$;

COMMENT ON VIEW local_shards IS
'Every shard that this gateway has accepted, its figures and how it ended (G1).';

COMMENT ON VIEW shard_reservations IS
'Every reservation against a shard of this gateway, and the report that tells of its end (D1, G6).';

COMMENT ON VIEW local_reports IS
'Every report that this gateway has cut, with the figures and the number of receipts in it (G6).';

COMMENT ON FUNCTION verify_subjects IS
$$Proves the same rules for some subjects: those behind the first argument, up to the second (C1, C2, B5).

after_subject: NULL, the default, begins with the first subject. last_subject: NULL ends with the last one. Ranges that meet prove the whole, in several snapshots: so a large ledger is audited without one that lasts. Runs with the owner's rights, takes no lock that a call would wait for, and reads the budgets and reservations of these subjects once.$$;

COMMENT ON VIEW policies IS
'Every published generation, with its stage (published, shadow, canary, active, draining, retired), its switch instant, that of its retirement and its document as published (B1, B4).';

COMMENT ON VIEW rollout_status IS
'Each generation: how far it is, what is left to drain, and what it would have decided in shadow (B4, B6, B7).';

COMMENT ON VIEW rollout_totals IS
'For monitors, what rollout_status says of each generation, with no name of a subject or a route; the newest first (B4, B6, B7).';

COMMENT ON VIEW operator_actions IS
'What operators did, when and why: to a pair or a policy, and figures that they attested (D8, D10).';

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
CREATE OR REPLACE FUNCTION bundles(OUT bundle text, OUT object_kind text, OUT signature text)
RETURNS SETOF record LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
WITH said (bundles, names) AS (VALUES
  -- admits requests, gives back what was not started, tells the caller in HTTP
  ('{gateway}', '{reserve_capacity, reserve_capacity_batch, release_reservation, release_reservation_batch,
    resolve_reservation,
    shard_reserve, shard_reserve_batch, shard_release,
    http_headers, rate_limit, rate_limit_policy, retry_after, problem_details, structured_string}'),
  -- runs what was admitted, and says what it used
  ('{executor}', '{start_reservation, start_reservation_batch, report_progress, report_usage_unknown,
    record_usage, record_usage_batch, claim_unknown_usage, shard_start, shard_report_unknown}'),
  -- sets the rules, stops and opens pairs, sweeps
  ('{operator}', '{publish_policy, activate_policy, shadow_policy, canary_policy, drain_policy, retire_policy, rollback_policy, policy_diff,
    bind_subject, unbind_subject, free_role, trust_key, distrust_key, signing_key_id, acknowledge_recovery,
    freeze, unfreeze, freeze_route, unfreeze_route, grant_capacity, import_usage, import_usage_batch, repay_debt,
    register_gateway, announce_boot, issue_emergency_shard, sign_emergency_shard, reconcile_emergency_shard, write_off_shard,
    grant_legacy_share, report_legacy_share,
    maintain, expire_reservations, claim_expiring, finish_expiring, expire_executions, repay_debtors,
    purge_reservations, purge_usage, purge_budgets,
    open_gateway, renew_boot, accept_emergency_shard, seal_shard, cut_shard_report, report_shard, sweep_shards}'),
  -- reads everything and proves it
  ('{auditor}', '{verify_conservation, verify_subjects, bundle_privileges, worker_status, workers,
    policies, rollout_status, budgets, reservations, unreserved_usage, capacity_grants, operator_actions, subject_bindings, trusted_keys,
    open_reservations, unknown_usage, expired_unstarted, frozen_pairs, frozen_routes, pairs_in_debt,
    gateways, emergency_shards, shard_reports, shard_receipts,
    local_shards, shard_reservations, local_reports,
    ledger_totals, rollout_totals, unknown_usage_convergence, decision_counters, count_decisions}'),

  ('{gateway,executor}', '{extend_reservation, request_digest, canonical_json}'),
  -- the operator as the last resort for a usage that is unknown (D10)
  ('{executor,operator}', '{settle_usage, settle_usage_batch, shard_settle, shard_settle_batch}'),
  ('{gateway,operator,auditor}', '{get_budget}'),
  ('{operator,auditor}', '{recovery_status}'),
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

-- Monitoring agents are members of pg_monitor, which is in every cluster.  They see totals
-- and instants, and nothing that names a subject, a route or an id.
GRANT USAGE ON SCHEMA @extschema@ TO pg_monitor;

GRANT SELECT ON ledger_totals, rollout_totals, decision_counters TO pg_monitor;

GRANT EXECUTE ON FUNCTION ledger_clock, count_decisions, recovery_status TO pg_monitor;

-- ---- Who may call -----------------------------------------------------------------

DO $$
DECLARE
  one record;
BEGIN
  FOR one IN
    SELECT replace(p.proname, '_before', '') AS name, r.rolname, a.is_grantable
    FROM pg_catalog.pg_proc p, LATERAL pg_catalog.aclexplode(p.proacl) a JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
    WHERE p.oid IN ('@extschema@.maintain_before'::regproc, '@extschema@.retire_policy_before'::regproc)
      AND a.grantee <> p.proowner
  LOOP
    EXECUTE format('GRANT EXECUTE ON ROUTINE @extschema@.%I TO %I %s', one.name, one.rolname,
                   CASE WHEN one.is_grantable THEN 'WITH GRANT OPTION' END);
  END LOOP;
END;
$$;
DROP PROCEDURE maintain_before;
DROP FUNCTION retire_policy_before;

REVOKE ALL ON ALL TABLES IN SCHEMA @extschema@ FROM PUBLIC;
REVOKE ALL ON ALL ROUTINES IN SCHEMA @extschema@ FROM PUBLIC;

-- What is new belongs to whoever runs this, who need not be the owner: without this the
-- owner's calls, and the workers, could not reach it.
DO $$
DECLARE
  owner text;
  one record;
BEGIN
  SELECT r.rolname INTO owner FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_roles r ON r.oid = e.extowner
  WHERE e.extname = 'limitledger';
  FOR one IN
    SELECT CASE WHEN p.oid IS NOT NULL THEN format('ROUTINE %s', p.oid::regprocedure)
                WHEN c.relkind = 'v' THEN format('VIEW %s', c.oid::regclass)
                ELSE format('TABLE %s', c.oid::regclass) END AS name
    FROM pg_catalog.pg_extension e
    JOIN pg_catalog.pg_depend d ON (d.refclassid, d.refobjid, d.deptype) = ('pg_catalog.pg_extension'::regclass, e.oid, 'e')
    LEFT JOIN pg_catalog.pg_proc p ON (d.classid, d.objid) = ('pg_catalog.pg_proc'::regclass, p.oid)
    LEFT JOIN pg_catalog.pg_class c ON (d.classid, d.objid) = ('pg_catalog.pg_class'::regclass, c.oid) AND c.relkind IN ('r', 'v')
    WHERE e.extname = 'limitledger' AND coalesce(p.proowner, c.relowner) <> e.extowner
  LOOP
    EXECUTE format('ALTER %s OWNER TO %I', one.name, owner);
  END LOOP;
END;
$$;
