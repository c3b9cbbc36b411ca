-- Note that the tasks of runs that have ended have reported it, so that no message is sent for them any more.
--
-- Arguments: run_ids (array)
-- Effect:    none otherwise.
UPDATE internal_runs SET hint_at = NULL
WHERE run_id = ANY(%(run_ids)s) AND finished_at IS NOT NULL AND hint_at IS NOT NULL
