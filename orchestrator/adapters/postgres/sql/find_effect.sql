-- Read the ledger entry of a session's side effect (RT-10).
--
-- Arguments: session_id, fingerprint
-- Returns:   one row if the entry exists.
SELECT turn_id, step_key, idempotency_key, flow_id, tool_id, arguments, slots, status, result, at, of_session
FROM effects
WHERE session_id = %(session_id)s AND fingerprint = %(fingerprint)s
