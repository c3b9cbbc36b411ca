-- Delete all but `most` preferences of a user. Keeps explicit preferences before others, newest first (CO-4).
--
-- Arguments: tenant_id, user_id, most
DELETE FROM preferences
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND key IN (
    SELECT key FROM preferences
    WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s
    ORDER BY source = 'explicit' DESC, updated_at DESC, key
    OFFSET %(most)s)
