-- The session's line of the ledger for an effect (RT-10), or what another branch of its family did alike (ST-4).
--
-- Arguments: session_id, fingerprint, tool_id, arguments (JSON)
-- Effect:    one row, of nulls where there is none. What another branch did is done or unknown, without its result,
--            unless this ledger has the call already; the last column: another branch is making the call now.
WITH own AS MATERIALIZED (
    SELECT session_id, turn_id, step_key, idempotency_key, flow_id, tool_id, arguments, slots, status, result, at,
           of_session
    FROM effects
    WHERE session_id = %(session_id)s AND fingerprint = %(fingerprint)s
), alike AS MATERIALIZED (
    SELECT done.*, done.status = 'started' AND EXISTS (
               SELECT FROM turns JOIN lanes ON lanes.session_id = turns.session_id
               WHERE turns.turn_id = done.turn_id AND turns.session_id = done.session_id
                 AND turns.status = 'running' AND lanes.lease_until >= clock_timestamp()) AS is_at_work
    FROM sessions AS here
    JOIN sessions AS other ON other.root = coalesce(here.root, here.session_id) OR other.session_id = here.root
    JOIN effects AS done ON done.session_id = other.session_id
    WHERE here.session_id = %(session_id)s AND other.session_id <> here.session_id
      AND done.tool_id = %(tool_id)s AND done.arguments = %(arguments)s::jsonb
      AND done.status IN ('started', 'done', 'unknown')
), theirs AS (
    SELECT session_id, turn_id, step_key, idempotency_key, flow_id, tool_id, arguments, slots,
           CASE status WHEN 'done' THEN status ELSE 'unknown' END, NULL::json, at, session_id
    FROM alike
    WHERE NOT EXISTS (SELECT FROM own WHERE status IN ('started', 'done', 'unknown'))
      AND NOT EXISTS (SELECT FROM effects AS known
                      WHERE known.session_id = %(session_id)s AND known.idempotency_key = alike.idempotency_key)
    ORDER BY is_at_work DESC, at
    LIMIT 1
), found AS (
    SELECT * FROM theirs
    UNION ALL
    SELECT * FROM own WHERE NOT EXISTS (SELECT FROM theirs)
)
SELECT found.*, EXISTS (SELECT FROM alike WHERE is_at_work)
FROM (SELECT) AS once LEFT JOIN found ON true
