-- Take back what dead or silent workers held of Internal flows.
--
-- Arguments: grace_s
-- Effect:    one row (run_id, flow, urgency, task_id) per claim that was freed; the reconciler names its run next, one
--            whose items were held after a grace. `task_id`: of the task that had a share of items, null for others.
--
-- A worker without a row in `workers` is dead: the sweep of lanes found its lock free. Nothing here waits for a lock:
-- what somebody else has locked is left for the next sweep.
WITH expired AS (
    SELECT token, run_id FROM internal_claims
    WHERE lease_until < clock_timestamp()
       OR NOT EXISTS (SELECT FROM workers WHERE workers.worker_id = internal_claims.owner)
    FOR UPDATE SKIP LOCKED
), locked AS (
    SELECT run_id FROM internal_runs
    WHERE run_id IN (SELECT run_id FROM expired)
    ORDER BY run_id
    FOR NO KEY UPDATE SKIP LOCKED
), freed AS (
    DELETE FROM internal_claims AS claim
    USING expired, locked
    WHERE claim.token = expired.token AND claim.run_id = locked.run_id
    RETURNING claim.token, claim.run_id, claim.task_id
), named AS (
    UPDATE internal_runs
    SET token = CASE WHEN internal_runs.token IN (SELECT freed.token FROM freed) THEN NULL ELSE internal_runs.token END,
        hint_at = clock_timestamp() + CASE WHEN phase = 'items' THEN %(grace_s)s::float8 ELSE 0 END * interval '1 second'
    WHERE run_id IN (SELECT freed.run_id FROM freed)
    RETURNING internal_runs.run_id, flow, urgency
)
SELECT run_id, flow, urgency, task_id FROM freed JOIN named USING (run_id)
