-- What was said to a session since its turn at work was accepted (RT-5).
--
-- Arguments: session_id, turn_id (of the one at work)
-- Effect:    one row for each unfinished turn after it, in order, or one with nulls: the session's last seq, whether the
--            turn at work is to be cancelled, then the turn and whether it is to be heard now: it was sent by
--            `understand`, and no predecessor of it is missing.
SELECT lanes.next_seq - 1 AS upto, mine.cancel_requested_at IS NOT NULL AS cancelled,
       said.turn_id, said.seq, said.kind, said.form, said.text, said.action,
       said.interjects IS TRUE
           AND (coalesce(said.client_sequence, 1) = 1
                OR EXISTS (SELECT FROM turns AS earlier
                           WHERE earlier.session_id = lanes.session_id
                             AND earlier.client_sequence = said.client_sequence - 1)) AS is_heard
FROM lanes
JOIN turns AS mine ON mine.turn_id = %(turn_id)s
LEFT JOIN turns AS said
    ON said.session_id = lanes.session_id AND said.seq > mine.seq
    AND said.finished_at IS NULL
WHERE lanes.session_id = %(session_id)s
ORDER BY said.seq
