-- The turns that were merged into one and have not finished.
--
-- Arguments: turn_id
-- Effect:    one row for each.
SELECT turn_id, seq, text FROM turns WHERE merged_into = %(turn_id)s AND finished_at IS NULL
