-- Delete firings of scheduled jobs that are older than `old_s` seconds.
--
-- Arguments: old_s, limit
-- Returns:   the number of deleted rows, capped below the limit, because all old rows are deleted in one call.
WITH gone AS (
    DELETE FROM schedule_firings
    WHERE fired_at < clock_timestamp() - %(old_s)s * interval '1 second'
    RETURNING 1
)
SELECT least(count(*), %(limit)s - 1) FROM gone
