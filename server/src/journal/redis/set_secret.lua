-- Replaces a secret that all servers share.
-- KEYS: meta, secrets. ARGV: fencing token, the secret's name, its value.
-- Gives 0, or 1 where another server has the fencing token.
if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] then return 1 end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
return 0
