-- Remove the records of runs that were told of a session: its own, and whole those of runs over many sessions.
--
-- Arguments: session_id
DELETE FROM internal_records
WHERE session_id = %(session_id)s
   OR run_id IN (SELECT run_id FROM internal_records AS told
                 WHERE told.about <> '{}' AND told.about @> ARRAY[%(session_id)s])
