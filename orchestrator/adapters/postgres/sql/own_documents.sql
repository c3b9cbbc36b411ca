-- Find the documents that belong to a user or originate from the given sessions, with their titles and texts.
--
-- Arguments: tenant, owner, sessions (array), until (Unix seconds: only documents up to this time; null: all)
-- Returns:   one row per document.
SELECT document_id, concat_ws(E'\n', title, body) AS words
FROM documents
WHERE tenant_id = %(tenant)s
  AND (user_id = %(owner)s OR origin ->> 'session_id' = ANY(%(sessions)s))
  AND (CAST(%(until)s AS float8) IS NULL OR updated_at <= to_timestamp(%(until)s))
