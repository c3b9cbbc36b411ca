-- Record the outcomes of items, each once.
--
-- Arguments: run_id, token, ends (array of objects: position, status, output, reason, error),
--            last (whether to release the claim; the caller has locked the run)
-- Returns:   one row if the claim is still current. Without a row, nothing was written.
-- No other worker can claim the items while the claim's row is locked.
WITH claim AS (
    SELECT token FROM internal_claims WHERE token = %(token)s FOR UPDATE
), written AS (
    UPDATE internal_items AS items
    SET status = ended.status,
        result = ended.output,
        reason = ended.reason,
        error = ended.error,
        updated_at = clock_timestamp()
    FROM claim, json_to_recordset(%(ends)s::json)
         AS ended (position bigint, status text, output json, reason text, error text)
    WHERE items.run_id = %(run_id)s
      AND items.position = ended.position
      AND items.token = claim.token
      AND items.status = 'running'
), freed AS (
    DELETE FROM internal_claims USING claim WHERE internal_claims.token = claim.token AND %(last)s
)
SELECT 1 FROM claim
