-- Free the leases of workers whose advisory lock nobody holds any more, and forget these workers (RT-11).
--
-- Arguments: lock_class
-- Effect:    one row (session_id) per lane that was freed. The token is left as it is: the next claim moves it.
-- Another process that sweeps at this moment holds the lock until its own statement ends and then finds
-- nothing left; a worker that starts takes its lock before it writes its row. Lanes are locked in order, as
-- a renewal does.
WITH dead AS (
    DELETE FROM workers
    WHERE worker_id IN (SELECT worker_id FROM workers
                        WHERE pg_try_advisory_xact_lock(%(lock_class)s, worker_id::int))
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
