-- Check without a lock whether a session exists and whether its inbox is full, because a refusal should cost less than an
-- acceptance.
--
-- Arguments: session_id, tenant_id, idempotency_key (or null), if_busy (null: the session's rule), inbox_limit
-- Returns:   one row (pending, is_full), or no row if the tenant has no such session. `is_full` is false if the turn is
--            already known, or if another rule rejects it.
SELECT pending,
       NOT closed AND pending >= %(inbox_limit)s AND coalesce(%(if_busy)s::text, if_busy) <> 'reject'
       AND NOT EXISTS (SELECT FROM turns
                       WHERE turns.idempotency_key = %(idempotency_key)s::text
                         AND turns.session_id = lanes.session_id) AS is_full
FROM lanes
WHERE session_id = %(session_id)s AND tenant_id = %(tenant_id)s
