-- Store a graph that was requested while a run is active. The graph starts when the run has ended (IF-11).
--
-- Arguments: run_id, again (the nodes, as in `start_graph`)
-- Returns:   one row, or no row if the run has ended. A later request replaces an earlier one.
UPDATE internal_runs SET again = %(again)s::json
WHERE run_id = %(run_id)s AND status IN ('waiting', 'ready', 'running')
RETURNING run_id
