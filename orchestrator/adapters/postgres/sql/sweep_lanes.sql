-- Find sessions with unclaimed work, oldest first (the reconciler of RT-1).
--
-- Arguments: grace_s, limit
-- Returns:   one row (session_id, pending, gap_over) per checked lane. A lane with work is checked again after the grace
--            period. A lane without work is not checked until its next turn.
-- Only lanes in the partial index `lanes_check_at_idx` are visited, so neither idle sessions nor queue lengths matter.
-- `now()` is stable, so that the index bounds the scan.
-- `coalesce` and the array guide the planner, which replans behind a connection pooler. Without them, it would assume that the
-- conditions are rare, and sort all due lanes or scan the whole table.
WITH due AS (
    SELECT session_id
    FROM lanes
    WHERE check_at <= now() - %(grace_s)s * interval '1 second'
      AND coalesce(ready_at <= now() - %(grace_s)s * interval '1 second'
                   AND (lease_until IS NULL OR lease_until < now()), false)
    ORDER BY check_at
    LIMIT %(limit)s
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE lanes
SET check_at = CASE WHEN pending > 0 THEN greatest(gap_at, clock_timestamp()) END,
    ready_at = CASE WHEN pending > 0 THEN clock_timestamp() END
WHERE lanes.session_id = ANY(ARRAY(SELECT session_id FROM due))
RETURNING lanes.session_id, lanes.pending, coalesce(lanes.gap_at <= clock_timestamp(), false) AS gap_over
