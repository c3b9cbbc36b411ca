-- Read one document of a service.
--
-- Arguments: tenant_id, domain, collection, key
-- Effect:    one row (document), or none.
SELECT document
FROM records
WHERE tenant_id = %(tenant_id)s AND domain = %(domain)s AND collection = %(collection)s AND key = %(key)s
