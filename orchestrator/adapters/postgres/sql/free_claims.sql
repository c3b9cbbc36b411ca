-- Release the claims of dead or silent workers on background flows.
--
-- Arguments: grace_s
-- Returns:   one row (run_id, flow, urgency, task_id) per released claim. The reconciler picks up the run next, or after a
--            grace period if the claim was on items. `task_id`: the task of a share of items, or null.
-- A worker without a row in `workers` is dead, because the sweep of session lanes found its lock free. This statement never
-- waits for a lock; the next sweep handles rows that are locked now.
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
