-- How the whole system stands, for metrics and alerts (RT-24).
--
-- Arguments: none
-- Effect:    one row. `oldest_turn_s`: the age of the oldest unfinished turn among the 1,000 lanes that have
--         been due for longest; sessions at rest are not visited. `outbox` and `runs`: by kind and by
--         urgency, how many wait and for how long the first of them has; due runs as in run_debt.sql. A
--         function, since the gateway itself sees one tenant at a time.
SELECT * FROM parley_status()
