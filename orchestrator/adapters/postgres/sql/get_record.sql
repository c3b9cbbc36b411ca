-- Read a document of a domain service.
--
-- Arguments: tenant_id, domain, collection, key
-- Returns:   one row (document), or no row if the document doesn't exist.
SELECT document
FROM records
WHERE tenant_id = %(tenant_id)s AND domain = %(domain)s AND collection = %(collection)s AND key = %(key)s
