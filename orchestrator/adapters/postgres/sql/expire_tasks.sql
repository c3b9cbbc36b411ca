-- Take tasks of the broker whose turn is to be cancelled because they have expired.
--
-- Arguments: limit
-- Effect:    one row (tenant_id, turn_id) for each; none is taken twice within ten seconds.
WITH due AS (
    SELECT task_id FROM awaited_tasks
    WHERE ended_at IS NULL AND expires_at <= clock_timestamp()
    ORDER BY expires_at
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
)
UPDATE awaited_tasks
SET expires_at = clock_timestamp() + interval '10 seconds', stopped = coalesce(stopped, 'expired')
WHERE task_id = ANY(ARRAY(SELECT task_id FROM due))
RETURNING tenant_id, turn_id
