-- Stop counting a runner as awake, unless there is work that it would leave behind.
--
-- KEYS[1]  ready   sorted set: session -> its place in the line
-- KEYS[2]  awake   sorted set: runner -> time at which it counts as gone, ms
-- ARGV[1]  runner
-- ARGV[2]  '1': retire in any case
--
-- Returns 1 when the runner has retired, 0 when sessions are waiting.
if ARGV[2] ~= '1' and redis.call('ZCARD', KEYS[1]) > 0 then
  return 0
end
redis.call('ZREM', KEYS[2], ARGV[1])
return 1
