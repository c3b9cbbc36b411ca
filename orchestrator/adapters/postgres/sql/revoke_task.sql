-- Mark a broker task as revoked, and find the unfinished turns that it submitted. A task that only waits for another
-- task's turn ends immediately.
--
-- Arguments: task_id
-- Returns:   one row (tenant_id, turn_id) per turn to cancel.
WITH revoked AS (
    UPDATE awaited_tasks
    SET stopped = 'revoked', wait_until = CASE WHEN cancels THEN wait_until ELSE clock_timestamp() END
    WHERE task_id = %(task_id)s AND ended_at IS NULL
    RETURNING tenant_id, turn_id, cancels
)
SELECT tenant_id, turn_id FROM revoked WHERE cancels
UNION
SELECT tenant_id, turn_id FROM turns WHERE idempotency_key = %(task_id)s AND finished_at IS NULL
