-- Publish the message that ends a turn, and delete the turn's streamed text.
--
-- KEYS[1]  streamed  hash: the text of the session's running turn
-- ARGV[1]  channel
-- ARGV[2]  message
redis.call('DEL', KEYS[1])
return redis.call('PUBLISH', ARGV[1], ARGV[2])
