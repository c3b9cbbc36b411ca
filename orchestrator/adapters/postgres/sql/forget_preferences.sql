-- Move preferences of a user to the table of forgotten preferences (CO-4).
--
-- Arguments: tenant_id, user_id, keys (array; null: all preferences)
WITH gone AS (
    DELETE FROM preferences
    WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s
      AND (CAST(%(keys)s AS text[]) IS NULL OR key = ANY(CAST(%(keys)s AS text[])))
    RETURNING tenant_id, user_id, key, kind, value, text, origin
)
INSERT INTO forgotten_preferences (tenant_id, user_id, key, kind, value, text, origin)
SELECT * FROM gone
