-- Stop counting a runner as awake, unless there is work that it would leave behind; what it was offered is for all.
--
-- KEYS[1]  ready    sorted set: session -> time of the first offer, ms; with `:` and a runner, what it is offered first
-- KEYS[2]  awake    sorted set: runner -> time at which it counts as gone, ms
-- KEYS[3]  runners  sorted set of the same, in the order of their names
-- ARGV[1]  runner
-- ARGV[2]  '1': retire in any case
--
-- Returns 1 when the runner has retired, 0 when sessions are waiting.
local own = KEYS[1] .. ':' .. ARGV[1]
redis.call('ZUNIONSTORE', KEYS[1], 2, KEYS[1], own, 'AGGREGATE', 'MIN')
redis.call('DEL', own)
if ARGV[2] ~= '1' and redis.call('ZCARD', KEYS[1]) > 0 then
  return 0
end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
return 1
