"""The end of a transaction: one script that compares versions and then applies a list of writes.

It knows nothing about tasks: it compares texts, and adds and removes fields and members. Everything is compared before
the first write, and a script runs alone, so a commit is done whole or not at all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

from tenure.core import limits
from tenure.core.events import Event
from tenure.stores.valkey.keys import Keys
from tenure.stores.valkey.rows import FORM, Entry, encoded_event

OLDEST = limits.VALKEY_COMMIT  # from a transaction's `now` to its commit
OLDEST_COPY = limits.VALKEY_COPY  # where it brings a project that the store did not have: nobody holds anything there
PART = 1000  # words of one command: Lua's stack is small

# KEYS: the tenant's versions, meta and log, then those that ARGV names by their number.
SCRIPT = """
local at = 0
local function take()
  at = at + 1
  return ARGV[at]
end
local function count()
  return tonumber(take())
end
local info = redis.call('INFO', 'replication')
local now = redis.call('TIME')
local meta = redis.call('HMGET', KEYS[2], 'form', 'epoch', 'sequence', 'last', 'replicated')
if not string.find(info, 'master_replid:' .. take(), 1, true) then return 'moved' end
if now[1] * 1000000 + now[2] - count() > tonumber(take()) then return 'late' end
local form = take()
if meta[1] and meta[1] ~= form then return 'form' end
if (meta[2] or '') ~= take() then return 'changed' end
local epoch, sequence, last = take(), take(), take()
if sequence ~= '' and (meta[3] or '0') ~= sequence then return 'changed' end
local versions = {}
for n = 1, count() do
  local name, seen, following = take(), take(), take()
  if (redis.call('HGET', KEYS[1], name) or '') ~= seen then return 'changed' end
  if following ~= '' then
    versions[#versions + 1] = name
    versions[#versions + 1] = following
  end
end
for n = 1, count() do
  local key, field = KEYS[count()], take()
  if redis.call('HEXISTS', key, field) == 1 then return 'taken' end
end

for n = 1, #versions, 2 do
  redis.call('HSET', KEYS[1], versions[n], versions[n + 1])
end
redis.call('HINCRBY', KEYS[1], '*', 1)
for n = 1, count() do
  local words = {take(), KEYS[count()]}
  for word = 1, count() do
    words[word + 2] = take()
  end
  redis.call(unpack(words))
end
for n = 1, count() do
  local lane, lanes, name = KEYS[count()], KEYS[count()], take()
  if redis.call('EXISTS', lane) == 1 then
    redis.call('ZADD', lanes, 0, name)
  else
    redis.call('ZREM', lanes, name)
  end
end
local number = tonumber(meta[3] or '0')
for n = 1, count() do
  number = number + 1
  local text = string.format('%.0f', number)
  local project, log, task, version, body = take(), KEYS[count()], count(), take(), take()
  redis.call('XADD', KEYS[3], '0-' .. text, 'p', project)
  redis.call('XADD', log, '0-' .. text, 'e', body)
  if task > 0 then
    if version == '' then version = '-' .. text end
    redis.call('HSET', KEYS[task], version, text)
  end
end
if meta[4] and meta[4] > last then last = meta[4] end
redis.call('HSET', KEYS[2], 'form', form, 'epoch', epoch, 'sequence', string.format('%.0f', number), 'last', last)
if not meta[5] and not string.find(info, 'connected_slaves:0', 1, true) then
  redis.call('HSET', KEYS[2], 'replicated', '1')
end
local token = take()
for n = 1, count() do
  local turn = KEYS[count()]
  if redis.call('GET', turn) == token then redis.call('DEL', turn) end
end
return 'done'
"""
SHA = hashlib.sha1(SCRIPT.encode(), usedforsecurity=False).hexdigest()

# KEYS: the meta of tenants. ARGV: the server's place, and a new epoch for each. The mark of a move stays; a tenant
# without an epoch has no receipts. Every other writer that has read the former epoch is refused by its commit.
BEGIN_EPOCHS = """
for n = 1, #KEYS do
  local before = redis.call('HGET', KEYS[n], 'epoch')
  if before then
    local mark = string.find(before, '.', 1, true)
    local epoch = ARGV[n + 1] .. (mark and string.sub(before, mark) or '')
    redis.call('HSET', KEYS[n], 'epoch', epoch, 'settled', ARGV[1])
  end
end
return 'done'
"""

FREE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


class Seen(NamedTuple):
    """What a transaction has read, and what must still be so."""

    place: str
    began: int
    epoch: str
    sequence: int | None  # None: it does not matter
    versions: dict[bytes, bytes]


class Writes:
    """The state that a transaction leaves, as fields of hashes and members of sorted sets."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self.fields: dict[bytes, dict[bytes, bytes | None]] = {}  # None: deleted
        self.members: dict[bytes, dict[bytes, bool]] = {}  # False: removed
        self.lanes: dict[bytes, Entry] = {}  # a lane → its entry among those with tasks, as long as it has any
        self.absent: list[tuple[bytes, bytes]] = []  # fields that must not exist yet
        self.dropped: dict[bytes, list[int]] = {}  # log → sequences
        self.versions: dict[bytes, bytes] = {}  # of the projects that it writes to

    def put(self, key: bytes, field: bytes, value: bytes | None) -> None:
        self.fields.setdefault(key, {})[field] = value

    def enter(self, entry: Entry | None, *, there: bool) -> None:
        if entry is not None:
            self.members.setdefault(entry.key, {})[entry.member] = there

    def call(
        self, seen: Seen, epoch: str, last: int, events: Iterable[Event], token: bytes, turns: list[bytes]
    ) -> tuple[list[bytes], list[Any]]:
        """The script's keys and arguments."""
        keys = {self._keys.versions: 1, self._keys.meta: 2, self._keys.log: 3}

        def key(name: bytes) -> int:
            return keys.setdefault(name, len(keys) + 1)

        brings = any(name != b":" and not seen.versions[name] for name in self.versions)
        args: list[Any] = [seen.place, seen.began, OLDEST_COPY if brings else OLDEST, FORM, seen.epoch, epoch]
        args += ["" if seen.sequence is None else seen.sequence, last_text(last), len(seen.versions)]
        for project, seen_version in seen.versions.items():
            args += [project, seen_version, self.versions.get(project, b"")]
        args.append(len(self.absent))
        for hash, field in self.absent:
            args += [key(hash), field]
        commands = list(self._commands())
        args.append(len(commands))
        for verb, hash, words in commands:
            args += [verb, key(hash), len(words), *words]
        args.append(len(self.lanes))
        for lane, (lanes, name) in self.lanes.items():
            args += [key(lane), key(lanes), name]
        some = list(events)
        args.append(len(some))
        for event in some:
            task = 0 if event.task is None else key(self._keys.log_of_task(event.project, event.task))
            version = "" if event.version is None else event.version
            args += [event.project, key(self._keys.log_of(event.project)), task, version, encoded_event(event)]
        args += [token, len(turns), *map(key, turns)]
        return list(keys), args

    def _commands(self) -> Iterable[tuple[str, bytes, list[Any]]]:
        for key, fields in self.fields.items():
            put = [word for field, value in fields.items() if value is not None for word in (field, value)]
            yield from _parts("HSET", key, put)
            yield from _parts("HDEL", key, [field for field, value in fields.items() if value is None])
        for key, members in self.members.items():
            put = [word for member, there in members.items() if there for word in (b"0", member)]
            yield from _parts("ZADD", key, put)
            yield from _parts("ZREM", key, [member for member, there in members.items() if not there])
        for key, sequences in self.dropped.items():
            yield from _parts("XDEL", key, [f"0-{sequence}" for sequence in sequences])


def _parts(verb: str, key: bytes, words: list[Any]) -> Iterable[tuple[str, bytes, list[Any]]]:
    return ((verb, key, words[at : at + PART]) for at in range(0, len(words), PART))


NEVER = -(1 << 63)


def last_text(time: int) -> str:
    """A time as a text that compares as the time does."""
    return f"{time - NEVER:020d}"


def last_time(text: bytes | None) -> int:
    return NEVER if text is None else int(text) + NEVER
