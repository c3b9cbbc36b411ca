-- Remove steps, older than `old_s` seconds, of turns that have finished.
--
-- Arguments: old_s, limit
-- Effect:    the number of rows that went; as many as the limit: there may be more.
WITH gone AS (
    DELETE FROM journal
    WHERE ctid = ANY(ARRAY(
        SELECT journal.ctid
        FROM journal JOIN turns ON turns.turn_id = journal.turn_id
        -- Identifiers of turns begin with their time: those before are all there is to look at.
        WHERE journal.turn_id < 'turn_' || lpad(to_hex(
                (1000 * extract(epoch FROM clock_timestamp() - %(old_s)s * interval '1 second'))::bigint), 12, '0')
          AND journal.at < clock_timestamp() - %(old_s)s * interval '1 second'
          AND turns.finished_at IS NOT NULL
        ORDER BY journal.turn_id
        LIMIT %(limit)s))
    RETURNING 1
)
SELECT count(*) FROM gone
