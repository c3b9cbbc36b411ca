-- Find expired broker tasks whose turns must be canceled.
--
-- Arguments: limit
-- Returns:   one row (tenant_id, turn_id) per task. A task is not returned again within ten seconds.
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
