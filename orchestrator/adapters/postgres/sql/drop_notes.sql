-- Delete scratchpad entries (RT-13).
--
-- Arguments: session_ids, tenant_ids, entry_ids (arrays of equal length)
DELETE FROM scratchpad_entries
USING unnest(%(session_ids)s::text[], %(tenant_ids)s::text[], %(entry_ids)s::text[]) AS gone (session_id, tenant_id, entry_id)
WHERE scratchpad_entries.session_id = gone.session_id AND scratchpad_entries.entry_id = gone.entry_id
  AND scratchpad_entries.tenant_id = gone.tenant_id
RETURNING scratchpad_entries.entry_id
