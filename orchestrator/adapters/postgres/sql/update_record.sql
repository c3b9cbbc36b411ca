-- Merge top-level changes into a document whose fields equal those of `fields`.
--
-- Arguments: tenant_id, domain, collection, key, changes, fields (a JSON object, may be empty)
-- Effect:    one row (document) as it is stored now, or none when nothing matched.
UPDATE records
SET document = document || %(changes)s::jsonb, updated_at = clock_timestamp()
WHERE tenant_id = %(tenant_id)s AND domain = %(domain)s AND collection = %(collection)s AND key = %(key)s
  AND NOT EXISTS (SELECT FROM jsonb_each(%(fields)s::jsonb) AS field
                  WHERE records.document -> field.key IS DISTINCT FROM field.value)
RETURNING document
