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
