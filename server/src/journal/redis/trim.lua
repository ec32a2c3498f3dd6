-- Drops events below a position.
-- KEYS: meta, events, jobs, lease-jobs. ARGV: fencing token, the prefix of jobs' indexes, the last position to drop, its
-- hash, the first to keep; then leases that have ended in what is dropped.
-- Gives 0, or 1 where another server has the fencing token.
if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] then return 1 end
redis.call('HSET', KEYS[1], 'anchor', ARGV[3], 'anchor-check', ARGV[4])
redis.call('XTRIM', KEYS[2], 'MINID', ARGV[5] .. '-0')
for _, job in ipairs(redis.call('SMEMBERS', KEYS[3])) do
  redis.call('ZREMRANGEBYSCORE', ARGV[2] .. job, '-inf', ARGV[3])
  if redis.call('EXISTS', ARGV[2] .. job) == 0 then redis.call('SREM', KEYS[3], job) end
end
for at = 6, #ARGV do redis.call('HDEL', KEYS[4], ARGV[at]) end
return 0
