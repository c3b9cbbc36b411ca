-- Every session that goes on from one, at any remove, the nearest last.
--
-- Arguments: session_id, tenant_id
-- Effect:    their identifiers.
WITH RECURSIVE theirs AS (
    SELECT session_id, coalesce(root, session_id) AS root, 0 AS remove
    FROM sessions
    WHERE session_id = %(session_id)s AND tenant_id = %(tenant_id)s
    UNION ALL
    SELECT one.session_id, one.root, theirs.remove + 1
    FROM theirs JOIN sessions AS one ON one.root = theirs.root AND one.parent = theirs.session_id
)
SELECT session_id FROM theirs WHERE remove > 0 ORDER BY remove DESC
