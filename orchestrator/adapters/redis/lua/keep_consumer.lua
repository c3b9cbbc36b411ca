-- Say that a consumer of the broker's messages is alive, put messages that were sent with a priority among the others,
-- and name the consumers that have fallen silent.
--
-- KEYS[1]  consumers  sorted set: name -> when it was heard last, ms
-- KEYS[2]  submissions  list; KEYS[3] and on: the lists of those with a priority
-- ARGV[1]  the consumer's own name
-- ARGV[2]  after how long without a word one counts as gone, ms
-- ARGV[3]  after how long it is forgotten, ms: one that was only slow may have taken something meanwhile
--
-- Returns the names of those that are gone. All times are those of the Redis server.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[3])
for place = 3, #KEYS do
    repeat until not redis.call('LMOVE', KEYS[place], KEYS[2], 'RIGHT', 'LEFT')
end
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
