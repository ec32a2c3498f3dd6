-- Makes an empty journal, where there is none.
-- KEYS: meta. ARGV: fencing token, format, event version, the check before the first event.
-- Gives 0, or 1 where another server has the fencing token.
if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] then return 1 end
if redis.call('HEXISTS', KEYS[1], 'format') == 1 then return 0 end
redis.call('HSET', KEYS[1], 'format', ARGV[2], 'event-version', ARGV[3], 'anchor', '0', 'anchor-check', ARGV[4],
  'tail', '0', 'tail-check', ARGV[4])
return 0
