-- Read the messages that arrived since a session's running turn was accepted (RT-5).
--
-- Arguments: session_id, turn_id (of the running turn)
-- Returns:   one row per later unfinished turn, in order, or one row with nulls: the session's last seq, whether the running
--            turn is to be canceled, the later turn, and `is_heard`: whether to classify it now, because it was sent with
--            `understand` and its predecessor exists.
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
