-- Search a tenant's turns by words and quality.
--
-- Arguments: tenant_id; since, before (turn IDs), most (turns to search), words (array of patterns that must all occur
--            in the message or reply), failed, not_understood, rated_down, over_budget, min_ms, min_cost_micros, domain,
--            user_id (null: any), most_found (turns to return)
-- Returns:   one row: the matching turns as JSON, newest first, and the oldest searched ID, or null if no older turns exist.
WITH judged AS NOT MATERIALIZED (
    -- include: parts/judged_turns.sql
), found AS (
    SELECT *
    FROM judged
    WHERE NOT EXISTS (
            SELECT FROM unnest(CAST(%(words)s AS text[])) AS word
            WHERE NOT concat_ws(E'\n', text, result ->> 'reply') ILIKE word)
      AND (CAST(%(domain)s AS text) IS NULL OR domain = %(domain)s)
      AND (CAST(%(user_id)s AS text) IS NULL OR user_id = %(user_id)s)
      AND (CAST(%(failed)s AS boolean) IS NULL OR failed = %(failed)s)
      AND (CAST(%(not_understood)s AS boolean) IS NULL OR not_understood = %(not_understood)s)
      AND (CAST(%(rated_down)s AS boolean) IS NULL OR rated_down = %(rated_down)s)
      AND (CAST(%(over_budget)s AS boolean) IS NULL OR (refused_by IS NOT NULL) = %(over_budget)s)
      AND (CAST(%(min_ms)s AS float8) IS NULL OR ran_ms >= %(min_ms)s)
      AND (CAST(%(min_cost_micros)s AS bigint) IS NULL OR cost_micros >= %(min_cost_micros)s)
    ORDER BY turn_id DESC
    LIMIT %(most_found)s
)
SELECT
    (SELECT coalesce(json_agg(json_build_object(
                'turn_id', turn_id, 'session_id', session_id, 'seq', seq, 'user_id', user_id, 'domain', domain,
                'kind', kind, 'status', status, 'said', text, 'action', action ->> 'name',
                'reply', result ->> 'reply', 'error', error, 'accepted_at', accepted_at, 'ran_ms', ran_ms,
                'failed', failed, 'not_understood', not_understood, 'rated_down', rated_down, 'refused_by', refused_by,
                'tokens', tokens, 'cost_micros', cost_micros) ORDER BY turn_id DESC), '[]')
     FROM found),
    (SELECT turn_id FROM turns
     WHERE tenant_id = %(tenant_id)s AND turn_id >= %(since)s AND turn_id < %(before)s
     ORDER BY turn_id DESC OFFSET %(most)s - 1 LIMIT 1)
