-- Lock a run that is processing items. Later statements of the transaction see all other workers' claims.
--
-- Arguments: run_id, waited_s (items of background runs that have waited less are deferred)
-- Returns:   one row for the run's stages; the last column: whether the items are deferred.
-- If the worker freezes within the transaction, the server soon ends the transaction and releases the lock.
SELECT tenant_id, session_id, flow, redo_count, parameters, final_options, config, data, urgency, turn_id,
       set_config('idle_in_transaction_session_timeout', '4s', true),
       urgency <> 'urgent' AND ready_at > clock_timestamp() - %(waited_s)s * interval '1 second' AS deferred
FROM internal_runs
WHERE run_id = %(run_id)s AND status = 'running' AND phase = 'items'
FOR NO KEY UPDATE
