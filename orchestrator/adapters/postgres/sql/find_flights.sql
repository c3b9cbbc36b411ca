-- Find runs with these IDs, or unfinished runs that hold these flight keys.
--
-- Arguments: tenant_id, flight_keys (array), run_ids (array)
-- Returns:   one row (flow, run_id, status) per run.
SELECT flow, run_id, status FROM internal_runs
WHERE run_id = ANY(%(run_ids)s) OR (flight_key = ANY(%(flight_keys)s) AND tenant_id = %(tenant_id)s)
