"""What tests of pools need: a spawner that records its calls, and a leader that a test steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from tenure.core import commands as c
from tenure.core.outcomes import Outcome
from tenure.core.records import Pool, Spawn
from tenure.engine.duties.coordinator import Coordinator
from tenure.engine.fleet.fleet import Fleet
from tenure.engine.fleet.offers import Address
from tenure.spawners.port import Spawned, SpawnRequest, SpawnUnknown, State
from tenure.testing.engine.coordinators import Office
from tenure.testing.factories import Scene

T = TypeVar("T")
URL = "http://127.0.0.1:7420"


class RecordedCalls:
    """The calls of every spawner. Each is answered at once, unless `hangs`; an answer may be an error."""

    def __init__(self) -> None:
        self.known = frozenset({"local"})
        self.hangs = False
        self.asked: list[SpawnRequest] = []
        self.waiting: dict[str, Future[Spawned]] = {}  # calls that hang, by spawn
        self.answer: Callable[[SpawnRequest], Spawned] = lambda request: Spawned(handle=f"h-{request.spawn}")
        self.states: dict[str, State] = {}  # handle → what is reported; others run
        self.homes: dict[str, str] = {}  # others are "here"
        self.processes: dict[str, Spawned | None] = {}  # spawn → what a search finds; others are left out
        self.sought: list[Sequence[str]] = []
        self.searching: Future[Mapping[str, Spawned | None]] | None = None  # the answer to searches, if set
        self.polled: list[Sequence[str]] = []
        self.polling: Future[Mapping[str, State]] | None = None  # the answer to polls, if set
        self.ended: list[tuple[str, bool]] = []
        self.end_fails = False

    def home(self, name: str) -> str:
        return self.homes.get(name, "here")

    def find(self, name: str, spawns: Sequence[str]) -> Future[Mapping[str, Spawned | None]]:
        self.sought.append(spawns)
        if self.searching is not None:
            return self.searching
        return done(lambda: {spawn: self.processes[spawn] for spawn in spawns if spawn in self.processes})

    def spawn(self, name: str, request: SpawnRequest, timeout: float) -> Future[Spawned]:
        self.asked.append(request)
        if self.hangs:
            future: Future[Spawned] = Future()
            self.waiting[request.spawn] = future
            return future
        return done(lambda: self.answer(request))

    def status(self, name: str, handles: Sequence[str]) -> Future[Mapping[str, State]]:
        self.polled.append(handles)
        if self.polling is not None:
            return self.polling
        running: State = "running"
        return done(lambda: {handle: self.states.get(handle, running) for handle in handles})

    def end(self, name: str, handle: str, graceful: bool) -> Future[None]:
        self.ended.append((handle, graceful))
        return done(self._end)

    def _end(self) -> None:
        if self.end_fails:
            raise SpawnUnknown("no answer")

    def close(self) -> None:
        pass


def done(call: Callable[[], T]) -> Future[T]:
    future: Future[T] = Future()
    try:
        future.set_result(call())
    except Exception as error:  # noqa: BLE001 - whatever it raises is the answer
        future.set_exception(error)
    return future


class Port:
    """One leader with pools, and the words of its children."""

    def __init__(self, scene: Scene, name: str = "one", *, has_keys: bool = False) -> None:
        self.scene, self.office, self.calls = scene, Office(scene), RecordedCalls()
        self.errors: list[str] = []
        self.coordinator: Coordinator = self.office.another(name)
        self.coordinator.step()
        self.fleet = self.another_fleet(self.coordinator, has_keys=has_keys)

    def another_fleet(self, coordinator: Coordinator, *, has_keys: bool = False) -> Fleet:
        return Fleet(
            coordinator.engine, self.calls, lambda: Address(URL, has_keys), coordinator.led, failed=self.errors.append
        )

    def set(self, pool: str = "crew", **fields: Any) -> Outcome:
        words: dict[str, Any] = {"program": "claude", "size": 2}
        return self.scene.do(c.SetPool, pool=pool, **words | fields)

    def step(self, times: int = 3) -> None:
        """Until nothing is left to do at once: choose, save the answers, look again."""
        for _ in range(times):
            self.fleet.step()
        assert self.errors == []

    def pass_time(self, seconds: float) -> None:
        """In parts, so that the leader stays in office."""
        while seconds > 0:
            part = min(5.0, seconds)
            self.office.pass_time(part)
            self.coordinator.step()
            seconds -= part

    def spawns(self, *states: str) -> list[Spawn]:
        found: list[Spawn] = self.scene.rows(Spawn, order="started_at")
        return [spawn for spawn in found if not states or spawn.state in states]

    def pool(self, name: str = "crew") -> Pool:
        row: Pool = self.scene.row(Pool, name)
        return row

    # --- children ---

    def call(self, spawn: Spawn, /, session: str | None = None, **fields: Any) -> Outcome:
        """The child claims its task."""
        words: dict[str, Any] = {
            "task": spawn.task,
            "agent": spawn.agent,
            "session": session or f"s-{spawn.id}",
            "spawn": spawn.id,
        }
        return self.scene.do(c.ClaimTask, **words | fields)

    def call_next(self, spawn: Spawn, /, **fields: Any) -> Outcome:
        words: dict[str, Any] = {"agent": spawn.agent, "session": f"s-{spawn.id}", "spawn": spawn.id}
        return self.scene.do(c.ClaimNext, **words | fields)

    def receipt(self, spawn: Spawn) -> str:
        outcome = self.call(spawn)
        assert outcome.outcome == "GRANTED", outcome
        assert outcome.receipt is not None
        return outcome.receipt

    def finish(self, spawn: Spawn) -> None:
        """The child completes its task and leaves."""
        assert self.scene.submit(self.receipt(spawn)).outcome == "ACCEPTED"
        self.leave(spawn)

    def leave(self, spawn: Spawn) -> None:
        """The child ends its session; a moment later its spawn is over."""
        self.scene.do(c.Leave, session=f"s-{spawn.id}")
        self.pass_time(1)
