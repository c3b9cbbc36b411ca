-- Find documents whose top-level fields equal those in `fields`, ordered by key.
--
-- Arguments: tenant_id, domain, collection, fields (JSON object, may be empty), limit
-- Returns:   up to `limit` rows (document).
-- The index finds documents with the same strings; the comparison of each field decides.
SELECT document
FROM records
WHERE tenant_id = %(tenant_id)s AND domain = %(domain)s AND collection = %(collection)s
  AND jsonb_path_query_array(document, '$.* ? (@.type() == "string")')
      @> jsonb_path_query_array(%(fields)s::jsonb, '$.* ? (@.type() == "string")')
  AND NOT EXISTS (SELECT FROM jsonb_each(%(fields)s::jsonb) AS field
                  WHERE records.document -> field.key IS DISTINCT FROM field.value)
ORDER BY key COLLATE "C"
LIMIT %(limit)s
