-- Prolong what a worker holds of runs.
--
-- Arguments: tokens (array), worker_id, ttl_s
-- Effect:    one row (token) per claim that is still current.
-- As with lanes, a worker whose lock was interrupted keeps under its new number what nobody took.
UPDATE internal_claims
SET owner = %(worker_id)s,
    lease_until = clock_timestamp() + %(ttl_s)s * interval '1 second'
WHERE token = ANY(%(tokens)s)
RETURNING token
