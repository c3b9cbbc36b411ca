-- Insert a document chunk. `kind` is the type of the vector column (CO-4).
--
-- Arguments: tenant_id, document_id, position, text, terms (array), words, embedding, dimensions
INSERT INTO document_chunks (tenant_id, document_id, position, text, terms, words, embedding, dimensions)
VALUES (%(tenant_id)s, %(document_id)s, %(position)s, %(text)s, %(terms)s::text[],
        to_tsvector('simple', %(words)s::text), %(embedding)s::{kind}, %(dimensions)s)
