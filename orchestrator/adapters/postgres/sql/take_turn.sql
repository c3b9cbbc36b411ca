-- Start the next turn of a session lane that the transaction has locked. The snapshot is newer than the lock.
--
-- Arguments: session_id, max_attempts, deadline_s, crashes_below
-- Returns:   no row if no turn may run, or the turn's ID and its columns as in claim.sql, which are null if its
--            attempts are used up or it has crashed too often to run in this process.
WITH lane AS (
    SELECT pending, done_seq FROM lanes WHERE session_id = %(session_id)s
), ended AS (
    SELECT NULL::text AS turn_id, NULL::bigint AS client_sequence
),
-- include: parts/next_turn.sql
SELECT next.turn_id, taken.* FROM next LEFT JOIN taken ON true
