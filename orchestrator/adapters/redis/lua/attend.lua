-- Count a runner as awake for a while.
--
-- KEYS[1]  awake   sorted set: runner -> time at which it counts as gone, ms
-- ARGV[1]  runner
-- ARGV[2]  for how long, ms
--
-- Returns nothing of use. Repeating it prolongs.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
return 0
