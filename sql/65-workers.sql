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
