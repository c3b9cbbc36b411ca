-- Add or replace entries of one scratchpad; the least recently used go when it is full (RT-13).
--
-- KEYS[1]  entries     hash: entry id -> entry as JSON
-- KEYS[2]  used        sorted set: entry id -> number of its last use
-- KEYS[3]  operations  sorted set: operation -> number; those carried out lately
-- KEYS[4]  filled      present when the scratchpad is known to be whole; its value counts uses
-- ARGV[1]  capacity
-- ARGV[2]  seconds until everything expires
-- ARGV[3]  operation, or ''
-- ARGV[4]  '1': keep entries that are there already (filling again)
-- ARGV[5…] entry id, entry, entry id, entry, …
--
-- Returns false when the scratchpad was lost and has to be filled first, else the ids that had to go.
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
