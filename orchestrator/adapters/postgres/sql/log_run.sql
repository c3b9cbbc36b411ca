-- Append what a run of an Internal flow has come to, to its session's event log (RT-15).
--
-- Arguments: run_id
-- Effect:    one event with its number and payload, none for a run without a session. Locks the lane; whoever calls holds no lane yet,
--            and may hold runs.
WITH run AS (
    SELECT run_id, session_id, flow, status, reason FROM internal_runs WHERE run_id = %(run_id)s
), lane AS (
    UPDATE lanes
    SET next_event = next_event + 1
    FROM run
    WHERE lanes.session_id = run.session_id
    RETURNING lanes.session_id, lanes.tenant_id, lanes.next_event - 1 AS number
), progress AS (
    SELECT json_build_object('run_id', run.run_id, 'flow', run.flow, 'status', run.status, 'reason', run.reason,
                             'items', items.total, 'ended', items.ended) AS payload
    FROM run, LATERAL (
        SELECT count(*) AS total, count(*) FILTER (WHERE status NOT IN ('queued', 'running')) AS ended
        FROM internal_items WHERE internal_items.run_id = run.run_id
    ) AS items
), logged AS (
    INSERT INTO events (session_id, number, tenant_id, body)
    SELECT lane.session_id, lane.number, lane.tenant_id,
           json_build_array(json_build_object('type', 'run_progress', 'payload', payload))
    FROM lane, progress
)
SELECT lane.number, progress.payload FROM lane, progress
