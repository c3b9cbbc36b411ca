-- Read the messages of a queue that came in after a known one.
--
-- KEYS[1]  the queue, a list: messages come in at the left, and are taken at the right
-- ARGV[1]  the known message
-- ARGV[2]  how far it is looked for
--
-- Returns them, the newest first; nil when the known one is not found.
local place = redis.call('LPOS', KEYS[1], ARGV[1], 'MAXLEN', ARGV[2])
if not place then
    return nil
end
return place > 0 and redis.call('LRANGE', KEYS[1], 0, place - 1) or {}
