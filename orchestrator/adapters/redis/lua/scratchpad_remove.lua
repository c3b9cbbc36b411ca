-- Remove entries of one scratchpad.
--
-- KEYS[1]  entries  hash: entry id -> entry as JSON
-- KEYS[2]  used     sorted set: entry id -> number of its last use
-- ARGV     entry ids
--
-- Returns how many were there.
redis.call('ZREM', KEYS[2], unpack(ARGV))
return redis.call('HDEL', KEYS[1], unpack(ARGV))
