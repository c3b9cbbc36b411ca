-- Insert or finish one journal step under the fence (RT-8, RT-9).
--
-- Arguments: session_id, tenant_id, turn_id, token, epoch, key, kind, status, request_hash, result (JSON),
--            duration_ms
-- Returns:   one row if the lease is still current. Without a row, nothing was written.
-- The lane's row is locked against a takeover until the step is committed, so that the next worker reads the full journal.
-- A step that is inserted as finished is repeatable, so it commits asynchronously. Later irreversible writes follow it in
-- the log, so they are never on disk without it.
WITH lane AS (
    SELECT session_id FROM lanes
    WHERE session_id = %(session_id)s AND lease_token = %(token)s AND epoch = %(epoch)s
    FOR SHARE
)
INSERT INTO journal (turn_id, key, tenant_id, session_id, kind, status, request_hash, result, duration_ms, token)
SELECT %(turn_id)s, %(key)s, %(tenant_id)s, session_id, %(kind)s, %(status)s, %(request_hash)s,
       %(result)s::json, %(duration_ms)s::real, %(token)s
FROM lane
ON CONFLICT (turn_id, key) DO UPDATE
SET status = excluded.status, result = excluded.result, request_hash = excluded.request_hash,
    duration_ms = excluded.duration_ms, token = excluded.token
RETURNING key, CASE WHEN status = 'finished' AND xmax = 0 THEN set_config('synchronous_commit', 'off', true) END
