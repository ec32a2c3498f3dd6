-- Has an empty journal begin after a position: what comes before was dropped where it was copied from.
-- KEYS: meta. ARGV: fencing token, the position, its check.
-- Gives 0; 1 where another server has the fencing token; 2 where the journal isn't empty.
local meta = redis.call('HMGET', KEYS[1], 'fence', 'tail', 'anchor')
if meta[1] ~= ARGV[1] then return 1 end
if meta[2] ~= '0' or meta[3] ~= '0' then return 2 end
redis.call('HSET', KEYS[1], 'anchor', ARGV[2], 'anchor-check', ARGV[3], 'tail', ARGV[2], 'tail-check', ARGV[3])
return 0
