-- Move messages of a queue ahead, each removed and reinserted in one step.
--
-- KEYS[1]  queue, a list: messages enter on the left and leave on the right
-- ARGV[1]  message behind which to insert; if it is empty or no longer in the queue, insert at the head
-- ARGV[2…] messages in leaving order; messages that are not in the queue are skipped
--
-- Returns the number of moved messages. LREM searches from the left, where recent messages are.
local moved, before = 0, ARGV[1]
for place = 2, #ARGV do
    local message = ARGV[place]
    if redis.call('LREM', KEYS[1], 1, message) == 1 then
        if before == '' or redis.call('LINSERT', KEYS[1], 'BEFORE', before, message) == -1 then
            redis.call('RPUSH', KEYS[1], message)
        end
        before = message
        moved = moved + 1
    end
end
return moved
