-- The working state, by itself.
--
-- Arguments: session_id
SELECT body FROM states WHERE session_id = %(session_id)s
