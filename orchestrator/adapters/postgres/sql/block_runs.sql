-- Find and lock the waiting runs that depend, directly or indirectly, on a failed run.
--
-- Arguments: run_ids (array), reason
-- Returns:   one row (run_id, reason) per waiting run, nearest first. For indirect dependents, `reason` names the flow that
--            blocks them.
WITH RECURSIVE dependent AS (
    SELECT run_id, flow, successors, %(reason)s::text AS reason, 1 AS distance
    FROM internal_runs
    WHERE run_id = ANY(%(run_ids)s) AND status = 'waiting'
    UNION
    SELECT further.run_id, further.flow, further.successors, dependent.flow || ' is blocked', distance + 1
    FROM dependent JOIN internal_runs AS further ON further.run_id = ANY(dependent.successors)
    WHERE further.status = 'waiting'
), nearest AS (
    SELECT DISTINCT ON (run_id) run_id, reason, distance FROM dependent ORDER BY run_id, distance
), locked AS (
    SELECT run_id FROM internal_runs
    WHERE run_id IN (SELECT run_id FROM nearest) AND status = 'waiting'
    ORDER BY run_id
    FOR NO KEY UPDATE
)
SELECT run_id, reason FROM nearest JOIN locked USING (run_id) ORDER BY distance, run_id
