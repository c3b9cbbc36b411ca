-- Read a session's working state.
--
-- Arguments: session_id
-- Returns:   one row: the current epoch, the full state at its base epoch, and the diffs since.
SELECT states.epoch,
       convert_to(states.body::text, 'UTF8'),
-- include: parts/diffs.sql
FROM states
WHERE states.session_id = %(session_id)s
