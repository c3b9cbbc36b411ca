-- Forget what a task of the broker that has ended was sent with; that it has ended is remembered for a while.
--
-- Arguments: task_id
-- Effect:    none.
UPDATE awaited_tasks SET request = NULL WHERE task_id = %(task_id)s
