-- Lease a lane and take up its next turn (RT-2).
--
-- Arguments: session_id, worker_id, ttl_s, max_attempts, deadline_s
-- Effect:    no row: nothing to do or another holder's lease is valid. Otherwise the lane with its state
--            and turn. The turn is null when this statement's snapshot shows none that may run: the
--            caller settles that with a fresh one. `state_epoch` differs from `epoch` when a commit came
--            in between: the caller reads the state again.
-- A lease of this same worker is taken over too: the caller asks only for lanes that it does not hold, so
-- it is one whose reply was lost.
WITH lane AS (
    UPDATE lanes
    SET lease_owner = %(worker_id)s,
        lease_token = lease_token + 1,
        lease_until = clock_timestamp() + %(ttl_s)s * interval '1 second',
        check_at = least(check_at, clock_timestamp()),
        gap_at = NULL
    WHERE session_id = %(session_id)s
      AND pending > 0
      AND (lease_until IS NULL OR lease_until < clock_timestamp() OR lease_owner = %(worker_id)s)
    RETURNING session_id, tenant_id, lease_token, epoch, done_seq
), next AS (
    SELECT candidate.turn_id
    FROM lane CROSS JOIN LATERAL (
        SELECT turns.turn_id
        FROM turns
        WHERE turns.session_id = %(session_id)s
          AND turns.seq > lane.done_seq
          AND turns.finished_at IS NULL
          AND turns.merged_into IS NULL
          AND (turns.client_sequence IS NULL
               OR turns.client_sequence = 1
               OR EXISTS (SELECT FROM turns AS predecessor
                          WHERE predecessor.session_id = turns.session_id
                            AND predecessor.client_sequence = turns.client_sequence - 1
                            AND predecessor.finished_at IS NOT NULL))
        ORDER BY turns.seq
        LIMIT 1
    ) AS candidate
), turn AS (
    UPDATE turns
    SET status = 'running',
        attempts = attempts + 1,
        started_at = coalesce(started_at, clock_timestamp()),
        deadline_at = coalesce(deadline_at, clock_timestamp() + %(deadline_s)s * interval '1 second')
    FROM next
    WHERE turns.turn_id = next.turn_id
      AND turns.finished_at IS NULL
      AND turns.attempts < %(max_attempts)s
    RETURNING turns.turn_id, seq, kind, form, text, action, attempts, merges,
              extract(epoch FROM deadline_at - clock_timestamp())::float8 AS deadline_s,
              cancel_requested_at IS NOT NULL AS cancelled,
              extract(epoch FROM clock_timestamp() - accepted_at)::float8 AS waited_s
)
SELECT lane.tenant_id, lane.lease_token, lane.epoch, sessions.user_id, sessions.domain,
       states.epoch AS state_epoch, states.body,
       turn.turn_id, turn.seq, turn.kind, turn.form, turn.text, turn.action, turn.attempts, turn.merges,
       turn.deadline_s, turn.cancelled, turn.waited_s
FROM lane
JOIN sessions ON sessions.session_id = lane.session_id
LEFT JOIN states ON states.session_id = lane.session_id
LEFT JOIN turn ON true
