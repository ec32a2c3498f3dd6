-- Makes the lease last for another term, where nobody has taken it meanwhile.
-- KEYS: lease, meta. ARGV: holder, its URL, the term in ms, the fencing token. Gives 1, or 0 where it is lost.
if redis.call('HGET', KEYS[2], 'fence') ~= ARGV[4] then return 0 end
local mine = ARGV[1] .. ' ' .. ARGV[2]
local held = redis.call('GET', KEYS[1])
if held == mine then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
elseif held then
  return 0
else
  -- It ran out, but nobody was there to take it.
  redis.call('SET', KEYS[1], mine, 'PX', ARGV[3])
end
return 1
