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
