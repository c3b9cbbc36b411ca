-- Offer sessions to the runners, and say whether somebody has to be woken for them. Who listens to such a
-- session is made to look at its log: mostly, a turn was accepted.
--
-- KEYS[1]  ready   sorted set: session -> time of the first offer, ms; with `:` and a runner, its own set, which goes
--                  when the runner counts as gone
-- KEYS[2]  awake   sorted set: runner -> time at which it counts as gone, ms
-- KEYS[3]  woken   present for a moment after a wake-up message was asked for
-- ARGV[1]  how long `woken` stays, ms
-- ARGV[2]  backlog: this many waiting sessions are more than the awake runners keep up with
-- ARGV[3]  so many sessions at most wait for one runner; 0: nobody came for these
-- ARGV[4]  prefix of the sessions' channels
-- ARGV[5…] sessions
--
-- Returns 1 when the caller has to send a wake-up message, else 0.
-- Of several runners that are awake, a session always goes to the same one, which has its state at hand, unless as
-- many wait for that one as may: then anybody may take it. A runner that left one waiting until it is offered again for
-- that reason may be dead, and is not counted on until it says that it is awake. Each runner's draw decides, so that one that comes or goes
-- changes nothing for the others' sessions.
-- A session that is offered already keeps its place. All times are those of the Redis server.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
local awake = redis.call('ZRANGE', KEYS[2], 0, -1)
local backlog, kept = tonumber(ARGV[2]), tonumber(ARGV[3])
local behind = #awake == 0
for place = 5, #ARGV do
  local session, drawn, home = ARGV[place], '', nil
  for _, runner in ipairs(#awake > 1 and awake or {}) do
    local draw = redis.sha1hex(runner .. session)
    if draw > drawn then
      drawn, home = draw, runner
    end
  end
  local ready, own = KEYS[1], home and KEYS[1] .. ':' .. home
  if own and redis.call('ZCARD', own) < kept then
    ready = own
  elseif own and kept == 0 and redis.call('ZREM', own, session) == 1 then
    redis.call('ZREM', KEYS[2], home)
  end
  redis.call('ZADD', ready, 'NX', now, session)
  if ready ~= KEYS[1] then
    redis.call('PEXPIREAT', ready, redis.call('ZSCORE', KEYS[2], home))
  end
  behind = behind or redis.call('ZCARD', ready) >= backlog
  redis.call('PUBLISH', ARGV[4] .. session, '[]')
end
if behind and redis.call('SET', KEYS[3], '1', 'NX', 'PX', ARGV[1]) then
  return 1
end
return 0
