-- The chunks that share a telling term with a question, those with most of all its terms first (CO-4).
--
-- Arguments: tenant_id, user_id, domain, asked, all_asked, half
-- Effect:    at most `half` rows.
SELECT chunk.document_id, chunk.position
FROM document_chunks AS chunk JOIN documents USING (tenant_id, document_id)
WHERE
-- include: parts/visible_documents.sql
  AND chunk.words @@ to_tsquery('simple', %(asked)s)
ORDER BY ts_rank(chunk.words, to_tsquery('simple', %(all_asked)s), 1) DESC, chunk.document_id, chunk.position
LIMIT %(half)s
