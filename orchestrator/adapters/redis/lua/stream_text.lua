-- Publish a piece of an answer, and store the text so far for late listeners (RT-15).
--
-- KEYS[1]  streamed  hash: turn, characters, text, stamp; the text of the session's running turn
-- ARGV[1]  channel
-- ARGV[2]  message
-- ARGV[3]  turn
-- ARGV[4]  offset: length of the answer before this piece, characters
-- ARGV[5]  text of the piece
-- ARGV[6]  length of the answer with this piece, characters
-- ARGV[7]  maximum length of the stored text, characters
-- ARGV[8]  seconds until the text expires
--
-- Publishes `<stamp>` followed by the message. Stamps are microseconds of the server's clock and always increase.
-- If a piece doesn't continue the stored text, because Redis lost it, nothing stays stored: listeners never see a
-- partial answer without its start.
local time = redis.call('TIME')
local stamp = time[1] * 1000000 + time[2]
local kept = redis.call('HMGET', KEYS[1], 'turn', 'characters', 'stamp')
if kept[3] and tonumber(kept[3]) >= stamp then
  stamp = tonumber(kept[3]) + 1
end
local written = string.format('%.0f', stamp)
local follows = kept[1] == ARGV[3] and kept[2] == ARGV[4]
if tonumber(ARGV[6]) > tonumber(ARGV[7]) or not (follows or ARGV[4] == '0') then
  redis.call('DEL', KEYS[1])
else
  local text = ARGV[5]
  if ARGV[4] ~= '0' then
    text = redis.call('HGET', KEYS[1], 'text') .. text
  end
  redis.call('HSET', KEYS[1], 'turn', ARGV[3], 'characters', ARGV[6], 'text', text, 'stamp', written)
  redis.call('EXPIRE', KEYS[1], ARGV[8])
end
return redis.call('PUBLISH', ARGV[1], written .. ARGV[2])
