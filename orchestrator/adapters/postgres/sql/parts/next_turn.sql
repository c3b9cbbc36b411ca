-- Two steps of a WITH clause: `next` finds the session's next turn that may run, `taken` marks it as running.
--
-- Arguments: session_id, max_attempts, deadline_s, crashes_below (turns that have crashed as often are not taken;
--            null: any, by a process that has nothing else to do)
-- Needs:     `lane` (pending, done_seq), and `ended` (turn_id, client_sequence): the turn that the same
--            statement ends, which its snapshot does not show as finished; nulls when it ends none.
-- `resumed`: it was begun before, whether or not that attempt counts, so that its journal has to be read.
-- A turn that is found running has lost its worker. That is a crash, and no attempt; after a second one the turn is
-- under suspicion, and taken by a process for suspects, at last by one that runs it alone (RT-26).
-- A turn whose attempts are used up, or that crashed alone, is in `next` and not in `taken`, unless it had effects:
-- then it is taken once more, with `failure`. `next` tells of its `crashes`, this one included.
next AS (
    SELECT candidate.*
    FROM lane CROSS JOIN ended CROSS JOIN LATERAL (
        SELECT turns.turn_id,
               turns.crashes + (turns.status = 'running')::int AS crashes,
               turns.alone AND turns.status = 'running' AS crashed_alone
        FROM turns
        WHERE lane.pending > 0
          AND turns.session_id = %(session_id)s
          AND turns.seq > lane.done_seq
          AND turns.finished_at IS NULL
          AND turns.turn_id IS DISTINCT FROM ended.turn_id
          AND (turns.client_sequence = ended.client_sequence + 1 OR
-- include: parts/predecessor_ended.sql
          )
        ORDER BY turns.seq
        LIMIT 1
    ) AS candidate
), taken AS (
    UPDATE turns
    SET status = 'running',
        attempts = CASE WHEN turns.attempts + (turns.status <> 'running')::int > %(max_attempts)s
                             OR turns.alone AND turns.status = 'running' THEN %(max_attempts)s + 1
                        ELSE turns.attempts + (turns.status <> 'running')::int END,
        crashes = turns.crashes + (turns.status = 'running')::int,
        alone = %(crashes_below)s::int IS NULL,
        started_at = coalesce(started_at, statement_timestamp()),
        deadline_at = coalesce(deadline_at, clock_timestamp() + %(deadline_s)s * interval '1 second')
    FROM next
    WHERE turns.turn_id = next.turn_id
      AND turns.finished_at IS NULL
      AND (%(crashes_below)s::int IS NULL
           OR turns.crashes + (turns.status = 'running')::int < %(crashes_below)s::int)
      AND (turns.attempts + (turns.status <> 'running')::int <= %(max_attempts)s
               AND NOT (turns.alone AND turns.status = 'running')
           OR turns.attempts <= %(max_attempts)s
               AND EXISTS (SELECT FROM effects WHERE effects.turn_id = turns.turn_id))
    RETURNING turns.turn_id, seq, kind, form, text, action, timezone, locale, attempts,
              extract(epoch FROM deadline_at - clock_timestamp())::float8 AS deadline_s,
              cancel_requested_at IS NOT NULL AS cancelled,
              extract(epoch FROM clock_timestamp() - accepted_at)::float8 AS waited_s,
              extract(epoch FROM accepted_at)::float8 AS accepted_at,
              started_at <> statement_timestamp() AS resumed,
              CASE WHEN attempts > %(max_attempts)s
                   THEN coalesce(error, 'its worker ended ' || turns.crashes || ' times while it was at work') END AS failure
)
