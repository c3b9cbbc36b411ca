-- Remove messages of the outbox that have arrived.
--
-- Arguments: ids (array)
DELETE FROM outbox
WHERE id = ANY(%(ids)s)
RETURNING id
