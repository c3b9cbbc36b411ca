-- Release a session lane whose next turn is a suspected poison turn, for an isolated process (RT-26).
--
-- Arguments: session_id, token, left_for_s
-- Returns:   one row if the lease was still current.
-- The lane keeps this worker as its owner, so that it is found immediately if the worker dies. If no isolated process
-- claims the lane, the sweep finds it after `left_for_s`.
UPDATE lanes
SET lease_until = NULL, check_at = clock_timestamp() + %(left_for_s)s * interval '1 second'
WHERE session_id = %(session_id)s AND lease_token = %(token)s AND lease_until IS NOT NULL
RETURNING session_id
