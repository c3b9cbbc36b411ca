-- Claim unfinished items of a locked run (IF-8).
--
-- Arguments: run_id, worker_id, ttl_s, concurrency, at_most, task_id (of the share, or null)
-- Returns:   one row (token, position, input, attempts) per item, or no row if `concurrency` is reached or no item is free.
-- A claim takes a quarter of a worker's equal share, so that all workers finish at about the same time.
WITH room AS (
    SELECT nextval('internal_claim_tokens') AS token
    WHERE (SELECT count(*) FROM internal_claims WHERE run_id = %(run_id)s) < %(concurrency)s
), share AS (
    SELECT greatest(1, least(%(at_most)s, count(*) / (4 * %(concurrency)s))) AS size
    FROM internal_items
    WHERE run_id = %(run_id)s AND status IN ('queued', 'running')
), picked AS (
    SELECT position, room.token
    FROM room CROSS JOIN internal_items AS items
    WHERE items.run_id = %(run_id)s
      AND items.status IN ('queued', 'running')
      AND NOT EXISTS (SELECT FROM internal_claims WHERE internal_claims.token = items.token)
    ORDER BY position
    LIMIT (SELECT size FROM share)
), taken AS (
    UPDATE internal_items AS items
    SET status = 'running', token = picked.token, attempts = items.attempts + 1, updated_at = clock_timestamp()
    FROM picked
    WHERE items.run_id = %(run_id)s AND items.position = picked.position
    RETURNING items.token, items.position, items.input, items.attempts, items.tenant_id
), claimed AS (
    INSERT INTO internal_claims (token, tenant_id, run_id, owner, lease_until, task_id)
    SELECT token, tenant_id, %(run_id)s, %(worker_id)s::bigint,
           clock_timestamp() + %(ttl_s)s * interval '1 second', %(task_id)s::text
    FROM taken
    LIMIT 1
)
SELECT token, position, input, attempts FROM taken ORDER BY position
