-- Record a broker task that ends or expires with a turn, unless it is already recorded.
--
-- Arguments: task_id, tenant_id, session_id, turn_id, request (JSON, or null), wait_s (or null), expires_at (Unix
--            seconds, or null), cancels (whether revoking the task cancels the turn)
-- Returns:   one row: whether the task was recorded now. If the turn has ended, the task goes to the outbox immediately.
-- Locks the turn's row, so that either this statement sees the turn's end, or the end sees this task.
WITH turn AS (
    UPDATE turns SET awaited = true
    WHERE turn_id = %(turn_id)s
    RETURNING finished_at
), noted AS (
    INSERT INTO awaited_tasks (task_id, tenant_id, session_id, turn_id, request, wait_until, expires_at, cancels,
                               ended_at)
    SELECT %(task_id)s, %(tenant_id)s, %(session_id)s, %(turn_id)s, %(request)s::json,
           clock_timestamp() + %(wait_s)s::float8 * interval '1 second', to_timestamp(%(expires_at)s::float8), %(cancels)s,
           CASE WHEN finished_at IS NOT NULL THEN clock_timestamp() END
    FROM turn
    ON CONFLICT DO NOTHING
    RETURNING *
), sending AS (
    INSERT INTO outbox (tenant_id, session_id, turn_id, kind, payload)
    SELECT tenant_id, session_id, turn_id, 'finish_task',
           json_build_object('task_id', task_id)
    FROM noted
    WHERE ended_at IS NOT NULL AND request IS NOT NULL
)
SELECT EXISTS (SELECT FROM noted)
