-- Note that messages of the outbox have arrived.
--
-- Arguments: ids (array)
UPDATE outbox
SET acknowledged_at = clock_timestamp()
WHERE id = ANY(%(ids)s) AND acknowledged_at IS NULL
RETURNING id
