"""Dropping the log of archived tasks: what goes, what stays, and where the log goes on."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tenure.core.errors import Bug, Conflict
from tenure.core.records import Archived
from tenure.stores.port import Change, Store, Transaction
from tenure.testing.samples import event_of, row_of
from tenure.testing.suites.store_setting import Setting, logged, trial, write


def drop(transaction: Transaction, project: str, tasks: Sequence[str]) -> None:
    """As the archive does, in whose documents the events stay."""
    known = {row.id for row in transaction.load(Archived, [(project, task) for task in tasks])}
    rows = [
        row_of(Archived, project=project, id=task, key=task, ref=task, events=9, out=False)
        for task in tasks
        if task not in known
    ]
    transaction.save([Change(None, row) for row in rows])
    transaction.drop_events(project, tasks)


class Dropping(Setting):
    def test_the_events_of_the_named_tasks_go_and_no_others(self, store: Store) -> None:
        write(
            store,
            events=[
                event_of(id="a", task="t1", version=1),
                event_of(id="b", task="t2", version=1),
                event_of(id="c", project="q", task="t1", version=1),
                event_of(id="d"),
                event_of(id="e", task="t1", version=2),
                event_of(id="f", task="t3", version=1),
                event_of(id="last"),
            ],
        )
        before = {e.id: e.sequence for e in logged(store)}
        with store.begin("local", write=True) as transaction:
            drop(transaction, "p", ["t1", "t3", "unknown"])
            drop(transaction, "p", [])
            assert [e.id for e in transaction.events({})] == ["b", "c", "d", "last"]
        assert {e.id: e.sequence for e in logged(store)} == {id: before[id] for id in ("b", "c", "d", "last")}

    def test_the_last_event_stays_and_sequences_go_on_from_it(self, store: Store) -> None:
        write(store, events=[event_of(id=str(n), task="t", version=n, time=n) for n in range(1, 4)])
        mark = store.mark("local")
        with store.begin("local", write=True) as transaction:
            drop(transaction, "p", ["t"])
        assert [(e.id, e.sequence) for e in logged(store)] == [("3", mark)]
        assert store.mark("local") == mark
        write(store, events=[event_of(id="next")])
        assert [e.sequence > mark for e in logged(store)] == [False, True]

    def test_each_project_keeps_its_last(self, store: Store) -> None:
        write(store, events=[event_of(id="p1", task="t", version=1), event_of(id="p2", task="t", version=2)])
        write(store, events=[event_of(id="q1", project="q", task="t", version=1)])
        with store.begin("local", write=True) as transaction:
            drop(transaction, "p", ["t"])
            drop(transaction, "q", ["t"])
        assert [e.id for e in logged(store)] == ["p2", "q1"]

    def test_what_was_appended_before_in_the_same_transaction_counts_as_the_last(self, store: Store) -> None:
        write(store, events=[event_of(id="a", task="t", version=1)])
        mark = store.mark("local")
        with store.begin("local", write=True) as transaction:
            transaction.append([event_of(id="b", task="t", version=2), event_of(id="why", kind="archive.moved")])
            drop(transaction, "p", ["t"])
        assert [e.id for e in logged(store)] == ["why"]
        assert store.mark("local") > mark

    def test_many_tasks_go_at_once(self, store: Store) -> None:
        names = [f"t{n}" for n in range(700)]
        write(store, events=[*(event_of(id=name, task=name, version=1) for name in names), event_of(id="last")])
        with store.begin("local", write=True) as transaction:
            drop(transaction, "p", names[1:])
        assert [e.id for e in logged(store)] == ["t0", "last"]

    def test_a_dropped_version_may_be_written_again(self, store: Store) -> None:
        write(store, events=[event_of(id="a", task="t", version=1), event_of(id="last")])
        with store.begin("local", write=True) as transaction:
            drop(transaction, "p", ["t"])
            transaction.append([event_of(id="again", task="t", version=1)])
        with pytest.raises(Conflict):
            write(store, events=[event_of(id="twice", task="t", version=1)])
        assert [e.id for e in logged(store)] == ["last", "again"]

    def test_a_transaction_that_is_taken_back_drops_nothing(self, store: Store) -> None:
        write(store, events=[event_of(id="a", task="t", version=1), event_of(id="last")])
        with trial(store) as transaction:
            transaction.append([event_of(id="never")])
            drop(transaction, "p", ["t"])
        assert [e.id for e in logged(store)] == ["a", "last"]
        with pytest.raises(Conflict):
            write(store, events=[event_of(id="twice", task="t", version=1)])

    def test_a_reader_drops_nothing(self, store: Store) -> None:
        with pytest.raises(Bug), store.begin("local", write=False) as transaction:
            transaction.drop_events("p", ["t"])
