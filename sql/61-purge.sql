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
