-- Store all nodes of a graph of background flows, or none of them (IF-8, IF-9).
--
-- Arguments: graph_id, grace_s, nodes (array of objects: run_id, tenant_id, session_id, flow, inputs, parameters, options,
--            flight_key, open_predecessors, successors, on_failure, urgency, turn_id)
-- Returns:   one row (run_id, flow, urgency) per node that may start; the reconciler checks it after the grace period.
--            Raises a unique violation if a run already exists or another unfinished run holds its flight key.
WITH stored AS (
    INSERT INTO internal_runs (run_id, tenant_id, session_id, flow, status, inputs, parameters, options, chain_id,
                               graph_id, number, flight_key, open_predecessors, successors, on_failure, urgency,
                               turn_id, task_id, ready_at, hint_at)
    SELECT node.run_id, node.tenant_id, node.session_id, node.flow,
           CASE WHEN node.open_predecessors = 0 THEN 'ready' ELSE 'waiting' END,
           node.inputs, node.parameters, node.options, node.run_id, %(graph_id)s, node.place - 1, node.flight_key,
           node.open_predecessors, node.successors, node.on_failure, node.urgency, node.turn_id, node.run_id,
           CASE WHEN node.open_predecessors = 0 THEN clock_timestamp() END,
           CASE WHEN node.open_predecessors = 0
                THEN clock_timestamp() + %(grace_s)s * interval '1 second' END
    FROM ROWS FROM (json_to_recordset(%(nodes)s::json)
                    AS (run_id text, tenant_id text, session_id text, flow text, inputs json, parameters json,
                        options json, flight_key text, open_predecessors int, successors text[], on_failure text,
                        urgency text, turn_id text))
         WITH ORDINALITY AS node (run_id, tenant_id, session_id, flow, inputs, parameters, options, flight_key,
                                  open_predecessors, successors, on_failure, urgency, turn_id, place)
    RETURNING run_id, flow, urgency, status
)
SELECT run_id, flow, urgency FROM stored WHERE status = 'ready'
