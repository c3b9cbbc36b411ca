-- Accept a turn if the session is idle, if the rule is `enqueue`, or if it is `understand` and a user turn is unfinished
-- (RT-1, RT-5).
--
-- Arguments: session_id, tenant_id, turn_id, idempotency_key, client_sequence, kind, form, text, action,
--            if_busy (null: the session's rule), timezone and locale (stored in the session; null: unchanged), inbox_limit
-- Returns:   one row (seq, position) if accepted. Without a row, the caller reads the reason. Raises a unique violation,
--            which undoes everything, if the idempotency key or sequence is in use.
-- This statement doesn't see a user turn that was accepted while it waited for the lane's lock, so it may reject a turn
-- under `understand`.
WITH lane AS (
    UPDATE lanes
    SET next_seq = next_seq + 1,
        pending = pending + 1,
        next_event = next_event + 1,
        ready_at = CASE WHEN pending = 0 THEN clock_timestamp() ELSE ready_at END,
        check_at = least(check_at, clock_timestamp()),
        -- Other turns may wait for this one. Without this, a sweep whose hint is lost would retry only after the gap.
        gap_at = NULL,
        said_seq = CASE WHEN pending > 0 AND coalesce(%(if_busy)s::text, if_busy) = 'understand' THEN next_seq
                        ELSE said_seq END,
        timezone = coalesce(%(timezone)s::text, timezone),
        locale = coalesce(%(locale)s::text, locale),
        updated_at = clock_timestamp()
    WHERE session_id = %(session_id)s
      AND tenant_id = %(tenant_id)s
      AND NOT closed
      AND pending < %(inbox_limit)s
      AND (pending = 0
           OR coalesce(%(if_busy)s::text, if_busy) = 'enqueue'
           OR coalesce(%(if_busy)s::text, if_busy) = 'understand'
              AND EXISTS (SELECT FROM turns
                          WHERE turns.session_id = lanes.session_id AND turns.seq > lanes.done_seq
                            AND turns.kind = 'user' AND turns.finished_at IS NULL))
    RETURNING next_seq - 1 AS seq, pending - 1 AS position, next_event - 1 AS number,
              timezone, locale, CASE WHEN said_seq = next_seq - 1 THEN true END AS interjects
), turn AS (
    INSERT INTO turns (turn_id, session_id, tenant_id, seq, client_sequence, idempotency_key,
                       kind, form, text, action, timezone, locale, interjects)
    SELECT %(turn_id)s, %(session_id)s, %(tenant_id)s, seq, %(client_sequence)s, %(idempotency_key)s,
           %(kind)s, %(form)s, %(text)s, %(action)s::json, timezone, locale, interjects
    FROM lane
), accepted AS (
    INSERT INTO events (session_id, number, tenant_id, turn_id, body)
    SELECT %(session_id)s, number, %(tenant_id)s, %(turn_id)s,
           ('[{"type":"accepted","payload":{"seq":' || seq || ',"position":' || position || '}}]')::json
    FROM lane
)
SELECT seq, position FROM lane
