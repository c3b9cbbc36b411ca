-- Free a lane for a process of suspects (RT-26). It stays in this worker's name, so that it is found at once when this
-- worker ends; if no such process comes, the sweep finds it in a while.
--
-- Arguments: session_id, token, left_for_s
-- Effect:    one row when the lease was still this one.
UPDATE lanes
SET lease_until = NULL, check_at = clock_timestamp() + %(left_for_s)s * interval '1 second'
WHERE session_id = %(session_id)s AND lease_token = %(token)s AND lease_until IS NOT NULL
RETURNING session_id
