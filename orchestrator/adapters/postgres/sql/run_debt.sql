-- Housekeeping that is due and that nobody is at, by session (IF-14), the oldest first.
--
-- Arguments: tenant_id (null: all), limit
-- Effect:    one row (session_id, runs, oldest_s) per session; sessions' runs and those without one.
SELECT session_id, count(*), max(extract(epoch FROM clock_timestamp() - ready_at))::float8 AS oldest_s
FROM internal_runs
WHERE hint_at IS NOT NULL
  AND status IN ('ready', 'running')
  AND urgency = 'housekeeping'
  AND ready_at <= clock_timestamp()
  AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
  AND NOT EXISTS (SELECT FROM internal_claims WHERE internal_claims.run_id = internal_runs.run_id)
GROUP BY session_id
ORDER BY oldest_s DESC
LIMIT %(limit)s
