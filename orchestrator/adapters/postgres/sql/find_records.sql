-- Find documents whose top-level fields equal those of `fields`, ordered by key.
--
-- Arguments: tenant_id, domain, collection, fields (a JSON object, may be empty), limit
-- Effect:    up to `limit` rows (document). Containment is what the index answers; equality of each field,
--            which containment is not, decides.
SELECT document
FROM records
WHERE tenant_id = %(tenant_id)s AND domain = %(domain)s AND collection = %(collection)s
  AND document @> %(fields)s::jsonb
  AND NOT EXISTS (SELECT FROM jsonb_each(%(fields)s::jsonb) AS field
                  WHERE records.document -> field.key IS DISTINCT FROM field.value)
ORDER BY key COLLATE "C"
LIMIT %(limit)s
