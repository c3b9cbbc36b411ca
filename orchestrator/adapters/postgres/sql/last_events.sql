-- The numbers of sessions' last events, for all listeners of a process and tenant at once (RT-15).
--
-- Arguments: tenant_id, session_ids
-- Effect:    one row (session_id, number) for each session there is.
SELECT session_id, next_event - 1 FROM lanes WHERE session_id = ANY(%(session_ids)s) AND tenant_id = %(tenant_id)s
