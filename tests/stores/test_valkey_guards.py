"""What keeps a store in Valkey right: versions, not turns; a fresh time; one epoch for one history."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tenure.core.errors import Conflict, SchemaMismatch
from tenure.core.records import Agent, Task, replace
from tenure.stores.port import Change
from tenure.stores.valkey import Valkey, commit, turns
from tenure.testing.clock import FakeClock
from tenure.testing.samples import event_of, row_of
from tenure.testing.suites.store_setting import add, logged, stored, write
from tests.servers.valkey import ValkeyServer, url_of

BO = ("p", "bo")


class Place:
    """A store of its own, as several processes see it, and its raw keys."""

    def __init__(self, server: ValkeyServer, folder: Path) -> None:
        self.url = url_of(folder)
        self.clock = FakeClock()
        self.raw: Any = redis.Redis.from_url(server.url())
        self.opened: list[Valkey] = []

    def open(self, **how: Any) -> Valkey:
        self.opened.append(Valkey(self.url, clock=self.clock, **how))
        return self.opened[-1]

    @property
    def space(self) -> str:
        return self.url.partition("space=")[2]

    def keys(self, pattern: str = "*") -> list[bytes]:
        return sorted(self.raw.keys(f"{{{self.space}{pattern}"))

    def end_turns(self) -> None:
        """As the server does after a while."""
        for key in self.keys(":local}:turn*"):
            self.raw.delete(key)


@pytest.fixture
def place(valkey: ValkeyServer, tmp_path: Path) -> Iterator[Place]:
    found = Place(valkey, tmp_path)
    yield found
    for store in found.opened:
        store.close()
    found.raw.close()


def raised(store: Valkey, by: int = 1) -> None:
    with store.begin("local", write=True) as tx:
        (row,) = tx.load(Agent, [BO])
        tx.save([Change(row, replace(row, troubles=row.troubles + by))])


def test_a_writer_that_lost_its_turn_meets_a_conflict(place: Place) -> None:
    mine, other = place.open(), place.open()
    add(mine, row_of(Agent, project="p", id="bo", troubles=0))

    def late() -> None:
        with mine.begin("local", write=True) as tx:
            (row,) = tx.load(Agent, [BO])
            place.end_turns()
            raised(other, 10)
            tx.save([Change(row, replace(row, troubles=1))])

    with pytest.raises(Conflict):
        late()
    assert stored(mine, Agent)[BO].troubles == 10


def test_a_writer_that_only_relied_on_absent_rows_meets_a_conflict(place: Place) -> None:
    mine, other = place.open(), place.open()
    add(mine, row_of(Agent, project="p", id="bo"))

    def late() -> None:
        with mine.begin("local", write=True) as tx:
            assert tx.find(Task, {"project": "p", "state": "ready"}) == []
            place.end_turns()
            add(other, row_of(Task, project="p", id="t", state="ready"))
            tx.save([Change(None, row_of(Agent, project="p", id="al"))])

    with pytest.raises(Conflict):
        late()
    assert set(stored(mine, Agent)) == {BO}


def test_a_writer_that_read_all_projects_meets_a_conflict_with_any_other(place: Place) -> None:
    mine, other = place.open(), place.open()
    add(mine, row_of(Agent, project="p", id="bo"))

    def late() -> None:
        with mine.begin("local", write=True) as tx:
            assert len(tx.find(Agent, {})) == 1
            tx.save([Change(None, row_of(Agent, project="p", id="al"))])
            add(other, row_of(Agent, project="q", id="new"))

    with pytest.raises(Conflict):
        late()
    assert set(stored(mine, Agent)) == {BO, ("q", "new")}


def test_a_commit_whose_time_is_out_of_date_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    store = place.open()
    add(store, row_of(Agent, project="p", id="bo", troubles=0))
    monkeypatch.setattr(commit, "OLDEST", -1)
    with pytest.raises(Conflict, match="out of date"):
        raised(store)
    monkeypatch.undo()
    raised(store)
    assert stored(store, Agent)[BO].troubles == 1


def test_a_project_that_is_new_here_may_take_its_time(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    store = place.open()
    monkeypatch.setattr(commit, "OLDEST", -1)
    add(store, row_of(Agent, project="p", id="bo", troubles=0), row_of(Agent, project="", id="bo"))
    with pytest.raises(Conflict, match="out of date"):
        raised(store)
    with pytest.raises(Conflict, match="out of date"):
        add(store, row_of(Agent, project="", id="al"))


@pytest.mark.parametrize("row", [row_of(Task, project="p", id="t"), row_of(Task, project="p", id="u", ref="x")])
def test_what_should_be_new_is_compared_at_the_commit_at_the_latest(place: Place, row: Task) -> None:
    store = place.open()
    first = row_of(Task, project="p", id="t", ref="x")
    add(store, first)

    def late() -> None:
        with store.begin("local", write=True) as tx:
            tx.save([Change(None, row)], last=True)

    with pytest.raises(Conflict):
        late()
    assert stored(store, Task) == {("p", "t"): first}
    with store.begin("local", write=True) as tx:
        tx.save([Change(first, None), Change(None, row)], last=True)
    assert stored(store, Task) == {("p", row.id): row}
    assert store.check() == []


def test_a_time_may_be_five_seconds_old_and_no_older() -> None:
    assert commit.OLDEST == 5_000_000
    assert turns.LASTS * 1000 < commit.OLDEST


def test_a_writer_of_the_former_epoch_meets_a_conflict(place: Place) -> None:
    mine, other = place.open(), place.open()
    add(mine, row_of(Agent, project="p", id="bo", troubles=0))

    def late() -> None:
        with mine.begin("local", write=True) as tx:
            (row,) = tx.load(Agent, [BO])
            with other.begin("local", write=True) as later:
                later.set_epoch("0badcafe")
            tx.save([Change(row, replace(row, troubles=1))])

    with pytest.raises(Conflict):
        late()
    assert stored(mine, Agent)[BO].troubles == 0


def test_sequences_that_were_told_hold_or_the_commit_is_refused(place: Place) -> None:
    mine, other = place.open(), place.open()
    write(mine, events=[event_of(id="first")])

    def late() -> None:
        with mine.begin("local", write=True) as tx:
            tx.append([event_of(id="mine")])
            assert [e.sequence for e in tx.events({"project": "p"})] == [1, 2]
            write(other, events=[event_of(id="others", project="q")])

    with pytest.raises(Conflict):
        late()
    assert [e.id for e in logged(mine)] == ["first", "others"]


def test_a_read_that_another_commit_has_torn_is_refused(place: Place) -> None:
    mine, other = place.open(), place.open()
    add(mine, row_of(Agent, project="p", id="bo", troubles=0))

    def torn() -> None:
        with mine.begin("local", write=False) as tx:
            tx.load(Agent, [BO])
            raised(other)
            tx.find(Agent, {"project": "p"})

    with pytest.raises(Conflict):
        torn()


def test_rows_of_two_projects_are_of_one_moment(place: Place) -> None:
    mine, other = place.open(), place.open()
    add(mine, *(row_of(Agent, project=project, id="bo", troubles=0) for project in "pq"))

    def torn() -> None:
        with mine.begin("local", write=False) as tx:
            tx.load(Agent, [BO])
            raised(other)
            tx.load(Agent, [("q", "bo")])

    with pytest.raises(Conflict):
        torn()


def test_a_first_question_of_several_steps_is_asked_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = place.open(), place.open()
    add(mine, row_of(Agent, project="p", id="bo", troubles=0))
    with mine.begin("local", write=False) as tx:
        whole, steps = tx._candidates, []

        def interrupted(*given: Any) -> Any:
            steps.append(1)
            if len(steps) == 1:
                raised(other)
            return whole(*given)

        monkeypatch.setattr(tx, "_candidates", interrupted)
        assert [row.troubles for row in tx.find(Agent, {})] == [1]
    assert len(steps) == 2


@pytest.mark.parametrize("everywhere", [False, True])
def test_a_reader_that_was_torn_three_times_takes_the_turn(place: Place, everywhere: bool) -> None:
    mine, other = place.open(), place.open(patience=0.05)
    add(mine, row_of(Agent, project="p", id="bo", troubles=0))
    where = {} if everywhere else {"project": "p"}

    def read() -> list[bytes]:
        with mine.begin("local", write=False) as tx:
            tx.find(Agent, where)
            held = place.keys(":local}:turn*")
            if not held:
                raised(other)
            tx.find(Agent, where)
            return held

    for _ in range(3):
        with pytest.raises(Conflict):
            read()
    (turn,) = read()
    assert turn.endswith(b":turn" if everywhere else b":turn:p")
    assert place.keys(":local}:turn*") == []
    assert not read_holds_a_turn(mine)


def read_holds_a_turn(store: Valkey) -> bool:
    with store.begin("local", write=False) as tx:
        tx.find(Agent, {"project": "p"})
        return tx._turn is not None


def test_a_writer_waits_for_a_reader_that_has_the_turn_of_all(place: Place) -> None:
    mine, other = place.open(), place.open()
    add(mine, row_of(Agent, project="p", id="bo", troubles=0))
    mine.tears.note((), everywhere=True)
    mine.tears.count = 3
    with mine.begin("local", write=False) as tx:
        before = tx.find(Agent, {})
        thread = threading.Thread(target=raised, args=(other,))
        thread.start()
        for _ in range(30):
            assert tx.find(Agent, {}) == before
    thread.join(30)
    assert stored(mine, Agent)[BO].troubles == 1


def test_who_has_waited_long_enough_goes_on_without_the_turn(place: Place) -> None:
    mine, other = place.open(), place.open(patience=0.02)
    add(mine, row_of(Agent, project="p", id="bo", troubles=0))

    def held() -> None:
        with mine.begin("local", write=True) as tx:
            (row,) = tx.load(Agent, [BO])
            raised(other, 5)
            tx.save([Change(row, replace(row, troubles=1))])

    with pytest.raises(Conflict):
        held()
    assert stored(mine, Agent)[BO].troubles == 5


def test_a_turn_ends_with_its_transaction(place: Place) -> None:
    store = place.open()
    add(store, row_of(Agent, project="p", id="bo", troubles=0))
    raised(store)
    with store.begin("local", write=True) as tx:
        tx.load(Agent, [BO])
        assert place.keys(":local}:turn*") != []

    def fails() -> None:
        with store.begin("local", write=True) as tx:
            tx.load(Agent, [BO])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert place.keys(":local}:turn*") == []


def test_a_turn_is_extended_now_and_then_and_not_by_every_read(place: Place) -> None:
    """An extension is a write: the server syncs it before it answers."""
    passed = [0.0]
    store = place.open(monotonic=lambda: passed[0])
    with store.begin("local", write=True) as tx:
        tx.lock("write", ["p"])
        tx.load(Agent, [BO])
        (turn,) = place.keys(":local}:turn*")
        place.raw.pexpire(turn, 60_000)
        tx.load(Task, [("p", "t1")])
        assert place.raw.pttl(turn) > turns.LASTS
        passed[0] = turns.LASTS / 2000
        tx.load(Task, [("p", "t2")])
        assert place.raw.pttl(turn) <= turns.LASTS


def test_the_turn_of_a_process_that_was_killed_is_not_waited_for(place: Place) -> None:
    store = place.open()
    add(store, row_of(Agent, project="p", id="bo", troubles=0))
    command = [sys.executable, "-c", STOPPED, place.url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "read\n"
        (turn,) = place.keys(":local}:turn*")
        place.raw.persist(turn)
        process.kill()
    raised(place.open())
    assert place.keys(":local}:turn*") == []
    assert stored(store, Agent)[BO].troubles == 1


STOPPED = """
import sys
from tenure.core.errors import Conflict
from tenure.core.records import Agent, replace
from tenure.stores.port import Change
from tenure.stores.valkey import Valkey
store = Valkey(sys.argv[1])
try:
    with store.begin("local", write=True) as tx:
        (row,) = tx.load(Agent, [("p", "bo")])
        print("read", flush=True)
        sys.stdin.readline()
        tx.save([Change(row, replace(row, troubles=99))])
