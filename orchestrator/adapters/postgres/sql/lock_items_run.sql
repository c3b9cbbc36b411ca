-- Lock a run whose items are at work; what follows in the transaction sees every other holder's claim.
--
-- Arguments: run_id
-- Effect:    one row with what the stages are told.
SELECT tenant_id, session_id, flow, redo_count, parameters, settled_options, config, data, urgency
FROM internal_runs
WHERE run_id = %(run_id)s AND status = 'running' AND phase = 'items'
FOR NO KEY UPDATE
