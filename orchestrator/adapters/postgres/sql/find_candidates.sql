-- Find chunks that may answer a question, with the values that rank them (CO-4). `found`: the query that selects
-- chunks. `likeness`: the expression that compares vectors.
--
-- Arguments: tenant_id, space; for `found` and `likeness` also user_id, domain, vector, asked, all_asked, half
-- Returns:   one row per chunk.
SELECT chunk.document_id, chunk.position, chunk.text, chunk.terms,
       CASE WHEN documents.space = %(space)s THEN {likeness} END AS likeness,
       coalesce(documents.title, '') AS title, coalesce(documents.labels, '[]') AS labels, documents.origin,
       extract(epoch FROM documents.updated_at)::float8 AS updated_at
FROM ({found}) AS found
    JOIN document_chunks AS chunk USING (document_id, position)
    JOIN documents USING (tenant_id, document_id)
WHERE chunk.tenant_id = %(tenant_id)s
