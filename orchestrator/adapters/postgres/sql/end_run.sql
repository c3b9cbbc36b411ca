-- End a run, because its worker is done, an operator ended it, or a predecessor failed.
--
-- Arguments: run_id, tenant_id (null: any), token (null: end it whether claimed or not), status, closing, reason, error,
--            redo, report_s (time limit for its task to report the end)
-- Returns:   one row with the data for successors and reruns, or no row if the claim is no longer current or the run has
--            ended.
-- Releases the flight key and all claims. `again`, the graph requested while the run was active, is returned only once: a
-- scheduled rerun inherits it and reports the end.
-- If the worker freezes within the transaction, the server soon ends the transaction and releases the lock.
WITH before AS (
    SELECT run_id, flight_key, again FROM internal_runs
    WHERE run_id = %(run_id)s
      AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
      AND CASE WHEN %(token)s::bigint IS NULL THEN status IN ('waiting', 'ready', 'running')
               ELSE status = 'running' AND token = %(token)s END
    FOR NO KEY UPDATE
), freed AS (
    DELETE FROM internal_claims USING before WHERE internal_claims.run_id = before.run_id
), ended AS (
    UPDATE internal_runs AS run
    SET status = %(status)s,
        closing = %(closing)s::json,
        reason = %(reason)s,
        error = %(error)s,
        redo = %(redo)s,
        again = CASE WHEN %(redo)s = 'scheduled' THEN run.again END,
        token = NULL,
        hint_at = CASE WHEN %(redo)s <> 'scheduled'
                       THEN clock_timestamp() + %(report_s)s * interval '1 second' END,
        flight_key = NULL,
        finished_at = clock_timestamp()
    FROM before
    WHERE run.run_id = before.run_id
    RETURNING run.flow, run.successors, run.on_failure, before.flight_key, before.again, run.session_id
)
SELECT ended.*,
       set_config('idle_in_transaction_session_timeout', '4s', true)
FROM ended
