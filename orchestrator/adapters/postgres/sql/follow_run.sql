-- Add a successor to an unfinished run.
--
-- Arguments: run_id, tenant_id, successor
-- Returns:   one row, or no row if the run has ended.
UPDATE internal_runs
SET successors = array_append(successors, %(successor)s)
WHERE run_id = %(run_id)s AND tenant_id = %(tenant_id)s AND status IN ('waiting', 'ready', 'running')
RETURNING run_id
