"""What a server remembers and no store keeps: the rates of its callers, and the sessions of the token's owner.

Those sessions end with the token, which ends with the server. Several workers share all of it: see
`workers/shared_table.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tenure.server.rate_limits import Buckets


class LocalSessions(Protocol):
    """Dashboard sessions of the token's owner, by the digest of their cookie."""

    def begin(self, id: str, seconds: float) -> None: ...

    def is_open(self, id: str) -> bool: ...

    def end(self, id: str) -> bool:
        """False where there is no such session."""
        ...


class Memory(Protocol):
    def buckets(self, name: str, rate: float, burst: float, monotonic: Callable[[], float]) -> Buckets:
        """Rate limits of one kind."""
        ...

    def sessions(self, monotonic: Callable[[], float]) -> LocalSessions: ...


class OwnMemory:
    """Of a server that is one process."""

    def buckets(self, name: str, rate: float, burst: float, monotonic: Callable[[], float]) -> Buckets:
        return Buckets(rate, burst, monotonic=monotonic)

    def sessions(self, monotonic: Callable[[], float]) -> LocalSessions:
        return OwnSessions(monotonic)


class OwnSessions:
    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._until: dict[str, float] = {}

    def begin(self, id: str, seconds: float) -> None:
        now = self._monotonic()
        self._until = {known: until for known, until in self._until.items() if until > now}
        self._until[id] = now + seconds

    def is_open(self, id: str) -> bool:
        return self._monotonic() < self._until.get(id, 0.0)

    def end(self, id: str) -> bool:
        return self._until.pop(id, None) is not None
