-- Read the messages that entered a queue after a known message.
--
-- KEYS[1]  queue, a list: messages enter on the left and leave on the right
-- ARGV[1]  known message
-- ARGV[2]  maximum number of messages to search
--
-- Returns the newer messages, newest first, or nil if the known message was not found.
local place = redis.call('LPOS', KEYS[1], ARGV[1], 'MAXLEN', ARGV[2])
if not place then
    return nil
end
return place > 0 and redis.call('LRANGE', KEYS[1], 0, place - 1) or {}
