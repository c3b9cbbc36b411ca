-- End `before_all`: store the items, or continue with `after_all` if there are none. Releases the claim.
--
-- Arguments: run_id, token, inputs, options, data, grace_s
-- Returns:   one row, or no row if the claim is no longer current.
WITH run AS (
    UPDATE internal_runs
    SET phase = CASE WHEN json_array_length(%(inputs)s::json) > 0 THEN 'items' ELSE 'after_all' END,
        final_options = %(options)s::json,
        data = %(data)s::json,
        token = NULL,
        attempts = 0,
        ready_at = clock_timestamp(),
        hint_at = clock_timestamp() + %(grace_s)s * interval '1 second'
    WHERE run_id = %(run_id)s AND token = %(token)s
    RETURNING run_id, tenant_id
), items AS (
    INSERT INTO internal_items (run_id, position, tenant_id, status, input)
    SELECT run_id, place - 1, tenant_id, 'queued', value
    FROM run CROSS JOIN json_array_elements(%(inputs)s::json) WITH ORDINALITY AS given (value, place)
), freed AS (
    DELETE FROM internal_claims WHERE token = %(token)s
)
SELECT 1 FROM run
