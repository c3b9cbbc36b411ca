-- Read runs and their waiting direct and indirect successors, to build a Celery canvas.
--
-- Arguments: run_ids (array)
-- Returns:   one row per run. `parent`: the task of the predecessor in the same graph that ended last.
WITH RECURSIVE behind AS (
    SELECT run_id, successors FROM internal_runs WHERE run_id = ANY(%(run_ids)s)
    UNION
    SELECT further.run_id, further.successors
    FROM behind JOIN internal_runs AS further ON further.run_id = ANY(behind.successors)
    WHERE further.status = 'waiting'
)
SELECT run.run_id, run.flow, run.urgency, run.task_id, run.open_predecessors, run.successors, run.on_failure,
       (SELECT earlier.task_id
        FROM internal_runs AS earlier
        WHERE earlier.graph_id = run.graph_id
          AND run.run_id = ANY(earlier.successors)
          AND earlier.finished_at IS NOT NULL
        ORDER BY earlier.finished_at DESC
        LIMIT 1) AS parent
FROM behind JOIN internal_runs AS run USING (run_id)
ORDER BY run.graph_id, run.number
