-- Record that the tasks of ended runs have reported the end, so that no more messages are sent for these runs.
--
-- Arguments: run_ids (array)
UPDATE internal_runs SET hint_at = NULL
WHERE run_id = ANY(%(run_ids)s) AND finished_at IS NOT NULL AND hint_at IS NOT NULL
