-- Count a runner as awake for a while, and leave to all what was offered to those that have fallen silent.
--
-- KEYS[1]  ready    sorted set: session -> time of the first offer, ms; with `:` and a runner, what it is offered first
-- KEYS[2]  awake    sorted set: runner -> time at which it counts as gone, ms
-- KEYS[3]  runners  sorted set of the same, in the order of their names
-- ARGV[1]  runner
-- ARGV[2]  for how long, ms
-- ARGV[3]  how many others to name
--
-- Returns others that are awake. Repeating it prolongs.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[2], now + ARGV[2], ARGV[1])
redis.call('ZADD', KEYS[3], 0, ARGV[1])
local others = {}
for _, runner in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
  if tonumber(redis.call('ZSCORE', KEYS[2], runner) or 0) <= now then
    local own = KEYS[1] .. ':' .. runner
    redis.call('ZUNIONSTORE', KEYS[1], 2, KEYS[1], own, 'AGGREGATE', 'MIN')
    redis.call('DEL', own)
    redis.call('ZREM', KEYS[3], runner)
  elseif runner ~= ARGV[1] and #others < tonumber(ARGV[3]) then
    table.insert(others, runner)
  end
end
return others
