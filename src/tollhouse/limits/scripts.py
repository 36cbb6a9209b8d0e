"""The rules of `limits.rules` in Lua: Redis runs each script atomically.

All scripts except `PROBE` need `now` in microseconds. `SERVER_CLOCK` defines it by the server's
clock, which all workers share. Instants fit into Lua's numbers, which are exact up to 2^53.
"""

from typing import Final

SERVER_CLOCK: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
"""

_BUCKETS: Final = """
local function missing_of(key, full)
    local full_at = tonumber(redis.call('GET', key) or now)
    return math.min(math.max(full_at - now, 0), full)
end

local function fill_later(key, missing)
    if missing == 0 then
        redis.call('DEL', key)
        return
    end
    local full_at = string.format('%.0f', now + missing)
    redis.call('SET', key, full_at, 'PX', math.ceil(missing / 1000))
end
"""

# KEYS: the buckets, then the slots, then the buckets of expected costs.
# ARGV: how many buckets; how many slots; the size and the cost of each bucket, the limit of each
# slot, the size and the cost of each further bucket; the length of a lease in milliseconds; the
# request's name.
COUNT: Final = (
    _BUCKETS
    + """
local buckets, slots = tonumber(ARGV[1]), tonumber(ARGV[2])
local refusing, wait, missing = 0, 0, {}
for i = 1, buckets do
    local full, cost = tonumber(ARGV[2 * i + 1]), tonumber(ARGV[2 * i + 2])
    missing[i] = missing_of(KEYS[i], full)
    if missing[i] + cost - full > wait then
        refusing, wait = i, missing[i] + cost - full
    end
end
for i = buckets + 1, buckets + slots do
    if refusing > 0 then
        break
    end
    redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now)
    if redis.call('ZCARD', KEYS[i]) >= tonumber(ARGV[buckets + i + 2]) then
        refusing = i
    end
end
if refusing > 0 then
    return {ok = table.concat({refusing, wait, unpack(missing)}, ' ')}
end
local lease, member = ARGV[#ARGV - 1], ARGV[#ARGV]
for i = 1, buckets do
    missing[i] = missing[i] + tonumber(ARGV[2 * i + 2])
    fill_later(KEYS[i], missing[i])
end
for i = buckets + 1, buckets + slots do
    redis.call('ZADD', KEYS[i], string.format('%.0f', now + lease * 1000), member)
    redis.call('PEXPIRE', KEYS[i], lease)
end
local expected = {}
for i = buckets + slots + 1, #KEYS do
    local full, cost = tonumber(ARGV[2 * i - slots + 1]), tonumber(ARGV[2 * i - slots + 2])
    local left = missing_of(KEYS[i], full) + cost
    if 2 * left > full then
        expected = {}
        break
    end
    expected[i - buckets - slots] = left
end
for i, left in ipairs(expected) do
    fill_later(KEYS[buckets + slots + i], left)
    missing[buckets + i] = left
end
return {ok = table.concat({refusing, wait, unpack(missing)}, ' ')}
"""
)

# KEYS: the slots of one scope. ARGV: the length of a lease in milliseconds; names of requests that
# run; names of requests that do not.
RENEW: Final = """
local expires = string.format('%.0f', now + ARGV[1] * 1000)
for member in string.gmatch(ARGV[2], '%S+') do
    redis.call('ZADD', KEYS[1], expires, member)
end
for member in string.gmatch(ARGV[3], '%S+') do
    redis.call('ZREM', KEYS[1], member)
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return {ok = ''}
"""

# KEYS: the buckets to correct, then the slots to give back.
# ARGV: how many buckets; how much more is missing from each, and its size; the request's name.
LEAVE: Final = (
    _BUCKETS
    + """
local buckets = tonumber(ARGV[1])
for i = 1, buckets do
    local more, full = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])
    fill_later(KEYS[i], math.min(math.max(missing_of(KEYS[i], full) + more, 0), full))
end
for i = buckets + 1, #KEYS do
    redis.call('ZREM', KEYS[i], ARGV[#ARGV])
end
return {ok = ''}
"""
)

# KEYS: a key that is never read. Fails if Redis does not accept writes.
PROBE: Final = """
redis.call('SET', KEYS[1], '', 'PX', 1000)
return {ok = ''}
"""
