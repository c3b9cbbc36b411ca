-- Delete entries of a session's scratchpad (RT-13).
--
-- Arguments: session_id, tenant_id, entry_ids (array)
DELETE FROM scratchpad_entries
WHERE session_id = %(session_id)s AND tenant_id = %(tenant_id)s AND entry_id = ANY(%(entry_ids)s)
