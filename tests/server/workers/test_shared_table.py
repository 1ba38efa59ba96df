"""Memory that processes share: counted once, whoever counts."""

from __future__ import annotations

import os
import select
import signal
from collections import Counter

import pytest

from tenure.core.errors import RateLimited
from tenure.server.workers.shared_table import PLACES, SharedMemory, SharedTable

PROCESSES = 4


def in_processes(work: object, count: int = PROCESSES) -> list[bytes]:
    """What each of so many forked processes returns."""
    assert callable(work)
    pipes = []
    for _ in range(count):
        reads, writes = os.pipe()
        if os.fork() == 0:
            try:
                os.write(writes, work())
            finally:
                os._exit(0)
        os.close(writes)
        pipes.append(reads)
    told = [os.read(reads, 65536) for reads in pipes]
    for reads in pipes:
        os.close(reads)
        os.wait()
    return told


def test_no_token_is_given_twice_to_processes_that_race() -> None:
    buckets = SharedMemory().buckets("x", 0.0001, 500.0, lambda: 100.0)

    def take() -> bytes:
        got = 0
        for _ in range(300):
            try:
                buckets.take("ann")
                got += 1
            except RateLimited:
                pass
        return b"%d" % got

    assert sum(map(int, in_processes(take))) == 500


def test_a_process_waits_for_the_one_that_has_the_entry() -> None:
    table = SharedTable(PLACES)
    reads, writes = os.pipe()
    with table.locked("ann") as entry:
        child = os.fork()
        if child == 0:
            with table.locked("ann") as theirs:
                os.write(writes, b"%d" % (theirs.get() or (0,))[0])
            os._exit(0)
        assert select.select([reads], [], [], 0.2)[0] == []
        entry.put(7.0, 1.0)
    assert os.read(reads, 10) == b"7"
    os.waitpid(child, 0)
    os.close(reads)
    os.close(writes)


def test_buckets_fill_with_time_and_callers_and_kinds_are_apart() -> None:
    now = [100.0]
    memory = SharedMemory()
    buckets, others = (memory.buckets(kind, 2.0, 3.0, lambda: now[0]) for kind in ("x", "y"))
    for _ in range(3):
        buckets.take("ann")
    with pytest.raises(RateLimited):
        buckets.take("ann")
    assert buckets.wait_of("ann") == pytest.approx(0.5)
    assert buckets.wait_of("bo") == others.wait_of("ann") == 0.0
    now[0] += 0.5
    buckets.take("ann")
    with pytest.raises(RateLimited):
        buckets.take("ann")


def test_a_rate_of_zero_limits_nothing() -> None:
    buckets = SharedMemory().buckets("x", 0.0, 0.0, lambda: 0.0)
    buckets.take("ann")
    assert buckets.wait_of("ann") == 0.0


def test_a_process_that_dies_with_a_lock_leaves_it_free() -> None:
    table = SharedTable(PLACES)
    child = os.fork()
    if child == 0:
        with table.locked("ann") as entry:
            entry.put(1.0, 1.0)
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    with table.locked("ann") as entry:
        assert entry.get() == (1.0, 1.0)


def test_the_oldest_name_makes_room_for_a_new_one() -> None:
    table = SharedTable(PLACES)
    for number in range(PLACES + 1):
        with table.locked(f"name {number}") as entry:
            entry.put(number, 10.0 + number)
    found = Counter()
    for number in range(PLACES + 1):
        with table.locked(f"name {number}") as entry:
            found[number] = 0 if entry.get() is None else 1
    assert [number for number, there in found.items() if not there] == [0]


def test_a_session_begins_and_ends_for_all() -> None:
    now = [100.0]
    sessions = SharedMemory().sessions(lambda: now[0])
    in_processes(lambda: sessions.begin("one", 10.0) or b"x", 1)
    assert sessions.is_open("one")
    assert not sessions.is_open("two")
    now[0] += 10
    assert not sessions.is_open("one")
    sessions.begin("one", 10.0)
    assert in_processes(lambda: b"%d" % sessions.end("one"), 1) == [b"1"]
    assert not sessions.is_open("one")
    assert not sessions.end("one")
