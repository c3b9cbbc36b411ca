-- Delete archived flows of some sessions, except the newest `keep` flows of each session (ST-3).
--
-- Arguments: sessions (array), keep, limit
-- Returns:   the number of deleted rows. If it equals the limit, there may be more.
WITH gone AS (
    DELETE FROM flows_archive
    WHERE ctid = ANY(ARRAY(
        SELECT old.ctid
        FROM lanes
        CROSS JOIN LATERAL (
            SELECT kept.at
            FROM flows_archive AS kept
            WHERE kept.session_id = lanes.session_id
            ORDER BY kept.at DESC
            OFFSET %(keep)s::bigint - 1
            LIMIT 1
        ) AS last
        JOIN flows_archive AS old ON old.session_id = lanes.session_id AND old.at < last.at
        WHERE lanes.session_id = ANY(%(sessions)s)
        LIMIT %(limit)s))
    RETURNING 1
)
SELECT count(*) FROM gone
