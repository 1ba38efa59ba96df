"""The contract of a transport: commands and queries out, outcomes and views back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from tenure.client.contents import Download, Upload, Wanted
    from tenure.core.commands import ClaimNext, Command, Principal
    from tenure.core.errors import TenureError
    from tenure.core.outcomes import Outcome
    from tenure.core.queries import Query


class Transport(Protocol):
    """Thread-safe. Errors are TenureErrors; `definite` is False where the command may have been applied.

    The asynchronous transports have the same methods as coroutines, without `is_wanted`.
    """

    url: str

    def do(self, command: Command, principal: Principal) -> Outcome: ...

    def run(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]:
        """Run the commands in one transaction; one outcome or error each."""

    def preview(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]:
        """Return what `run` would return now; write nothing."""

    def claim_or_wait(
        self, command: ClaimNext, seconds: float, principal: Principal, is_wanted: Callable[[], bool] | None = None
    ) -> Outcome:
        """Claim as soon as a task is claimable; give up after `seconds`.

        Once `is_wanted` returns False nothing is claimed any more: nobody would receive the receipt.
        """

    def query(self, query: Query, principal: Principal) -> Any: ...

    def put(self, upload: Upload, principal: Principal) -> Outcome:
        """Store an artifact's bytes, then name them in the claim."""

    def get(self, wanted: Wanted, principal: Principal) -> Download: ...

    def mark(self, project: str, principal: Principal) -> int:
        """The last event's sequence, for `wait`."""

    def wait(
        self,
        mark: int,
        seconds: float,
        project: str,
        principal: Principal,
        is_wanted: Callable[[], bool] | None = None,
        tasks: Collection[str] = (),
    ) -> bool:
        """True as soon as there are events after `mark`, False after `seconds` or once `is_wanted` returns False.

        With `tasks`, ids, a server waits for events of these; a store wakes its caller for every event.
        """

    def now(self, project: str, principal: Principal) -> int:
        """The store's time, in microseconds."""

    def close(self) -> None: ...
