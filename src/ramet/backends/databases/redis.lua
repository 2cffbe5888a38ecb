-- The tree of a RedisResource. KEYS[1] is the prefix of all keys; ARGV[1] names the verb.
--   <p>i:<n>   attributes of inode n: k kind (f, d, l), m mode, t time, s size, v version, l link target, n names
--   <p>e:<n>   entries of directory n: name -> inode        <p>c:<n>:<v>  content of file n at version v
-- Every answer is {0, ...} or {errno}. Nothing is changed once an errno is certain.
local P = KEYS[1]
local ENOENT, EACCES, EEXIST, ENOTDIR, EISDIR, EINVAL, EFBIG, EBUSY, ENOTEMPTY, ELOOP, ESTALE, EPERM, EIO =
  2, 13, 17, 20, 21, 22, 27, 16, 39, 40, 116, 1, 5
local MAX = 512 * 1024 * 1024

local function ikey(n) return P .. 'i:' .. n end
local function ekey(n) return P .. 'e:' .. n end
local function ckey(n, v) return P .. 'c:' .. n .. ':' .. v end
local function attr(n)
  local a = redis.call('HMGET', ikey(n), 'k', 'm', 't', 's', 'v', 'l', 'n')
  if not a[1] then return nil end
  return {k = a[1], m = a[2], t = a[3], s = a[4], v = a[5], l = a[6], n = a[7]}
end
local function shown(n, a)
  return {a.k, a.m, a.t, a.s, a.v, a.l or '', tostring(n), a.n}
end
local function number() return redis.call('INCR', P .. 'next') end

local function root(now)
  if redis.call('EXISTS', ikey(0)) == 0 then
    redis.call('HSET', ikey(0), 'k', 'd', 'm', '493', 't', now, 's', '0', 'v', '0', 'n', '1')
  end
end

-- An entry whose file has expired is no entry.
local function child(dir, name)
  local n = redis.call('HGET', ekey(dir), name)
  if not n then return nil end
  local a = attr(n)
  if not a then
    redis.call('HDEL', ekey(dir), name)
    return nil
  end
  return n, a
end

