-- Lock a run whose items are at work; what follows in the transaction sees every other holder's claim.
--
-- Arguments: run_id, waited_s (items of housekeeping that waited less are deferred)
-- Effect:    one row with the facts for the stages, and last whether its items are deferred.
-- A worker that freezes within the transaction loses it, and with it the lock, after a short while.
SELECT tenant_id, session_id, flow, redo_count, parameters, final_options, config, data, urgency, turn_id,
       set_config('idle_in_transaction_session_timeout', '4s', true),
       urgency <> 'urgent' AND ready_at > clock_timestamp() - %(waited_s)s * interval '1 second' AS deferred
FROM internal_runs
WHERE run_id = %(run_id)s AND status = 'running' AND phase = 'items'
FOR NO KEY UPDATE
