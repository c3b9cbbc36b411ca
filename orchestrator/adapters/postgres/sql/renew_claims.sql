-- Extend a worker's claims on runs.
--
-- Arguments: tokens (array), worker_id, ttl_s
-- Returns:   one row (token) per current claim.
-- As with session lanes, a worker that reconnects under a new ID keeps the claims that no other worker has taken.
UPDATE internal_claims
SET owner = %(worker_id)s,
    lease_until = clock_timestamp() + %(ttl_s)s * interval '1 second'
WHERE token = ANY(%(tokens)s)
RETURNING token
