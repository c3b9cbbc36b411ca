-- Remove messages of the outbox that have arrived. Nobody waits until the disk has it, as in take_outbox.
--
-- Arguments: ids (array)
DELETE FROM outbox
USING (SELECT set_config('synchronous_commit', 'off', true)) AS unhurried
WHERE id = ANY(%(ids)s)
RETURNING id
