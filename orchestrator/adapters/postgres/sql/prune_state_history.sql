-- Remove epochs of some sessions beyond the newest `keep` (ST-3).
--
-- Arguments: sessions (array), keep, limit
-- Effect:    the number of rows that went; as many as the limit: there may be more.
-- An epoch can be rebuilt from the snapshot before it: the newest one that is old enough stays. Where a
-- snapshot is made, `states` gets the whole state as well, so that the diffs since that one stay too.
WITH gone AS (
    DELETE FROM state_history
    WHERE ctid = ANY(ARRAY(
        SELECT old.ctid
        FROM lanes
        CROSS JOIN LATERAL (
            SELECT kept.epoch
            FROM state_history AS kept
            WHERE kept.session_id = lanes.session_id
              AND kept.epoch <= lanes.epoch - %(keep)s::bigint
              AND kept.snapshot IS NOT NULL
            ORDER BY kept.epoch DESC
            LIMIT 1
        ) AS base
        JOIN state_history AS old ON old.session_id = lanes.session_id AND old.epoch < base.epoch
        WHERE lanes.session_id = ANY(%(sessions)s)
        LIMIT %(limit)s))
    RETURNING 1
)
SELECT count(*) FROM gone
