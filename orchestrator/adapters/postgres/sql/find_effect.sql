-- The session's line of the ledger for an effect (RT-10).
--
-- Arguments: session_id, fingerprint
-- Effect:    at most one row.
SELECT turn_id, step_key, idempotency_key, flow_id, tool_id, arguments, slots, status, result, at
FROM effects
WHERE session_id = %(session_id)s AND fingerprint = %(fingerprint)s
