-- Tell how a turn ended, and forget the text that it streamed.
--
-- KEYS[1]  streamed  hash: the text of the session's running turn
-- ARGV[1]  channel
-- ARGV[2]  message
redis.call('DEL', KEYS[1])
return redis.call('PUBLISH', ARGV[1], ARGV[2])
