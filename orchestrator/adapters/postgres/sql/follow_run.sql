-- Enter a new run as a successor of one that is there.
--
-- Arguments: run_id, tenant_id, successor
-- Effect:    one row; none when that run has ended already.
UPDATE internal_runs
SET successors = array_append(successors, %(successor)s)
WHERE run_id = %(run_id)s AND tenant_id = %(tenant_id)s AND status IN ('waiting', 'ready', 'running')
RETURNING run_id
