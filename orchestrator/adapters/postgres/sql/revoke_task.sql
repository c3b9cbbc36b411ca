-- Note that a task of the broker was revoked, and find the unfinished turns that it submitted. One that only waits for a
-- turn of another waits no longer.
--
-- Arguments: task_id
-- Effect:    one row (tenant_id, turn_id) for each turn that is to be cancelled.
WITH revoked AS (
    UPDATE awaited_tasks
    SET stopped = 'revoked', wait_until = CASE WHEN cancels THEN wait_until ELSE clock_timestamp() END
    WHERE task_id = %(task_id)s AND ended_at IS NULL
    RETURNING tenant_id, turn_id, cancels
)
SELECT tenant_id, turn_id FROM revoked WHERE cancels
UNION
SELECT tenant_id, turn_id FROM turns WHERE idempotency_key = %(task_id)s AND finished_at IS NULL
