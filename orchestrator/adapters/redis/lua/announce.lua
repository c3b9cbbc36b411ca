-- Register a process or an awake runner, or renew its entry. Remove expired entries.
--
-- KEYS[1]  sorted set: process as JSON, or runner -> expiry time, ms
-- ARGV[1]  process or runner
-- ARGV[2]  lifetime of the entry, ms
--
-- All times are those of the Redis server.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
return 0
