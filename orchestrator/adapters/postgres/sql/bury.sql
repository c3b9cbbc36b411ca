-- Free the leases of workers whose advisory lock nobody holds any more, and forget these workers (RT-11).
--
-- Arguments: lock_class
-- Effect:    one row (session_id) per lane that was freed. The token is left as it is: the next claim moves it.
-- Another process that sweeps at this moment holds the lock until its own statement ends and then finds
-- nothing left; a worker that starts takes its lock before it writes its row.
WITH dead AS (
    DELETE FROM workers
    WHERE worker_id IN (SELECT worker_id FROM workers
                        WHERE pg_try_advisory_xact_lock(%(lock_class)s, worker_id::int))
    RETURNING worker_id
)
UPDATE lanes
SET lease_owner = NULL, lease_until = NULL, check_at = clock_timestamp(), ready_at = clock_timestamp()
FROM dead
WHERE lanes.lease_owner = dead.worker_id AND lanes.check_at IS NOT NULL
RETURNING lanes.session_id
