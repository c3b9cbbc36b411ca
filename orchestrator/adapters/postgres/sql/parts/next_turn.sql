-- Two steps of a WITH clause: `next` finds the session's next turn that may run, `taken` marks it as running.
--
-- Arguments: session_id, max_attempts, deadline_s, crashes_below (skip turns with this many crashes; null: skip none, in
--            a process that runs only this turn)
-- Needs:     `lane` (pending, done_seq), and `ended` (turn_id, client_sequence): the turn that the same statement ends,
--            which its snapshot does not show as finished; nulls if it ends none.
-- `resumed`: the turn was started before, whether or not that attempt counts, so its journal must be read.
-- A turn that is found running has lost its worker. That counts as a crash, not as an attempt. After the second crash, the
-- turn is a suspected poison turn, and only an isolated process runs it, alone (RT-26).
-- If its attempts are used up or it crashed while alone, a turn is in `next` but not in `taken`. If it has side effects, it
-- is taken one last time, with `failure`. `crashes` in `next` includes the current crash.
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
                   THEN coalesce(error, 'its worker ended ' || turns.crashes || ' times while running it') END AS failure
)
