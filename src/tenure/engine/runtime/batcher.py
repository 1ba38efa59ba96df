"""The batcher: single commands of many callers become batches, and each caller gets its own outcome.

There is no timer. A free worker takes the waiting commands, up to one batch, and runs them as one transaction; commands
that arrive meanwhile form the next batch. So a single command never waits for others, and batches grow under load.

Invariants:
- Commands of one caller run in the order in which it gave them. They keep that order in a batch, and while a batch has
  one of them no other batch takes the next.
- Callers take turns: each gives one command before any gives a second.
- Tenants take turns: a batch is of one tenant, and no tenant gives a second batch while another waits for its first.
- No two batches share a project: the store lets one write there at a time, and each batch would only be smaller.
- Where several batches run at once, none takes all projects that wait: the other would have nothing to do.
- Every accepted command is answered once. A caller that leaves withdraws its command unless a batch already has it.
- Over its limits the batcher refuses at once and keeps nothing.
- No batch waits for evidence: a command that needs it is left out, and its caller gets a later turn.

Not imported by `tenure.engine`: a single command does not need it.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from copy import copy
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tenure.core import commands, inputs, limits
from tenure.core.commands import OWNER, Command, Principal
from tenure.core.errors import Bug, Conflict, InvalidInput, Overloaded, StoreUnavailable, TenureError
from tenure.core.outcomes import Outcome
from tenure.core.records import replace
from tenure.engine.checks.evidence import Finding
from tenure.engine.checks.evidence_threads import EvidenceThreads
from tenure.engine.runtime.engine import ROUNDS, CheckedCommand, Engine, checked_command, final_answers
from tenure.engine.runtime.unit_of_work import Answer, RunAgain
from tenure.stores.port import WRITERS

if TYPE_CHECKING:
    import asyncio  # for types only: threads do not need it

MOST_WAITING = limits.BATCHER_WAITING
MOST_BYTES = 8 * inputs.LARGEST_BATCH
# Callers have no order among each other, and stores run commands of one kind faster together. Commands that free tasks
# come before commands that take them.
_ORDER: dict[type[Command], int] = {commands.Submit: 0, commands.Renew: 1, commands.ClaimNext: 3}
MOST_PROJECTS = limits.BATCHER_PROJECTS
SLOTS = inputs.MOST_COMMANDS  # tasks that a batch may claim or create: bounds the transaction


class Batcher:
    """Runs commands of many threads and event loops on one store, a batch at a time.

    `engine` is the tenant's whose commands name no other; `of` has the same for another tenant of the store.

    `in_flight` is the number of concurrent batches; by default the store chooses. At most `most_waiting` commands with
    `most_bytes` in total may wait: beyond that `Overloaded` is raised and nothing was done. A caller is a thread or an
    asyncio task unless `caller` is given.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        in_flight: int | None = None,
        most_waiting: int = MOST_WAITING,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        if in_flight is None:
            # A second batch keeps the second core busy; more brought no gain when measured.
            in_flight = 2 if WRITERS in engine.store.features else 1
        if in_flight < 1 or most_waiting < 1:
            raise InvalidInput(f"in_flight and most_waiting must be at least 1 (got {in_flight} and {most_waiting})")
        if most_bytes < inputs.LARGEST_BATCH:
            raise InvalidInput(f"most_bytes must be at least {inputs.LARGEST_BATCH} (got {most_bytes})")
        self.engine = engine
        self._most_waiting, self._most_bytes = most_waiting, most_bytes
        self._most_projects = MOST_PROJECTS if in_flight > 1 else inputs.MOST_COMMANDS
        self._waiting = self._bytes = 0
        # Waiting commands, by caller. Each caller here is in a batch, or queued in `_turns`, or set aside while a batch
        # is in the project of its next command. A queue may be empty: its caller has withdrawn its commands.
        self._lines: dict[Hashable, deque[_Entry]] = {}
        self._turns = _Turns()
        self._aside: dict[_Place, list[Hashable]] = {}  # where a batch is → callers
        # A caller is in `_lacking` while evidence is collected for its first command: see `checks/evidence.py`.
        self._inquirer = EvidenceThreads()
        self._lacking: set[Hashable] = set()
        self._changed = threading.Condition(threading.Lock())
        self._waking: set[asyncio.AbstractEventLoop] = set()  # loops that wake the workers when an iteration ends
        self._is_closed = False
        self._process = os.getpid()
        self._workers = [
            # daemon: a program that forgets to close must still end
            threading.Thread(target=self._work, name=f"tenure-batcher-{n}", daemon=True)
            for n in range(in_flight)
        ]
        for worker in self._workers:
            worker.start()

    def __enter__(self) -> Batcher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def waiting(self) -> int:
        """The number of commands that wait for a batch."""
        return self._waiting

    # --- callers ---

    def of(self, engine: Engine) -> TenantBatcher:
        """The same threads, for another tenant of the store."""
        return TenantBatcher(self, engine)

    def do(
        self, command: Command, principal: Principal = OWNER, *, caller: Hashable = None, engine: Engine | None = None
    ) -> Outcome:
        """Return the outcome of one command, or raise its error. Blocks this thread."""
        ready = checked_command(command, principal)
        engine = engine or self.engine
        if threading.current_thread() in self._workers:  # a future's callback: it would wait for itself
            (answer,) = engine.run_checked((ready,))
            return _outcome(answer)
        place = _Blocked(engine, ready, _this_thread() if caller is None else caller)
        self._put(place)
        try:
            place.answered.acquire()
        except BaseException:  # the wait was interrupted
            self._drop(place)
            raise
        return _outcome(place.answer)

    def submit(
        self, command: Command, principal: Principal = OWNER, *, caller: Hashable = None, engine: Engine | None = None
    ) -> Future[Outcome]:
        """A future of the outcome. `cancel` withdraws the command while no batch has it.

        Callbacks of the future run in a worker's thread: they must not wait for another future of this batcher.
        """
        caller = _this_thread() if caller is None else caller
        place = _Promised(engine or self.engine, checked_command(command, principal), caller, self._drop)
        self._put(place)
        return place.future

    async def ado(
        self, command: Command, principal: Principal = OWNER, *, caller: Hashable = None, engine: Engine | None = None
    ) -> Outcome:
        """As `do`, for asyncio. Cancelling withdraws the command, or drops the outcome if a batch already has it."""
        import asyncio

        loop = asyncio.get_running_loop()
        caller = asyncio.current_task() if caller is None else caller
        place = _Awaited(engine or self.engine, checked_command(command, principal), caller, loop)
        self._put(place, is_awake=False)
        if loop not in self._waking:
            # Wake after all commands of this loop iteration are queued: one batch instead of one each.
            self._waking.add(loop)
            loop.call_soon(self._wake, loop)
        try:
            await place.future
        except BaseException:
            self._drop(place)
            raise
        return _outcome(place.answer)

    def close(self, *, drain: bool = True) -> None:
        """Refuse new commands, and wait until the batches in flight are done.

        Waiting commands are run first, or with `drain=False` refused with nothing done. Blocks; a second call is
        harmless.
        """
        if self._process != os.getpid():
            return
        with self._changed:
            self._is_closed = True
            refused = [] if drain else [place for line in self._lines.values() for place in line]
            if not drain:
                for line in self._lines.values():
                    line.clear()
                self._waiting = self._bytes = 0
            self._changed.notify_all()
        _deliver(refused, [self._closed()] * len(refused))
        for worker in self._workers:
            if worker is not threading.current_thread():
                worker.join()
        self._inquirer.close()

    # --- the queue ---

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        self._waking.discard(loop)
        with self._changed:
            if self._turns:
                self._changed.notify()

    def _put(self, place: _Entry, *, is_awake: bool = True) -> None:
        """`is_awake`: wake a worker at once; otherwise the caller does."""
        if self._process != os.getpid():
            raise StoreUnavailable(
                "this process was forked from one with a batcher, and has no workers", "open the store again here"
            )
        with self._changed:
            if self._is_closed:
                raise self._closed()
            if self._waiting >= self._most_waiting or self._bytes + place.size > self._most_bytes:
                raise Overloaded(
                    f"{self._waiting} commands with {self._bytes} bytes are already waiting;"
                    f" the limits are {self._most_waiting} and {self._most_bytes}",
                    "nothing was done: send it again in a moment",
                )
            line = self._lines.get(place.caller)
            if line is None:
                line = self._lines[place.caller] = deque()
                aside = self._aside.get(place.where)
                if aside is not None:
                    aside.append(place.caller)
                else:
                    self._turns.append(place.tenant, place.caller)
                    if is_awake:
                        self._changed.notify()
            line.append(place)
            self._waiting += 1
            self._bytes += place.size

    def _drop(self, place: _Entry) -> bool:
        """Withdraw a command; False where a batch has it, or had it."""
        with self._changed:
            line = self._lines.get(place.caller)
            if line is None or place not in line:
                return False
            line.remove(place)
            self._left(place)
        return True

    def _take(self) -> list[_Entry]:
        """The next batch, as soon as there is one; empty once closed and drained."""
        with self._changed:
            while not (batch := self._next_batch()) and (not self._is_closed or self._lacking):
                self._changed.wait()
            if self._turns:
                self._changed.notify()  # more than one batch is waiting
            return batch

    def _next_batch(self) -> list[_Entry]:
        """A batch of the tenant whose turn it is, or of the next that has one."""
        while (callers := self._turns.next()) is not None:
            batch = self._batch_of(callers)
            if callers:
                self._turns.again(callers)
            if batch:
                return batch
        return []

    def _batch_of(self, turns: deque[Hashable]) -> list[_Entry]:
        """One command of each caller in turn, then the rest. The projects of the batch are its own."""
        batch: list[_Entry] = []
        projects: set[_Place] = set()
        behind: deque[Hashable] = deque()  # callers that gave one and have more
        others: deque[Hashable] = deque()  # left to the next batch
        slots = size = first = 0
        while callers := turns or behind:
            caller = callers[0]
            line = self._lines[caller]
            place = line[0] if line else None
            is_free = place is not None and place.where not in self._aside
            if is_free and len(projects) == self._most_projects:
                others.append(caller)
            elif place is not None and (is_free or place.where in projects):
                slots, size = slots + place.slots, size + place.size
                if batch and (len(batch) == inputs.MOST_COMMANDS or slots > SLOTS or size > inputs.LARGEST_BATCH):
                    break
                batch.append(line.popleft())
                place.begin()
                self._left(place)
                projects.add(place.where)
                self._aside.setdefault(place.where, [])
                first = len(batch) if callers is turns else first
                if line:
                    behind.append(caller)
            elif callers is turns and place is None:
                del self._lines[caller]
            elif callers is turns and place is not None:
                self._aside[place.where].append(caller)
            callers.popleft()
        turns.extendleft(reversed(others))
        return [*sorted(batch[:first], key=_turn), *batch[first:]]

    def _finish(self, batch: Sequence[_Entry]) -> None:
        """Queue the callers that were set aside, then the batch's own callers."""
        with self._changed:
            callers = [caller for where in {place.where for place in batch} for caller in self._aside.pop(where)]
            callers += dict.fromkeys(place.caller for place in batch if place.caller not in self._lacking)
            for caller in callers:
                if self._lines[caller]:
                    self._turns.append(batch[0].tenant, caller)
                else:
                    del self._lines[caller]
            if self._turns:
                self._changed.notify()

    def _left(self, place: _Entry) -> None:
        self._waiting -= 1
        self._bytes -= place.size

    def _closed(self) -> StoreUnavailable:
        return StoreUnavailable(f"{self.engine.store.url}: the batcher was closed; nothing was done")

    def _leave_out(self, places: Sequence[_Entry]) -> None:
        """Put back a caller's commands that could not be decided yet: they are the first that it gives again."""
        with self._changed:
            self._lines[places[0].caller].extendleft(reversed(places))
            self._lacking.add(places[0].caller)
            self._waiting += len(places)
            self._bytes += sum(place.size for place in places)

    def _inform(self, place: _Entry, found: Mapping[str, Finding]) -> None:
        """The evidence is there: queue its caller again."""
        with self._changed:
            place.asked = replace(place.asked, evidence={**place.asked.evidence, **found})
            self._lacking.remove(place.caller)
            if self._lines[place.caller]:
                self._turns.append(place.tenant, place.caller)
            else:
                del self._lines[place.caller]
            self._changed.notify_all()

    # --- the workers ---

    def _work(self) -> None:
        while batch := self._take():
            answers = self._tried(self._commit, batch)
            left_out: dict[Hashable, list[tuple[_Entry, RunAgain]]] = {}
            for place, answer in zip(batch, answers, strict=True):
                if type(answer) is RunAgain:
                    left_out.setdefault(place.caller, []).append((place, answer))
            for left in left_out.values():
                self._leave_out([place for place, _ in left])
            self._finish(batch)  # before answers are built, so that the next batch does not wait
            for (place, lacking), *_ in left_out.values():
                self._inquirer.ask(lacking.questions, partial(self._inform, place))
            if left_out:
                decided = [(p, a) for p, a in zip(batch, answers, strict=True) if type(a) is not RunAgain]
                batch, answers = [p for p, _ in decided], [a for _, a in decided]
            _deliver(batch, self._tried(final_answers, answers))

    def _commit(self, batch: Sequence[_Entry]) -> Sequence[Any]:
        engine = batch[0].engine
        answers = engine.commit_checked([place.asked for place in batch], [place.caller for place in batch])
        return [self._patient(place, a) if type(a) is RunAgain else a for place, a in zip(batch, answers, strict=True)]

    def _patient(self, place: _Entry, lacking: RunAgain) -> RunAgain | Conflict:
        """Collecting evidence is bounded: each round may need something else."""
        place.rounds += bool(lacking.questions)
        if place.rounds <= ROUNDS:
            return lacking
        return Conflict("the rows kept changing while the command ran; nothing was done")

    def _tried(self, step: Callable[[Sequence[Any]], Sequence[Any]], batch: Sequence[Any]) -> Sequence[Any]:
        try:
            answers = step(batch)
            if len(answers) != len(batch):
                raise AssertionError(f"{len(answers)} answers to {len(batch)} commands")
            return answers
        except TenureError as error:
            return [error] * len(batch)
        except BaseException as error:  # noqa: BLE001 - whatever it was, nobody must wait for ever
            bug = Bug(
                f"{type(error).__name__}: {error}",
                "the outcome is unknown: send it again with the same request id; please report this",
            )
            bug.definite = False
            bug.__cause__ = error
            return [bug] * len(batch)


