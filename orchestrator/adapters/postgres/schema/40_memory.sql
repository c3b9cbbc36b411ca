-- Memory: scratchpads, preferences, chunked documents, and records of domain services.

CREATE TABLE scratchpad_entries (
    session_id text REFERENCES lanes ON DELETE CASCADE,
    entry_id   text,
    tenant_id  text NOT NULL,
    body       json NOT NULL,
    used_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (session_id, entry_id)
);
COMMENT ON TABLE scratchpad_entries IS
    'Archived scratchpad entries, from which Redis is refilled (RT-14).';

CREATE TABLE preferences (
    tenant_id  text,
    user_id    text,
    key        text,
    kind       text NOT NULL,
    source     text NOT NULL,
    value      json NOT NULL,
    text       text NOT NULL,
    labels     json NOT NULL,
    origin     json NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, user_id, key)
);
COMMENT ON TABLE preferences IS 'User preferences: rules and habits, with their provenance (CO-4).';

CREATE TABLE forgotten_preferences (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id text NOT NULL,
    user_id   text NOT NULL,
    key       text NOT NULL,
    kind      text NOT NULL,
    value     json NOT NULL,
    text      text NOT NULL,
    origin    json NOT NULL,
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    erased    boolean NOT NULL DEFAULT false
);
COMMENT ON TABLE forgotten_preferences IS
    'Preferences that users asked to forget. After erasure only the key stays, so that old tasks don''t restore them.';
CREATE INDEX forgotten_preferences_user_id_idx ON forgotten_preferences (tenant_id, user_id);

CREATE TABLE documents (
    tenant_id   text,
    document_id text,
    domain      text NOT NULL,
    user_id     text,          -- null: for all users of the tenant
    title       text,
    body        text NOT NULL,
    labels      json,
    digest      text NOT NULL,
    origin      json NOT NULL,
    space       text,          -- embedding space of its chunks; null: not embedded yet
    chunks      integer NOT NULL DEFAULT 0,
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, document_id)
);
COMMENT ON TABLE documents IS 'Texts that assistants can search (CO-4).';

CREATE TABLE document_chunks (
    tenant_id   text,
    document_id text,
    position    integer,
    text        text NOT NULL,
    terms       text[] NOT NULL,
    words       tsvector NOT NULL, -- built from the terms
    embedding   real[] NOT NULL,   -- normalized to length 1
    dimensions  integer NOT NULL,  -- size of the embedding
    PRIMARY KEY (tenant_id, document_id, position),
    FOREIGN KEY (tenant_id, document_id) REFERENCES documents ON DELETE CASCADE
);
COMMENT ON TABLE document_chunks IS 'Document chunks, searched by meaning and by words (CO-4).';
CREATE INDEX document_chunks_words_idx ON document_chunks USING gin (words);

-- pgvector finds the nearest chunks, with an index for each common number of dimensions. Above 2,000 dimensions, an index
-- supports only half precision. Without pgvector, embeddings stay arrays, and only chunks that share a word with the
-- question are compared.
DO $$
DECLARE
    many integer;
BEGIN
    IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector') THEN
        CREATE EXTENSION IF NOT EXISTS vector;
        ALTER TABLE document_chunks ALTER COLUMN embedding TYPE vector;
        FOREACH many IN ARRAY ARRAY[384, 512, 768, 1024, 1536, 3072] LOOP
            EXECUTE format(
                'CREATE INDEX document_chunks_nearest_%1$s_idx ON document_chunks'
                ' USING hnsw ((embedding::%2$s(%1$s)) %2$s_cosine_ops) WHERE dimensions = %1$s',
                many, CASE WHEN many > 2000 THEN 'halfvec' ELSE 'vector' END);
        END LOOP;
    END IF;
END
$$;

CREATE TABLE records (
    tenant_id  text,
    domain     text,
    collection text,
    key        text,
    document   jsonb NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, domain, collection, key)
);
COMMENT ON TABLE records IS 'Data of domain services: named collections of JSON documents.';
-- Searches only use top-level strings. Indexing whole documents would cost a turn more than storing them.
CREATE INDEX records_texts_idx ON records
    USING gin (jsonb_path_query_array(document, '$.* ? (@.type() == "string")') jsonb_path_ops);
