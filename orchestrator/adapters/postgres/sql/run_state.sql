-- Read the state of a run, for a task that could not claim it.
--
-- Arguments: run_id
-- Returns:   one row (status, phase, urgency, held, reported, began, why, waits_s, holders), or no row if the run is gone.
--            `why`: its error or reason. `waits_s`: seconds until it may start. `holders`: maximum number of workers for
--            its unfinished items.
SELECT status,
       phase,
       urgency,
       token IS NOT NULL OR EXISTS (SELECT FROM internal_claims WHERE internal_claims.run_id = run.run_id) AS held,
       finished_at IS NOT NULL AND hint_at IS NULL AS reported,
       started_at IS NOT NULL AS began,
       coalesce(error, reason) AS why,
       greatest(0, extract(epoch FROM ready_at - clock_timestamp()))::float8 AS waits_s,
       least((final_options ->> 'concurrency')::bigint,
             (SELECT count(*) FROM internal_items
              WHERE internal_items.run_id = run.run_id AND internal_items.status IN ('queued', 'running'))) AS holders
FROM internal_runs AS run
WHERE run_id = %(run_id)s
