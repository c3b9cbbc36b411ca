-- Remove runs that ended longer than `old_s` seconds ago, with their items; a twentieth of the limit, as a run has many.
--
-- Arguments: old_s, limit
-- Effect:    the number of rows that went, times twenty.
WITH gone AS (
    DELETE FROM internal_runs
    WHERE run_id = ANY(ARRAY(
        SELECT run_id
        FROM internal_runs
        WHERE finished_at < clock_timestamp() - %(old_s)s * interval '1 second'
        ORDER BY finished_at
        LIMIT %(limit)s / 20))
    RETURNING 1
)
SELECT count(*) * 20 FROM gone
