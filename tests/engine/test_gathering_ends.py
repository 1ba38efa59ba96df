"""The batcher when callers go away, when it closes, and when something breaks: nobody waits for ever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import CancelledError
from typing import Any

import pytest

from tenure.core.errors import Bug, StoreUnavailable
from tenure.testing.factories import code_of
from tests.engine.gathering_ground import Crowd, Room, add, stored, titles, until


@pytest.fixture
def room() -> Iterator[Room]:
    room = Room()
    yield room
    room.end()


# --- going away ---


def test_a_promise_can_be_cancelled_until_a_batch_has_it(room: Room) -> None:
    room.blocked()
    waiting = [room.batcher.submit(add(f"t{n}"), caller="one") for n in range(3)]
    assert waiting[1].cancel()
    assert waiting[1].cancel(), "as often as one likes"
    assert room.batcher.waiting == 2
    room.engine.let()
    assert titles(room.engine.next_batch()) == ["t0", "t2"]
    assert not waiting[0].cancel()
    assert waiting[0].running()
    room.engine.let_all()
    assert [p.result(30).outcome for p in (waiting[0], waiting[2])] == ["CREATED"] * 2
    assert not waiting[0].cancel()
    with pytest.raises(CancelledError):
        waiting[1].result(0)
    assert stored(room.store) == ["first", "t0", "t2"]


def test_an_interrupted_wait_takes_its_command_back(room: Room) -> None:
    room.blocked()

    def interrupt(_: int) -> None:
        until(lambda: room.batcher.waiting == 1)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever was here before may take it otherwise
    try:
        crowd = Crowd(1, interrupt)
        with pytest.raises(KeyboardInterrupt):
            room.batcher.do(add("never"))
        crowd.ended()
    finally:
        signal.signal(signal.SIGINT, before)
    assert room.batcher.waiting == 0
    room.end()
    assert stored(room.store) == ["first"]


def test_closing_runs_what_waits_and_takes_nothing_more(room: Room) -> None:
    room.blocked()
    crowd = Crowd(8, lambda n: room.batcher.do(add(f"t{n}")))
    until(lambda: room.batcher.waiting == 8)
    closing = Crowd(4, lambda _: room.batcher.close())

    def is_refused() -> bool:
        try:
            room.batcher.submit(add("late"), caller="late").cancel()
        except StoreUnavailable:
            return True
        return False

    until(is_refused)
    room.engine.let_all()
    assert {o.outcome for o in crowd.ended().values()} == {"CREATED"}
    assert set(closing.ended().values()) == {None}
    with pytest.raises(StoreUnavailable, match="closed") as caught:
        room.batcher.do(add("late"))
    assert caught.value.definite


def test_closing_without_draining_refuses_what_waits(room: Room) -> None:
    room.blocked()
    crowd = Crowd(8, lambda n: room.batcher.do(add(f"t{n}")))
    until(lambda: room.batcher.waiting == 8)
    room.batcher.submit(add("behind the first"), caller="first")
    closing = Crowd(1, lambda _: room.batcher.close(drain=False))
    refused = crowd.ended().values()  # while the first is still in flight
    assert {code_of(e) for e in refused} == {"STORE_UNAVAILABLE"}
    room.engine.let_all()
    closing.ended()
    assert stored(room.store) == ["first"]
    assert room.batcher.waiting == 0


@pytest.mark.parametrize("drain", [True, False])
def test_nobody_hangs_when_it_closes_under_load(drain: bool) -> None:
    room = Room(in_flight=2)
    room.engine.let_all()
    made: list[str] = []

    def work(number: int) -> str:
        for n in range(10_000):
            title = f"t{number}x{n}"
            try:
                room.batcher.do(add(title))
            except StoreUnavailable:
                return title
            made.append(title)
        return ""

    crowd = Crowd(16, work)
    until(lambda: len(made) > 100)
    room.batcher.close(drain=drain)
    refused = set(crowd.ended().values())
    assert "" not in refused
    assert len(refused) == 16
    assert set(stored(room.store)) == set(made), "refused means not done, answered means done"


# --- what must not happen, and does ---


@pytest.mark.parametrize("fault", [RuntimeError("boom"), SystemExit(3), MemoryError()])
def test_an_unexpected_fault_reaches_its_callers_and_the_worker_goes_on(room: Room, fault: BaseException) -> None:
    room.blocked()
    room.engine.let()
    until(lambda: room.engine.batches)
    room.engine.fault = fault
    crowd = Crowd(3, lambda n: room.batcher.do(add(f"t{n}"), caller="one"))
    until(lambda: room.engine.began.qsize() + room.batcher.waiting >= 1)
    room.engine.let_all()
    answers = list(crowd.ended().values())
    bugs = [a for a in answers if isinstance(a, Bug)]
    assert bugs
    for bug in bugs:
        assert type(fault).__name__ in bug.message
        assert not bug.definite, "nobody knows how far it came"
        assert bug.__cause__ is fault
    assert {code_of(a) for a in answers} <= {"BUG", "CREATED"}
    assert room.batcher.do(add("after")).outcome == "CREATED"


def test_a_callback_may_ask_and_may_fail(room: Room) -> None:
    room.blocked()
    got: list[Any] = []

    def ask_more(_: object) -> None:
        got.append(room.batcher.do(add("from the callback")).outcome)
        raise SystemExit

    room.batcher.submit(add("one"), caller="one").add_done_callback(ask_more)
    room.engine.let_all()
    until(lambda: got)
    assert got == ["CREATED"]
    assert room.batcher.do(add("after")).outcome == "CREATED"


def test_a_callback_may_close_the_batcher(room: Room) -> None:
    room.blocked()
    promise = room.batcher.submit(add("one"), caller="one")
    promise.add_done_callback(lambda _: room.batcher.close())
    crowd = Crowd(4, lambda n: room.batcher.do(add(f"t{n}")))
    until(lambda: room.batcher.waiting == 5)
    room.engine.let_all()
    assert {o.outcome for o in crowd.ended().values()} == {"CREATED"}
    with pytest.raises(StoreUnavailable):
        room.batcher.do(add("late"))


def test_a_result_that_somebody_else_has_set_does_not_end_the_worker(room: Room) -> None:
    room.blocked()
    promise = room.batcher.submit(add("one"), caller="one")
    promise.set_result(room.batcher)  # type: ignore[arg-type]  # as wrong as can be
    room.engine.let_all()
    assert room.batcher.do(add("after")).outcome == "CREATED"


def test_a_forked_child_is_refused_instead_of_waiting_for_workers_it_has_not_got() -> None:
    script = """
import os, warnings
warnings.simplefilter("ignore")  # newer Pythons warn of the very fork that is tried here
from tenure.core.errors import StoreUnavailable
from tenure.engine.runtime.batcher import Batcher
from tests.engine.gathering_ground import Held, add, memory
batcher = Batcher(Held(memory()))
child = os.fork()
if child == 0:
    try:
        batcher.do(add("x"))
    except StoreUnavailable as error:
        batcher.close()
        os._exit(0 if "forked" in error.message else 2)
    os._exit(1)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", script], env=path, timeout=60, check=False).returncode == 0


def test_a_program_that_forgets_to_close_ends_all_the_same() -> None:
    script = """
from tenure.engine.runtime.batcher import Batcher
from tests.engine.gathering_ground import Held, add, memory
engine = Held(memory())
engine.let_all()
assert Batcher(engine).do(add("x")).outcome == "CREATED"
"""
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", script], env=path, timeout=60, check=False).returncode == 0