-- The directory that holds the last name of `path`, and that name.
local function parent(path)
  local names = {}
  for name in string.gmatch(path, '[^/]+') do names[#names + 1] = name end
  local last = table.remove(names)
  local at = '0'
  for _, name in ipairs(names) do
    local n, a = child(at, name)
    if not n then return nil, ENOENT end
    if a.k == 'l' then return nil, ELOOP end
    if a.k ~= 'd' then return nil, ENOTDIR end
    at = n
  end
  return at, last
end

local function find(path)
  if path == '/' then return '0', attr(0), nil end
  local dir, name = parent(path)
  if not dir then return nil, name end
  local n, a = child(dir, name)
  if not n then return nil, ENOENT, dir, name end
  return n, a, dir, name
end

local function touch(dir, now) redis.call('HSET', ikey(dir), 't', now) end

local function expire(n, v, ttl)
  if tonumber(ttl) > 0 then
    redis.call('EXPIRE', ikey(n), ttl)
    redis.call('EXPIRE', ckey(n, v), ttl)
  end
end

-- Readers of the old content may finish; then it goes.
local function retire(n, v) redis.call('EXPIRE', ckey(n, v), 60) end

local function unlink(n, a)
  if tonumber(a.n) > 1 then
    redis.call('HINCRBY', ikey(n), 'n', -1)
  else
    redis.call('DEL', ikey(n), ekey(n))
    if a.k == 'f' then retire(n, a.v) end
  end
end

local verbs = {}

function verbs.stat(path)
  local n, a = find(path)
  if not n then return {a} end
  return {0, shown(n, a)}
end

function verbs.scan(path)
  local n, a = find(path)
  if not n then return {a} end
  if a.k == 'l' then return {ELOOP} end
  if a.k ~= 'd' then return {ENOTDIR} end
  local found, entries = {0}, redis.call('HGETALL', ekey(n))
  for i = 1, #entries, 2 do
    local b = attr(entries[i + 1])
    if b then found[#found + 1] = {entries[i], shown(entries[i + 1], b)} end
  end
  return found
end

-- how, offset, condition, now, ttl, staging key (its content is taken), its size, symbolic link's target
function verbs.write(path, how, at, wanted, now, ttl, staged, size, target)
  if path == '/' then return {how == 'create' and EEXIST or EISDIR} end
  local n, a, dir, name = find(path)
  if not n and not dir then return {a} end
  if wanted ~= '' and (not n or a.v ~= wanted) then return {ESTALE} end
  if n then
    if how == 'create' or how == 'link' then return {EEXIST} end
    if a.k == 'd' then return {EISDIR} end
    if a.k == 'l' then return {ELOOP} end
  elseif how == 'patch' then
    return {ENOENT}
  end
  -- A server that began anew in between has lost what was staged.
  if how ~= 'link' and redis.call('STRLEN', staged) ~= tonumber(size) then return {EIO} end
  local v = number()
  if how == 'link' then
    n = number()
    redis.call('HSET', ikey(n), 'k', 'l', 'm', '511', 't', now, 's', #target, 'v', v, 'l', target, 'n', '1')
  else
    local grown = redis.call('STRLEN', staged)
    if n and how == 'append' then grown = grown + tonumber(a.s) end
    if n and how == 'patch' then grown = math.max(tonumber(a.s), tonumber(at) + grown) end
    if grown > MAX then return {EFBIG} end
    if not n then
      n = number()
      redis.call('HSET', ikey(n), 'k', 'f', 'm', '420', 'n', '1')
    end
    local new = ckey(n, v)
    if a and type(a) == 'table' and (how == 'append' or how == 'patch') then
      redis.call('COPY', ckey(n, a.v), new)
      local data = redis.call('GET', staged) or ''
      if how == 'append' then redis.call('APPEND', new, data)
      elseif #data > 0 then redis.call('SETRANGE', new, at, data) end
      redis.call('DEL', staged)
    elseif redis.call('EXISTS', staged) == 1 then
      redis.call('RENAME', staged, new)
    end
    redis.call('PERSIST', new)
    if type(a) == 'table' then retire(n, a.v) end
    redis.call('HSET', ikey(n), 's', redis.call('STRLEN', new), 't', now, 'v', v)
    expire(n, v, ttl)
  end
  if dir and redis.call('HSET', ekey(dir), name, n) == 1 then touch(dir, now) end
  return {0, shown(n, attr(n))}
end

function verbs.mkdir(path, now)
  if path == '/' then return {EEXIST} end
  local n, a, dir, name = find(path)
  if n then return {EEXIST} end
  if not dir then return {a} end
  n = number()
  redis.call('HSET', ikey(n), 'k', 'd', 'm', '493', 't', now, 's', '0', 'v', n, 'n', '1')
  redis.call('HSET', ekey(dir), name, n)
  touch(dir, now)
  return {0}
end

function verbs.remove(path, now)
  if path == '/' then return {EBUSY} end
  local n, a, dir, name = find(path)
  if not n then return {a} end
  if a.k == 'd' then
    for _, below in ipairs(redis.call('HVALS', ekey(n))) do
      if redis.call('EXISTS', ikey(below)) == 1 then return {ENOTEMPTY} end
    end
  end
  redis.call('HDEL', ekey(dir), name)
  unlink(n, a)
  touch(dir, now)
  return {0}
end

function verbs.rename(src, dst, now)
  if src == '/' or dst == '/' then return {EBUSY} end
  local n, a, dir, name = find(src)
  if not n then return {a} end
  if src == dst then return {0} end
  if string.sub(dst, 1, #src + 1) == src .. '/' then return {EINVAL} end
  local m, b, dir2, name2 = find(dst)
  if not m and not dir2 then return {b} end
  if m then
    if m == n then return {0} end
    if b.k == 'd' and a.k ~= 'd' then return {EISDIR} end
    if b.k ~= 'd' and a.k == 'd' then return {ENOTDIR} end
    if b.k == 'd' and redis.call('HLEN', ekey(m)) > 0 then return {ENOTEMPTY} end
    unlink(m, b)
  end
  redis.call('HDEL', ekey(dir), name)
  redis.call('HSET', ekey(dir2), name2, n)
  touch(dir, now)
  touch(dir2, now)
  return {0}
end

function verbs.link(src, dst, now)
  local n, a = find(src)
  if not n then return {a} end
  if a.k == 'd' then return {EPERM} end
  local m, b, dir, name = find(dst)
  if m then return {EEXIST} end
  if not dir then return {b} end
  redis.call('HINCRBY', ikey(n), 'n', 1)
  redis.call('HSET', ekey(dir), name, n)
  touch(dir, now)
  return {0}
end

function verbs.copy(src, dst, now, ttl)
  local n, a = find(src)
  if not n then return {a} end
  if a.k == 'd' then return {EISDIR} end
  if a.k == 'l' then return {ELOOP} end
  local m, b, dir, name = find(dst)
  if not m and not dir then return {b} end
  if m and b.k ~= 'f' then return {b.k == 'd' and EISDIR or ELOOP} end
  if m == n then return {0} end
  local v = number()
  if m then retire(m, b.v) else
    m = number()
    redis.call('HSET', ikey(m), 'n', '1')
    redis.call('HSET', ekey(dir), name, m)
    touch(dir, now)
  end
  redis.call('COPY', ckey(n, a.v), ckey(m, v))
  redis.call('HSET', ikey(m), 'k', 'f', 'm', a.m, 's', a.s, 't', now, 'v', v)
  expire(m, v, ttl)
  return {0}
end

function verbs.setattr(path, mode, time, size, now)
  local n, a = find(path)
  if not n then return {a} end
  if a.k == 'l' then return {0} end
  if size ~= '' then
    if a.k == 'd' then return {EISDIR} end
    if tonumber(size) > MAX then return {EFBIG} end
    local v = number()
    local old, new = ckey(n, a.v), ckey(n, v)
    if tonumber(size) < tonumber(a.s) then
      if tonumber(size) > 0 then redis.call('SET', new, redis.call('GETRANGE', old, 0, tonumber(size) - 1)) end
    else
      redis.call('COPY', old, new)
      if tonumber(size) > tonumber(a.s) then redis.call('SETRANGE', new, tonumber(size) - 1, '\0') end
    end
    retire(n, a.v)
    redis.call('HSET', ikey(n), 's', size, 'v', v, 't', now)
  end
  if mode ~= '' then redis.call('HSET', ikey(n), 'm', mode) end
  if time ~= '' then redis.call('HSET', ikey(n), 't', time) end
  return {0}
end

root(ARGV[2])
return verbs[ARGV[1]](unpack(ARGV, 3))
