-- A tenant's newest turns between two IDs, with quality indicators. Turn IDs begin with a timestamp.
    SELECT recent.*, sessions.user_id, sessions.domain,
           (extract(epoch FROM recent.finished_at - recent.started_at) * 1000)::float8 AS ran_ms,
           recent.status IN ('failed', 'quarantined')
               OR coalesce(strpos(recent.result #>> '{properties,templates}', '"breakdown"') > 0, false) AS failed,
           noted.not_understood, noted.refused_by, noted.tokens, noted.cost_micros,
           EXISTS (SELECT FROM feedback WHERE feedback.turn_id = recent.turn_id AND rating = 'down') AS rated_down
    FROM (SELECT * FROM turns
          WHERE tenant_id = %(tenant_id)s AND turn_id >= %(since)s AND turn_id < %(before)s
          ORDER BY turn_id DESC LIMIT %(most)s) AS recent
        JOIN sessions USING (session_id)
        CROSS JOIN LATERAL (
            SELECT coalesce(bool_or(type = 'prediction' AND payload ->> 'kind' = 'unknown'), false) AS not_understood,
                   max(payload ->> 'refused_by') FILTER (WHERE type = 'model_call') AS refused_by,
                   coalesce(sum((payload ->> 'tokens')::bigint) FILTER (WHERE type = 'model_call'), 0)::bigint AS tokens,
                   coalesce(sum((payload ->> 'cost_micros')::bigint) FILTER (WHERE type = 'model_call'), 0)::bigint
                       AS cost_micros
            FROM json_to_recordset(CASE json_typeof(recent.signals) WHEN 'array' THEN recent.signals ELSE '[]' END)
                     AS signal (type text, payload json)
        ) AS noted
