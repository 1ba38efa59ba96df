"""Threads that wait for commits of other processes share one poll."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.core.errors import StoreUnavailable
from tenure.stores.sqlite.commit_watch import POLL, SLOW_POLL
from tenure.stores.sqlite.store import Sqlite
from tests.stores.test_sqlite_writing import event_of, write

WAITERS = 4
PATIENCE = 20.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


class Watched:
    """A store whose pauses are seen: how many threads poll at once, and how many wait in all."""

    def __init__(self, path: Path) -> None:
        self.polling: list[int] = []  # at the beginning of each poll's pause
        self._polls = 0
        self.resting = threading.Semaphore(0)  # released for each thread that waits without polling
        self.may_poll = threading.Event()  # until then the one that polls stays in its pause
        self.may_poll.set()
        self.store = Sqlite(str(path), pause=self._pause)

    def _pause(self, condition: threading.Condition, seconds: float) -> None:
        if seconds > SLOW_POLL:
            self.resting.release()
            condition.wait(seconds)
            return
        self._polls += 1  # under the condition's lock
        self.polling.append(self._polls)
        condition.wait(seconds)
        while not self.may_poll.is_set():
            condition.wait(seconds)
        self._polls -= 1


@pytest.fixture
def watched(path: Path) -> Iterator[Watched]:
    other = Sqlite(str(path))
    made = Watched(path)
    yield made
    made.store.close()
    other.close()


def waiting(store: Sqlite, seconds: float, found: list[frozenset[str]]) -> threading.Thread:
    thread = threading.Thread(target=lambda: found.append(store.wait({"local": 0}, seconds)), daemon=True)
    thread.start()
    return thread


def test_one_of_many_waiting_threads_polls_and_wakes_all(watched: Watched, path: Path) -> None:
    found: list[frozenset[str]] = []
    threads = [waiting(watched.store, PATIENCE, found) for _ in range(WAITERS)]
    for _ in range(WAITERS - 1):
        assert watched.resting.acquire(timeout=PATIENCE)
    began = time.monotonic()
    write(Sqlite(str(path)), events=[event_of()])
    for thread in threads:
        thread.join(PATIENCE)
    assert found == [{"local"}] * WAITERS
    assert time.monotonic() - began < PATIENCE / 2
    assert set(watched.polling) == {1}


def test_another_thread_polls_on_where_the_one_that_polled_leaves(watched: Watched, path: Path) -> None:
    early: list[frozenset[str]] = []
    late: list[frozenset[str]] = []
    watched.may_poll.clear()
    first = waiting(watched.store, 15 * POLL, early)
    while not watched.polling and first.is_alive():
        os.sched_yield()
    others = [waiting(watched.store, PATIENCE, late) for _ in range(WAITERS)]
    for _ in range(WAITERS):
        assert watched.resting.acquire(timeout=PATIENCE)
    watched.may_poll.set()
    first.join(PATIENCE)
    assert early == [frozenset()]
    began = time.monotonic()
    write(Sqlite(str(path)), events=[event_of()])
    for thread in others:
        thread.join(PATIENCE)
    assert late == [{"local"}] * WAITERS
    assert time.monotonic() - began < PATIENCE / 2


def test_a_commit_of_this_process_wakes_those_that_do_not_poll(watched: Watched) -> None:
    found: list[frozenset[str]] = []
    threads = [waiting(watched.store, PATIENCE, found) for _ in range(WAITERS)]
    for _ in range(WAITERS - 1):
        assert watched.resting.acquire(timeout=PATIENCE)
    write(watched.store, events=[event_of()])
    for thread in threads:
        thread.join(PATIENCE)
    assert found == [{"local"}] * WAITERS


def test_a_waiting_thread_hears_that_the_file_was_moved(path: Path, tmp_path: Path) -> None:
    moved = threading.Event()

    def pause(condition: threading.Condition, seconds: float) -> None:
        if not moved.is_set():
            moved.set()
            path.rename(tmp_path / "elsewhere.db")
        condition.wait(seconds)

    store = Sqlite(str(path), pause=pause)
    with pytest.raises(StoreUnavailable, match=r"moved|removed|replaced"):
        store.wait({"local": 0}, PATIENCE)
    assert moved.is_set()
