"""What tests of the batcher stand on: an engine that can be held, and waiting without sleeping."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from tenure.core import commands as c
from tenure.core.commands import Command, NewTask
from tenure.core.records import Task
from tenure.engine import Engine
from tenure.engine.runtime.batcher import Batcher
from tenure.engine.runtime.engine import CheckedCommand
from tenure.engine.runtime.unit_of_work import Reply
from tenure.stores.memory import Memory
from tenure.testing import FakeClock
from tenure.testing.factories import PROJECT, Dice

OTHER = "other"
PATIENCE = 30.0


class Held(Engine):
    """A real engine that begins a batch only when it is let, and remembers them in the order of their commits."""

    def __init__(self, store: Any) -> None:
        super().__init__(store, Dice())
        self.began: queue.Queue[list[Command]] = queue.Queue()  # batches that stand at the gate, or have passed it
        self.batches: list[list[Command]] = []
        self.fault: BaseException | None = None  # raised once instead of running the next batch
        self._gate = threading.Semaphore(0)
        self._is_open = False
        self._turn = threading.Lock()

    def commit_checked(self, batch: Sequence[CheckedCommand], callers: Sequence[Hashable]) -> list[Reply]:
        asked = [a.item.command for a in batch]
        self.began.put(asked)
        if not self._is_open:
            assert self._gate.acquire(timeout=PATIENCE), "the test never let the batch begin"
        with self._turn:
            fault, self.fault = self.fault, None
            if fault is not None:
                raise fault
            answers = super().commit_checked(batch, callers)
            self.batches.append(asked)
        return answers

    def let(self, batches: int = 1) -> None:
        self._gate.release(batches)

    def hold(self) -> None:
        """Take back what was let and not used."""
        while self._gate.acquire(blocking=False):
            pass

    def let_all(self) -> None:
        self._is_open = True
        self._gate.release(1000)

    def next_batch(self) -> list[Command]:
        """The next batch that a worker has taken, once it has."""
        return self.began.get(timeout=PATIENCE)


def memory() -> Memory:
    """A store with the projects in it."""
    store = Memory(clock=FakeClock())
    for project in (PROJECT, OTHER):
        Engine(store, Dice()).do(c.DefineProject(project=project))
    return store


def add(title: str, project: str = PROJECT, **fields: Any) -> c.Add:
    return c.Add(project=project, task=NewTask(title=title), **fields)


def titles(batch: Sequence[Any]) -> list[str]:
    return [command.task.title for command in batch]


def stored(store: Any) -> list[str]:
    """The keys of all tasks, without their numbers, in the order in which they were made."""
    with store.begin("local", write=False) as tx:
        tasks = sorted(tx.find(Task, {"project": PROJECT}), key=lambda t: t.sequence)
    return [task.key.split("-", 2)[2] for task in tasks]


def until(condition: Callable[[], object]) -> None:
    give_up = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < give_up, "it never came to that"
        threading.Event().wait(0.001)


class Crowd:
    """Threads that each do something; what they got, by their number."""

    def __init__(self, count: int, action: Callable[[int], Any]) -> None:
        self.got: dict[int, Any] = {}
        self._action = action
        self._threads = [threading.Thread(target=self._run, args=(n,), daemon=True) for n in range(count)]
        for thread in self._threads:
            thread.start()

    def _run(self, number: int) -> None:
        try:
            self.got[number] = self._action(number)
        except BaseException as error:  # noqa: BLE001 - told to the test
            self.got[number] = error

    def ended(self) -> dict[int, Any]:
        """What each got; fails where one never came back."""
        for thread in self._threads:
            thread.join(PATIENCE)
        assert not any(thread.is_alive() for thread in self._threads), "somebody still waits"
        return self.got


class Room:
    """A held engine and its batcher; `blocked` keeps a first batch in flight, so that what follows waits."""

    def __init__(self, store: Any = None, **options: Any) -> None:
        self.store = store or memory()
        self.engine = Held(self.store)
        self.batcher = Batcher(self.engine, **options)

    def blocked(self) -> None:
        self.batcher.submit(add("first"), caller="first")
        assert titles(self.engine.next_batch()) == ["first"]

    def end(self) -> None:
        self.engine.let_all()
        self.batcher.close()
