"""Claims that wait for a task: thousands of them, without a thread, a timer or a poll for each.

Each has tried once and got nothing. An event that makes a task claimable lets one waiter try again, the one that has
waited longest. A waiter that gets a task lets the next one try, since there may be more. A waiter that gets nothing,
although others could take a task, passes its turn on, at most PASSES times per round. So a new task costs one claim,
not ten thousand. A slow poll for each project covers events that were missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from tenure.core import lifecycle
from tenure.core.commands import ClaimNext, Principal
from tenure.core.errors import NotSignedIn
from tenure.core.events import Event
from tenure.core.keys import of_token
from tenure.core.outcomes import Outcome
from tenure.server.feed import Listener

PASSES = 64  # failed tries in a row that end a round
LULL = 0.1  # seconds between tries for events that may have made a task claimable
POLL = 5.0  # seconds between tries without events
SOONEST = 0.05

# Events that may make an existing task claimable, beside those that make one ready.
_MAY_FREE = frozenset({
    "project.started", "project.changed", "task.completed", "task.dead_lettered", "task.cancelled", "task.paused",
    "task.offered", "task.offer_ended", "task.edited", "reservation.released", "agent.updated", "agent.registered",
    "track.released", "track.defined", "agent.left", "agent.terminated",
})  # fmt: skip
# Of one agent: its next claim is denied, and those who wait in its name should hear it now.
_ENDS_WAITING = frozenset({"agent.terminating", "agent.draining"})

Claim = Callable[[ClaimNext, Principal], Awaitable[Outcome]]
StillValid = Callable[[Principal], Awaitable[bool]]


class WaitingClaims:
    """`claim` tries once; `is_still_valid` returns whether a principal is still authenticated. For one event loop.

    `listeners` are the feed's: `hear` is one of them while a claim waits.
    """

    def __init__(self, claim: Claim, is_still_valid: StillValid, listeners: list[Listener]) -> None:
        self._claim, self._is_still_valid, self._listeners = claim, is_still_valid, listeners
        self._queues: dict[str, _ProjectQueue] = {}
        self._is_closing = False

    @property
    def waiting(self) -> int:
        return sum(len(queue.waiters) for queue in self._queues.values())

    async def claim(self, command: ClaimNext, principal: Principal, seconds: float) -> Outcome:
        """Run the command; without a task, wait until there is one, the time is over, or the server closes."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        if not self._queues:
            self._listeners.append(self.hear)
        queue = self._queues.setdefault(command.project, _ProjectQueue())
        queue.users += 1
        has_turn = False
        try:
            while True:
                outcome = await self._claim(command, principal)
                is_over = outcome.outcome != "NO_TASK" or self._is_closing or loop.time() >= until
                if has_turn:
                    queue.tried(outcome)
                    has_turn = False
                if is_over:
                    if self._is_closing and outcome.outcome == "NO_TASK":
                        await self._check(principal)
                    return outcome
                if outcome.retry_in is not None:
                    queue.try_in(max(SOONEST, outcome.retry_in))
                has_turn = await queue.turn(until - loop.time(), Waiter(principal.key, command.agent))
                await self._check(principal)
                if not has_turn:
                    return outcome
        except BaseException:
            if has_turn:
                queue.pass_on()
            raise
        finally:
            queue.users -= 1
            if not queue.users:
                queue.close()
                self._queues.pop(command.project, None)
                if not self._queues:
                    self._listeners.remove(self.hear)

    async def _check(self, principal: Principal) -> None:
        if not await self._is_still_valid(principal):
            raise NotSignedIn("the key or token expired during the wait; nothing was claimed")

    def hear(self, events: Sequence[Event]) -> None:
        """Events of the feed."""
        for event in events:
            ended = event.details.get("key") if event.kind.startswith("key.") else None
            if event.kind.startswith("member."):
                ended = of_token(event.details["member"])
            if ended is not None:
                for each in self._queues.values():
                    each.wake(key=ended)
            queue = self._queues.get(event.project)
            if queue is None:
                continue
            if event.kind in _ENDS_WAITING:
                queue.wake(agent=event.agent)
            elif event.new_state == lifecycle.READY:
                queue.start_round(1)
            elif event.kind in _MAY_FREE:
                queue.try_in(LULL)

    def close(self) -> None:
        """Answer all waiters with NO_TASK; they retry with another server, or this one after its restart."""
        self._is_closing = True
        for queue in list(self._queues.values()):
            queue.empty()


class Waiter(NamedTuple):
    key: str | None
    agent: str


class _ProjectQueue:
    """The waiters of one project. A turn allows one try."""

    def __init__(self) -> None:
        self.users = 0
        self.waiters: dict[asyncio.Future[bool], Waiter] = {}  # oldest first
        self._loop = asyncio.get_running_loop()
        self._owed = 0  # turns for which no waiter was free: all were trying, and may have missed the event
        self._passes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._at = 0.0
        self.try_in(POLL)

    async def turn(self, seconds: float, waiter: Waiter) -> bool:
        """Wait for a turn; False after `seconds`."""
        if self._owed:
            self._owed -= 1
            return True
        future: asyncio.Future[bool] = self._loop.create_future()
        self.waiters[future] = waiter
        handle = self._loop.call_later(max(0.0, seconds), _resolve, future, False)
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.result():
                self.pass_on()
            raise
        finally:
            handle.cancel()
            self.waiters.pop(future, None)

    def wake(self, *, key: str | None = None, agent: str | None = None) -> None:
        """Wake the waiters with this key or of this agent: it may have ended."""
        for future in [one for one, who in self.waiters.items() if (key and who.key == key) or who.agent == agent]:
            _resolve(future, True)

    def start_round(self, count: int) -> None:
        """Start a round: give `count` turns, now or when waiters are back from a try."""
        waiting = min(count, len(self.waiters))
        self._owed = min(self._owed + count - waiting, self.users)
        self._give_turns(waiting)

    def _give_turns(self, count: int) -> None:
        self._passes = PASSES
        for _ in range(count):
            self._next()

    def tried(self, outcome: Outcome) -> None:
        """After a try: give the next turn, if there may be more tasks."""
        if outcome.outcome != "NO_TASK":
            self._next()
        elif (outcome.counts or {}).get("ready_for_others"):
            self.pass_on()

    def pass_on(self) -> None:
        if self._passes > 0:
            self._passes -= 1
            self._next()

    def _next(self) -> None:
        while self.waiters:
            future = next(iter(self.waiters))
            del self.waiters[future]
            if _resolve(future, True):
                return

    def try_in(self, seconds: float) -> None:
        """Give a turn after `seconds`, or earlier."""
        at = self._loop.time() + seconds
        if self._timer is not None:
            if self._at <= at:
                return
            self._timer.cancel()
        self._at = at
        self._timer = self._loop.call_at(at, self._poll)

    def _poll(self) -> None:
        self._timer = None
        self.try_in(POLL)
        self._give_turns(1)

    def empty(self) -> None:
        for future in list(self.waiters):
            _resolve(future, False)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _resolve(future: asyncio.Future[bool], value: bool) -> bool:
    if future.done():
        return False
    future.set_result(value)
    return True
