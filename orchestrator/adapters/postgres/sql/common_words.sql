-- Estimate how many chunks contain each of the words that are common, from the database's statistics (CO-4).
--
-- Arguments: terms (array)
-- Returns:   one row per common word.
SELECT word, share * reltuples AS chunks
FROM pg_stats JOIN pg_class ON pg_class.oid = 'document_chunks'::regclass,
     unnest(most_common_elems::text::text[], most_common_elem_freqs) AS common (word, share)
WHERE tablename = 'document_chunks' AND attname = 'words' AND word = ANY(%(terms)s::text[])
