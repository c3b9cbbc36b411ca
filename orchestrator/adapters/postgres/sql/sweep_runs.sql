-- Name runs that have something to do and whose message may have been lost (IF-9), oldest first.
--
-- Arguments: again_s, limit, waited_s (housekeeping that waited less is deferred)
-- Effect:    one row (run_id, flow, phase, urgency) per run; it is named again after `again_s`.
WITH due AS (
    SELECT run_id FROM internal_runs
    WHERE hint_at <= now()
      AND (urgency = 'urgent' OR ready_at <= now() - %(waited_s)s * interval '1 second')
    ORDER BY hint_at
    LIMIT %(limit)s
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE internal_runs
SET hint_at = clock_timestamp() + %(again_s)s * interval '1 second'
FROM due
WHERE internal_runs.run_id = due.run_id
RETURNING internal_runs.run_id, flow, phase, urgency
