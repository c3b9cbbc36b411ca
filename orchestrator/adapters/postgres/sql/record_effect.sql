-- Insert or finish a journal step and its ledger entry, under the fence (RT-9, RT-10).
--
-- Arguments: session_id, tenant_id, turn_id, token, epoch, key, kind, status, request_hash, result, duration_ms, as in
--            record_step; fingerprint, flow_id, tool_id, idempotency_key, arguments, slots, effect_status, effect_result;
--            heard (seq of the last turn that this turn has taken into account; null: no check, because no call starts)
-- Returns:   one row if the lease is still current: false if a newer message has arrived. If the result is false or there
--            is no row, nothing was written.
WITH held AS (
    SELECT session_id, %(heard)s::bigint IS NULL OR said_seq IS NULL OR said_seq <= %(heard)s::bigint AS is_heard
    FROM lanes
    WHERE session_id = %(session_id)s AND lease_token = %(token)s AND epoch = %(epoch)s
    FOR SHARE
), lane AS (
    SELECT session_id FROM held WHERE is_heard
), step AS (
    INSERT INTO journal (turn_id, key, tenant_id, session_id, kind, status, request_hash, result, duration_ms, token)
    SELECT %(turn_id)s, %(key)s, %(tenant_id)s, session_id, %(kind)s, %(status)s, %(request_hash)s,
           %(result)s::json, %(duration_ms)s::real, %(token)s
    FROM lane
    ON CONFLICT (turn_id, key) DO UPDATE
    SET status = excluded.status, result = excluded.result, request_hash = excluded.request_hash,
        duration_ms = excluded.duration_ms, token = excluded.token
), entry AS (
    INSERT INTO effects (session_id, fingerprint, tenant_id, turn_id, step_key, idempotency_key, flow_id, tool_id,
                         arguments, slots, status, result)
    SELECT session_id, %(fingerprint)s, %(tenant_id)s, %(turn_id)s, %(key)s, %(idempotency_key)s, %(flow_id)s,
           %(tool_id)s, %(arguments)s::jsonb, %(slots)s::jsonb, %(effect_status)s, %(effect_result)s::json
    FROM lane
    ON CONFLICT (session_id, fingerprint) DO UPDATE
    SET turn_id = excluded.turn_id, step_key = excluded.step_key, idempotency_key = excluded.idempotency_key,
        flow_id = excluded.flow_id, arguments = excluded.arguments, slots = excluded.slots,
        status = excluded.status, result = excluded.result, at = clock_timestamp(), of_session = NULL
)
SELECT is_heard FROM held
