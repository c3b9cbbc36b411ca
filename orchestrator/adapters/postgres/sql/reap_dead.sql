-- Free the leases of workers whose connection is gone, and forget these workers (RT-11).
--
-- Arguments: none
-- Effect:    one row (session_id) per lane that was freed. The token is left as it is: the next claim moves it.
-- Another process that sweeps at this moment waits for the rows and then finds nothing left. The start of a
-- connection of another user is hidden: such a one counts as living, and its leases run out by themselves.
-- Lanes are locked in order, as a renewal does.
WITH dead AS (
    DELETE FROM workers
    WHERE NOT EXISTS (
        SELECT FROM pg_stat_activity AS connection
        WHERE connection.pid = workers.backend_pid
          AND (connection.backend_start = workers.backend_start OR connection.backend_start IS NULL))
    RETURNING worker_id
), theirs AS (
    SELECT lanes.session_id
    FROM lanes JOIN dead ON lanes.lease_owner = dead.worker_id
    WHERE lanes.check_at IS NOT NULL
    ORDER BY lanes.session_id
    FOR NO KEY UPDATE OF lanes
)
UPDATE lanes
SET lease_owner = NULL, lease_until = NULL, check_at = clock_timestamp(), ready_at = clock_timestamp()
FROM theirs
WHERE lanes.session_id = theirs.session_id
RETURNING lanes.session_id
