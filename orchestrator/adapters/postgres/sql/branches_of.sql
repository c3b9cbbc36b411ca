-- Find all direct and indirect forks of a session.
--
-- Arguments: session_id, tenant_id
-- Returns:   one row (session_id) per fork, nearest last.
WITH RECURSIVE theirs AS (
    SELECT session_id, coalesce(root, session_id) AS root, 0 AS remove
    FROM sessions
    WHERE session_id = %(session_id)s AND tenant_id = %(tenant_id)s
    UNION ALL
    SELECT one.session_id, one.root, theirs.remove + 1
    FROM theirs JOIN sessions AS one ON one.root = theirs.root AND one.parent = theirs.session_id
)
SELECT session_id FROM theirs WHERE remove > 0 ORDER BY remove DESC
