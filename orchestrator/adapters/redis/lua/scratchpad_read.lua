-- Read the entries of one scratchpad, the least recently used first (RT-13).
--
-- KEYS[1]  entries  hash: entry id -> entry as JSON
-- KEYS[2]  used     sorted set: entry id -> number of its last use
-- KEYS[3]  filled   present when the scratchpad is known to be whole; its value counts uses
-- ARGV[1]  '1': what is read counts as used
-- ARGV[2…] kinds; none: all
--
-- Returns false when the scratchpad was lost and has to be filled first, else the entries.
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
