-- Measure how long recent user turns waited for a worker. Time before the session was free does not count (IF-14).
--
-- Arguments: since_s, newest
-- Returns:   one row: the 95th percentile in seconds, or null without recent turns.
-- Turn IDs grow with time, so the primary key bounds the scan.
WITH recent AS (
    SELECT session_id, seq, accepted_at, started_at
    FROM turns
    WHERE kind = 'user' AND (started_at IS NOT NULL OR finished_at IS NULL)
    ORDER BY turn_id DESC
    LIMIT %(newest)s
), free AS (
    SELECT recent.started_at, greatest(recent.accepted_at, earlier.finished_at) AS since
    FROM recent
    LEFT JOIN turns AS earlier ON earlier.session_id = recent.session_id AND earlier.seq = recent.seq - 1
    WHERE earlier.turn_id IS NULL OR earlier.finished_at IS NOT NULL
)
SELECT percentile_cont(0.95) WITHIN GROUP (
           ORDER BY extract(epoch FROM coalesce(started_at, clock_timestamp()) - since))::float8
FROM free
WHERE started_at IS NULL OR started_at > clock_timestamp() - %(since_s)s * interval '1 second'
