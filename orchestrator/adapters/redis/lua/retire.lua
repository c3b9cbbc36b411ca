-- Stop counting a runner as awake, unless there is work that it would leave behind.
--
-- KEYS[1]  ready   sorted set: session -> time of the first offer, ms
-- KEYS[2]  awake   sorted set: runner -> time at which it counts as gone, ms
-- KEYS[3]  own     sorted set: the same as `ready`, of sessions that are kept for this runner; whoever comes gets them
-- ARGV[1]  runner
-- ARGV[2]  '1': retire in any case
--
-- Returns 1 when the runner has retired, 0 when sessions are waiting.
local kept = redis.call('ZCARD', KEYS[3])
if ARGV[2] ~= '1' and redis.call('ZCARD', KEYS[1]) + kept > 0 then
  return 0
end
redis.call('ZREM', KEYS[2], ARGV[1])
if kept > 0 then
  redis.call('ZUNIONSTORE', KEYS[1], 2, KEYS[1], KEYS[3], 'AGGREGATE', 'MIN')
  redis.call('DEL', KEYS[3])
end
return 1
