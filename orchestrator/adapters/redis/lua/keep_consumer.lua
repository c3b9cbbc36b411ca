-- Register a consumer of broker messages, move prioritized messages to the main list, and find silent consumers.
--
-- KEYS[1]  consumers    sorted set: name -> last registration, ms
-- KEYS[2]  submissions  list
-- KEYS[3…] lists of prioritized submissions
-- ARGV[1]  name of the calling consumer
-- ARGV[2]  silence after which a consumer counts as gone, ms
-- ARGV[3]  silence after which its entry is deleted, ms; later, because a slow consumer may still take messages
-- ARGV[4]  silence after which it is returned only once per interval of this length, ms
--
-- Returns the names of consumers that count as gone. All times are those of the Redis server.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local before = redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0
local since = '-inf'
if math.floor(before / ARGV[4]) == math.floor(now / ARGV[4]) then
    since = now - ARGV[4]
end
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[3])
for place = 3, #KEYS do
    repeat until not redis.call('LMOVE', KEYS[place], KEYS[2], 'RIGHT', 'LEFT')
end
return redis.call('ZRANGEBYSCORE', KEYS[1], since, now - ARGV[2])
