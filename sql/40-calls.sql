-- The life of a reservation.  Every call answers with one receipt (J1).
-- `SELECT * FROM f(...)` is the documented form.  @receipt@ is sql/receipt.inc.

CREATE FUNCTION reserve_capacity(
  subject text, route text, reservation_id text, units bigint, digest bytea,
  region text DEFAULT NULL, estimator_digest bytea DEFAULT NULL,
  deadline timestamptz DEFAULT NULL, priority integer DEFAULT NULL,
  start_operation text DEFAULT NULL,
@receipt@
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_reserve_capacity';

CREATE FUNCTION start_reservation(
  subject text, reservation_id text, operation_id text,
@receipt@
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_start_reservation';

CREATE FUNCTION settle_usage(
  subject text, reservation_id text, operation_id text, actual bigint,
  receipt_digest bytea DEFAULT NULL, source text DEFAULT 'executor',
@receipt@
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_settle_usage';

CREATE FUNCTION release_reservation(
  subject text, reservation_id text,
@receipt@
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_release_reservation';

CREATE FUNCTION report_usage_unknown(
  subject text, reservation_id text, operation_id text,
@receipt@
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_report_usage_unknown';

CREATE FUNCTION report_progress(
  subject text, reservation_id text, operation_id text, units bigint,
@receipt@
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_report_progress';

CREATE FUNCTION extend_reservation(
  subject text, reservation_id text, extension_id text,
  units bigint DEFAULT 0, until timestamptz DEFAULT NULL,
@receipt@
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_extend_reservation';

CREATE FUNCTION record_usage(
  subject text, route text, operation_id text, units bigint,
@receipt@
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_record_usage';

CREATE FUNCTION import_usage(
  subject text, route text, operation_id text, units bigint,
@receipt@
) LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_import_usage';

CREATE FUNCTION get_reservation(
  subject text, reservation_id text,
@receipt@
) LANGUAGE C STABLE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_get_reservation';

CREATE FUNCTION resolve_reservation(
  subject text, reservation_id text, digest bytea,
@receipt@
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
@receipt@
) RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_reserve_capacity_batch';

CREATE FUNCTION start_reservation_batch(
  subjects text[], reservation_ids text[], operation_ids text[],
  OUT element integer,
@receipt@
) RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_start_reservation_batch';

CREATE FUNCTION settle_usage_batch(
  subjects text[], reservation_ids text[], operation_ids text[], actuals bigint[],
  receipt_digests bytea[] DEFAULT NULL, sources text[] DEFAULT NULL,
  OUT element integer,
@receipt@
) RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_settle_usage_batch';

CREATE FUNCTION release_reservation_batch(
  subjects text[], reservation_ids text[],
  OUT element integer,
@receipt@
) RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_release_reservation_batch';

CREATE FUNCTION record_usage_batch(
  subjects text[], routes text[], operation_ids text[], units bigint[],
  OUT element integer,
@receipt@
) RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_record_usage_batch';

CREATE FUNCTION import_usage_batch(
  subjects text[], routes text[], operation_ids text[], units bigint[],
  OUT element integer,
@receipt@
) RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_import_usage_batch';

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

-- Pairs that owe, in key order after (after_subject, after_route).
CREATE FUNCTION repay_debtors(
  batch_limit integer, after_subject text, after_route text,
  OUT pairs bigint, OUT repaid_units bigint, OUT last_subject text, OUT last_route text)
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'limitledger_repay_debtors';
