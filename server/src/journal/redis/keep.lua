-- Keeps a snapshot, and drops all but the newest two.
-- KEYS: meta, snapshots. ARGV: fencing token, the prefix of snapshots' keys, position, version, digest, bytes.
-- Gives 0, or 1 where another server has the fencing token.
if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] then return 1 end
redis.call('HSET', ARGV[2] .. ARGV[3], 'version', ARGV[4], 'digest', ARGV[5], 'bytes', ARGV[6])
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[3])
for _, old in ipairs(redis.call('ZREVRANGE', KEYS[2], 2, -1)) do
  redis.call('DEL', ARGV[2] .. old)
  redis.call('ZREM', KEYS[2], old)
end
return 0
