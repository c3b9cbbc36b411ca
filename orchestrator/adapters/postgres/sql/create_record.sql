-- Store a document of a domain service unless its key is taken.
--
-- Arguments: tenant_id, domain, collection, key, document
-- Returns:   one row with the stored document. No row if a concurrent transaction has stored a document that this
--            statement's snapshot does not show; the caller then reads that document.
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
