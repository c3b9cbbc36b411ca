-- Claim the firing of a scheduled job. Only the process that inserts the row runs the job (IF-15).
--
-- Arguments: tenant_id, job, due_at, next_due_at
-- Returns:   one row if the firing was free.
INSERT INTO schedule_firings (tenant_id, job, due_at, next_due_at)
VALUES (%(tenant_id)s, %(job)s, %(due_at)s, %(next_due_at)s)
ON CONFLICT DO NOTHING
RETURNING job
