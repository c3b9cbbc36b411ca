-- What a session holds beyond its working state, each list the newest first.
--
-- Arguments: tenant_id, session_id, most (entries of each list)
-- Effect:    one row of three lists: completed tasks (dact, slots with their values, outputs), what the user said, and
--            frames.
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
