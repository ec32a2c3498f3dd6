-- Takes the lease where nobody else has it, and with it the next fencing token.
-- KEYS: lease, meta. ARGV: holder, its URL, the lease's term in ms.
-- Gives {1, token}, or {0, who has it, ms that are left}.
local held = redis.call('GET', KEYS[1])
if held and string.sub(held, 1, #ARGV[1] + 1) ~= ARGV[1] .. ' ' then
  return {0, held, redis.call('PTTL', KEYS[1])}
end
redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. ARGV[2], 'PX', ARGV[3])
return {1, tostring(redis.call('HINCRBY', KEYS[2], 'fence', 1)), 0}
