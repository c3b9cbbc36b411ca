-- Add or replace entries of a scratchpad, and evict the least recently used when it is full (RT-13).
--
-- KEYS[1]  entries     hash: entry ID -> entry as JSON
-- KEYS[2]  used        sorted set: entry ID -> number of its last use
-- KEYS[3]  operations  sorted set: recent operation -> number
-- KEYS[4]  filled      counter of uses, present only if the scratchpad is complete
-- ARGV[1]  capacity
-- ARGV[2]  seconds until everything expires
-- ARGV[3]  operation, or ''
-- ARGV[4]  '1': keep existing entries (refill)
-- ARGV[5…] entry ID, entry, entry ID, entry, …
--
-- Returns the evicted IDs, or false if the scratchpad was lost and must be refilled first.
-- All keys are in one hash slot.
local KEPT_OPERATIONS = 256
local filling = ARGV[4] == '1'
if not filling and redis.call('EXISTS', KEYS[4]) == 0 then
  return false
end
if ARGV[3] ~= '' and redis.call('ZSCORE', KEYS[3], ARGV[3]) then
  return {}
end
for place = 5, #ARGV, 2 do
  if not (filling and redis.call('HEXISTS', KEYS[1], ARGV[place]) == 1) then
    redis.call('HSET', KEYS[1], ARGV[place], ARGV[place + 1])
    redis.call('ZADD', KEYS[2], redis.call('INCR', KEYS[4]), ARGV[place])
  end
end
if #ARGV < 5 then
  redis.call('INCR', KEYS[4])
end
if ARGV[3] ~= '' then
  redis.call('ZADD', KEYS[3], redis.call('GET', KEYS[4]), ARGV[3])
  redis.call('ZREMRANGEBYRANK', KEYS[3], 0, -KEPT_OPERATIONS - 1)
end
local gone = {}
local over = redis.call('ZCARD', KEYS[2]) - tonumber(ARGV[1])
if over > 0 then
  gone = redis.call('ZRANGE', KEYS[2], 0, over - 1)
  redis.call('ZREM', KEYS[2], unpack(gone))
  redis.call('HDEL', KEYS[1], unpack(gone))
end
for place = 1, 4 do
  redis.call('EXPIRE', KEYS[place], ARGV[2])
end
return gone
