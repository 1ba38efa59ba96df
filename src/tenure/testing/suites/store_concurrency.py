"""Several threads and several processes at once: no write is lost, none is seen half done."""

from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path
from typing import Any

from tenure.core.errors import Conflict
from tenure.core.records import Agent, Task, replace
from tenure.stores.port import PROCESSES, SNAPSHOTS, WAKE_UPS, WRITERS, Change, Store
from tenure.testing.clock import FakeClock
from tenure.testing.samples import event_of, row_of
from tenure.testing.suites.store_setting import Setting, add, logged, needs, stored, write

THREADS = 6
PROCESSES_AT_ONCE = 4
ROUNDS = 25


def write_a_line(store: Store, who: int, number: int) -> None:
    """Raise the shared counter, take the next ready task, and say so in the log: one transaction."""
    with store.begin("local", write=True) as transaction:
        (counter,) = transaction.load(Agent, [("p", "counter")])
        raised = replace(counter, troubles=counter.troubles + 1)
        (head,) = transaction.ready("p", "L")
        (task,) = transaction.load(Task, [("p", head.id)])
        taken = replace(task, lane=None, agent=str(who), version=task.version + 1)
        transaction.save([Change(counter, raised), Change(task, taken)])
        transaction.append([event_of(id=f"{who}-{number}", task=task.id, version=1, time=transaction.now)])


def prepare(store: Store, writers: int) -> None:
    add(store, row_of(Agent, project="p", id="counter", troubles=0))
    add(store, *[row_of(Task, project="p", id=f"t{n:04d}", ref=str(n), lane="L") for n in range(writers * ROUNDS)])


def assert_nothing_is_lost(store: Store, writers: int) -> None:
    lines = {f"{who}-{number}" for who in range(writers) for number in range(ROUNDS)}
    log = logged(store)
    assert {e.id for e in log} == lines
    assert len(log) == len(lines)
    assert {e.task for e in log} == {f"t{n:04d}" for n in range(len(lines))}
    assert stored(store, Agent)["p", "counter"].troubles == len(lines)
    by_task = {e.task: e.id.partition("-")[0] for e in log}
    assert {t.id: t.agent for t in stored(store, Task).values()} == by_task
    times = [e.time for e in log]
    assert times == sorted(times)


