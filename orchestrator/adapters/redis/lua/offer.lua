-- Offer sessions to runners, and decide whether to wake a worker. An empty message makes listeners of an offered
-- session read its log, because most offers follow an accepted turn.
--
-- KEYS[1]  ready   sorted set: session -> position in the queue
-- KEYS[2]  awake   sorted set: runner -> expiry time, ms
-- KEYS[3]  woken   hash that expires: `at`, the time of the last wake-up message, ms; `awake`, the number of runners
--                  awake at that time; `pause` before the next message unless more runners are awake, ms
-- KEYS[4]  places  hash: tenant -> position of its last session; deleted when the queue is empty
-- ARGV[1]  shortest pause between wake-up messages, ms
-- ARGV[2]  longest pause while a backlog remains and no more runners wake up, ms
-- ARGV[3]  number of waiting sessions from which awake runners don't keep up; 0: wake a worker in any case
-- ARGV[4]  prefix of the sessions' channels
-- ARGV[5…] sessions, each followed by its tenant
--
-- Returns 1 if the caller must send a wake-up message, or 0.
-- A session that is already in the queue keeps its position. A new session goes behind its tenant's last session,
-- but never before the head of the queue. Tenants with few sessions therefore overtake tenants with many
-- (start-time fair queueing). All times are those of the Redis server.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local first = tonumber(redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2])
if not first then
  redis.call('DEL', KEYS[4])
end
for argument = 5, #ARGV, 2 do
  local session, tenant = ARGV[argument], ARGV[argument + 1]
  local place = math.max(first or 0, tonumber(redis.call('HGET', KEYS[4], tenant) or 0)) + 1
  if redis.call('ZADD', KEYS[1], 'NX', place, session) == 1 then
    redis.call('HSET', KEYS[4], tenant, place)
  end
  redis.call('PUBLISH', ARGV[4] .. session, '[]')
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
local awake, backlog = redis.call('ZCARD', KEYS[2]), tonumber(ARGV[3])
if awake > 0 and redis.call('ZCARD', KEYS[1]) < backlog then
  return 0
end
local shortest, longest = tonumber(ARGV[1]), tonumber(ARGV[2])
local last = redis.call('HMGET', KEYS[3], 'at', 'awake', 'pause')
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
redis.call('HSET', KEYS[3], 'at', now, 'awake', awake, 'pause', following)
redis.call('PEXPIRE', KEYS[3], 2 * longest)
return 1
