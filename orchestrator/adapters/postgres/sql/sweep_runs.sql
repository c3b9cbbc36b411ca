-- Find runs whose message may be lost, oldest first (IF-9): runs with work, and ended runs whose task has not reported
-- the end.
--
-- Arguments: again_s, limit, waited_s (background runs that have waited less are deferred)
-- Returns:   one row (run_id, flow, urgency, task_id, status, why, began) per run, again after `again_s`. `why`: its error
--            or reason. `began` is false if the run ended before any of its tasks started.
-- Runs with claimed items need no message: their workers continue until no items are left.
WITH due AS (
    SELECT run_id FROM internal_runs
    WHERE hint_at <= now()
      AND (urgency = 'urgent' OR ready_at <= now() - %(waited_s)s * interval '1 second' OR finished_at IS NOT NULL)
      AND (phase <> 'items' OR NOT EXISTS (SELECT FROM internal_claims
                                           WHERE internal_claims.run_id = internal_runs.run_id))
    ORDER BY hint_at
    LIMIT %(limit)s
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE internal_runs
SET hint_at = clock_timestamp() + %(again_s)s * interval '1 second'
FROM due
WHERE internal_runs.run_id = due.run_id
RETURNING internal_runs.run_id, flow, urgency, task_id, status, coalesce(error, reason), started_at IS NOT NULL
