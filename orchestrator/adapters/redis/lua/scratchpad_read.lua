-- Read the entries of a scratchpad, least recently used first (RT-13).
--
-- KEYS[1]  entries  hash: entry ID -> entry as JSON
-- KEYS[2]  used     sorted set: entry ID -> number of its last use
-- KEYS[3]  filled   counter of uses, present only if the scratchpad is complete
-- ARGV[1]  '1': the read counts as a use
-- ARGV[2…] kinds; all if empty
--
-- Returns the entries, or false if the scratchpad was lost and must be refilled first.
if redis.call('EXISTS', KEYS[3]) == 0 then
  return false
end
local wanted = {}
for place = 2, #ARGV do
  wanted[ARGV[place]] = true
end
local found = {}
for _, id in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  local entry = redis.call('HGET', KEYS[1], id)
  if entry and (#ARGV < 2 or wanted[cjson.decode(entry)['kind']]) then
    found[#found + 1] = entry
    if ARGV[1] == '1' then
      redis.call('ZADD', KEYS[2], redis.call('INCR', KEYS[3]), id)
    end
  end
end
return found
