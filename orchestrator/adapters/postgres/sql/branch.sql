-- Create a fork of a session, which continues from an epoch with all data up to this epoch (ST-4).
--
-- Arguments: branch_id (of the fork), session_id (of the parent), tenant_id, epoch (of the parent), body (JSON: the fork's
--            first state), diff (JSON: its changes), flows, approvals, unsummarized, known (fingerprints of side effects
--            in the state), stack (JSON array of the state's flows)
-- Returns:   one row. If the ID is taken or the parent doesn't exist, no row, and nothing is written.
-- The fork's first epoch has no turn; it follows the parent's epoch. A plan that has changed since the epoch gets the steps
-- of its last revision up to the epoch.
WITH parent AS (
    SELECT sessions.*, lanes.if_busy, lanes.timezone, lanes.locale
    FROM sessions JOIN lanes ON lanes.session_id = sessions.session_id
    WHERE sessions.session_id = %(session_id)s AND sessions.tenant_id = %(tenant_id)s
), made AS (
    INSERT INTO sessions (session_id, tenant_id, user_id, domain, parent, parent_epoch, root)
    SELECT %(branch_id)s, tenant_id, user_id, domain, session_id, %(epoch)s::bigint, coalesce(root, session_id)
    FROM parent
    ON CONFLICT DO NOTHING
    RETURNING session_id AS branch_id
), lane AS (
    INSERT INTO lanes (session_id, tenant_id, if_busy, timezone, locale, epoch, next_seq, done_seq)
    SELECT branch_id, tenant_id, if_busy, timezone, locale, %(epoch)s::bigint + 1, last.seq + 1, last.seq
    FROM made CROSS JOIN parent CROSS JOIN (
        SELECT coalesce(max(seq), 0) AS seq FROM utterances
        WHERE session_id = %(session_id)s AND epoch <= %(epoch)s::bigint) AS last
    RETURNING epoch
), state AS (
    INSERT INTO states (session_id, tenant_id, epoch, base_epoch, body, flows, approvals, unsummarized)
    SELECT branch_id, %(tenant_id)s, lane.epoch, lane.epoch, %(body)s::json, %(flows)s::text[], %(approvals)s::int,
           %(unsummarized)s::int
    FROM made CROSS JOIN lane
), history AS (
    INSERT INTO state_history (session_id, epoch, tenant_id, diff, snapshot, at)
    SELECT branch_id, kept.epoch, kept.tenant_id, kept.diff, kept.snapshot, kept.at
    FROM made CROSS JOIN state_history AS kept
    WHERE kept.session_id = %(session_id)s AND kept.epoch <= %(epoch)s::bigint
    UNION ALL
    SELECT branch_id, lane.epoch, %(tenant_id)s, %(diff)s::json, %(body)s::json, clock_timestamp()
    FROM made CROSS JOIN lane
), said AS (
    INSERT INTO utterances (session_id, epoch, seq, tenant_id, turn_id, role, form, content, reply, at)
    SELECT branch_id, kept.epoch, seq, kept.tenant_id, turn_id, role, form, content, reply, at
    FROM made CROSS JOIN utterances AS kept
    WHERE kept.session_id = %(session_id)s AND kept.epoch <= %(epoch)s::bigint
), archive AS (
    INSERT INTO flows_archive (session_id, flow_id, tenant_id, turn_id, dact, state, reason, body, at)
    SELECT branch_id, flow_id, kept.tenant_id, turn_id, dact, state, reason, body, at
    FROM made CROSS JOIN flows_archive AS kept
    WHERE kept.session_id = %(session_id)s AND
-- include: parts/by_then.sql
), displayed AS (
    INSERT INTO frames (session_id, flow_id, tenant_id, turn_id, frame_id, body, at)
    SELECT branch_id, flow_id, kept.tenant_id, turn_id, frame_id, body, at
    FROM made CROSS JOIN frames AS kept
    WHERE kept.session_id = %(session_id)s AND
-- include: parts/by_then.sql
), revised AS (
    INSERT INTO plan_revisions (session_id, plan_id, epoch, number, tenant_id, turn_id, outcome, why, body, at)
    SELECT branch_id, plan_id, kept.epoch, number, kept.tenant_id, turn_id, outcome, why, body, at
    FROM made CROSS JOIN plan_revisions AS kept
    WHERE kept.session_id = %(session_id)s AND kept.epoch <= %(epoch)s::bigint
), plan AS (
    INSERT INTO plans (session_id, plan_id, tenant_id, turn_id, dact, goal, state, reason, revision, body, at)
    SELECT branch_id, kept.plan_id, kept.tenant_id, last.turn_id, kept.dact, kept.goal,
           coalesce(flow.state, kept.state), CASE WHEN flow.state IS NULL THEN kept.reason ELSE flow.reason END,
           coalesce(flow.revision, kept.revision), last.body, last.at
    FROM made CROSS JOIN plans AS kept
    CROSS JOIN LATERAL (
        SELECT turn_id, body, at FROM plan_revisions AS one
        WHERE one.session_id = %(session_id)s AND one.plan_id = kept.plan_id AND one.epoch <= %(epoch)s::bigint
        ORDER BY one.epoch DESC, number DESC
        LIMIT 1) AS last
    LEFT JOIN json_to_recordset(%(stack)s::json) AS flow (flow_id text, state text, reason text, revision int)
        ON flow.flow_id = kept.plan_id
    WHERE kept.session_id = %(session_id)s
), ledger AS (
    INSERT INTO effects (session_id, fingerprint, tenant_id, turn_id, step_key, idempotency_key, flow_id, tool_id,
                         arguments, slots, status, result, at, of_session)
    SELECT branch_id, fingerprint, kept.tenant_id, turn_id, step_key, idempotency_key, flow_id, tool_id,
           arguments, slots, status, result, at, coalesce(of_session, session_id)
    FROM made CROSS JOIN effects AS kept
    WHERE kept.session_id = %(session_id)s AND (fingerprint = ANY(%(known)s::text[]) OR
-- include: parts/by_then.sql
    )
)
SELECT branch_id FROM made
