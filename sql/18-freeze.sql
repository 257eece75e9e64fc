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
