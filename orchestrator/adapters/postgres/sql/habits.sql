-- Count how often a user gave each value in completed tasks, except values that the user later asked to forget.
--
-- Arguments: tenant_id, session_id (any session of the user)
-- Returns:   one row (dact, slot, value, times) per value, grouped by task and slot, most frequent first.
SELECT archive.dact, slot.key, slot.value -> 'value', count(*)
FROM flows_archive AS archive
JOIN sessions USING (session_id)
JOIN sessions AS asking ON asking.tenant_id = sessions.tenant_id AND asking.user_id = sessions.user_id
CROSS JOIN LATERAL jsonb_each(archive.body::jsonb -> 'slots') AS slot
WHERE asking.tenant_id = %(tenant_id)s AND asking.session_id = %(session_id)s
  AND archive.state = 'Completed' AND slot.value ->> 'source' = 'user'
  AND NOT EXISTS (
      SELECT FROM forgotten_preferences AS gone
      WHERE gone.tenant_id = asking.tenant_id AND gone.user_id = asking.user_id AND gone.at >= archive.at
        AND gone.key IN ('*', '*.' || slot.key, archive.dact || '.' || slot.key, 'playbook.' || archive.dact))
GROUP BY 1, 2, 3
ORDER BY 1, 2, 4 DESC
