-- Add the next run of a chain. The new run inherits the successors of the previous one (IF-5).
--
-- Arguments: run_id (the chain's last), new_run_id, by_hand (whether the run gets a new task or continues the previous
--            one's), redo_count, flight_key, after_s, grace_s
-- Returns:   one row (run_id, flow, urgency). Raises a unique violation if another unfinished run holds the flight key.
WITH before AS (
    SELECT * FROM internal_runs WHERE run_id = %(run_id)s FOR NO KEY UPDATE
), handed_over AS (
    UPDATE internal_runs SET successors = '{}' FROM before WHERE internal_runs.run_id = before.run_id
)
INSERT INTO internal_runs (run_id, tenant_id, session_id, flow, status, inputs, parameters, options, chain_id, graph_id,
                           number, redo_count, flight_key, successors, on_failure, urgency, again, task_id, ready_at, hint_at)
SELECT %(new_run_id)s, tenant_id, session_id, flow, 'ready', inputs, parameters, options, chain_id, graph_id,
       (SELECT max(number) + 1 FROM internal_runs AS others WHERE others.graph_id = before.graph_id),
       %(redo_count)s::int, %(flight_key)s, successors, on_failure, urgency, again,
       CASE WHEN %(by_hand)s THEN %(new_run_id)s ELSE task_id END, moment, moment + %(grace_s)s * interval '1 second'
FROM before, (SELECT clock_timestamp() + %(after_s)s * interval '1 second' AS moment) AS beginning
RETURNING run_id, flow, urgency
