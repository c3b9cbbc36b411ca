-- Say that a process is here, for a while.
--
-- KEYS[1]  processes  sorted set: process as JSON -> time at which it counts as gone, ms
-- ARGV[1]  process
-- ARGV[2]  for how long, ms
--
-- Returns nothing of use. Repeating it prolongs. All times are those of the Redis server.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
return 0
