-- Find the turn of a locked session lane that has waited too long for its predecessor in `sequence` (RT-5).
--
-- Arguments: session_id, done_seq, gap_timeout_s
-- Returns:   one row if there is such a turn: the turn with the lowest `sequence`.
SELECT turn_id
FROM turns
WHERE session_id = %(session_id)s
  AND seq > %(done_seq)s
  AND finished_at IS NULL
  AND accepted_at <= clock_timestamp() - %(gap_timeout_s)s * interval '1 second'
  AND NOT
-- include: parts/predecessor_ended.sql
ORDER BY client_sequence
LIMIT 1
