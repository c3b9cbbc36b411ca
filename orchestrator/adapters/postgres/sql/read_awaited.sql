-- Read a broker task that ends now.
--
-- Arguments: task_id
-- Returns:   one row: its request, the reason for canceling its turn or null, and its waiting time in seconds.
SELECT request, stopped, extract(epoch FROM clock_timestamp() - noted_at)::float8
FROM awaited_tasks
WHERE task_id = %(task_id)s AND request IS NOT NULL
