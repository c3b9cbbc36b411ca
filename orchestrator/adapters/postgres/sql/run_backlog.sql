-- Read the backlog of due and unclaimed background runs by session, oldest first (IF-14).
--
-- Arguments: tenant_id (null: all), limit
-- Returns:   one row (session_id, runs, oldest_s) per session, and one for the runs without a session.
SELECT session_id, count(*), max(extract(epoch FROM clock_timestamp() - ready_at))::float8 AS oldest_s
FROM internal_runs
WHERE hint_at IS NOT NULL
  AND status IN ('ready', 'running')
  AND urgency = 'background'
  AND ready_at <= clock_timestamp()
  AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
  AND NOT EXISTS (SELECT FROM internal_claims WHERE internal_claims.run_id = internal_runs.run_id)
GROUP BY session_id
ORDER BY oldest_s DESC
LIMIT %(limit)s
