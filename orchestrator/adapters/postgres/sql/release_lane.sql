-- Release a session lane without a commit, and queue its turn again (RT-18).
--
-- Arguments: session_id, turn_id, token, error (null: the attempt does not count)
-- Returns:   one row if the lease was still current.
WITH lane AS (
    UPDATE lanes
    SET lease_owner = NULL, lease_until = NULL
    WHERE session_id = %(session_id)s AND lease_token = %(token)s
    RETURNING session_id
)
UPDATE turns
SET status = 'queued',
    attempts = attempts - CASE WHEN %(error)s::text IS NULL THEN 1 ELSE 0 END,
    error = coalesce(%(error)s, error)
FROM lane
WHERE turn_id = %(turn_id)s AND finished_at IS NULL AND status = 'running'
RETURNING turns.turn_id
