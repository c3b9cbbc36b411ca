-- End a run: under its claim, by an operator who has none, or because a predecessor failed.
--
-- Arguments: run_id, tenant_id (null: any), token (null: whoever holds it is fenced), status, closing, reason, error,
--            redo, records (array of objects: phase, body); grace_s, to release its successors as well, which this does
--            only where no graph was asked for meanwhile, and where it sees all of them
-- Effect:    one row with what successors and reruns need, none when the claim is no longer current or the run
--            has ended. The flight key is free for another run. What a worker held of it is taken away. The graph that
--            was asked for meanwhile is given once: only a rerun that is scheduled takes it over. With grace_s, the last
--            column has the runs that may begin (array of run_id, flow, urgency; null without any).
-- A worker that freezes within the transaction loses it, and with it the lock, after a short while.
WITH before AS (
    SELECT run_id, tenant_id, session_id, flight_key, again FROM internal_runs
    WHERE run_id = %(run_id)s
      AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
      AND CASE WHEN %(token)s::bigint IS NULL THEN status IN ('waiting', 'ready', 'running')
               ELSE status = 'running' AND token = %(token)s END
-- only with: grace_s
      AND again IS NULL
      -- One that was entered while this statement waited for the lock is not among what it sees.
      AND cardinality(successors) = (SELECT count(*) FROM internal_runs AS seen
                                     WHERE seen.run_id = ANY(internal_runs.successors))
-- end
    FOR NO KEY UPDATE
), freed AS (
    DELETE FROM internal_claims USING before WHERE internal_claims.run_id = before.run_id
), noted AS (
    INSERT INTO internal_records (run_id, phase, tenant_id, session_id, about, body)
    SELECT run_id, phase, tenant_id, session_id, ARRAY(SELECT json_array_elements_text(body -> 'about')), body
    FROM before CROSS JOIN json_to_recordset(%(records)s::json) AS record (phase text, body json)
    ON CONFLICT (run_id, phase, position) DO UPDATE SET about = excluded.about, body = excluded.body
), ended AS (
    UPDATE internal_runs AS run
    SET status = %(status)s,
        closing = %(closing)s::json,
        reason = %(reason)s,
        error = %(error)s,
        redo = %(redo)s,
        again = CASE WHEN %(redo)s = 'scheduled' THEN run.again END,
        token = NULL,
        hint_at = NULL,
        flight_key = NULL,
        finished_at = clock_timestamp()
    FROM before
    WHERE run.run_id = before.run_id
    RETURNING run.flow, run.successors, run.on_failure, before.flight_key, before.again, run.session_id
-- only with: grace_s
), successor AS (
    SELECT unnest(successors) AS run_id FROM ended
),
-- include: parts/released.sql
, starting AS (
    SELECT json_agg(json_build_array(run_id, flow, urgency)) AS runs FROM released WHERE status = 'ready'
-- end
)
SELECT ended.*,
       set_config('idle_in_transaction_session_timeout', '4s', true)
-- only with: grace_s
       , (SELECT runs FROM starting)
-- end
FROM ended
