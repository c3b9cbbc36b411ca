-- Let a blocked run wait again, since what blocked it is run once more.
--
-- Arguments: run_id, open_predecessors
-- Effect:    a unique violation when another unfinished run holds its flight key.
UPDATE internal_runs
SET status = 'waiting',
    reason = NULL,
    finished_at = NULL,
    hint_at = NULL,
    open_predecessors = %(open_predecessors)s,
    flight_key = session_id || ':' || flow
WHERE run_id = %(run_id)s
