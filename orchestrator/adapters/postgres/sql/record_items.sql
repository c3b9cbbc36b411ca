-- Write what became of items, each once.
--
-- Arguments: run_id, token, ends (array of objects: position, status, output, reason, error)
-- The claim's row is locked by the caller: as long as it is there, the items are this holder's.
UPDATE internal_items AS items
SET status = ended.status,
    result = ended.output,
    reason = ended.reason,
    error = ended.error,
    updated_at = clock_timestamp()
FROM json_to_recordset(%(ends)s::json)
     AS ended (position bigint, status text, output json, reason text, error text)
WHERE items.run_id = %(run_id)s
  AND items.position = ended.position
  AND items.token = %(token)s
  AND items.status = 'running'
