-- Memory: scratchpads, preferences, documents in chunks, and what the services of domains keep.

CREATE TABLE scratchpad_entries (
    session_id text REFERENCES lanes ON DELETE CASCADE,
    entry_id   text,
    tenant_id  text NOT NULL,
    body       json NOT NULL,
    used_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (session_id, entry_id)
);
COMMENT ON TABLE scratchpad_entries IS
    'Accepted entries of scratchpads, from which Redis is filled again (RT-14).';

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
COMMENT ON TABLE preferences IS 'Preferences of users: rules and habits, with their provenance (CO-4).';

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
    'What users had forgotten, until it stands nowhere else; then the key alone, so that no old task brings it back.';
CREATE INDEX forgotten_preferences_user_id_idx ON forgotten_preferences (tenant_id, user_id);

CREATE TABLE documents (
    tenant_id   text,
    document_id text,
    domain      text NOT NULL,
    user_id     text,          -- whom it is for; null: everybody of the tenant
    title       text,
    body        text NOT NULL,
    labels      json,
    digest      text NOT NULL,
    origin      json NOT NULL,
    space       text,          -- in which its chunks are embedded; null: not yet
    chunks      integer NOT NULL DEFAULT 0,
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, document_id)
);
COMMENT ON TABLE documents IS 'Texts that assistants may look things up in (CO-4).';

CREATE TABLE document_chunks (
    tenant_id   text,
    document_id text,
    position    integer,
    text        text NOT NULL,
    terms       text[] NOT NULL,
    words       tsvector NOT NULL, -- of the terms
    embedding   real[] NOT NULL,   -- of length 1
    dimensions  integer NOT NULL,  -- of the embedding
    PRIMARY KEY (tenant_id, document_id, position),
    FOREIGN KEY (tenant_id, document_id) REFERENCES documents ON DELETE CASCADE
);
COMMENT ON TABLE document_chunks IS 'Pieces of documents that are found by meaning and by words (CO-4).';
CREATE INDEX document_chunks_words_idx ON document_chunks USING gin (words);

-- pgvector finds the nearest chunks by distance, with an index for each usual number of dimensions; beyond 2,000
-- an index holds half precision only. On a server without it embeddings stay arrays, and the nearest are chosen
-- among the chunks that share a word with the question.
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
COMMENT ON TABLE records IS 'What a domain''s services keep: named collections of JSON documents.';
-- What is looked for are texts at the top: to index whole documents costs a turn more than to keep them.
CREATE INDEX records_texts_idx ON records
    USING gin (jsonb_path_query_array(document, '$.* ? (@.type() == "string")') jsonb_path_ops);
