-- Delete the request of an ended broker task. The fact that the task has ended is kept for some time.
--
-- Arguments: task_id
UPDATE awaited_tasks SET request = NULL WHERE task_id = %(task_id)s
