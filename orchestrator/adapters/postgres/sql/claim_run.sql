-- Start a run's `before_all` or `after_all` (IF-9).
--
-- Arguments: run_id, config, worker_id, ttl_s, waited_s (background runs that have waited less are deferred)
-- Returns:   one row for the run's stages, or no row if nothing can start now or another worker holds the run.
-- All conditions are on the run's row, so that the second of two concurrent claims sees the first.
-- Commits asynchronously, so half of the token is random, like a session lane's
-- (docs/decisions/0014-commit-claims-asynchronously.md).
WITH run AS (
    UPDATE internal_runs
    SET status = 'running',
        token = (nextval('internal_claim_tokens') << 32) + floor(4294967296 * random())::bigint,
        attempts = attempts + 1,
        config = coalesce(config, %(config)s::json),
        started_at = coalesce(started_at, clock_timestamp()),
        hint_at = NULL
    WHERE run_id = %(run_id)s
      AND status IN ('ready', 'running')
      AND phase IN ('before_all', 'after_all')
      AND token IS NULL
      AND ready_at <= clock_timestamp() - CASE WHEN urgency = 'urgent' THEN interval '0'
                                               ELSE %(waited_s)s * interval '1 second' END
    RETURNING *, set_config('synchronous_commit', 'off', true)
), claimed AS (
    INSERT INTO internal_claims (token, tenant_id, run_id, owner, lease_until)
    SELECT token, tenant_id, run_id, %(worker_id)s, clock_timestamp() + %(ttl_s)s * interval '1 second'
    FROM run
)
SELECT tenant_id, session_id, flow, redo_count, parameters, coalesce(final_options, options), config, data, urgency, turn_id,
       token, phase, attempts,
       CASE WHEN phase = 'before_all' THEN inputs END,
       (SELECT json_build_array(count(*), count(*) FILTER (WHERE items.status = 'done'),
                                count(*) FILTER (WHERE items.status = 'skipped'),
                                count(*) FILTER (WHERE items.status = 'failed'))
        FROM internal_items AS items WHERE items.run_id = run.run_id)
FROM run
