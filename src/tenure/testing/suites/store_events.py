"""The log, the store's clock and epoch, and waiting for what is written."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given

from tenure.core.errors import Conflict
from tenure.core.events import Event
from tenure.core.filters import Prefix, Present, Range, Where
from tenure.core.records import Cursor, Row, Schedule, Sink, Task, replace
from tenure.stores.port import TENANTS, Change, ForLeader, Store
from tenure.testing.clock import FakeClock
from tenure.testing.samples import event_of, row_of, rows
from tenure.testing.suites.store_setting import Setting, examples, logged, needs, trial, write


class Events(Setting):
    def test_any_event_comes_back_with_a_sequence(self, store: Store) -> None:
        @examples(40)
        @given(rows(Event))
        def comes_back(event: Event) -> None:
            with trial(store) as transaction:
                transaction.append([event])
                (found,) = transaction.events({})
            assert found.sequence > 0
            assert found == replace(event, sequence=found.sequence)

        comes_back()

    def test_any_events_come_back_as_they_were_appended_together(self, store: Store) -> None:
        @examples(20)
        @given(rows(Event), rows(Event))
        def come_back(one: Event, other: Event) -> None:
            made = [replace((one, other)[n % 3 == 1], id=f"e{n}", version=n) for n in range(40)]
            with trial(store) as transaction:
                transaction.append(made)
                found = transaction.events({})
            assert [event.sequence for event in found] == sorted({event.sequence for event in found})
            assert [replace(event, sequence=0) for event in found] == [replace(event, sequence=0) for event in made]

        come_back()

    def test_events_keep_the_order_they_were_appended_in(self, store: Store) -> None:
        for batch in range(4):
            with store.begin("local", write=True) as transaction:
                transaction.append([])
                transaction.append([event_of(id=f"{batch}-{n}") for n in range(3)])
                transaction.append([event_of(id=f"{batch}-last")])
        found = logged(store)
        assert [e.id for e in found] == [f"{b}-{n}" for b in range(4) for n in (0, 1, 2, "last")]
        sequences = [e.sequence for e in found]
        assert sequences == sorted(set(sequences))
        assert store.mark("local") == sequences[-1]

    def test_events_are_read_from_a_place_on_or_from_the_end(self, store: Store) -> None:
        write(store, events=[event_of(id=str(n), kind="even" if n % 2 == 0 else "odd") for n in range(10)])
        marks = [e.sequence for e in logged(store)]
        with store.begin("local", write=False) as transaction:

            def ids(**how: int) -> str:
                return "".join(e.id for e in transaction.events({}, **how))  # type: ignore[arg-type]

            assert ids(limit=3) == "012"
            assert ids(after=marks[3], limit=3) == "456"
            assert ids(after=marks[9]) == ""
            assert ids(limit=3, last=True) == "789"
            assert ids(after=marks[7], limit=3, last=True) == "89"
            assert ids(limit=0) == ids(limit=0, last=True) == ""
            even = transaction.events({"kind": "even"}, after=marks[1], limit=2, last=True)
            assert [e.id for e in even] == ["6", "8"]

    def test_events_are_found_by_what_they_are_about(self, store: Store) -> None:
        events = [
            event_of(id="a", project="p", task="t1", version=1, session="s1", kind="task.claimed", time=10),
            event_of(id="b", project="p", task="t1", version=2, session="s2", kind="task.started", time=20),
            event_of(
                id="c", project="p", task="t2", version=1, session="s1", kind="task.claimed", time=30, level="error"
            ),
            event_of(
                id="d", project="q", task="t1", version=1, agent="bo", kind="task.claimed", causation_id="c1", time=40
            ),
            event_of(id="e", project="p", kind="agent.registered", agent="bo", time=50),
        ]
        write(store, events=events)
        cases: list[tuple[Where, str]] = [
            ({"project": "p", "task": "t1"}, "ab"),
            ({"project": "p", "session": "s1"}, "ac"),
            ({"kind": ("task.claimed", "task.started"), "project": "p"}, "abc"),
            ({"kind": Prefix("task.")}, "abcd"),
            ({"task": Present(False)}, "e"),
            ({"task": None}, "e"),
            ({"time": Range(20, 40)}, "bc"),
            ({"causation_id": "c1"}, "d"),
            ({"agent": "bo", "project": "p"}, "e"),
            ({"level": ("warning", "error")}, "c"),
            ({"version": 1, "project": "p"}, "ac"),
            ({"kind": ()}, ""),
        ]
        with store.begin("local", write=False) as transaction:
            for where, expected in cases:
                assert "".join(e.id for e in transaction.events(where)) == expected, where

    def test_a_version_of_a_task_is_written_once(self, store: Store) -> None:
        write(store, events=[event_of(id="a", task="t", version=1), event_of(id="b", task="t", version=2)])
        with pytest.raises(Conflict):
            write(store, events=[event_of(id="c", task="t", version=3), event_of(id="d", task="t", version=2)])
        write(store, events=[event_of(id="e", project="q", task="t", version=2)])
        write(
            store, events=[event_of(id="f"), event_of(id="g"), event_of(id="h", task="t"), event_of(id="i", task="t")]
        )
        assert [e.id for e in logged(store)] == list("abefghi")

    def test_sequences_grow_past_what_was_taken_back(self, store: Store) -> None:
        write(store, events=[event_of(id="a")])
        with trial(store) as transaction:
            transaction.append([event_of(id="b")])
        mark = store.mark("local")
        write(store, events=[event_of(id="c")])
        assert [e.id for e in logged(store)] == ["a", "c"]
        assert store.mark("local") > mark

    def test_now_is_the_clocks_time(self, store: Store, clock: FakeClock) -> None:
        for write_ in (True, False):
            clock.advance(5)
            with store.begin("local", write=write_) as transaction:
                assert transaction.now == clock.now
                clock.advance(5)
                assert transaction.now == clock.now - 5

    def test_now_never_lies_before_the_last_event(self, store: Store, clock: FakeClock) -> None:
        write(store, events=[event_of(time=clock.now)])
        last = clock.now
        clock.advance(-10_000_000)
        for write_ in (True, False):
            with store.begin("local", write=write_) as transaction:
                assert transaction.now == last
        clock.advance(10_000_001)
        with store.begin("local", write=True) as transaction:
            assert transaction.now == last + 1

    def test_the_epoch_stays_until_another_is_set(self, store: Store) -> None:
        with store.begin("local", write=True) as transaction:
            first = transaction.epoch
        assert first
        with store.begin("local", write=True) as transaction:
            assert transaction.epoch == first
            transaction.set_epoch("0badcafe")
            assert transaction.epoch == "0badcafe"
        for write_ in (True, False):
            with store.begin("local", write=write_) as transaction:
                assert transaction.epoch == "0badcafe"

    def test_waiting_for_what_is_there_already_is_over_at_once(self, store: Store) -> None:
        assert store.mark("local") == 0
        assert store.wait({"local": 0}, 0) == frozenset()
        write(store, events=[event_of()])
        assert store.wait({"local": 0}, 0) == {"local"}
        assert store.wait({"local": store.mark("local")}, 0) == frozenset()
        assert store.wait({"local": store.mark("local")}, 0.001) == frozenset()

    def test_everyone_who_waits_is_woken_by_a_commit(self, store: Store) -> None:
        mark = store.mark("local")
        started = threading.Barrier(5)
        woken: list[bool] = []

        def wait() -> None:
            started.wait(30)
            woken.append(bool(store.wait({"local": mark}, 30)))

        threads = [threading.Thread(target=wait) for _ in range(4)]
        for thread in threads:
            thread.start()
        started.wait(30)
        write(store, events=[event_of()])
        for thread in threads:
            thread.join(30)
        assert woken == [True] * 4

    def test_a_tenant_neither_wakes_nor_informs_another(self, store: Store) -> None:
        needs(store, TENANTS)
        for tenant in ("local", "other"):
            write(store, events=[event_of(id="first")], tenant=tenant)
        here, there = store.mark("local"), store.mark("other")
        write(store, events=[event_of(id="second")], tenant="other")
        assert store.mark("local") == here
        assert store.wait({"local": here}, 0.05) == frozenset()
        assert store.mark("other") > there

    def test_a_wait_for_several_tenants_names_those_that_changed(self, store: Store) -> None:
        needs(store, TENANTS)
        tenants = ("local", "other", "third")
        for tenant in tenants:
            write(store, events=[event_of()], tenant=tenant)
        marks = {tenant: store.mark(tenant) for tenant in tenants}
        assert store.wait(marks, 0) == frozenset()
        write(store, events=[event_of(id="later")], tenant="other")
        assert store.wait(marks, 30) == {"other"}
        marks["other"] = store.mark("other")
        woken: list[frozenset[str]] = []
        thread = threading.Thread(target=lambda: woken.append(store.wait(marks, 30)))
        thread.start()
        write(store, events=[event_of(id="last")], tenant="third")
        thread.join(30)
        assert woken == [{"third"}]

    def test_the_marks_of_several_tenants_are_those_of_each(self, store: Store) -> None:
        needs(store, TENANTS)
        write(store, events=[event_of()], tenant="other")
        marks = store.marks(("local", "other"))
        assert marks == {"local": 0, "other": store.mark("other")}
        assert store.marks(()) == {}
        assert store.wait(marks, 0.001) == frozenset()
        write(store, events=[event_of(id="later")], tenant="local")
        assert store.wait(marks, 30) == {"local"}

    def test_tenants_with_something_for_a_leader_are_named_with_its_time(self, store: Store) -> None:
        task, schedule = row_of(Task, project="p", due_at=500), row_of(Schedule, project="p", next_at=400)
        gone = row_of(Task, project="p", id="y", ref="y", idempotency_key=None, local_name=None, due_at=None)
        rows: dict[str, tuple[Row, ...]] = {
            "local": (task,), "timed": (schedule, task), "read": (row_of(Cursor, project="p", id="triggers"), task),
            "sent": (row_of(Sink, project="", id="webhooks"),), "later": (replace(task, due_at=2000),), "idle": (gone,),
        }  # fmt: skip
        if TENANTS not in store.features:
            rows = {"local": rows["local"]}
        for tenant, new in rows.items():
            write(store, *(Change(None, row) for row in new), events=[event_of(time=100)], tenant=tenant)
        due = {"local": 500, "timed": 400, "read": 0, "sent": 0}
        names = (*rows, "unknown") if TENANTS in store.features else tuple(rows)
        assert store.tenants_due(names, 1000, 100) == {
            name: ForLeader(at, False) for name, at in due.items() if name in rows
        }
        assert store.tenants_due(names, 1000, 99) == {name: ForLeader(due.get(name), True) for name in rows}
        assert store.tenants_due(("local",), 499, 100) == {}
        assert store.tenants_due((), 1000, 0) == {}

    def test_time_and_epoch_of_a_tenant_follow_its_own_log(self, store: Store, clock: FakeClock) -> None:
        needs(store, TENANTS)
        write(store, events=[event_of(time=clock.now + 5_000_000)], tenant="other")
        for write_ in (True, False):
            with store.begin("local", write=write_) as transaction:
                assert transaction.now == clock.now
            with store.begin("other", write=write_) as transaction:
                assert transaction.now == clock.now + 5_000_000
