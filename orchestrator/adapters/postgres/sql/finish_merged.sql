-- Give a turn that was merged into a committed one the same ending, in the commit's transaction (RT-5).
--
-- Arguments: turn_id (of the committed one), merged_id, result (packed)
UPDATE turns AS merged
SET status = head.status, error = head.error, token = head.token, epoch = head.epoch,
    finished_at = head.finished_at, result = %(result)s
FROM turns AS head
WHERE head.turn_id = %(turn_id)s AND merged.turn_id = %(merged_id)s
