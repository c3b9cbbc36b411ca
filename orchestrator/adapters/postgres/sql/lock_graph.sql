-- Lock the runs of a graph and their successors in other graphs.
--
-- Arguments: graph_id
-- Returns:   one row per run, in insertion order.
WITH members AS (
    SELECT run_id, successors FROM internal_runs WHERE graph_id = %(graph_id)s
), locked AS (
    SELECT run_id, status, successors, on_failure, chain_id, redo_count, number
    FROM internal_runs
    WHERE run_id IN (SELECT run_id FROM members UNION SELECT unnest(successors) FROM members)
    ORDER BY run_id
    FOR NO KEY UPDATE
)
SELECT run_id, status, successors, on_failure, chain_id, redo_count FROM locked ORDER BY number
