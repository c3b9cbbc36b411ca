-- The working state, by itself.
--
-- Arguments: session_id
-- Effect:    one row: the epoch of the state, the whole one at some epoch, and the diffs since.
SELECT states.epoch,
       convert_to(states.body::text, 'UTF8'),
-- include: parts/diffs.sql
FROM states
WHERE states.session_id = %(session_id)s
