-- See whether a session is there, and whether its inbox is full for a turn that it does not know, without a lock:
-- refusals are to cost less than acceptances.
--
-- Arguments: session_id, tenant_id, idempotency_key (or null), if_busy (null: the session's own), inbox_limit
-- Effect:    one row (pending, is_full), none when the tenant has no such session. `is_full` is false for whatever else
--            is in the turn's way.
SELECT pending,
       NOT closed AND pending >= %(inbox_limit)s AND coalesce(%(if_busy)s::text, if_busy) <> 'reject'
       AND NOT EXISTS (SELECT FROM turns
                       WHERE turns.idempotency_key = %(idempotency_key)s::text
                         AND turns.session_id = lanes.session_id) AS is_full
FROM lanes
WHERE session_id = %(session_id)s AND tenant_id = %(tenant_id)s
