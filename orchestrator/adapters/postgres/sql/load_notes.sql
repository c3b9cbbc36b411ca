-- Read a session's scratchpad as it was accepted (RT-14).
--
-- Arguments: session_id, tenant_id, capacity
-- Effect:    one row per entry, the one used last first; at most `capacity`
SELECT body
FROM scratchpad_entries
WHERE session_id = %(session_id)s AND tenant_id = %(tenant_id)s
ORDER BY used_at DESC
LIMIT %(capacity)s
