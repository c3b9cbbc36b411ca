-- Find undelivered events whose time has come, earliest first.
SELECT event_id, session_id
FROM scheduled_events
WHERE status = 'scheduled' AND not_before <= now()
ORDER BY not_before
LIMIT %(limit)s
