-- Lease a lane and take up its next turn (RT-2).
--
-- Arguments: session_id, worker_id, ttl_s, max_attempts, deadline_s, crashes_below
-- Effect:    no row: nothing to do or another holder's lease is valid. Otherwise the lane with its state
--            and turn; `pending`: the turns that wait, this one included. The turn is null when this statement's
--            snapshot shows none that may run: the caller repairs that with a fresh one. `suspected`: it is null because
--            it has crashed so often, and the caller leaves the lane to a process for suspects. `state_epoch` differs
--            from `epoch`, or is null, when somebody held the lane in between: the caller reads the state again.
-- A lease of this same worker is taken over too: the caller asks only for lanes that it does not hold, so
-- it is one whose reply was lost.
-- Nobody waits until the disk has a claim: whatever its holder writes comes after it, and is never found on the disk
-- without it. A crash of the server may take it back while its holder is at work, so the lower half of a token is
-- drawn by lot: whoever claims the lane then has another one (docs/decisions/0014-nobody-waits-for-a-claim.md).
WITH lane AS (
    UPDATE lanes
    SET lease_owner = %(worker_id)s,
        lease_token = (lease_token | 4294967295) + 1 + floor(4294967296 * random())::bigint,
        lease_until = clock_timestamp() + %(ttl_s)s * interval '1 second',
        check_at = least(check_at, clock_timestamp()),
        gap_at = NULL
    WHERE session_id = %(session_id)s
      AND pending > 0
      AND (lease_until IS NULL OR lease_until < clock_timestamp() OR lease_owner = %(worker_id)s)
    RETURNING session_id, tenant_id, lease_token, epoch, done_seq, pending,
              set_config('synchronous_commit', 'off', true)
), ended AS (
    SELECT NULL::text AS turn_id, NULL::bigint AS client_sequence
),
-- include: parts/next_turn.sql
SELECT lane.tenant_id, lane.lease_token, lane.epoch, lane.pending, sessions.user_id, sessions.domain, sessions.root,
       CASE WHEN seen.lease_token >> 32 = (lane.lease_token >> 32) - 1 THEN states.epoch END AS state_epoch,
       convert_to(states.body::text, 'UTF8'),
-- include: parts/diffs.sql
       ,
       CASE WHEN taken.turn_id IS NULL AND seen.lease_token >> 32 = (lane.lease_token >> 32) - 1
                 AND NOT next.crashed_alone AND next.crashes >= %(crashes_below)s::int THEN next.crashes END AS suspected,
       taken.*
FROM lane
JOIN lanes AS seen ON seen.session_id = lane.session_id
JOIN sessions ON sessions.session_id = lane.session_id
LEFT JOIN states ON states.session_id = lane.session_id
LEFT JOIN next ON true
LEFT JOIN taken ON true
