-- Count a tenant's turns by user, most expensive first.
--
-- Arguments: tenant_id; since, before (turn IDs), most (turns to count, newest first), most_found (users to return)
-- Returns:   one row per user, and one for all sessions without a user.
WITH judged AS NOT MATERIALIZED (
    -- include: parts/judged_turns.sql
)
SELECT user_id, count(*) AS turns, count(*) FILTER (WHERE failed) AS failed,
       count(*) FILTER (WHERE refused_by IS NOT NULL) AS over_budget,
       sum(tokens)::bigint AS tokens, sum(cost_micros)::bigint AS cost_micros
FROM judged
GROUP BY user_id
ORDER BY cost_micros DESC, tokens DESC, turns DESC, user_id
LIMIT %(most_found)s
