-- Release a session lane without a commit, and queue its running turn again (RT-18).
--
-- Arguments: session_id, turn_id, token, error of the turn (null: the attempt does not count)
-- Returns:   one row if the lease was still current.
-- If the response of the turn's commit was lost, the next turn is running; its attempt does not count.
WITH lane AS (
    UPDATE lanes
    SET lease_owner = NULL, lease_until = NULL
    WHERE session_id = %(session_id)s AND lease_token = %(token)s
    RETURNING session_id, done_seq
)
UPDATE turns
SET status = 'queued',
    attempts = attempts - CASE WHEN turn_id = %(turn_id)s AND %(error)s::text IS NOT NULL THEN 0 ELSE 1 END,
    error = CASE WHEN turn_id = %(turn_id)s THEN coalesce(%(error)s, error) ELSE error END
FROM lane
WHERE turns.session_id = lane.session_id
  AND turns.seq > lane.done_seq
  AND finished_at IS NULL
  AND status = 'running'
RETURNING turns.turn_id
