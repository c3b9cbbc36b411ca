-- Find undelivered events whose time has come, earliest first (RT-31).
--
-- Arguments: limit
-- Returns:   one row (event_id, session_id) per event.
SELECT event_id, session_id
FROM scheduled_events
WHERE status = 'scheduled' AND not_before <= now()
ORDER BY not_before
LIMIT %(limit)s
