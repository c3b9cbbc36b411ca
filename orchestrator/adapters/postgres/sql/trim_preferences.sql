-- Leave a user so many preferences: those that were said before those that were learnt, then the newest (CO-4).
--
-- Arguments: tenant_id, user_id, most
-- Effect:    no row.
DELETE FROM preferences
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND key IN (
    SELECT key FROM preferences
    WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s
    ORDER BY source = 'explicit' DESC, updated_at DESC, key
    OFFSET %(most)s)
