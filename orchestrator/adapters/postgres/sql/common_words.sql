-- How many chunks have those of these words that are common, by the database's statistics (CO-4).
--
-- Arguments: terms (array)
-- Effect:    one row for each of them that is common.
SELECT word, share * reltuples AS chunks
FROM pg_stats JOIN pg_class ON pg_class.oid = 'document_chunks'::regclass,
     unnest(most_common_elems::text::text[], most_common_elem_freqs) AS common (word, share)
WHERE tablename = 'document_chunks' AND attname = 'words' AND word = ANY(%(terms)s::text[])
