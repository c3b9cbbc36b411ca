-- Delete marks of erased preferences that have a newer mark with the same key (CO-4).
--
-- Arguments: tenant, owner
DELETE FROM forgotten_preferences AS mark
WHERE tenant_id = %(tenant)s AND user_id = %(owner)s AND erased
  AND EXISTS (
      SELECT FROM forgotten_preferences AS newer
      WHERE newer.tenant_id = mark.tenant_id AND newer.user_id = mark.user_id AND newer.key = mark.key
        AND newer.erased AND newer.id > mark.id)
