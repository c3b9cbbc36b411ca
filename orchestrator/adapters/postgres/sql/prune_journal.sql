-- Delete journal steps that are older than `old_s` seconds and belong to finished turns.
--
-- Arguments: old_s, limit
-- Returns:   the number of deleted rows. If it equals the limit, there may be more.
WITH gone AS (
    DELETE FROM journal
    WHERE ctid = ANY(ARRAY(
        SELECT journal.ctid
        FROM journal JOIN turns ON turns.turn_id = journal.turn_id
        -- Turn IDs begin with a timestamp, so only smaller IDs can be old enough.
        WHERE journal.turn_id < 'turn_' || lpad(to_hex(
                (1000 * extract(epoch FROM clock_timestamp() - %(old_s)s * interval '1 second'))::bigint), 12, '0')
          AND journal.at < clock_timestamp() - %(old_s)s * interval '1 second'
          AND turns.finished_at IS NOT NULL
        ORDER BY journal.turn_id
        LIMIT %(limit)s))
    RETURNING 1
)
SELECT count(*) FROM gone
