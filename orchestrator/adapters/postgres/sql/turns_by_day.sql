-- Count a tenant's turns by the day (UTC) on which they were accepted.
--
-- Arguments: tenant_id; since, before (turn IDs), most (turns to count, newest first)
-- Returns:   one row per day with turns, oldest first.
WITH judged AS NOT MATERIALIZED (
    -- include: parts/judged_turns.sql
)
SELECT to_char(accepted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, count(*) AS turns,
       count(*) FILTER (WHERE failed) AS failed, count(*) FILTER (WHERE not_understood) AS not_understood,
       count(*) FILTER (WHERE rated_down) AS rated_down,
       count(*) FILTER (WHERE refused_by IS NOT NULL) AS over_budget,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY ran_ms::float8) AS median_ms,
       sum(tokens)::bigint AS tokens, sum(cost_micros)::bigint AS cost_micros
FROM judged
GROUP BY day
ORDER BY day
