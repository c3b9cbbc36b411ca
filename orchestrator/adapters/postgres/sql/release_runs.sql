-- A predecessor has ended: count it off, and make those ready that have no other.
--
-- Arguments: run_ids (array), grace_s
-- Effect:    one row (run_id, flow, urgency) per run that may begin. Runs are locked in order.
WITH successor AS (
    SELECT unnest(%(run_ids)s::text[]) AS run_id
),
-- include: parts/released.sql
SELECT run_id, flow, urgency FROM released WHERE status = 'ready'
