-- Offer sessions to the runners, and say whether somebody has to be woken for them. Who listens to such a
-- session is made to look at its log: mostly, a turn was accepted.
--
-- KEYS[1]  ready   sorted set: session -> time of the first offer, ms
-- KEYS[2]  awake   sorted set: runner -> time at which it counts as gone, ms
-- KEYS[3]  woken   present for a moment after a wake-up message was asked for
-- ARGV[1]  how long `woken` stays, ms
-- ARGV[2]  backlog: this many waiting sessions are more than the awake runners keep up with
-- ARGV[3]  prefix of the sessions' channels
-- ARGV[4…] sessions
--
-- Returns 1 when the caller has to send a wake-up message, else 0.
-- A session that is offered already keeps its place. All times are those of the Redis server.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for place = 4, #ARGV do
  redis.call('ZADD', KEYS[1], 'NX', now, ARGV[place])
  redis.call('PUBLISH', ARGV[3] .. ARGV[place], '[]')
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
if redis.call('ZCARD', KEYS[2]) > 0 and redis.call('ZCARD', KEYS[1]) < tonumber(ARGV[2]) then
  return 0
end
if redis.call('SET', KEYS[3], '1', 'NX', 'PX', ARGV[1]) then
  return 1
end
return 0
