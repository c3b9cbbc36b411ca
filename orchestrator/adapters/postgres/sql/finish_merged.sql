-- Give the turns that were merged into a committed one the same ending, in the commit's transaction (RT-5).
--
-- Arguments: turn_id
UPDATE turns AS merged
SET status = head.status, error = head.error, token = head.token, epoch = head.epoch,
    finished_at = head.finished_at,
    result = (head.result::jsonb || jsonb_build_object(
        'turn_id', merged.turn_id, 'seq', merged.seq, 'text', merged.text, 'merged_into', head.turn_id))::json
FROM turns AS head
WHERE head.turn_id = %(turn_id)s AND merged.merged_into = head.turn_id AND merged.finished_at IS NULL
