-- Enter how far a run has come into its session's log (RT-15).
--
-- Arguments: session_id, payload
-- Effect:    one row (number), none when there is no such session.
WITH lane AS (
    UPDATE lanes
    SET next_event = next_event + 1
    WHERE session_id = %(session_id)s
    RETURNING next_event - 1 AS number, tenant_id
)
INSERT INTO events (session_id, number, tenant_id, turn_id, type, payload)
SELECT %(session_id)s, number, tenant_id, NULL, 'run_progress', %(payload)s::json
FROM lane
RETURNING number
