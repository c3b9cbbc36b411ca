-- Find runs that have not ended and that hold flight keys, or that have these identifiers.
--
-- Arguments: tenant_id, flight_keys (array), run_ids (array)
-- Effect:    one row (flow, run_id, status) per run.
SELECT flow, run_id, status FROM internal_runs
WHERE run_id = ANY(%(run_ids)s) OR (flight_key = ANY(%(flight_keys)s) AND tenant_id = %(tenant_id)s)
