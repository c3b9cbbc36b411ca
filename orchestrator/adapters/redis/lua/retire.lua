-- Stop counting a runner as awake, unless sessions are waiting.
--
-- KEYS[1]  ready   sorted set: session -> position in the queue
-- KEYS[2]  awake   sorted set: runner -> expiry time, ms
-- ARGV[1]  runner
-- ARGV[2]  '1': retire even if sessions are waiting
--
-- Returns 1 if the runner has retired, or 0 if sessions are waiting.
if ARGV[2] ~= '1' and redis.call('ZCARD', KEYS[1]) > 0 then
  return 0
end
redis.call('ZREM', KEYS[2], ARGV[1])
return 1
