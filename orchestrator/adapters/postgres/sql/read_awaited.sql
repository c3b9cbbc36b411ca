-- Read a task of the broker that ends now.
--
-- Arguments: task_id
-- Effect:    one row: its request, why its turn was cancelled, and for how long it has waited, in seconds.
SELECT request, stopped, extract(epoch FROM clock_timestamp() - noted_at)::float8
FROM awaited_tasks
WHERE task_id = %(task_id)s AND request IS NOT NULL
