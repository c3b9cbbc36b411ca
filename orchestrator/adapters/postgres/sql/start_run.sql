-- Store one node of a graph of Internal flows (IF-8, IF-9).
--
-- Arguments: run_id, tenant_id, session_id, flow, status, inputs, parameters, options, chain_id, graph_id, number,
--            redo_count, flight_key, open_predecessors, successors (array), on_failure, urgency, turn_id, after_s,
--            grace_s
-- Effect:    a unique violation when the run is there already or another unfinished one holds the flight key.
-- A node that may start has a time from which on; the reconciler looks after a grace.
INSERT INTO internal_runs (run_id, tenant_id, session_id, flow, status, inputs, parameters, options, chain_id, graph_id,
                           number, redo_count, flight_key, open_predecessors, successors, on_failure, urgency,
                           turn_id, ready_at, hint_at)
SELECT %(run_id)s, %(tenant_id)s, %(session_id)s, %(flow)s, %(status)s, %(inputs)s::json, %(parameters)s::json,
       %(options)s::json, %(chain_id)s, %(graph_id)s, %(number)s, %(redo_count)s::int, %(flight_key)s,
       %(open_predecessors)s, %(successors)s::text[], %(on_failure)s, %(urgency)s, %(turn_id)s,
       CASE WHEN %(status)s = 'ready' THEN moment END,
       CASE WHEN %(status)s = 'ready' THEN moment + %(grace_s)s * interval '1 second' END
FROM (SELECT clock_timestamp() + %(after_s)s * interval '1 second' AS moment) AS beginning
