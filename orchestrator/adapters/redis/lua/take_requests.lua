-- Count a request against several limits, or against none of them (GCRA: one time per limit).
--
-- KEYS[i]      time when the limit is fully restored, µs; expires then
-- ARGV[2i-1]   cost of one request, µs
-- ARGV[2i]     burst: how far that time may be in the future, µs
--
-- Returns 0 if the request was counted, or the ms to wait. All times are those of the Redis server.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local rest, wait = {}, 0
for i, key in ipairs(KEYS) do
  local at = math.max(tonumber(redis.call('GET', key) or 0), now) + ARGV[2 * i - 1]
  rest[i] = at
  wait = math.max(wait, at - ARGV[2 * i] - now)
end
if wait > 0 then
  return math.max(1, math.ceil(wait / 1000))
end
for i, key in ipairs(KEYS) do
  redis.call('SET', key, string.format('%d', rest[i]), 'PX', math.ceil((rest[i] - now) / 1000) + 1)
end
return 0
