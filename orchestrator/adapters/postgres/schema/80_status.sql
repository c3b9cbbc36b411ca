-- Status: counts and ages over all tenants, for limits, metrics and alerts (RT-5, RT-24).
--
-- These are functions because the gateway itself can read only one tenant at a time.

-- Returns the number of unfinished turns of all tenants, for the total inbox limit.
CREATE FUNCTION parley_unfinished_turns() RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT coalesce(sum(pending), 0) FROM lanes WHERE check_at IS NOT NULL
$$;

-- Returns the status of the whole system. `oldest_turn_s`: age of the oldest unfinished turn in the 1,000 lanes that have
-- been due longest. `outbox` by kind and `runs` by urgency: number of waiting entries and age of the first, with due runs
-- as in sql/run_backlog.sql. `jobs` by name: last firing and next due time, in Unix seconds.
CREATE FUNCTION parley_status() RETURNS TABLE (
    unfinished_turns bigint, held_lanes bigint, waiting_lanes bigint, oldest_turn_s float8,
    quarantined_turns bigint, workers bigint, pending_approvals bigint, outbox json, runs json,
    webhooks_failing bigint, webhooks_given_up bigint, jobs json
) LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
WITH busy AS (
    SELECT session_id, pending, done_seq, lease_until > clock_timestamp() AS held
    FROM lanes
    WHERE check_at IS NOT NULL AND pending > 0
), oldest AS (
    SELECT max(extract(epoch FROM clock_timestamp() - first.accepted_at)) AS age
    FROM (SELECT session_id, done_seq FROM lanes
          WHERE check_at IS NOT NULL AND pending > 0 ORDER BY check_at LIMIT 1000) AS due
    CROSS JOIN LATERAL (SELECT accepted_at FROM turns
                        WHERE turns.session_id = due.session_id AND seq > due.done_seq AND finished_at IS NULL
                        ORDER BY seq LIMIT 1) AS first
), sending AS (
    SELECT kind, count(*) AS waiting, max(extract(epoch FROM clock_timestamp() - created_at)) AS age
    FROM outbox
    GROUP BY kind
), owed AS (
    SELECT urgency, count(*) AS waiting, max(extract(epoch FROM clock_timestamp() - ready_at)) AS age
    FROM internal_runs
    WHERE hint_at IS NOT NULL AND status IN ('ready', 'running') AND ready_at <= clock_timestamp()
      AND NOT EXISTS (SELECT FROM internal_claims WHERE internal_claims.run_id = internal_runs.run_id)
    GROUP BY urgency
), deliveries AS (
    SELECT count(*) FILTER (WHERE given_up_at IS NULL) AS failing,
           count(*) FILTER (WHERE given_up_at IS NOT NULL) AS given_up
    FROM webhook_feeds
    WHERE failing_since IS NOT NULL
)
SELECT (SELECT coalesce(sum(pending), 0) FROM busy)::bigint AS unfinished_turns,
       (SELECT count(*) FROM busy WHERE held) AS held_lanes,
       (SELECT count(*) FROM busy WHERE held IS NOT TRUE) AS waiting_lanes,
       coalesce((SELECT age FROM oldest), 0)::float8 AS oldest_turn_s,
       (SELECT count(*) FROM turns WHERE quarantined_at IS NOT NULL) AS quarantined_turns,
       (SELECT count(*) FROM workers) AS workers,
       (SELECT count(*) FROM approvals WHERE status = 'pending') AS pending_approvals,
       coalesce((SELECT json_object_agg(kind, json_build_array(waiting, age)) FROM sending), '{}') AS outbox,
       coalesce((SELECT json_object_agg(urgency, json_build_array(waiting, age)) FROM owed), '{}') AS runs,
       (SELECT failing FROM deliveries) AS webhooks_failing,
       (SELECT given_up FROM deliveries) AS webhooks_given_up,
       coalesce((SELECT json_object_agg(job, json_build_array(extract(epoch FROM fired), extract(epoch FROM due)))
                 FROM (SELECT job, max(fired_at) AS fired, max(next_due_at) AS due
                       FROM schedule_firings GROUP BY job) AS fired), '{}') AS jobs
$$;

REVOKE ALL ON FUNCTION parley_unfinished_turns(), parley_status() FROM PUBLIC;
