-- Sets versions and marks, and so makes the journal where there is none.
-- KEYS: meta. ARGV: fencing token, format, event version, the anchor's position and hash, the tail's position and hash.
-- Gives 0, or 1 where another server has the fencing token.
if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] then return 1 end
redis.call('HSET', KEYS[1], 'format', ARGV[2], 'event-version', ARGV[3], 'anchor', ARGV[4], 'anchor-check', ARGV[5],
  'tail', ARGV[6], 'tail-check', ARGV[7])
return 0
