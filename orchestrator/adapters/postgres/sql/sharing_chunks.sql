-- Find the chunks that share a distinctive term with a question, ranked by all of its terms (CO-4).
--
-- Arguments: tenant_id, user_id, domain, asked, all_asked, half
-- Returns:   up to `half` rows.
SELECT chunk.document_id, chunk.position
FROM document_chunks AS chunk JOIN documents USING (tenant_id, document_id)
WHERE
-- include: parts/visible_documents.sql
  AND chunk.words @@ to_tsquery('simple', %(asked)s)
ORDER BY ts_rank(chunk.words, to_tsquery('simple', %(all_asked)s), 1) DESC, chunk.document_id, chunk.position
LIMIT %(half)s
