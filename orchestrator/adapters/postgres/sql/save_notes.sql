-- Insert or replace scratchpad entries (RT-14).
--
-- Arguments: entries (JSON array of objects: session_id, tenant_id, entry), without duplicates
INSERT INTO scratchpad_entries (session_id, entry_id, tenant_id, body)
SELECT note.session_id, note.entry ->> 'entry_id', note.tenant_id, note.entry
FROM json_to_recordset(%(entries)s::json) AS note (session_id text, tenant_id text, entry json)
ON CONFLICT (session_id, entry_id) DO UPDATE SET body = excluded.body, used_at = clock_timestamp()
RETURNING entry_id
