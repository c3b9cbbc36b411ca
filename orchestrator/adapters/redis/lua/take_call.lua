-- Count a tool call, unless the window has reached its limit.
--
-- KEYS[1]  calls   sorted set: call -> time when it was counted, µs
-- ARGV[1]  call, unique
-- ARGV[2]  maximum number of calls within the window
-- ARGV[3]  window, ms
--
-- Returns 0 if the call was counted, or the ms to wait. All times are those of the Redis server.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local window = ARGV[3] * 1000
local limit = tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window)
local counted = redis.call('ZCARD', KEYS[1])
if counted < limit then
  redis.call('ZADD', KEYS[1], now, ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  return 0
end
local oldest = redis.call('ZRANGE', KEYS[1], counted - limit, counted - limit, 'WITHSCORES')
return math.max(1, math.ceil((oldest[2] + window - now) / 1000))
