-- Take back what dead or silent workers held of Internal flows.
--
-- Arguments: none
-- Effect:    one row (run_id) per run of which something was freed; the reconciler names it next.
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
    RETURNING claim.token, claim.run_id
)
UPDATE internal_runs
SET token = CASE WHEN internal_runs.token IN (SELECT freed.token FROM freed) THEN NULL ELSE internal_runs.token END,
    hint_at = clock_timestamp()
WHERE run_id IN (SELECT freed.run_id FROM freed)
RETURNING internal_runs.run_id
