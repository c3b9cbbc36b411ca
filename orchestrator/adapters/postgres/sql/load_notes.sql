-- Read a session's archived scratchpad (RT-14).
--
-- Arguments: session_id, tenant_id, capacity
-- Returns:   up to `capacity` rows, one per entry, most recently used first.
SELECT body
FROM scratchpad_entries
WHERE session_id = %(session_id)s AND tenant_id = %(tenant_id)s
ORDER BY used_at DESC
LIMIT %(capacity)s
