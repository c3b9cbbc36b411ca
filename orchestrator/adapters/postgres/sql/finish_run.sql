-- End a run under its claim.
--
-- Arguments: run_id, token, status, closing, reason, error, redo
-- Effect:    one row with what successors and reruns need, none when the claim is no longer current.
WITH before AS (
    SELECT run_id, flight_key FROM internal_runs
    WHERE run_id = %(run_id)s AND token = %(token)s AND status = 'running'
    FOR NO KEY UPDATE
), freed AS (
    DELETE FROM internal_claims WHERE token = %(token)s
)
UPDATE internal_runs AS run
SET status = %(status)s,
    closing = %(closing)s::json,
    reason = %(reason)s,
    error = %(error)s,
    redo = %(redo)s,
    token = NULL,
    hint_at = NULL,
    flight_key = NULL,
    finished_at = clock_timestamp()
FROM before
WHERE run.run_id = before.run_id
RETURNING run.run_id, run.tenant_id, run.session_id, run.flow, run.inputs, run.parameters, run.options, run.chain_id,
          run.graph_id, before.flight_key, run.successors, run.on_failure, run.urgency,
          set_config('idle_in_transaction_session_timeout', '4s', true)
