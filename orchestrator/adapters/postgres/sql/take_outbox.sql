-- Take the outbox messages that are due (RT-4).
--
-- Arguments: kinds (array), again_after_s, limit
-- Returns:   one row per message that was never sent, or that was sent `again_after_s` seconds ago without an
--            acknowledgment. Messages are marked as sent, so that no other process takes them at the same time.
-- Commits asynchronously: a mark that is lost only repeats a message.
-- `coalesce` and the array guide the planner, which replans behind a connection pooler. Without them, it would assume that due
-- messages are rare, and read and sort all waiting messages to take a few.
WITH due AS (
    SELECT id
    FROM outbox
    WHERE coalesce(
        kind = ANY(%(kinds)s)
        AND (sent_at IS NULL OR sent_at < clock_timestamp() - %(again_after_s)s * interval '1 second'), false)
    ORDER BY id
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
)
UPDATE outbox
SET sent_at = clock_timestamp()
FROM (SELECT set_config('synchronous_commit', 'off', true)) AS unhurried
WHERE outbox.id = ANY(ARRAY(SELECT id FROM due))
RETURNING outbox.id, tenant_id, session_id, turn_id, kind, payload
