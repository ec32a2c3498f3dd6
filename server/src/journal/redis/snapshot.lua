-- Stores a snapshot, and drops all but the newest.
-- KEYS: meta, snapshots. ARGV: fencing token, the prefix of snapshots' keys, how many are kept, position, version,
-- digest, bytes.
-- Gives 0, or 1 where another server has the fencing token.
if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] then return 1 end
redis.call('HSET', ARGV[2] .. ARGV[4], 'version', ARGV[5], 'digest', ARGV[6], 'bytes', ARGV[7])
redis.call('ZADD', KEYS[2], ARGV[4], ARGV[4])
for _, old in ipairs(redis.call('ZREVRANGE', KEYS[2], tonumber(ARGV[3]), -1)) do
  redis.call('DEL', ARGV[2] .. old)
  redis.call('ZREM', KEYS[2], old)
end
return 0
