-- Remember that a graph was asked for while it was at work: it starts once more when this run has ended (IF-11).
--
-- Arguments: run_id, again (the nodes, as `start_graph` takes them)
-- Effect:    one row; none when the run has ended. Who asks last decides what is started, and it is started once.
UPDATE internal_runs SET again = %(again)s::json
WHERE run_id = %(run_id)s AND status IN ('waiting', 'ready', 'running')
RETURNING run_id
