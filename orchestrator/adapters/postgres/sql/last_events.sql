-- Read the numbers of sessions' last events, for all listeners of a process and tenant (RT-15).
--
-- Arguments: tenant_id, session_ids
-- Returns:   one row (session_id, number) per existing session.
SELECT session_id, next_event - 1 FROM lanes WHERE session_id = ANY(%(session_ids)s) AND tenant_id = %(tenant_id)s
