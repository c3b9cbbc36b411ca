-- Delete runs that ended more than `old_s` seconds ago, with their items.
--
-- Arguments: old_s, limit
-- Returns:   20 times the number of deleted runs. The limit also counts a run as 20 rows, because a run has many items.
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
