-- Prolong what a worker holds.
--
-- Arguments: tokens (array), ttl_s
-- Effect:    one row (token) per claim that is still current.
UPDATE internal_claims
SET lease_until = clock_timestamp() + %(ttl_s)s * interval '1 second'
WHERE token = ANY(%(tokens)s)
RETURNING token
