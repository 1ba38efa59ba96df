"""The contract of a way: commands and looks go out, outcomes and views come back; and there is news to wait for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tenure.core.commands import ClaimNext, Command, Principal
from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome
from tenure.core.queries import Query

if TYPE_CHECKING:
    from tenure.client.contents import AsyncGot, Got, Putting, Wanted


class StoreOnly(TenureError):
    code = "STORE_ONLY"


class Way(Protocol):
    """Safe to share between threads. What goes wrong is raised as TenureError, and says whether it is definite."""

    url: str

    def do(self, command: Command, principal: Principal) -> Outcome: ...

    def run(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]:
        """One outcome or error each, in one transaction."""

    def preview(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]:
        """What `run` would answer now; nothing is written."""

    def stay(
        self, command: ClaimNext, seconds: float, principal: Principal, is_wanted: Callable[[], bool] | None = None
    ) -> Outcome:
        """Claim as soon as there is something to take, or give up when the time is over.

        Once `is_wanted` says no it takes nothing any more: nobody would get the receipt.
        """

    def look(self, query: Query, principal: Principal) -> Any: ...

    def put(self, asked: Putting, principal: Principal) -> Outcome:
        """Put an artifact's bytes in their place, and give them their name."""

    def get(self, asked: Wanted, principal: Principal) -> Got: ...

    def mark(self, project: str, principal: Principal) -> int:
        """The last event's sequence: what `wait` waits beyond."""

    def wait(
        self,
        mark: int,
        seconds: float,
        project: str,
        principal: Principal,
        is_wanted: Callable[[], bool] | None = None,
    ) -> bool:
        """True as soon as there are events beyond `mark`, False when the time is over or `is_wanted` says no."""

    def now(self, project: str, principal: Principal) -> int:
        """The store's time, in microseconds."""

    def close(self) -> None: ...


class AsyncWay(Protocol):
    """As Way, for asyncio; many tasks of one event loop may use it at once."""

    url: str

    async def do(self, command: Command, principal: Principal) -> Outcome: ...

    async def run(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]: ...

    async def preview(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]: ...

    async def stay(self, command: ClaimNext, seconds: float, principal: Principal) -> Outcome: ...

    async def look(self, query: Query, principal: Principal) -> Any: ...

    async def put(self, asked: Putting, principal: Principal) -> Outcome: ...

    async def get(self, asked: Wanted, principal: Principal) -> AsyncGot: ...

    async def mark(self, project: str, principal: Principal) -> int: ...

    async def wait(self, mark: int, seconds: float, project: str, principal: Principal) -> bool: ...

    async def now(self, project: str, principal: Principal) -> int: ...

    async def close(self) -> None: ...


def is_server(url: str) -> bool:
    """Whether the URL is that of a server; all others are stores."""
    return url.startswith(("http://", "https://"))
