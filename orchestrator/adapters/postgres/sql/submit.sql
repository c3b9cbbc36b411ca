-- Accept one turn by the rules `enqueue` and `reject` (RT-1, RT-5).
--
-- Arguments: session_id, tenant_id, turn_id, idempotency_key, client_sequence, kind, form, text, action,
--            if_busy (null: the session's own), inbox_limit
-- Effect:    one row (seq, position) when accepted, none when anything is in the way: the caller then
--            reads why. A key or sequence in use raises a unique violation, which undoes everything.
WITH lane AS (
    UPDATE lanes
    SET next_seq = next_seq + 1,
        pending = pending + 1,
        next_event = next_event + 1,
        ready_at = CASE WHEN pending = 0 THEN clock_timestamp() ELSE ready_at END,
        check_at = least(check_at, clock_timestamp()),
        updated_at = clock_timestamp()
    WHERE session_id = %(session_id)s
      AND tenant_id = %(tenant_id)s
      AND NOT closed
      AND pending < %(inbox_limit)s
      AND (pending = 0
           OR coalesce(%(if_busy)s::text, if_busy) = 'enqueue')
    RETURNING next_seq - 1 AS seq, pending - 1 AS position, next_event - 1 AS number
), turn AS (
    INSERT INTO turns (turn_id, session_id, tenant_id, seq, client_sequence, idempotency_key,
                       kind, form, text, action)
    SELECT %(turn_id)s, %(session_id)s, %(tenant_id)s, seq, %(client_sequence)s, %(idempotency_key)s,
           %(kind)s, %(form)s, %(text)s, %(action)s::json
    FROM lane
), accepted AS (
    INSERT INTO events (session_id, number, tenant_id, turn_id, body)
    SELECT %(session_id)s, number, %(tenant_id)s, %(turn_id)s,
           convert_to('[{"type":"accepted","payload":{"seq":' || seq || '}}]', 'UTF8')
    FROM lane
)
SELECT seq, position FROM lane
