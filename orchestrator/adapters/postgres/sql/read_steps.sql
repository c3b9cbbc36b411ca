-- Read the journal of a turn's earlier attempts, oldest first (RT-8).
--
-- Arguments: turn_id
SELECT key, kind, status, request_hash, result
FROM journal
WHERE turn_id = %(turn_id)s
ORDER BY at
