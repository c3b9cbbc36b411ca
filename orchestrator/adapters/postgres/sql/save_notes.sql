-- Insert or replace entries of a session's scratchpad (RT-14).
--
-- Arguments: session_id, tenant_id, entries (JSON array), without duplicates
INSERT INTO scratchpad_entries (session_id, entry_id, tenant_id, body)
SELECT %(session_id)s, entry ->> 'entry_id', %(tenant_id)s, entry
FROM json_array_elements(%(entries)s::json) AS entry
ON CONFLICT (session_id, entry_id) DO UPDATE SET body = excluded.body, used_at = clock_timestamp()
