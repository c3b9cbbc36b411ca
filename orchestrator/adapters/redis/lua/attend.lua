-- Count a runner as awake for a limited time. Repeating the call extends the time.
--
-- KEYS[1]  awake   sorted set: runner -> expiry time, ms
-- ARGV[1]  runner
-- ARGV[2]  duration, ms
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
return 0
