-- Extend leases that end soon, and find turns with a cancel request or a newer message (RT-2, RT-5, RT-7).
--
-- Arguments: names, tokens, turn_ids (arrays of equal length), worker_id, ttl_s
-- Returns:   one row (session_id, turn_id, called) per lease that is still held. `called`: whether the turn has a cancel
--            request or a newer message.
-- A worker that reconnects under a new ID keeps the lanes that were neither taken nor released. A lane without an owner is
-- not leased here: a commit may just have released it, and this lease would block the lane until it expires.
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
