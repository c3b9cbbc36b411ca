-- Take up the next turn of a lane that the transaction has locked; its snapshot is newer than the lock.
--
-- Arguments: session_id, max_attempts, deadline_s, crashes_below
-- Effect:    no row: no turn may run. Otherwise its identifier, and the turn as in claim.sql; nulls when its
--            attempts are used up, or when it has crashed too often to be run here.
WITH lane AS (
    SELECT pending, done_seq FROM lanes WHERE session_id = %(session_id)s
), ended AS (
    SELECT NULL::text AS turn_id, NULL::bigint AS client_sequence
),
-- include: parts/next_turn.sql
SELECT next.turn_id, taken.* FROM next LEFT JOIN taken ON true
