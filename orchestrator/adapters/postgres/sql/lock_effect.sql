-- Let no other branch of the session's family begin the same call before this transaction ends (ST-4).
--
-- Arguments: session_id, tool_id, arguments (JSON)
SELECT pg_advisory_xact_lock(hashtextextended(
           concat_ws(' ', coalesce(root, session_id), %(tool_id)s::text), jsonb_hash_extended(%(arguments)s::jsonb, 0)))
FROM sessions
WHERE session_id = %(session_id)s
