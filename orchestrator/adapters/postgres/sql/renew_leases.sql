-- Prolong leases, those soon to end only, and name the turns that somebody asked to cancel, or said something to
-- (RT-2, RT-5, RT-7).
--
-- Arguments: names, tokens, turn_ids (arrays of equal length), worker_id, ttl_s
-- Effect:    one row (session_id, turn_id, called) per lease that is still held.
-- A worker whose lock was interrupted keeps, under its new number, what nobody took or freed. A lane
-- without an owner is never leased here: a commit that has just released it may still be on its way back
-- to the caller, and the lane would then be held by nobody until the lease ends.
WITH mine AS (
    SELECT * FROM unnest(%(names)s::text[], %(tokens)s::bigint[], %(turn_ids)s::text[])
                  AS held (session_id, token, turn_id)
), prolonged AS (
    UPDATE lanes
    SET lease_owner = %(worker_id)s,
        lease_until = clock_timestamp() + %(ttl_s)s * interval '1 second'
    FROM mine
    WHERE lanes.session_id = mine.session_id
      AND lanes.lease_token = mine.token
      AND lanes.lease_owner IS NOT NULL
      AND (lanes.lease_owner <> %(worker_id)s
           OR lanes.lease_until < clock_timestamp() + %(ttl_s)s * interval '0.7 second')
)
SELECT mine.session_id, mine.turn_id,
       turns.cancel_requested_at IS NOT NULL OR coalesce(lanes.said_seq > turns.seq, false) AS called
FROM mine
JOIN lanes ON lanes.session_id = mine.session_id AND lanes.lease_token = mine.token
JOIN turns ON turns.turn_id = mine.turn_id
