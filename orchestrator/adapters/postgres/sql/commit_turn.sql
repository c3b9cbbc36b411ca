-- Write all changes of one turn, and start the session's next turn or release the lane (RT-3, RT-4).
--
-- Arguments: session_id, tenant_id, turn_id, seq, token, epoch (at which the turn started), ttl_s,
--            status, snapshot, error, max_attempts, deadline_s, crashes_below; as JSON: diff, result, signals, events;
--            event_count; role, form, content (of the input, or nulls), reply; as JSON arrays or null: archived, frames,
--            plans, plan_revisions, outbox; either whole (the full state, JSON) or step (any text: the diff is enough);
--            either following (any text: another turn may be pending) or last (any text: no other turn is expected);
--            open_flows, open_approvals, unsummarized (null: unchanged)
-- Returns:   one row: the new epoch, the number of the first event, the number of pending turns, whether broker tasks
--            end with the turn, and the next turn, already marked as running. With `last`, the statement doesn't look for a next turn.
--            No row if the fence rejected the commit; nothing was written.
-- Both this statement and a submission first lock the lane's row, so that no turn is missed: either `pending` counts it
-- here, or its submission finds the lane released.
-- Parts that most turns don't need are between `only with` and `end`. They are removed if that argument is null.
-- The journal is not closed, because its steps are only read for unfinished turns.
WITH lane AS (
    UPDATE lanes
    SET epoch = lanes.epoch + 1,
        pending = pending - 1,
        next_event = next_event + %(event_count)s,
        done_seq = CASE WHEN pending = 1 THEN next_seq - 1
                        WHEN done_seq = %(seq)s - 1 THEN %(seq)s
                        -- canceled turns leave gaps; turns that wait for a predecessor don't
                        WHEN NOT EXISTS (SELECT FROM turns AS earlier
                                         WHERE earlier.session_id = %(session_id)s
                                           AND earlier.seq > lanes.done_seq AND earlier.seq < %(seq)s
                                           AND earlier.finished_at IS NULL) THEN %(seq)s
                        ELSE done_seq END,
        lease_owner = CASE WHEN pending > 1 THEN lease_owner END,
        lease_until = CASE WHEN pending > 1 THEN clock_timestamp() + %(ttl_s)s * interval '1 second' END,
        updated_at = clock_timestamp()
    WHERE session_id = %(session_id)s
      -- THE FENCE: this line rejects a worker that lost its lease while it was suspended.
      AND lease_token = %(token)s AND lanes.epoch = %(epoch)s
    RETURNING lanes.epoch, pending, done_seq, next_event - %(event_count)s AS first_event
), ended AS (
    UPDATE turns
    SET status = %(status)s, result = %(result)s::json, signals = %(signals)s::json, error = %(error)s, token = %(token)s,
        epoch = lane.epoch, finished_at = clock_timestamp(),
        quarantined_at = CASE WHEN %(status)s = 'quarantined' THEN clock_timestamp() END
    FROM lane
    WHERE turn_id = %(turn_id)s
    RETURNING turns.turn_id, turns.epoch, client_sequence, awaited,
              forget AND turns.status = 'cancelled'
                  AND NOT EXISTS (SELECT FROM effects WHERE effects.turn_id = turns.turn_id) AS forgotten
-- only with: whole
), state AS (
    INSERT INTO states (session_id, tenant_id, epoch, base_epoch, body, flows, approvals, unsummarized)
    SELECT %(session_id)s, %(tenant_id)s, epoch, epoch, %(whole)s::json,
           coalesce(%(open_flows)s::text[], '{}'), coalesce(%(open_approvals)s::int, 0), coalesce(%(unsummarized)s::int, 0)
    FROM lane
    ON CONFLICT (session_id) DO UPDATE
    SET epoch = excluded.epoch, base_epoch = excluded.epoch, body = excluded.body,
        flows = coalesce(%(open_flows)s::text[], states.flows),
        approvals = coalesce(%(open_approvals)s::int, states.approvals),
        unsummarized = coalesce(%(unsummarized)s::int, states.unsummarized)
    RETURNING states.epoch
), history AS (
    INSERT INTO state_history (session_id, epoch, tenant_id, diff, snapshot)
    SELECT %(session_id)s, epoch, %(tenant_id)s, %(diff)s::json,
           CASE WHEN %(snapshot)s OR epoch = 1 THEN %(whole)s::json END
    FROM lane
-- end
-- only with: step
), state AS (
    UPDATE states
    SET epoch = lane.epoch,
        flows = coalesce(%(open_flows)s::text[], flows),
        approvals = coalesce(%(open_approvals)s::int, approvals),
        unsummarized = coalesce(%(unsummarized)s::int, unsummarized)
    FROM lane
    WHERE session_id = %(session_id)s
    RETURNING states.epoch
), history AS (
    INSERT INTO state_history (session_id, epoch, tenant_id, diff)
    SELECT %(session_id)s, epoch, %(tenant_id)s, %(diff)s::json FROM lane
-- end
), said AS (
    INSERT INTO utterances (session_id, epoch, seq, tenant_id, turn_id, role, form, content, reply)
    SELECT %(session_id)s, ended.epoch, %(seq)s, %(tenant_id)s, %(turn_id)s, %(role)s, %(form)s, %(content)s, %(reply)s
    FROM ended
    WHERE NOT ended.forgotten AND %(reply)s::text IS NOT NULL
), logged AS (
    INSERT INTO events (session_id, number, tenant_id, turn_id, body)
    SELECT %(session_id)s, lane.first_event + %(event_count)s - 1, %(tenant_id)s, %(turn_id)s, %(events)s::json
    FROM lane
    WHERE %(event_count)s > 0
-- only with: archived
), archive AS (
    INSERT INTO flows_archive (session_id, flow_id, tenant_id, turn_id, dact, state, reason, body)
    SELECT %(session_id)s, flow.flow_id, %(tenant_id)s, %(turn_id)s, flow.dact, flow.state, flow.reason,
           flow.body
    FROM lane, json_to_recordset(%(archived)s::json)
         AS flow (flow_id text, dact text, state text, reason text, body json)
    ON CONFLICT (session_id, flow_id) DO UPDATE
    SET turn_id = excluded.turn_id, state = excluded.state, reason = excluded.reason, body = excluded.body,
        at = excluded.at
-- end
-- only with: frames
), displayed AS (
    INSERT INTO frames (session_id, flow_id, tenant_id, turn_id, frame_id, body)
    SELECT %(session_id)s, frame.flow_id, %(tenant_id)s, %(turn_id)s, frame.frame_id, frame.body
    FROM lane, json_to_recordset(%(frames)s::json) AS frame (flow_id text, frame_id text, body json)
    ON CONFLICT (session_id, flow_id) DO UPDATE
    SET turn_id = excluded.turn_id, frame_id = excluded.frame_id, body = excluded.body, at = excluded.at
-- end
-- only with: plans
), plan AS (
    INSERT INTO plans (session_id, plan_id, tenant_id, turn_id, dact, goal, state, reason, revision, body)
    SELECT %(session_id)s, plan.plan_id, %(tenant_id)s, %(turn_id)s, plan.dact, plan.goal, plan.state,
           plan.reason, plan.revision, plan.body
    FROM lane, json_to_recordset(%(plans)s::json)
         AS plan (plan_id text, dact text, goal text, state text, reason text, revision int, body json)
    ON CONFLICT (session_id, plan_id) DO UPDATE
    SET turn_id = excluded.turn_id, goal = excluded.goal, state = excluded.state, reason = excluded.reason,
        revision = excluded.revision, body = excluded.body, at = excluded.at
-- end
-- only with: plan_revisions
), revised AS (
    INSERT INTO plan_revisions (session_id, plan_id, epoch, number, tenant_id, turn_id, outcome, why, body)
    SELECT %(session_id)s, revision.plan_id, epoch, revision.number, %(tenant_id)s, %(turn_id)s,
           revision.outcome, revision.why, revision.body
    FROM lane, json_to_recordset(%(plan_revisions)s::json)
         AS revision (plan_id text, number int, outcome text, why text, body json)
-- end
-- only with: outbox
), sending AS (
    INSERT INTO outbox (tenant_id, session_id, turn_id, kind, payload)
    SELECT %(tenant_id)s, %(session_id)s, %(turn_id)s, entry.kind, entry.payload
    FROM lane, json_to_recordset(%(outbox)s::json) AS entry (kind text, payload json)
-- end
-- only with: following
),
-- include: parts/next_turn.sql
SELECT lane.epoch, lane.first_event, lane.pending, ended.awaited, taken.*
FROM lane CROSS JOIN state CROSS JOIN ended LEFT JOIN taken ON true
-- end
-- only with: last
)
SELECT lane.epoch, lane.first_event, lane.pending, ended.awaited
FROM lane CROSS JOIN state CROSS JOIN ended
-- end
