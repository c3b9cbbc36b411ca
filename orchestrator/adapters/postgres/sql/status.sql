-- Read the system's status for metrics and alerts (RT-24); see the function for the columns.
--
-- Arguments: none
-- Returns:   one row.
SELECT * FROM parley_status()