class TenantBatcher:
    """A batcher's methods for one tenant of its store."""

    def __init__(self, batcher: Batcher, engine: Engine) -> None:
        self._batcher, self.engine = batcher, engine

    @property
    def waiting(self) -> int:
        return self._batcher.waiting

    def do(self, command: Command, principal: Principal = OWNER, *, caller: Hashable = None) -> Outcome:
        return self._batcher.do(command, principal, caller=caller, engine=self.engine)

    def submit(self, command: Command, principal: Principal = OWNER, *, caller: Hashable = None) -> Future[Outcome]:
        return self._batcher.submit(command, principal, caller=caller, engine=self.engine)

    async def ado(self, command: Command, principal: Principal = OWNER, *, caller: Hashable = None) -> Outcome:
        return await self._batcher.ado(command, principal, caller=caller, engine=self.engine)

    def close(self) -> None:
        """The threads are others' too: their batcher closes them."""


# --- queue entries ---

_Place = tuple[str, str]  # tenant and project


class _Turns:
    """The callers that wait for a turn, by tenant; tenants take turns too."""

    def __init__(self) -> None:
        self._tenants: OrderedDict[str, deque[Hashable]] = OrderedDict()
        self._current = ""

    def __bool__(self) -> bool:
        return bool(self._tenants)

    def append(self, tenant: str, caller: Hashable) -> None:
        found = self._tenants.get(tenant)
        if found is None:
            found = self._tenants[tenant] = deque()
        found.append(caller)

    def next(self) -> deque[Hashable] | None:
        """Take out the callers of the tenant whose turn it is; `again` puts back those that are left."""
        if not self._tenants:
            return None
        self._current, callers = self._tenants.popitem(last=False)
        return callers

    def again(self, callers: deque[Hashable]) -> None:
        self._tenants[self._current] = callers


