-- Keep a chunk of a document with its vector, of the type that the column has: `kind` (CO-4).
--
-- Arguments: tenant_id, document_id, position, text, terms (array), words, embedding, dimensions
-- Effect:    no row.
INSERT INTO document_chunks (tenant_id, document_id, position, text, terms, words, embedding, dimensions)
VALUES (%(tenant_id)s, %(document_id)s, %(position)s, %(text)s, %(terms)s::text[],
        to_tsvector('simple', %(words)s::text), %(embedding)s::{kind}, %(dimensions)s)
