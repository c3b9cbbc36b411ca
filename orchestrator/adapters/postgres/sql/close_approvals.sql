-- Mark approvals as used, expired or void (PX-17).
--
-- Arguments: session_id, closed (JSON array)
-- Only pending or granted approvals change, and only granted ones can be used.
UPDATE approvals
SET status = closed.status, closed_at = clock_timestamp()
FROM json_to_recordset(%(closed)s::json) AS closed (approval_id text, status text)
WHERE approvals.approval_id = closed.approval_id
  AND approvals.session_id = %(session_id)s
  AND (approvals.status = 'granted' OR (approvals.status = 'pending' AND closed.status <> 'used'))
