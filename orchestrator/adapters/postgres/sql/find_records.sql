-- Find documents whose top-level fields equal those of `fields`, ordered by key.
--
-- Arguments: tenant_id, domain, collection, fields (a JSON object, may be empty), limit
-- Effect:    up to `limit` rows (document). The index answers which hold the same texts; equality of each
--            field decides.
SELECT document
FROM records
WHERE tenant_id = %(tenant_id)s AND domain = %(domain)s AND collection = %(collection)s
  AND jsonb_path_query_array(document, '$.* ? (@.type() == "string")')
      @> jsonb_path_query_array(%(fields)s::jsonb, '$.* ? (@.type() == "string")')
  AND NOT EXISTS (SELECT FROM jsonb_each(%(fields)s::jsonb) AS field
                  WHERE records.document -> field.key IS DISTINCT FROM field.value)
ORDER BY key COLLATE "C"
LIMIT %(limit)s
