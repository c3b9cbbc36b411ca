-- Record the end of a predecessor, and make the runs ready that have no other open predecessor.
--
-- Arguments: run_ids (array), grace_s
-- Returns:   one row (run_id, flow, urgency) per run that may start. Runs are locked in order.
WITH successor AS (
    SELECT unnest(%(run_ids)s::text[]) AS run_id
),
locked AS (
    SELECT run_id FROM internal_runs WHERE run_id IN (SELECT run_id FROM successor) ORDER BY run_id FOR NO KEY UPDATE
), released AS (
    UPDATE internal_runs
    SET open_predecessors = open_predecessors - 1,
        status = CASE WHEN open_predecessors = 1 THEN 'ready' ELSE status END,
        ready_at = CASE WHEN open_predecessors = 1 THEN clock_timestamp() END,
        hint_at = CASE WHEN open_predecessors = 1
                       THEN clock_timestamp() + %(grace_s)s * interval '1 second' END
    FROM locked
    WHERE internal_runs.run_id = locked.run_id AND status = 'waiting'
    RETURNING internal_runs.run_id, flow, urgency, status
)
SELECT run_id, flow, urgency FROM released WHERE status = 'ready'
