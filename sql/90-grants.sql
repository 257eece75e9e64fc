-- Nothing is executable or readable by PUBLIC (I1): roles get what they are granted.

REVOKE ALL ON ALL TABLES IN SCHEMA @extschema@ FROM PUBLIC;
REVOKE ALL ON ALL ROUTINES IN SCHEMA @extschema@ FROM PUBLIC;

-- Monitoring agents are members of pg_monitor, which is in every cluster.  They see totals
-- and instants, and nothing that names a subject, a route or an id.
GRANT USAGE ON SCHEMA @extschema@ TO pg_monitor;
GRANT SELECT ON ledger_totals, rollout_totals, decision_counters TO pg_monitor;
GRANT EXECUTE ON FUNCTION ledger_clock, count_decisions, recovery_status TO pg_monitor;
