-- Release the leases of workers whose connections are gone, and delete these workers (RT-11).
--
-- Arguments: none
-- Returns:   one row (session_id) per released session lane. The token stays unchanged until the next claim.
-- A concurrent sweep waits for the rows and then finds nothing left. PostgreSQL hides the start of other users'
-- connections. Such workers count as alive, and their leases simply expire. Lanes are locked in the same order as in a
-- renewal.
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
