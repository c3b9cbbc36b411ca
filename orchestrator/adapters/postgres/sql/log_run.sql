-- Append the progress of a background run to its session's event log (RT-15).
--
-- Arguments: run_id
-- Returns:   one row (number, payload) of the new event, or no row if the run has no session.
-- Locks the session lane. The caller must not hold another lane, but may hold runs.
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
