-- A column: the version of a session's state. Any change of its row makes another one, and so does a start of the
-- server, whose newest transactions may have been lost with the one before it and their numbers given again.
--
-- Needs:     `states`
concat_ws(' ', states.xmin, extract(epoch FROM pg_postmaster_start_time()))
