-- Move broker tasks that have reached their maximum wait to the outbox, and delete tasks that ended long ago.
--
-- Arguments: kept_for_s, limit
-- Returns:   one row per task that ends now.
WITH due AS (
    SELECT task_id FROM awaited_tasks
    WHERE ended_at IS NULL AND wait_until <= clock_timestamp()
    ORDER BY wait_until
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
), forgotten AS (
    DELETE FROM awaited_tasks
    WHERE task_id = ANY(ARRAY(SELECT task_id FROM awaited_tasks
                              WHERE ended_at < clock_timestamp() - %(kept_for_s)s * interval '1 second'
                              ORDER BY ended_at
                              LIMIT %(limit)s
                              FOR UPDATE SKIP LOCKED))
), ended AS (
    UPDATE awaited_tasks SET ended_at = clock_timestamp()
    WHERE task_id = ANY(ARRAY(SELECT task_id FROM due))
    RETURNING *
)
INSERT INTO outbox (tenant_id, session_id, turn_id, kind, payload)
SELECT tenant_id, session_id, turn_id, 'finish_task',
       json_build_object('task_id', task_id)
FROM ended
WHERE request IS NOT NULL
RETURNING id
