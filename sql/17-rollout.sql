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

-- policy_actor is the role that called, not the owner whose rights the calls have.
CREATE FUNCTION policy_actor()
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
  SELECT coalesce(nullif(current_setting('role'), 'none'), session_user);
$$;

-- policy_record writes down what was done to a generation.
CREATE FUNCTION policy_record(action text, one @extschema@.policy, reason text)
RETURNS void LANGUAGE sql VOLATILE
SET search_path = pg_catalog, @extschema@, pg_temp
AS $$
  INSERT INTO @extschema@.operator_action (acted_at, actor, action, subject, route, reason)
  VALUES (@extschema@.ledger_clock(), @extschema@.policy_actor(), action, one.subject, one.route, reason);
$$;

-- policy_refuse_stage raises LL205 for a generation whose stage forbids the call.
CREATE FUNCTION policy_refuse_stage(one @extschema@.policy, problem text, hint text)
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

-- policy_await waits until every transaction has ended that has written to a table
-- so far, and keeps nobody from writing meanwhile.
CREATE FUNCTION policy_await(written regclass)
RETURNS void LANGUAGE C VOLATILE STRICT
AS 'MODULE_PATHNAME', 'limitledger_policy_await';

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

COMMENT ON FUNCTION rollback_policy(bigint, text) IS
$$Goes back to the content of an older generation: publishes it under a new one, active at once, and drains the newer one (B4, B5).

generation: one that was in force, of the subject and route in question; returned is the new one. What was used under the newer generation stays used: the new budget carries over as with any publish. If that content is in force already, nothing changes, so a lost reply is harmless; rolled_back_from is then what drained before it. A generation that was drained or retired comes back in the same way. reason: 1 to 256 bytes, kept in operator_actions.

Errors: LL101, LL106; LL205 it was never in force; LL206 no such generation; LL203 if its document no longer reads, as with a time zone that is gone; 40001 at REPEATABLE READ and above, when another call changed a policy of the route meanwhile.$$;

COMMENT ON FUNCTION policy_diff(jsonb) IS
$$Compares a policy document with what is in force for its subject and route: a row for each field that differs, none when they are equal (B1, B4).

The document is read as strictly as publish_policy does; policyGeneration is not compared. In force is the active generation that a new request would be decided by: that of the subject, else the wildcard that it comes under, so a first policy of its own differs in subject, too. A canary beside it is not compared. With nothing in force every field is a row. Values are compared as JSON: "30 seconds" and "PT30S" differ, as they do for publish_policy.

Errors: LL101; LL201, LL202, LL203 as publish_policy.$$;