def _turn(place: _Entry) -> int:
    return _ORDER.get(type(place.asked.item.command), 2)


class _Entry:
    """One waiting command, and how its caller gets the answer."""

    __slots__ = ("answer", "asked", "caller", "engine", "rounds", "size", "slots", "tenant", "where")
    answer: Answer

    def __init__(self, engine: Engine, ready: CheckedCommand, caller: Hashable) -> None:
        self.asked, self.engine = ready, engine
        self.tenant = engine.tenant
        self.caller = (self.tenant, caller)  # a line is of one tenant
        self.where = (self.tenant, ready.item.command.project)
        self.rounds = 0
        self.size = len(ready.item.encoded)
        self.slots = _slots(ready.item.command)

    def begin(self) -> None:
        """A batch has it."""

    def deliver(self) -> None:
        raise NotImplementedError


class _Blocked(_Entry):
    """A waiting thread: it blocks on a lock that the answer releases."""

    __slots__ = ("answered",)

    def __init__(self, engine: Engine, ready: CheckedCommand, caller: Hashable) -> None:
        super().__init__(engine, ready, caller)
        self.answered = threading.Lock()
        self.answered.acquire()

    def deliver(self) -> None:
        self.answered.release()


class _Promised(_Entry):
    __slots__ = ("future",)

    def __init__(self, engine: Engine, ready: CheckedCommand, caller: Hashable, drop: Callable[[_Entry], bool]) -> None:
        super().__init__(engine, ready, caller)
        self.future = _Promise(lambda: drop(self))

    def begin(self) -> None:
        if self.future.running():  # it was left out once
            return
        with suppress(RuntimeError):  # its result was set elsewhere: that must not end the worker
            self.future.set_running_or_notify_cancel()

    def deliver(self) -> None:
        self.future.forget_place()
        if isinstance(self.answer, TenureError):
            self.future.set_exception(self.answer)
        else:
            self.future.set_result(self.answer)


