-- Name runs whose message may have been lost (IF-9), oldest first: those that have something to do, and those that
-- have ended and whose task has not reported it.
--
-- Arguments: again_s, limit, waited_s (housekeeping that waited less is deferred)
-- Effect:    one row (run_id, flow, urgency, task_id, status, why, began) per run; it is named again after `again_s`.
--            `began` is false for a run that ended before any task of it ran; `why`: its error or reason.
-- Items that a live worker holds need no message: their holders go on until none is left.
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
