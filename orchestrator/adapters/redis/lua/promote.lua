-- Move messages of a queue ahead, each once and in one step with being taken out of its place.
--
-- KEYS[1]  the queue, a list: messages come in at the left, and are taken at the right
-- ARGV[1]  the message behind which they go; empty, or no longer in the queue: to the head
-- ARGV[2…] the messages in the order in which they are to be taken; one that is no longer in the queue is left out
--
-- Returns how many were moved. They were sent not long ago, so they are looked for from the left.
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
