-- Let a blocked run wait again, because the run that blocked it is repeated.
--
-- Arguments: run_id, open_predecessors
-- Raises a unique violation if another unfinished run holds the flight key.
UPDATE internal_runs
SET status = 'waiting',
    reason = NULL,
    finished_at = NULL,
    hint_at = NULL,
    open_predecessors = %(open_predecessors)s,
    flight_key = session_id || ':' || flow
WHERE run_id = %(run_id)s
