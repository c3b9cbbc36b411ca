-- Repair the rows that `find_broken` found for a session, unless a worker holds its lane.
--
-- Arguments: session_id
-- Returns:   one row (session_id), or no row if a worker holds the lane. The next sweep resumes a turn that was left
--            running.
WITH lane AS (
    SELECT session_id, check_at FROM lanes
    WHERE session_id = %(session_id)s AND lease_owner IS NULL
    FOR NO KEY UPDATE
), stack AS (
    SELECT states.flows FROM lane JOIN states USING (session_id)
), swept AS (
    UPDATE lanes
    SET check_at = clock_timestamp(), ready_at = clock_timestamp(), pending = greatest(pending, 1)
    FROM lane
    WHERE lanes.session_id = lane.session_id AND lane.check_at IS NULL
      AND EXISTS (SELECT FROM turns
                  WHERE turns.session_id = lanes.session_id AND turns.seq > lanes.done_seq AND turns.status = 'running')
), framed AS (
    DELETE FROM frames
    USING lane, stack
    WHERE frames.session_id = lane.session_id AND frames.flow_id <> ALL (stack.flows)
      AND NOT EXISTS (SELECT FROM flows_archive AS archived
                      WHERE archived.session_id = frames.session_id AND archived.flow_id = frames.flow_id)
), planned AS (
    UPDATE plans SET state = 'Invalid'
    FROM lane, stack
    WHERE plans.session_id = lane.session_id AND plans.state IN ('Active', 'Pending')
      AND plans.plan_id <> ALL (stack.flows)
)
SELECT session_id FROM lane
