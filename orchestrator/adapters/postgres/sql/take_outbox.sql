-- Take messages of the outbox that are to be sent now (RT-4).
--
-- Arguments: kinds (array), again_after_s, limit
-- Effect:    one row per message never sent, or sent `again_after_s` seconds ago and not acknowledged; it is
--            marked as sent now, so that no other process takes it at the same time. Nobody waits until the disk
--            has that: what is lost is sent once more.
-- `coalesce` and the array are for the planner, which is free behind a pooler: it would take such messages for rare, and
-- read and sort all that wait in order to take a few.
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
