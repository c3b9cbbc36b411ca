-- Store a document of a domain service unless its key is taken.
--
-- Arguments: tenant_id, domain, collection, key, document
-- Returns:   one row (document) as stored. No row if a concurrent transaction stored one that this statement's snapshot
--            does not show; the caller reads it.
WITH added AS (
    INSERT INTO records (tenant_id, domain, collection, key, document)
    VALUES (%(tenant_id)s, %(domain)s, %(collection)s, %(key)s, %(document)s::jsonb)
    ON CONFLICT DO NOTHING
    RETURNING document
)
SELECT document FROM added
UNION ALL
SELECT document
FROM records
WHERE tenant_id = %(tenant_id)s AND domain = %(domain)s AND collection = %(collection)s AND key = %(key)s
