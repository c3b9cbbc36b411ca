-- Delete firings of scheduled jobs that are older than `old_s` seconds.
--
-- Arguments: old_s, limit
-- Returns:   the number of deleted rows, but always less than the limit, because none are left.
WITH gone AS (
    DELETE FROM schedule_firings
    WHERE fired_at < clock_timestamp() - %(old_s)s * interval '1 second'
    RETURNING 1
)
SELECT least(count(*), %(limit)s - 1) FROM gone
