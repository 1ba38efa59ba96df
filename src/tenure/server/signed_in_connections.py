"""The connections that somebody has signed in on, and whose turn it is when no more may be open.

Nobody is judged by an address, which many may share: the share is the key's, among those of its tenant. As long as
there is room a key may have as many as it likes. Then who has the most gives way, first a connection that is idle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

from tenure.core.errors import Overloaded

T = TypeVar("T")


class Who(NamedTuple):
    tenant: str
    key: str  # "": the owner on this machine


class Connection(Protocol):
    @property
    def is_idle(self) -> bool:
        """Whether it waits for the next request."""
        ...

    def close_now(self) -> None: ...


class SignedInConnections:
    """Of one server process, in its event loop."""

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._who: dict[Connection, Who] = {}
        self._of: dict[Who, dict[Connection, None]] = {}  # oldest first

    def __len__(self) -> int:
        return len(self._who)

    def admit(self, connection: Connection, who: Who) -> None:
        """Count the connection as theirs; another may be closed for it.

        Raises Overloaded where nobody has more connections than they, and a request is under way on each of theirs.
        """
        if self._who.get(connection) == who:
            return
        self.remove(connection)
        while len(self._who) >= self._most():
            victim = self._victim(who)
            if victim is None:
                raise Overloaded(
                    f"this key has {len(self._of.get(who, ()))} connections open, its share of this server's",
                    "nothing was done; send several requests over one connection, or send it again in a moment",
                )
            self.remove(victim)
            victim.close_now()
        self._who[connection] = who
        self._of.setdefault(who, {})[connection] = None

    def _victim(self, newcomer: Who) -> Connection | None:
        """The connection that gives way; None: the newcomer's own."""
        sizes = Counter({who: len(theirs) for who, theirs in self._of.items()})
        tenants: Counter[str] = Counter()
        for who, size in sizes.items():
            tenants[who.tenant] += size
        tenant = _largest(tenants, newcomer.tenant)
        most = _largest(Counter({who: size for who, size in sizes.items() if who.tenant == tenant}), newcomer)
        theirs = self._of[most]
        idle = next((one for one in theirs if one.is_idle), None)
        return idle if idle is not None or most == newcomer else next(iter(theirs))

    def remove(self, connection: Connection) -> None:
        who = self._who.pop(connection, None)
        if who is None:
            return
        theirs = self._of[who]
        del theirs[connection]
        if not theirs:
            del self._of[who]


def _largest(sizes: Counter[T], newcomer: T) -> T:
    """The one with the most, with the connection that comes. At a tie it is the newcomer, unless it would be its first:
    else two would close each other's for ever.
    """
    if sizes[newcomer]:
        sizes[newcomer] += 1
    return max(sizes, key=lambda one: (sizes[one], one == newcomer))
