-- Merge top-level changes into a document whose fields equal those in `fields`.
--
-- Arguments: tenant_id, domain, collection, key, changes, fields (JSON object, may be empty)
-- Returns:   one row (document) as stored, or no row if nothing matched.
UPDATE records
SET document = document || %(changes)s::jsonb, updated_at = clock_timestamp()
WHERE tenant_id = %(tenant_id)s AND domain = %(domain)s AND collection = %(collection)s AND key = %(key)s
  AND NOT EXISTS (SELECT FROM jsonb_each(%(fields)s::jsonb) AS field
                  WHERE records.document -> field.key IS DISTINCT FROM field.value)
RETURNING document
