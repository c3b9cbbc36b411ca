-- Lease a session lane and start its next turn (RT-2).
--
-- Arguments: session_id, worker_id, ttl_s, max_attempts, deadline_s, crashes_below
-- Returns:   no row if there is nothing to do or another worker's lease is valid. If leased: the lane, its state and turn.
--            `pending` counts the waiting turns, including this one. The turn is null if this statement's snapshot shows
--            no turn that may run; the caller retries with a fresh snapshot. `suspected`: the number of crashes if the
--            turn is null because it has crashed too often; the caller leaves the lane to an isolated process. If
--            `state_epoch` is null or differs from `epoch`, another worker held the lane in between; the caller reads
--            the state again.
-- A lease of this worker is also replaced. The worker only asks for lanes that it doesn't hold, so the reply to an earlier
-- claim was lost.
-- Commits asynchronously: later writes of this worker follow the claim in the log, so they are never on disk without it.
-- A server crash may undo the claim while the worker is still running. The lower half of the token is random, so that the
-- next claim of the lane gets a different token (docs/decisions/0014-commit-claims-asynchronously.md).
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
