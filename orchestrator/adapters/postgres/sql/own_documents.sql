-- A user's own documents and those made of their sessions, with their words; those of until a time, if one is given.
--
-- Arguments: tenant, owner, sessions (array), until (unix seconds)
-- Effect:    a row for each document.
SELECT document_id, concat_ws(E'\n', title, body) AS words
FROM documents
WHERE tenant_id = %(tenant)s
  AND (user_id = %(owner)s OR origin ->> 'session_id' = ANY(%(sessions)s))
  AND (CAST(%(until)s AS float8) IS NULL OR updated_at <= to_timestamp(%(until)s))
