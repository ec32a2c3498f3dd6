-- Appends a group of events, all or none.
-- KEYS: meta, events, jobs, lease-jobs. ARGV: fencing token, the tail's position and hash as the caller knows them,
-- the prefix of jobs' indexes; then for each event: payload, hash, how it names its job (`job`, `grant`, `lease`,
-- `none`), job, lease.
-- Gives 0; 1 where another server has the fencing token; 2 where the tail is another.
local meta = redis.call('HMGET', KEYS[1], 'fence', 'tail', 'tail-check')
if meta[1] ~= ARGV[1] then return 1 end
if meta[2] ~= ARGV[2] or meta[3] ~= ARGV[3] then return 2 end
local position = tonumber(ARGV[2])
for at = 5, #ARGV, 5 do
  position = position + 1
  local id = string.format('%.0f', position)
  redis.call('XADD', KEYS[2], id .. '-0', 'p', ARGV[at], 'c', ARGV[at + 1])
  local kind, job, lease = ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  if kind == 'grant' then redis.call('HSET', KEYS[4], lease, job) end
  if kind == 'lease' then job = redis.call('HGET', KEYS[4], lease) end
  if kind ~= 'none' and job then
    redis.call('SADD', KEYS[3], job)
    redis.call('ZADD', ARGV[4] .. job, id, id)
  end
end
redis.call('HSET', KEYS[1], 'tail', string.format('%.0f', position), 'tail-check', ARGV[#ARGV - 3])
return 0
