-- Delete old epochs of some sessions, except at least the newest `keep` epochs of each session (ST-3).
--
-- Arguments: sessions (array), keep, limit
-- Returns:   the number of deleted rows. If it equals the limit, there may be more.
-- The newest snapshot that is old enough is kept, because later epochs are rebuilt from it. A commit that writes a snapshot
-- also writes the full state to `states`, so the diffs since the state in `states` are kept too.
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
