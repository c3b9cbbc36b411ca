-- Find the chunks nearest to a question, with the index for vectors of type `kind` and size `dimensions` (CO-4).
--
-- Arguments: tenant_id, user_id, domain, space, vector, half
-- Returns:   up to `half` rows.
SELECT chunk.document_id, chunk.position
FROM document_chunks AS chunk JOIN documents USING (tenant_id, document_id)
WHERE
-- include: parts/visible_documents.sql
  AND documents.space = %(space)s AND chunk.dimensions = {dimensions}
ORDER BY chunk.embedding::{kind}({dimensions}) <=> %(vector)s::{kind}({dimensions})
LIMIT %(half)s
