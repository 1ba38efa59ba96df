"""Names with two numbers each, in memory that a process shares with the processes forked from it.

For what must be counted once however many workers there are. The size is fixed; a name has one of eight places, and
the oldest of them is dropped for a new name. A place is locked by the kernel, which releases it when a process dies.
Names are kept as keyed digests: nobody can choose names that share their places.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from struct import Struct

from tenure.core import limits
from tenure.server.process_memory import LocalSessions
from tenure.server.rate_limits import Buckets, limited

PLACES = 8  # of one name
SESSIONS = 1024  # of the token's owner; they are that user's own
_ENTRY = Struct("=16sdd")  # the name's digest, a value, and the time by which the oldest is found
_NOBODY = bytes(16)


class SharedTable:
    """For one thread of each process."""

    def __init__(self, names: int) -> None:
        self._groups = max(1, names // PLACES)
        self._size = PLACES * _ENTRY.size
        with tempfile.TemporaryFile() as file:
            file.truncate(self._groups * self._size)
            self._file = os.dup(file.fileno())
        self._memory = mmap.mmap(self._file, self._groups * self._size)
        self._secret = os.urandom(16)

    def __del__(self) -> None:
        os.close(self._file)

    @contextmanager
    def locked(self, name: str) -> Iterator[Entry]:
        """The entry of a name; no other process changes it meanwhile."""
        digest = blake2b(name.encode(), digest_size=16, key=self._secret).digest()
        group = int.from_bytes(digest[:8], "little") % self._groups
        # Locks of this kind belong to a process: a child does not hold those of its parent.
        fcntl.lockf(self._file, fcntl.LOCK_EX, 1, group)
        try:
            yield Entry(self._memory, group * self._size, digest)
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, group)


class Entry:
    def __init__(self, memory: mmap.mmap, start: int, digest: bytes) -> None:
        self._memory, self._digest = memory, digest
        self._at = oldest = start
        since = float("inf")
        for at in range(start, start + PLACES * _ENTRY.size, _ENTRY.size):
            found, _, age = _ENTRY.unpack_from(memory, at)
            if found == digest:
                self._at = at
                return
            if found == _NOBODY:
                age = -1.0
            if age < since:
                oldest, since = at, age
        self._at = oldest

    def get(self) -> tuple[float, float] | None:
        found, value, age = _ENTRY.unpack_from(self._memory, self._at)
        return (value, age) if found == self._digest else None

    def put(self, value: float, age: float) -> None:
        _ENTRY.pack_into(self._memory, self._at, self._digest, value, age)

    def drop(self) -> None:
        if self.get() is not None:
            _ENTRY.pack_into(self._memory, self._at, _NOBODY, 0.0, 0.0)


class SharedBuckets(Buckets):
    """Rate limits that hold over all workers; the clock is the machine's, the same in each."""

    def __init__(
        self, rate: float, burst: float, table: SharedTable, prefix: str, monotonic: Callable[[], float]
    ) -> None:
        super().__init__(rate, burst, monotonic=monotonic)
        self._table, self._prefix = table, prefix

    def wait_of(self, caller: str, tokens: float = 1.0) -> float:
        if self.rate <= 0:
            return 0.0
        with self._table.locked(self._prefix + caller) as entry:
            left = self._filled(entry.get(), self._monotonic())
        return max(0.0, (tokens - left) / self.rate)

    def take(self, caller: str, tokens: float = 1.0) -> None:
        if self.rate <= 0:
            return
        with self._table.locked(self._prefix + caller) as entry:
            now = self._monotonic()
            left = self._filled(entry.get(), now)
            if left < tokens:
                raise limited((tokens - left) / self.rate)
            entry.put(left - tokens, now)


class SharedSessions:
    def __init__(self, table: SharedTable, monotonic: Callable[[], float]) -> None:
        self._table, self._monotonic = table, monotonic

    def begin(self, id: str, seconds: float) -> None:
        until = self._monotonic() + seconds
        with self._table.locked(id) as entry:
            entry.put(until, until)

    def is_open(self, id: str) -> bool:
        with self._table.locked(id) as entry:
            kept = entry.get()
        return kept is not None and self._monotonic() < kept[0]

    def end(self, id: str) -> bool:
        with self._table.locked(id) as entry:
            kept = entry.get()
            entry.drop()
        return kept is not None


class SharedMemory:
    """The memory of a server with several workers, made before they are forked."""

    def __init__(self) -> None:
        self._callers, self._sessions = SharedTable(limits.CALLERS), SharedTable(SESSIONS)

    def buckets(self, name: str, rate: float, burst: float, monotonic: Callable[[], float]) -> Buckets:
        return SharedBuckets(rate, burst, self._callers, f"{name} ", monotonic)

    def sessions(self, monotonic: Callable[[], float]) -> LocalSessions:
        return SharedSessions(self._sessions, monotonic)
