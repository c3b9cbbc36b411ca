-- Delete delivered, canceled and refused events that are older than `old_s` seconds.
--
-- Arguments: old_s, limit
-- Returns:   the number of deleted rows. If it equals the limit, there may be more.
WITH gone AS (
    DELETE FROM scheduled_events
    WHERE ctid = ANY(ARRAY(
        SELECT ctid
        FROM scheduled_events
        WHERE status <> 'scheduled' AND updated_at < clock_timestamp() - %(old_s)s * interval '1 second'
        ORDER BY updated_at
        LIMIT %(limit)s))
    RETURNING 1
)
SELECT count(*) FROM gone