except Conflict:
    print("conflict", flush=True)
else:
    print("written", flush=True)
"""


def test_a_process_that_was_stopped_past_its_turn_meets_a_conflict(place: Place) -> None:
    store = place.open()
    add(store, row_of(Agent, project="p", id="bo", troubles=0))
    command = [sys.executable, "-c", STOPPED, place.url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "read\n"
        process.send_signal(signal.SIGSTOP)
        (turn,) = place.keys(":local}:turn*")
        assert place.raw.pttl(turn) <= turns.LASTS
        place.raw.pexpire(turn, 1)
        raised(store, 7)  # waits until the server has ended the turn
        process.send_signal(signal.SIGCONT)
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "conflict\n"
    assert stored(store, Agent)[BO].troubles == 7


def test_every_key_is_in_its_tenants_slot(place: Place) -> None:
    store = place.open()
    for tenant in ("local", "a:b}c"):
        task = row_of(Task, project="p:{x}", id="t", lane="L", due_at=5)
        write(store, Change(None, task), events=[event_of(project="p:{x}", task="t", version=1)], tenant=tenant)
    of_tenants = {key.partition(b"}")[0] for key in place.keys(":*")}
    space = place.space.encode()
    assert of_tenants == {b"{%s:local" % space, b"{%s:a%%3Ab%%7Dc" % space}
    assert len(place.keys()) == len(place.keys(":*")) + 2


def test_a_store_of_a_newer_form_is_refused(place: Place) -> None:
    store = place.open()
    add(store, row_of(Agent, project="p", id="bo", troubles=0))
    (meta,) = place.keys(":local}:meta")
    place.raw.hset(meta, "form", 2)
    with pytest.raises(SchemaMismatch):
        raised(store)
    place.raw.hset(meta, "form", 1)

    def overtaken() -> None:
        with store.begin("local", write=True) as tx:
            (row,) = tx.load(Agent, [BO])
            place.raw.hset(meta, "form", 2)
            tx.save([Change(row, replace(row, troubles=1))])

    with pytest.raises(SchemaMismatch):
        overtaken()
    place.raw.hset(f"{{{place.space}}}:store", "form", 2)
    with pytest.raises(SchemaMismatch):
        place.open()


def test_a_lane_without_tasks_is_forgotten(place: Place) -> None:
    store = place.open()
    task = row_of(Task, project="p", id="t", lane="L")
    add(store, task)
    write(store, Change(task, replace(task, lane=None)))
    assert place.keys(":local}:lane*") == []
    assert store.check() == []


def test_entries_that_are_not_as_their_rows_are_found(place: Place) -> None:
    store = place.open()
    task = row_of(Task, project="p", id="t", lane="L", due_at=5, state="ready")
    write(store, Change(None, task), events=[event_of(task="t", version=1)])
    assert store.check() == []
    tag = f"{{{place.space}:local}}"
    broken: dict[str, Any] = {
        f"{tag}:index:task:state:p": lambda key: place.raw.zadd(key, {b"done\x00t": 0}),
        f"{tag}:unique:p": lambda key: place.raw.hset(key, "x", "t"),
        f"{tag}:due:p": place.raw.delete,
        f"{tag}:lanes:p": lambda key: place.raw.zadd(key, {"M": 0}),
        f"{tag}:lane:1:p:L": place.raw.delete,
        f"{tag}:log:p": lambda key: place.raw.xtrim(key, maxlen=0),
        f"{tag}:row:task:p": lambda key: place.raw.hset(key, "u", b"\xc1"),
    }
    for count, (key, spoil) in enumerate(broken.items(), 1):
        spoil(key)
        assert len(store.check()) == count, key
