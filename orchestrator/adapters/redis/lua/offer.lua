-- Offer sessions to the runners, and say whether somebody has to be woken for them. Who listens to such a
-- session is made to look at its log: mostly, a turn was accepted.
--
-- Of several runners that are awake, the same one is offered a session each time, so that it finds the state as it
-- left it; what it does not keep up with is for all.
--
-- KEYS[1]  ready    sorted set: session -> time of the first offer, ms; with `:` and a runner, what it is offered first
-- KEYS[2]  awake    sorted set: runner -> time at which it counts as gone, ms
-- KEYS[3]  runners  sorted set of the same, in the order of their names
-- KEYS[4]  woken    hash, present for a moment: `at`, the time of the last wake-up message, ms; `awake`, how many
--                   runners were awake then; `pause` until the next one when no more are awake by then, ms
-- ARGV[1]  shortest pause between wake-up messages, ms
-- ARGV[2]  longest one while a backlog remains and nobody more wakes up, ms
-- ARGV[3]  backlog: this many waiting sessions are more than the awake runners keep up with; 0: wake in any case,
--          and offer to all
-- ARGV[4]  so many may wait for one runner
-- ARGV[5]  prefix of the sessions' channels
-- ARGV[6…] sessions
--
-- Returns 1 when the caller has to send a wake-up message, else 0.
-- A session that is offered already keeps its place. All times are those of the Redis server.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
local awake, runners = redis.call('ZCARD', KEYS[2]), redis.call('ZCARD', KEYS[3])
local backlog = tonumber(ARGV[3])
local function place_of(session)
  if awake == 0 or runners < 2 or backlog == 0 or redis.call('ZSCORE', KEYS[1], session) then
    return KEYS[1]
  end
  local place = tonumber(string.sub(redis.sha1hex(session), 1, 7), 16) % runners
  local own = KEYS[1] .. ':' .. redis.call('ZRANGE', KEYS[3], place, place)[1]
  return redis.call('ZCARD', own) < tonumber(ARGV[4]) and own or KEYS[1]
end
for place = 6, #ARGV do
  redis.call('ZADD', place_of(ARGV[place]), 'NX', now, ARGV[place])
  redis.call('PUBLISH', ARGV[5] .. ARGV[place], '[]')
end
if awake > 0 and redis.call('ZCARD', KEYS[1]) < backlog then
  return 0
end
local shortest, longest = tonumber(ARGV[1]), tonumber(ARGV[2])
local last = redis.call('HMGET', KEYS[4], 'at', 'awake', 'pause')
local pause, following = shortest, shortest
if last[1] then
  if awake > 0 and backlog > 0 and awake <= tonumber(last[2]) then
    pause = tonumber(last[3])
    following = math.min(2 * pause, longest)
  end
  if now - last[1] < pause then
    return 0
  end
end
redis.call('HSET', KEYS[4], 'at', now, 'awake', awake, 'pause', following)
redis.call('PEXPIRE', KEYS[4], 2 * longest)
return 1
