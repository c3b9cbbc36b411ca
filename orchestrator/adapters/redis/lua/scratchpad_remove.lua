-- Remove entries of a scratchpad.
--
-- KEYS[1]  entries  hash: entry ID -> entry as JSON
-- KEYS[2]  used     sorted set: entry ID -> number of its last use
-- ARGV     entry IDs
--
-- Returns the number of removed entries.
redis.call('ZREM', KEYS[2], unpack(ARGV))
return redis.call('HDEL', KEYS[1], unpack(ARGV))
