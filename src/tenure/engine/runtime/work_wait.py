"""Waiting for work: woken by an event, by the next due time, and by a poll in case both were missed."""

from __future__ import annotations

from collections.abc import Callable

from tenure.core.commands import OWNER, ClaimNext, Command, Principal
from tenure.core.outcomes import Outcome
from tenure.engine.runtime.engine import Engine
from tenure.stores.port import WAKE_UPS

POLL_WITH_WAKE_UPS = 30.0
POLL_WITHOUT = 5.0
SHORTEST = 0.05  # a row that no rule can settle stays due: waiters must not spin on it
CHECK_EVERY = 0.2  # seconds between checks whether the waiter is still there


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
    """As `claim_next`, but waits until there is a task to take or `timeout` seconds have passed.

    Once `is_wanted` returns False it claims nothing: nobody would receive the receipt. `do` is the batcher's, if there
    is one.
    """
    do = do or engine.do
    poll = POLL_WITH_WAKE_UPS if WAKE_UPS in engine.store.features else POLL_WITHOUT
    give_up = monotonic() + timeout
    while True:
        mark = engine.mark()  # before the query: any later write wakes us
        outcome = do(command, principal)
        left = give_up - monotonic()
        if outcome.outcome != "NO_TASK" or left <= 0:
            return outcome
        wait = min(left, poll)
        if outcome.retry_in is not None:
            wait = min(wait, max(SHORTEST, outcome.retry_in))
        if not _waited(engine, mark, wait, monotonic, is_wanted):
            return outcome


def _waited(
    engine: Engine, mark: int, seconds: float, monotonic: Callable[[], float], is_wanted: Callable[[], bool] | None
) -> bool:
    """Wait for news or the end of the time; False as soon as nobody waits for the answer."""
    if is_wanted is None:
        engine.wait(mark, seconds)
        return True
    until = monotonic() + seconds
    while is_wanted():
        left = until - monotonic()
        if left <= 0 or engine.wait(mark, min(left, CHECK_EVERY)):
            return is_wanted()
    return False
