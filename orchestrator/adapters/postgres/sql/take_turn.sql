-- Take up the next turn of a lane that the transaction has locked; its snapshot is newer than the lock.
--
-- Arguments: session_id, max_attempts, deadline_s, alone
-- Effect:    no row: no turn may run. Otherwise its identifier, and the turn as in claim.sql; nulls when its
--            attempts are used up, or when it is to be run alone.
WITH lane AS (
    SELECT pending, done_seq FROM lanes WHERE session_id = %(session_id)s
), ended AS (
    SELECT NULL::text AS turn_id, NULL::bigint AS client_sequence
),
-- include: parts/next_turn.sql
SELECT next.turn_id, taken.* FROM next LEFT JOIN taken ON true
