-- Name sessions with work that nobody holds (the reconciler of RT-1), oldest first.
--
-- Arguments: grace_s, limit
-- Effect:    one row (session_id, pending, gap_over) per lane looked at. A lane with work is looked at again
--            after another grace; one without is forgotten until its next turn.
-- Only lanes in the partial index `lanes_check_at_idx` are visited: neither sessions at rest nor the
-- length of the queues count. `now()` is stable, so that the index bounds the scan.
-- `coalesce` and the array are for the planner, which is free behind a pooler: it would take the conditions for rare, and
-- sort all lanes that are due, or scan all there are for those that it has found.
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
