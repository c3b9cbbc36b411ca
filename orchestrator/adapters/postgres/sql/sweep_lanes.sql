-- Name sessions with work that nobody holds (the reconciler of RT-1), oldest first.
--
-- Arguments: grace_s, limit
-- Effect:    one row (session_id, pending, gap_over) per lane looked at. A lane with work is looked at again
--            after another grace; one without is forgotten until its next turn.
-- Only lanes in the partial index `lanes_check_at_idx` are visited: neither sessions at rest nor the
-- length of the queues count. `now()` is stable, so that the index bounds the scan.
WITH due AS (
    SELECT session_id
    FROM lanes
    WHERE check_at <= now() - %(grace_s)s * interval '1 second'
      AND ready_at <= now() - %(grace_s)s * interval '1 second'
      AND (lease_until IS NULL OR lease_until < now())
    ORDER BY check_at
    LIMIT %(limit)s
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE lanes
SET check_at = CASE WHEN pending > 0 THEN greatest(gap_at, clock_timestamp()) END,
    ready_at = CASE WHEN pending > 0 THEN clock_timestamp() END
FROM due
WHERE lanes.session_id = due.session_id
RETURNING lanes.session_id, lanes.pending, coalesce(lanes.gap_at <= clock_timestamp(), false) AS gap_over
