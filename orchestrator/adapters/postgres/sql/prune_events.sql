-- Delete some sessions' events that are older than `old_s` seconds.
--
-- Arguments: sessions (array), old_s, limit
-- Returns:   the number of deleted rows. If it equals the limit, there may be more.
-- The numbers and times of a session's events grow together, so the primary key is enough to find old events.
WITH gone AS (
    DELETE FROM events
    WHERE ctid = ANY(ARRAY(
        SELECT old.ctid
        FROM lanes
        CROSS JOIN LATERAL (
            SELECT coalesce((
                SELECT number
                FROM events AS kept
                WHERE kept.session_id = lanes.session_id
                  AND kept.at >= clock_timestamp() - %(old_s)s * interval '1 second'
                ORDER BY number
                LIMIT 1), lanes.next_event) AS number
        ) AS first
        JOIN events AS old ON old.session_id = lanes.session_id AND old.number < first.number
        WHERE lanes.session_id = ANY(%(sessions)s)
        LIMIT %(limit)s))
    RETURNING 1
)
SELECT count(*) FROM gone