class Concurrency(Setting):
    def test_no_write_of_several_threads_is_lost(self, store: Store) -> None:
        prepare(store, THREADS)
        start = threading.Barrier(THREADS)
        errors: list[BaseException] = []

        def run(who: int) -> None:
            try:
                start.wait(30)
                for number in range(ROUNDS):
                    write_a_line(store, who, number)
            except BaseException as error:  # noqa: BLE001 - shown below, in the test's own thread
                errors.append(error)

        threads = [threading.Thread(target=run, args=(who,)) for who in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert errors == []
        assert_nothing_is_lost(store, THREADS)

    def test_no_write_of_several_processes_is_lost(self, store: Store, tmp_path: Path) -> None:
        needs(store, PROCESSES)
        prepare(store, PROCESSES_AT_ONCE)
        context = multiprocessing.get_context("spawn")
        arguments = [(type(self), tmp_path, who) for who in range(PROCESSES_AT_ONCE)]
        with context.Pool(PROCESSES_AT_ONCE) as pool:
            assert pool.starmap(_write_lines, arguments, chunksize=1) == [None] * PROCESSES_AT_ONCE
        assert_nothing_is_lost(store, PROCESSES_AT_ONCE)

    def test_a_commit_of_another_process_wakes_who_waits(self, store: Store, tmp_path: Path) -> None:
        needs(store, WAKE_UPS)
        prepare(store, 1)
        mark = store.mark("local")
        process = multiprocessing.get_context("spawn").Process(target=_write_lines, args=(type(self), tmp_path, 0))
        process.start()
        assert store.wait({"local": mark}, 60) == {"local"}
        process.join(60)
        assert process.exitcode == 0

    def test_writers_in_different_projects_do_not_wait_for_each_other(self, store: Store) -> None:
        needs(store, WRITERS)
        add(store, *(row_of(Agent, project=project, id="bo", troubles=0) for project in ("p", "q")))
        errors: list[BaseException] = []

        def change(project: str) -> None:
            try:
                with store.begin("local", write=True) as transaction:
                    (found,) = transaction.load(Agent, [(project, "bo")])
                    transaction.save([Change(found, replace(found, troubles=1))])
            except BaseException as error:  # noqa: BLE001 - shown below, in the test's own thread
                errors.append(error)

        thread = threading.Thread(target=change, args=("q",))
        with store.begin("local", write=True) as transaction:
            (found,) = transaction.load(Agent, [("p", "bo")])
            transaction.save([Change(found, replace(found, troubles=1))])
            thread.start()
            thread.join(30)
            assert not thread.is_alive(), "the second waited for the first"
        assert errors == []
        assert {row.troubles for row in stored(store, Agent).values()} == {1}

    def test_a_reader_sees_one_moment(self, store: Store) -> None:
        """Every commit keeps two rows equal; a reader that meets them unequal saw half of one."""
        left, right = (row_of(Agent, project="p", id=name, troubles=0) for name in ("left", "right"))
        add(store, left, right)
        finished = threading.Event()
        pairs: list[tuple[int, int]] = []

        def read() -> None:
            while not finished.is_set():
                try:
                    with store.begin("local", write=False) as transaction:
                        (one,) = transaction.load(Agent, [("p", "left")])
                        (two,) = transaction.load(Agent, [("p", "right")])
                except Conflict:
                    assert SNAPSHOTS not in store.features, "only a store without snapshots may refuse a read"
                    continue
                pairs.append((one.troubles, two.troubles))

        readers = [threading.Thread(target=read) for _ in range(4)]
        for thread in readers:
            thread.start()
        for number in range(1, 60):
            raised = (replace(left, troubles=number), replace(right, troubles=number))
            with store.begin("local", write=True) as transaction:
                transaction.save([Change(left, raised[0])])
                transaction.save([Change(right, raised[1])])
            left, right = raised
        finished.set()
        for thread in readers:
            thread.join(30)
        assert pairs
        assert {one - two for one, two in pairs} == {0}

    def test_a_write_transaction_sees_no_others_changes_after_it_began(self, store: Store) -> None:
        row = row_of(Agent, project="p", id="bo", troubles=0)
        add(store, row)
        trying = threading.Event()

        def interfere() -> None:
            trying.set()
            with store.begin("local", write=True) as transaction:
                (found,) = transaction.load(Agent, [("p", "bo")])
                transaction.save([Change(found, replace(found, troubles=found.troubles + 10))])

        thread = threading.Thread(target=interfere)
        with store.begin("local", write=True) as transaction:
            (mine,) = transaction.load(Agent, [("p", "bo")])
            thread.start()
            assert trying.wait(30)
            for _ in range(50):
                assert transaction.find(Agent, {"project": "p"}) == [mine]
            transaction.save([Change(mine, replace(mine, troubles=1))])
        thread.join(30)
        assert stored(store, Agent)["p", "bo"].troubles == 11

    def test_writers_and_readers_may_come_and_go_in_any_order(self, store: Store) -> None:
        done: list[int] = []

        def mixed(who: int) -> None:
            for number in range(20):
                write(store, Change(None, row_of(Agent, project="p", id=f"{who}-{number}")), events=[event_of()])
                assert f"{who}-{number}" in {key[1] for key in stored(store, Agent)}
            done.append(who)

        threads = [threading.Thread(target=mixed, args=(who,)) for who in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert sorted(done) == list(range(5))
        assert len(stored(store, Agent)) == len(logged(store)) == 100


def _write_lines(suite: type[Any], folder: Path, who: int) -> None:
    """In a process of its own: what the suite needs to open the store again must be importable."""
    store: Store = suite().open_store(folder, FakeClock())
    for number in range(ROUNDS):
        write_a_line(store, who, number)
    store.close()
