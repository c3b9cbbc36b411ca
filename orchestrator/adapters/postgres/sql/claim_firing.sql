-- Claim the firing of a scheduled job: whoever inserts the row, fires (IF-15).
--
-- Arguments: tenant_id, job, due_at, next_due_at
-- Effect:    one row when the firing was free.
INSERT INTO schedule_firings (tenant_id, job, due_at, next_due_at)
VALUES (%(tenant_id)s, %(job)s, %(due_at)s, %(next_due_at)s)
ON CONFLICT DO NOTHING
RETURNING job
