-- Read a session's working state.
--
-- Arguments: session_id
-- Returns:   one row: the state.
SELECT convert_to(body::text, 'UTF8') FROM states WHERE session_id = %(session_id)s
