-- Remove acknowledged messages from the outbox. Commits asynchronously, as in take_outbox.
--
-- Arguments: ids (array)
DELETE FROM outbox
USING (SELECT set_config('synchronous_commit', 'off', true)) AS unhurried
WHERE id = ANY(%(ids)s)
RETURNING id