class _Promise(Future[Outcome]):
    def __init__(self, drop: Callable[[], bool]) -> None:
        super().__init__()
        self._drop: Callable[[], bool] | None = drop

    def cancel(self) -> bool:
        if self.running():  # a batch had it and left it out
            return False
        return super().cancel() if self._drop is not None and self._drop() else self.cancelled()

    def forget_place(self) -> None:
        """Break the reference cycle, which only the cycle collector would find."""
        self._drop = None


class _Awaited(_Entry):
    """A waiting task of an event loop. The loop is woken once for all its tasks in a batch: see `_deliver`."""

    __slots__ = ("future", "loop")

    def __init__(
        self, engine: Engine, ready: CheckedCommand, caller: Hashable, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__(engine, ready, caller)
        self.loop = loop
        self.future: asyncio.Future[None] = loop.create_future()

    def deliver(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


def _deliver(batch: Sequence[_Entry], answers: Sequence[Answer]) -> None:
    """Give every caller its answer. A failing delivery does not affect the others."""
    loops: dict[asyncio.AbstractEventLoop, list[_Entry]] = {}
    raised: set[int] = set()
    for place, answer in zip(batch, answers, strict=True):
        place.answer = answer
        if isinstance(answer, TenureError):
            if id(answer) in raised:  # one exception raised in two threads would collect both tracebacks
                place.answer = copy(answer)
                place.answer.__cause__ = answer.__cause__
            raised.add(id(answer))
        if isinstance(place, _Awaited):
            loops.setdefault(place.loop, []).append(place)
        else:
            with suppress(BaseException):  # a callback that would end this thread
                place.deliver()
    for loop, places in loops.items():
        with suppress(RuntimeError):  # the loop was closed
            loop.call_soon_threadsafe(_deliver_in_loop, places)


def _deliver_in_loop(places: Sequence[_Entry]) -> None:
    for place in places:
        place.deliver()


def _outcome(answer: Answer) -> Outcome:
    if isinstance(answer, TenureError):
        raise answer
    return answer


def _slots(command: Command) -> int:
    """How many tasks it may claim or create."""
    if isinstance(command, commands.ClaimNext):
        return max(1, command.n)
    return max(1, len(command.tasks)) if isinstance(command, (commands.AddMany, commands.Plan, commands.Spawn)) else 1


def _this_thread() -> Hashable:
    return threading.get_ident()
