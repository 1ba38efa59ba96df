"""Callers that wait for work, thousands of them, without a thread, a timer or a poll for each.

Each has looked once in vain. News of a claimable task lets one of them look again, the one that has waited longest;
who finds something lets the next one look, since there may be more. Who finds nothing, though something is there that
others could take, passes the turn on, so many times a round. So a task that comes in costs one claim, not ten thousand.
A slow look on behalf of all is the safety net for news that was missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from tenure.core import lifecycle
from tenure.core.commands import ClaimNext, Principal
from tenure.core.errors import NotSignedIn
from tenure.core.events import Event
from tenure.core.outcomes import Outcome

PASSES = 64  # how many may look in vain, one after another, before a round is over
LULL = 0.1  # seconds between looks for news that only may have freed something
POLL = 5.0  # seconds between looks without news
SOONEST = 0.05

# Beside tasks that became ready: what may let somebody take one that was there before.
_MAY_FREE = frozenset({
    "project.started", "project.changed", "task.completed", "task.dead_lettered", "task.cancelled", "task.paused",
    "task.offered", "task.offer_ended", "task.edited", "reservation.released", "agent.updated", "agent.registered",
})  # fmt: skip
# Of one agent: its next claim is denied, and those who wait in its name should hear it now.
_ENDS_WAITING = frozenset({"agent.terminating", "agent.draining"})

Claim = Callable[[ClaimNext, Principal], Awaitable[Outcome]]
StillGood = Callable[[Principal], Awaitable[bool]]


class WaitingRoom:
    """`claim` looks once; `is_still_good` says whether who was let in would still be. Lives in one event loop."""

    def __init__(self, claim: Claim, is_still_good: StillGood) -> None:
        self._claim = claim
        self._is_still_good = is_still_good
        self._rooms: dict[str, _Room] = {}
        self._is_closing = False

    @property
    def waiting(self) -> int:
        return sum(len(room.waiters) for room in self._rooms.values())

    async def claim(self, command: ClaimNext, principal: Principal, seconds: float) -> Outcome:
        """As the command, but stays until there is something to take, the time is over, or the server closes."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        room = self._rooms.setdefault(command.project, _Room())
        room.users += 1
        has_turn = False
        try:
            while True:
                outcome = await self._claim(command, principal)
                is_over = outcome.outcome != "NO_TASK" or self._is_closing or loop.time() >= until
                if has_turn:
                    room.looked(outcome)
                    has_turn = False
                if is_over:
                    return outcome
                if outcome.retry_in is not None:
                    room.look_in(max(SOONEST, outcome.retry_in))
                has_turn = await room.turn(until - loop.time(), Waiter(principal.key, command.agent))
                if not await self._is_still_good(principal):
                    raise NotSignedIn("the key or token has ended while it waited; nothing was claimed")
                if not has_turn:
                    return outcome
        except BaseException:
            if has_turn:
                room.pass_on()
            raise
        finally:
            room.users -= 1
            if not room.users:
                room.close()
                self._rooms.pop(command.project, None)

    def hear(self, events: Sequence[Event]) -> None:
        """News from the feed."""
        if not self._rooms:
            return
        for event in events:
            if event.kind.startswith("key."):
                for one in self._rooms.values():
                    one.wake(key=event.details["key"])
            room = self._rooms.get(event.project)
            if room is None:
                continue
            if event.kind in _ENDS_WAITING:
                room.wake(agent=event.agent)
            elif event.new_state == lifecycle.READY:
                room.let_in(1)
            elif event.kind in _MAY_FREE:
                room.look_in(LULL)

    def close(self) -> None:
        """Everybody is told that there is nothing; they ask another server, or this one's next life."""
        self._is_closing = True
        for room in list(self._rooms.values()):
            room.empty()


class Waiter(NamedTuple):
    key: str | None
    agent: str


class _Room:
    """Those who wait in one project. A turn is the leave to look once."""

    def __init__(self) -> None:
        self.users = 0
        self.waiters: dict[asyncio.Future[bool], Waiter] = {}  # in the order of their coming
        self._loop = asyncio.get_running_loop()
        self._owed = 0  # turns for which nobody waited when the news came: all were looking, and may have missed it
        self._passes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._at = 0.0
        self.look_in(POLL)

    async def turn(self, seconds: float, waiter: Waiter) -> bool:
        """Wait for a turn; False when the time is over."""
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
        """Let those who wait with this key, or as this agent, look now: it may have ended."""
        for future in [one for one, who in self.waiters.items() if (key and who.key == key) or who.agent == agent]:
            _resolve(future, True)

    def let_in(self, count: int) -> None:
        """A new round: so many may look, now or when they are back from looking."""
        waiting = min(count, len(self.waiters))
        self._owed = min(self._owed + count - waiting, self.users)
        self._look(waiting)

    def _look(self, count: int) -> None:
        self._passes = PASSES
        for _ in range(count):
            self._next()

    def looked(self, outcome: Outcome) -> None:
        """Whose turn it was has looked: who is next?"""
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

    def look_in(self, seconds: float) -> None:
        """Let one look then, if nothing comes before."""
        at = self._loop.time() + seconds
        if self._timer is not None:
            if self._at <= at:
                return
            self._timer.cancel()
        self._at = at
        self._timer = self._loop.call_at(at, self._glance)

    def _glance(self) -> None:
        self._timer = None
        self.look_in(POLL)
        self._look(1)

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
