-- Find inconsistent rows of quiet sessions, except their states (PX-17, RT-1).
--
-- Arguments: after, limit (sessions to check), quiet_s, sessions (array; null: those updated within a day)
-- Returns:   one row (session_id, tenant_id, turns, frames, plans) per checked session. `turns`: running turns that no
--            sweep will visit. `frames`: frames of flows that are neither on the stack nor archived. `plans`: open plans
--            that are not on the stack.
SELECT lanes.session_id, lanes.tenant_id, turns.count, frames.count, plans.count
FROM (
    SELECT * FROM lanes
    WHERE session_id > %(after)s
      AND updated_at < clock_timestamp() - %(quiet_s)s * interval '1 second'
      AND CASE WHEN %(sessions)s::text[] IS NULL THEN updated_at > clock_timestamp() - interval '1 day'
               ELSE session_id = ANY(%(sessions)s) END
    ORDER BY session_id
    LIMIT %(limit)s
) AS lanes
JOIN states AS stack USING (session_id)
CROSS JOIN LATERAL (
    SELECT count(*) FROM turns
    WHERE turns.session_id = lanes.session_id AND turns.seq > lanes.done_seq AND turns.status = 'running'
      AND lanes.lease_owner IS NULL AND lanes.check_at IS NULL
) AS turns
CROSS JOIN LATERAL (
    SELECT count(*) FROM frames
    WHERE frames.session_id = lanes.session_id AND frames.flow_id <> ALL (stack.flows)
      AND NOT EXISTS (SELECT FROM flows_archive AS archived
                      WHERE archived.session_id = frames.session_id AND archived.flow_id = frames.flow_id)
) AS frames
CROSS JOIN LATERAL (
    SELECT count(*) FROM plans
    WHERE plans.session_id = lanes.session_id AND plans.state IN ('Active', 'Pending')
      AND plans.plan_id <> ALL (stack.flows)
) AS plans
ORDER BY lanes.session_id
