-- Read the status of the whole system, for metrics and alerts (RT-24). What it counts is said at the function.
--
-- Arguments: none
-- Effect:    one row
SELECT * FROM parley_status()
