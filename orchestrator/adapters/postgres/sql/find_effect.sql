-- The session's line of the ledger for an effect (RT-10), or what another branch of its family did alike (ST-4).
--
-- Arguments: session_id, fingerprint, tool_id, arguments (JSON)
-- Effect:    at most one row. What another branch did is unknown here, unless this ledger has the call already.
WITH own AS MATERIALIZED (
    SELECT turn_id, step_key, idempotency_key, flow_id, tool_id, arguments, slots, status, result, at, of_session
    FROM effects
    WHERE session_id = %(session_id)s AND fingerprint = %(fingerprint)s
), theirs AS (
    SELECT done.turn_id, done.step_key, done.idempotency_key, done.flow_id, done.tool_id, done.arguments, done.slots,
           'unknown', NULL::json, done.at, done.session_id
    FROM sessions AS here
    JOIN sessions AS other ON other.root = coalesce(here.root, here.session_id) OR other.session_id = here.root
    JOIN effects AS done ON done.session_id = other.session_id
    WHERE here.session_id = %(session_id)s AND NOT EXISTS (SELECT FROM own)
      AND other.session_id <> here.session_id
      AND done.tool_id = %(tool_id)s AND done.arguments = %(arguments)s::jsonb
      AND done.status IN ('started', 'done', 'unknown')
      AND NOT EXISTS (SELECT FROM effects AS known
                      WHERE known.session_id = here.session_id AND known.idempotency_key = done.idempotency_key)
    ORDER BY done.at
    LIMIT 1
)
SELECT * FROM own UNION ALL SELECT * FROM theirs
