"""Who waits for whom on a MariaDB server: turns, epochs, and the order of the log."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tenure.core.errors import Conflict
from tenure.core.records import Agent
from tenure.stores.mariadb import Mariadb
from tenure.stores.port import Change
from tenure.testing.samples import event_of, row_of
from tenure.testing.suites.store_setting import add, logged, stored, write
from tests.servers.mariadb import MariadbServer
from tests.stores.mariadb_setting import WAITING, agent, in_thread, kill_all, on_server, until


@pytest.fixture
def store(mariadb: MariadbServer, tmp_path: Path) -> Iterator[Mariadb]:
    yield from on_server(tmp_path)


@pytest.fixture
def other(mariadb: MariadbServer, tmp_path: Path) -> Iterator[Mariadb]:
    """Another process's, as far as the server can tell."""
    yield from on_server(tmp_path)


@pytest.fixture
def impatient(mariadb: MariadbServer, tmp_path: Path) -> Iterator[Mariadb]:
    yield from on_server(tmp_path, patience=1)


# --- locks -----------------------------------------------------------------------------------------------------


def test_writers_of_one_project_wait_and_of_two_do_not(store: Mariadb, other: Mariadb) -> None:
    with store.begin("local", write=True) as mine:
        mine.lock("write", ["p"])
        assert mine.now  # the first question takes it
        with other.begin("local", write=True) as theirs:
            theirs.save([Change(None, row_of(Agent, project="q", id="bo"))])
        thread, answers = in_thread(lambda: add(other, agent("late")))
        mine.save([Change(None, agent("early"))])
        assert mine.find(Agent, {"project": "p"}) == [agent("early")]
        assert answers == []
    thread.join(30)
    assert answers == [None]
    assert set(stored(store, Agent)) == {("p", "early"), ("p", "late"), ("q", "bo")}


def test_a_turn_that_does_not_come_is_a_conflict(store: Mariadb, impatient: Mariadb) -> None:
    with store.begin("local", write=True) as mine:
        mine.lock("write", ["p"])
        assert mine.now
        with pytest.raises(Conflict):
            add(impatient, agent())
    add(impatient, agent())


def test_now_is_read_after_the_turn_was_waited_for(mariadb: MariadbServer, store: Mariadb, other: Mariadb) -> None:
    times: list[int] = []

    def late() -> None:
        with other.begin("local", write=True) as transaction:
            transaction.lock("write", ["p"])
            times.append(transaction.now)

    with store.begin("local", write=True) as mine:
        mine.lock("write", ["p"])
        assert mine.now
        thread, answers = in_thread(late)
        until(lambda: mariadb.ask(WAITING) == ((1,),))
        end = time.time_ns() // 1000
    thread.join(30)
    assert answers == [None]
    assert times[0] >= end


def test_turns_of_several_projects_are_taken_in_one_order(
    mariadb: MariadbServer, store: Mariadb, other: Mariadb
) -> None:
    deadlocks = "SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'"
    names = [f"project-{n}" for n in range(6)]
    with store.begin("local", write=True) as transaction:  # each has its row from now on
        transaction.append([event_of(project=name) for name in names])
    before = mariadb.ask(deadlocks)

    def take(one: Mariadb, order: list[str]) -> Callable[[], int]:
        def run() -> int:
            for number in range(40):
                with one.begin("local", write=True) as transaction:
                    transaction.lock("write", order[number % 6 :] + order[: number % 6])
                    assert transaction.now
            return 40

        return run

    runs = [in_thread(take(one, order)) for one in (store, other) for order in (names, names[::-1])]
    for thread, _ in runs:
        thread.join(60)
    assert [answers for _, answers in runs] == [[40]] * 4
    assert mariadb.ask(deadlocks) == before


def test_a_deadlock_ends_one_of_the_two_with_a_conflict(store: Mariadb, other: Mariadb) -> None:
    add(store, agent(), row_of(Agent, project="q", id="bo"))
    met = threading.Barrier(2)

    def cross(one: Mariadb, first: str, second: str) -> None:
        with one.begin("local", write=True) as transaction:
            transaction.load(Agent, [(first, "bo")])
            met.wait(30)
            transaction.load(Agent, [(second, "bo")])

    runs = [in_thread(lambda: cross(store, "p", "q")), in_thread(lambda: cross(other, "q", "p"))]
    for thread, _ in runs:
        thread.join(30)
    assert sorted(type(answers[0]).__name__ for _, answers in runs) == ["Conflict", "NoneType"]


def test_a_new_epoch_waits_for_every_writer_that_has_read_the_old_one(store: Mariadb, impatient: Mariadb) -> None:
    with store.begin("local", write=True) as writer:
        assert writer.epoch
        with pytest.raises(Conflict), impatient.begin("local", write=True) as other:
            other.set_epoch("0badcafe")
    with impatient.begin("local", write=True) as other:
        other.set_epoch("0badcafe")


def test_no_writer_begins_while_a_new_epoch_is_put_in_force(store: Mariadb, impatient: Mariadb) -> None:
    with store.begin("local", write=True) as transaction:
        transaction.set_epoch("0badcafe")
        with pytest.raises(Conflict), impatient.begin("local", write=True) as writer:
            assert writer.epoch
    with impatient.begin("local", write=True) as writer:
        assert writer.epoch == "0badcafe"


# --- the log ---------------------------------------------------------------------------------------------------


def test_sequences_are_in_the_order_of_commits(mariadb: MariadbServer, store: Mariadb, other: Mariadb) -> None:
    with store.begin("local", write=True) as slow:
        slow.append([event_of(id="late", project="p")])
        assert slow.now
        write(other, events=[event_of(id="early", project="q")])
        assert [e.id for e in logged(other)] == ["early"]
    assert [e.id for e in logged(other)] == ["early", "late"]


def test_whoever_has_taken_sequences_keeps_others_from_overtaking(
    mariadb: MariadbServer, store: Mariadb, other: Mariadb
) -> None:
    with store.begin("local", write=True) as slow:
        slow.append([event_of(id="first", project="p")])
        assert [e.id for e in slow.events({})] == ["first"]  # it has its sequence by now
        thread, answers = in_thread(lambda: write(other, events=[event_of(id="second", project="q")]))
        until(lambda: mariadb.ask(WAITING) == ((1,),))
        assert logged(store) == []
    thread.join(30)
    assert answers == [None]
    assert [e.id for e in logged(other)] == ["first", "second"]


def test_a_commit_of_another_process_is_found_by_a_poll(store: Mariadb, other: Mariadb) -> None:
    write(store, events=[event_of(id="first")])
    mark = store.mark("local")
    thread, answers = in_thread(lambda: store.wait({"local": mark}, 30))
    write(other, events=[event_of(id="stranger")], tenant="other")
    write(other, events=[event_of(id="second")])
    thread.join(30)
    assert answers == [frozenset({"local"})]


def test_waiting_goes_on_after_the_connection_was_lost(mariadb: MariadbServer, store: Mariadb, other: Mariadb) -> None:
    mark = store.mark("local")
    thread, answers = in_thread(lambda: store.wait({"local": mark}, 30))
    kill_all(mariadb, store)
    write(other, events=[event_of()])
    thread.join(30)
    assert answers == [frozenset({"local"})]
