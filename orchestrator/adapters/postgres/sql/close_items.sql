-- Continue a locked run with `after_all` if all its items are finished.
--
-- Arguments: run_id, grace_s
-- Returns:   one row if `after_all` may start.
UPDATE internal_runs
SET phase = 'after_all',
    token = NULL,
    attempts = 0,
    ready_at = clock_timestamp(),
    hint_at = clock_timestamp() + %(grace_s)s * interval '1 second'
WHERE run_id = %(run_id)s
  AND status = 'running'
  AND phase = 'items'
  AND NOT EXISTS (SELECT FROM internal_items
                  WHERE internal_items.run_id = %(run_id)s AND internal_items.status IN ('queued', 'running'))
RETURNING 1
