"""Waiting for work: woken by an event, by the next due time, and by a poll in case both were missed."""

from __future__ import annotations

from collections.abc import Callable

from tenure.core.commands import OWNER, ClaimNext, Command, Principal
from tenure.core.outcomes import Outcome
from tenure.engine.runtime.engine import Engine
from tenure.stores.port import WAKE_UPS, Store

POLL_WITH_WAKE_UPS = 30.0
POLL_WITHOUT = 5.0
SHORTEST = 0.05  # a row that no rule can settle stays due, and must not keep everybody spinning
LOOK_UP = 0.2  # seconds between looks whether the waiter is still wanted


def claim_next_or_wait(
    engine: Engine,
    command: ClaimNext,
    timeout: float,
    monotonic: Callable[[], float],
    principal: Principal = OWNER,
    *,
    is_wanted: Callable[[], bool] | None = None,
    do: Callable[[Command, Principal], Outcome] | None = None,
) -> Outcome:
    """As `claim_next`, but stays until there is something to take or `timeout` seconds are over.

    Once `is_wanted` says no it takes nothing any more: nobody would get the receipt. `do` is a gatherer's, where there
    is one.
    """
    do = do or engine.do
    poll = POLL_WITH_WAKE_UPS if WAKE_UPS in engine.store.features else POLL_WITHOUT
    give_up = monotonic() + timeout
    while True:
        mark = engine.store.mark()  # before the look: what is written after it will wake us
        outcome = do(command, principal)
        left = give_up - monotonic()
        if outcome.outcome != "NO_TASK" or left <= 0:
            return outcome
        wait = min(left, poll)
        if outcome.retry_in is not None:
            wait = min(wait, max(SHORTEST, outcome.retry_in))
        if not _waited(engine.store, mark, wait, monotonic, is_wanted):
            return outcome


def _waited(
    store: Store, mark: int, seconds: float, monotonic: Callable[[], float], is_wanted: Callable[[], bool] | None
) -> bool:
    """Stay for news or until the time is over; False as soon as nobody wants to know."""
    if is_wanted is None:
        store.wait(mark, seconds)
        return True
    until = monotonic() + seconds
    while is_wanted():
        left = until - monotonic()
        if left <= 0 or store.wait(mark, min(left, LOOK_UP)):
            return is_wanted()
    return False
