"""The thread that keeps pools filled while its process leads; `tenure.engine.fleet` explains why that is safe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple, Protocol

from tenure.core import limits, pools
from tenure.core.errors import spelled
from tenure.core.lifecycle import READY
from tenure.core.records import Pool, Project, Spawn, Task
from tenure.engine.duties.election import LeaderEngine
from tenure.engine.fleet.offers import Address, Start, start_agents
from tenure.engine.fleet.upkeep import SECOND, Ending, keep, save_failure, save_handle
from tenure.engine.relay.leader_thread import GATHERED, LeaderThread
from tenure.engine.runtime.engine import Engine
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.spawners.port import Spawned, SpawnFailed, SpawnRequest, State

POLL = 2 * SECOND  # between two questions to a spawner about its processes
AGAIN = SECOND  # after a search that found nothing, and between two tries to end a process
END_TRIES = 30  # tries to end a process whose spawner does not answer
AT_ONCE = limits.SPAWNS_AT_ONCE
PROMPTLY = 0.05  # seconds after a step, while there are pools or spawns: it writes only where it starts or ends one


class Calls(Protocol):
    """The calls of spawners, each in a thread: see `SpawnerThreads`."""

    @property
    def known(self) -> frozenset[str]: ...

    def home(self, name: str) -> str: ...

    def spawn(self, name: str, request: SpawnRequest, timeout: float) -> Future[Spawned]: ...

    def find(self, name: str, spawns: Sequence[str]) -> Future[Mapping[str, Spawned | None]]: ...

    def status(self, name: str, handles: Sequence[str]) -> Future[Mapping[str, State]]: ...

    def end(self, name: str, handle: str, graceful: bool) -> Future[None]: ...

    def close(self) -> None: ...


class ProcessSearch(NamedTuple):
    """A question to a spawner about spawns whose answer was not saved."""

    spawns: Sequence[Spawn]
    asked_at: int
    future: Future[Mapping[str, Spawned | None]]


class Fleet(LeaderThread):
    def __init__(
        self,
        engine: Engine,
        calls: Calls,
        address: Callable[[], Address | None],
        leading: Callable[[], LeaderEngine | None],
        *,
        failed: Callable[[str], object] = lambda _: None,
    ) -> None:
        """`address`: where agents find the store; None while that is not known. `failed` receives errors."""
        super().__init__(engine, "fleet", leading)
        self._calls, self._address, self._report = calls, address, failed
        self._last_error: str | None = None
        self._asked: dict[tuple[str, str], Future[Spawned]] = {}  # project and spawn → the call under way
        self._polls: dict[str, Future[Mapping[str, State]]] = {}  # spawner → the question under way
        self._polled: dict[str, int] = {}  # spawner → when it was last asked
        self._searches: dict[str, ProcessSearch] = {}  # spawner → the search under way
        self._searched: dict[str, int] = {}  # spawner → when it was last asked to find processes
        self._absent: set[str] = set()  # open spawns that have no process, and will have none
        self._reports: dict[str, str] = {}  # handle → what its spawner last reported
        self._endings: dict[tuple[str, str], Ending] = {}  # spawner and handle
        self._being_ended: dict[tuple[str, str], tuple[Ending, Future[None]]] = {}
        self._finishing: set[tuple[str, str]] = set()  # asked to end after their task
        self._fruitless: dict[str, int] = {}  # project → when a search last found nothing
        self._term = 0
        self._took_over_at = 0

    def failed(self, error: Exception) -> None:
        text = spelled(error)
        if text != self._last_error:
            self._last_error = text
            self._report(f"pools: {text}")

    def close(self) -> None:
        self._calls.close()

    # --- a step ---

    def work(self, led: LeaderEngine) -> bool:
        self._save_answers(led)
        if self._ended.is_set():
            return False  # a process that stops starts nothing more
        self._hear(led)
        now, due = self._look(led)
        may_start = self._has_heard(led, now)
        for project, has_places in due.items():
            self._do(led, project, now, searches=has_places and may_start)
        self._end_processes(now)
        self._last_error = None
        return any(future.done() for future in self._asked.values())

    def _has_heard(self, led: LeaderEngine, now: int) -> bool:
        """Whether it may start agents: a new leader first hears what runs, for as long as a poll takes.

        Otherwise leaders that all die at their first spawn would never notice a process that is gone.
        """
        if self._term != led.term:
            self._term, self._took_over_at = led.term, now
        is_new = self._took_over_at <= now < self._took_over_at + POLL
        return not is_new or not (self._polls or self._searches)

    def _do(self, led: LeaderEngine, project: str, now: int, *, searches: bool) -> None:
        address = self._address() if searches else None
        homes = {} if address is None else {name: self._calls.home(name) for name in self._calls.known}

        def decide(work: UnitOfWork) -> tuple[list[Ending], list[Start]]:
            endings = keep(work, project, self._reports, self._absent)
            if address is None:
                return endings, []
            return endings, start_agents(work, project, address, led.term, homes, AT_ONCE)

        endings, starts = led.transact((project,), decide)
        self._note(endings)
        if searches and not starts:
            self._fruitless[project] = now
        for start in starts:  # the spawns are committed
            future = self._calls.spawn(start.spawner, start.request, limits.SPAWN_SECONDS)
            self._asked[project, start.request.spawn] = future

    def _look(self, led: LeaderEngine) -> tuple[int, dict[str, bool]]:
        """The projects where something is to be done; True: a task may wait for a free place."""
        rows, spawns, now = self.engine.read(
            lambda tx: (tx.find(Pool, {}), tx.find(Spawn, {"state": pools.OPEN}), tx.now)
        )
        self._poll(spawns, now)
        self._search(spawns, now)
        self._hear(led)  # answers that are there at once
        self.gathered = PROMPTLY if rows or spawns else GATHERED
        projects = sorted({row.project for row in (*rows, *spawns)})
        if not projects:
            return now, {}

        def ask(work: UnitOfWork) -> dict[str, bool]:
            due: dict[str, bool] = {}
            for project in projects:
                of_project = [row for row in rows if row.project == project]
                if any(self._may_start(work, pool, spawns) for pool in of_project):
                    due[project] = True
                elif any(spawn.project == project for spawn in spawns):
                    endings = keep(work, project, self._reports, self._absent)
                    self._note(ending for ending in endings if ending.graceful)
                    if any(key[1] == project for key in work.changed(Spawn)):
                        due[project] = False
            return due

        return now, self.engine.read_settled(projects, ask)

    def _may_start(self, work: UnitOfWork, pool: Pool, spawns: Sequence[Spawn]) -> bool:
        """Whether a search may find something; one that found nothing is not repeated at once."""
        last = self._fruitless.get(pool.project)
        if not pools.may_start(pool, work.now) or (last is not None and last <= work.now < last + AGAIN):
            return False
        places = pools.free_places(pool, [one for one in spawns if one.project == pool.project], work.now)
        if not places:
            return False
        if work.tx.lanes(pool.project) or work.require(Project, pool.project, pool.project).set_aside:
            return True
        names = tuple(pools.agent_of(pool.id, place) for place in places[:AT_ONCE])
        return bool(work.find(Task, {"project": pool.project, "state": READY, "offer_to": names}, limit=1))

    # --- answers of spawners ---

    def _save_answers(self, led: LeaderEngine) -> None:
        for (project, spawn), future in list(self._asked.items()):
            if not future.done():
                continue
            error = None if future.cancelled() else future.exception()
            if future.cancelled() or error is not None:
                why = "it was cancelled" if error is None else spelled(error)
                is_definite = isinstance(error, SpawnFailed)
                led.transact(
                    (project,),
                    partial(save_failure, project=project, spawn=spawn, why=why, is_definite=is_definite),
                )
            else:
                self._save(led, project, spawn, future.result())
            del self._asked[project, spawn]  # only now: without the term it stays to be saved

    def _save(self, led: LeaderEngine, project: str, spawn: str, answer: Spawned) -> None:
        ending = led.transact(
            (project,),
            partial(save_handle, project=project, spawn=spawn, handle=answer.handle, session=answer.session),
        )
        self._note([] if ending is None else [ending])

    def _search(self, spawns: Sequence[Spawn], now: int) -> None:
        """Ask for processes whose handle was never saved: the leader that started them was gone before it could."""
        self._absent &= {spawn.id for spawn in spawns if spawn.handle is None}
        sought: dict[str, list[Spawn]] = {}
        for spawn in spawns:
            if pools.is_unanswered(spawn, now) and self._may_find(spawn):
                sought.setdefault(spawn.spawner, []).append(spawn)
        for name, asked in sought.items():
            last = self._searched.get(name)
            if name not in self._searches and not (last is not None and last <= now < last + POLL):
                self._searched[name] = now
                self._searches[name] = ProcessSearch(asked, now, self._calls.find(name, [spawn.id for spawn in asked]))

    def _may_find(self, spawn: Spawn) -> bool:
        """Whether our spawner is the one that was called, and we are not waiting for its answer."""
        if (spawn.project, spawn.id) in self._asked or spawn.spawner not in self._calls.known:
            return False
        return bool(spawn.home) and spawn.home == self._calls.home(spawn.spawner)

    def _hear(self, led: LeaderEngine) -> None:
        self._save_found(led)
        self._hear_polls()

    def _save_found(self, led: LeaderEngine) -> None:
        for name, search in list(self._searches.items()):
            if not search.future.done():
                continue
            is_answered = not search.future.cancelled() and search.future.exception() is None
            found = search.future.result() if is_answered else {}
            for spawn in search.spawns:
                answer = found.get(spawn.id)
                if answer is not None:
                    self._save(led, spawn.project, spawn.id, answer)
                elif spawn.id in found and pools.is_absent(spawn, search.asked_at):
                    self._absent.add(spawn.id)
            del self._searches[name]

    def _poll(self, spawns: Sequence[Spawn], now: int) -> None:
        """Ask each spawner about its processes, at most every two seconds and one question at a time."""
        handles: dict[str, list[str]] = {}
        for spawn in spawns:
            if spawn.handle is not None and spawn.spawner in self._calls.known:
                handles.setdefault(spawn.spawner, []).append(spawn.handle)
        known = {handle for each in handles.values() for handle in each}
        self._reports = {handle: report for handle, report in self._reports.items() if handle in known}
        self._finishing = {key for key in self._finishing if key[1] in known}
        for name, asked in handles.items():
            last = self._polled.get(name)
            if name not in self._polls and not (last is not None and last <= now < last + POLL):
                self._polled[name] = now
                self._polls[name] = self._calls.status(name, asked)

    def _hear_polls(self) -> None:
        for name, future in list(self._polls.items()):
            if future.done():
                del self._polls[name]
                if not future.cancelled() and future.exception() is None:
                    self._reports |= future.result()

    # --- processes that must end ---

    def _note(self, endings: Iterable[Ending]) -> None:
        for ending in endings:
            key = (ending.spawner, ending.handle)
            if ending.graceful and key in self._finishing:
                continue
            if ending.graceful:
                self._finishing.add(key)
            self._endings[key] = ending

    def _end_processes(self, now: int) -> None:
        for key, (ending, future) in list(self._being_ended.items()):
            if not future.done():
                continue
            del self._being_ended[key]
            if self._endings.get(key) is not ending:
                continue  # it must end at once meanwhile
            del self._endings[key]
            if (future.cancelled() or future.exception() is not None) and ending.tries < END_TRIES:
                self._endings[key] = ending._replace(tries=ending.tries + 1, at=now + AGAIN)
        for key, ending in list(self._endings.items()):
            if key not in self._being_ended and ending.at <= now and ending.spawner in self._calls.known:
                self._being_ended[key] = ending, self._calls.end(ending.spawner, ending.handle, ending.graceful)
