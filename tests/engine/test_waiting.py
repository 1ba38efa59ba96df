"""Waiting for work: woken by an event, by the next due time, by a poll; never spinning, never for ever."""

import threading
from collections.abc import Callable

from tenure.core.commands import ClaimNext
from tenure.core.outcomes import Outcome
from tenure.core.records import Task, replace
from tenure.engine.runtime.work_wait import POLL_WITHOUT, claim_next_or_wait
from tenure.stores.memory import Memory
from tenure.testing import FakeClock
from tenure.testing.factories import PROJECT, Scene


class Room:
    """A scene whose waits move its clock instead of sleeping, and let something happen meanwhile."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.waits: list[float] = []
        self.meanwhile: list[Callable[[], object]] = []
        store = Memory(clock=self.clock, monotonic=self.monotonic, pause=self.pause)
        self.scene = Scene(store, self.clock)
        self.scene.next("ann")  # known from now on: its own first sign of life would wake it

    def monotonic(self) -> float:
        return self.clock.now / 1e6

    def pause(self, condition: threading.Condition, left: float) -> None:
        self.waits.append(left)
        condition.release()
        try:
            if self.meanwhile:
                self.clock.advance(seconds=min(1.0, left))
                self.meanwhile.pop(0)()
            else:
                self.clock.advance(seconds=left)
        finally:
            condition.acquire()

    def wait(self, timeout: float = 60.0) -> Outcome:
        command = ClaimNext(project=PROJECT, agent="ann", session="s-ann")
        return claim_next_or_wait(self.scene.engine, command, timeout, self.monotonic)


def test_what_is_there_is_taken_at_once() -> None:
    room = Room()
    room.scene.add()
    assert room.wait().outcome == "GRANTED"
    assert room.waits == []


def test_a_waiter_wakes_by_what_is_written() -> None:
    room = Room()
    room.meanwhile.append(lambda: room.scene.add("at last"))
    granted = room.wait()
    assert granted.outcome == "GRANTED"
    assert room.waits == [POLL_WITHOUT]


def test_a_waiter_wakes_when_a_lease_ends() -> None:
    room = Room()
    key = room.scene.add()
    room.scene.take(key, "bo", lease=3)
    began = room.clock.now
    granted = room.wait()
    assert (granted.outcome, granted.generation) == ("GRANTED", 2)
    assert room.clock.now == began + 3_000_000


def test_a_waiter_wakes_when_a_delay_is_over() -> None:
    room = Room()
    room.scene.add(not_before=room.clock.now + 2_000_000)
    assert room.wait().outcome == "GRANTED"
    assert room.waits == [2.0]


def test_a_waiter_looks_again_by_itself() -> None:
    room = Room()
    room.scene.add(constraints={"required_capabilities": ["gpu"]})
    assert room.wait(timeout=12).outcome == "NO_TASK"
    assert room.waits == [5.0, 5.0, 2.0]


def test_a_waiter_without_time_asks_once() -> None:
    room = Room()
    assert room.wait(timeout=0).outcome == "NO_TASK"
    assert room.waits == []


def test_a_row_that_cannot_be_settled_does_not_make_waiters_spin() -> None:
    room = Room()
    key = room.scene.add()
    room.scene.take(key, "bo", lease=3)
    room.scene.put(room.scene.last_claim(key), None)
    task: Task = room.scene.stored(Task, room.scene.rows(Task)[0].id)
    room.scene.put(task, replace(task, due_at=room.clock.now - 1, lease_until=room.clock.now - 1))
    assert room.wait(timeout=2).outcome == "NO_TASK"
    assert len(room.waits) <= 40
