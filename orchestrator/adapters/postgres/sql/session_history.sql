-- Read a session's data beyond its working state, newest first.
--
-- Arguments: tenant_id, session_id, most (entries per list)
-- Returns:   one row with three lists: completed tasks (dact, slot values, outputs), user messages, and frames.
SELECT
    (SELECT coalesce(json_agg(json_build_object(
                'dact', dact,
                'slots', (SELECT coalesce(json_object_agg(slot.key, slot.value -> 'value'), '{}')
                          FROM json_each(body -> 'slots') AS slot),
                'outputs', coalesce(body -> 'outputs', '{}'))), '[]')
     FROM (SELECT dact, body FROM flows_archive
           WHERE session_id = %(session_id)s AND tenant_id = %(tenant_id)s AND state = 'Completed'
           ORDER BY at DESC LIMIT %(most)s) AS task),
    (SELECT coalesce(json_agg(content), '[]')
     FROM (SELECT content FROM utterances
           WHERE session_id = %(session_id)s AND tenant_id = %(tenant_id)s AND role = 'user' AND form = 'text'
           ORDER BY epoch DESC, seq DESC LIMIT %(most)s) AS said),
    ARRAY(SELECT body FROM frames
          WHERE session_id = %(session_id)s AND tenant_id = %(tenant_id)s
          ORDER BY at DESC LIMIT %(most)s)
