-- Add a document unless its ID is taken (CO-4).
--
-- Arguments: tenant_id, document_id, domain, title, body, labels (JSON), user_id, digest, origin (JSON)
-- Returns:   one row if the document was added.
INSERT INTO documents (tenant_id, document_id, domain, title, body, labels, user_id, digest, origin)
VALUES (%(tenant_id)s, %(document_id)s, %(domain)s, %(title)s, %(body)s, %(labels)s::json, %(user_id)s, %(digest)s,
        %(origin)s::json)
ON CONFLICT (tenant_id, document_id) DO NOTHING
RETURNING 1
