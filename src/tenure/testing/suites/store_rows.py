"""Rows come back as they were saved; a save applies whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from tenure.core.errors import Bug, Conflict, InvalidInput
from tenure.core.records import KINDS, Agent, Brief, Claim, Project, Result, Row, Task, replace
from tenure.stores.port import BACKUP, DURABLE, PROCESSES, TENANTS, Change, Store
from tenure.testing.clock import FakeClock
from tenure.testing.samples import BIGGEST, event_of, key_of, row_of, rows
from tenure.testing.suites.store_setting import (
    Setting,
    add,
    examples,
    logged,
    needs,
    needs_change_of,
    stored,
    trial,
    write,
)

every_kind = pytest.mark.parametrize("kind", list(KINDS), ids=lambda kind: kind.__name__)


def _own(kind: type[Row], n: int) -> dict[str, Any]:
    """What no two rows of a kind may have in common."""
    if kind is Task:
        return {"ref": str(n), "idempotency_key": str(n), "local_name": str(n)}
    return {Claim: {"generation": n}, Result: {"run": n}}.get(kind, {})


class Rows(Setting):
    @every_kind
    def test_any_row_comes_back_as_it_was_saved(self, store: Store, kind: type[Row]) -> None:
        @examples(25)
        @given(rows(kind))
        def comes_back(row: Row) -> None:
            with trial(store) as transaction:
                transaction.save([Change(None, row)])
                assert transaction.load(kind, [key_of(row)]) == [row]
                assert type(transaction.find(kind, {"id": row.id})[0]) is kind

        comes_back()

    @every_kind
    def test_any_rows_come_back_as_they_were_saved_together(self, store: Store, kind: type[Row]) -> None:
        @examples(10)
        @given(rows(kind), rows(kind))
        def come_back(one: Row, other: Row) -> None:
            made = [replace((one, other)[n % 3 == 1], project="p", id=f"{n:02}", **_own(kind, n)) for n in range(40)]
            with trial(store) as transaction:
                transaction.save([Change(None, row) for row in made])
                found = transaction.load(kind, [key_of(row) for row in made])
                assert sorted(found, key=key_of) == made
                assert [key_of(row) for row in transaction.find(kind, {"project": "p"})] == [*map(key_of, made)]

        come_back()

    def test_values_of_rows_saved_together_that_only_look_equal_are_told_apart(self, store: Store) -> None:
        given_ = [1, True, 1.0, 1]
        add(store, *(row_of(Brief, project="p", id=str(n), metadata={"v": given_[n % 4]}) for n in range(40)))
        found = [row.metadata["v"] for _, row in sorted(stored(store, Brief).items(), key=lambda kept: int(kept[0][1]))]
        assert [(v, type(v)) for v in found] == [(v, type(v)) for v in given_ * 10]

    def test_a_task_that_alone_is_due_is_saved_with_the_others(self, store: Store) -> None:
        due = {0: 5, 7: 6, 39: 7}
        made = [row_of(Task, project="p", id=f"{n:02}", due_at=due.get(n), **_own(Task, n)) for n in range(40)]
        add(store, *made)
        assert list(stored(store, Task).values()) == made

    @every_kind
    def test_of_rows_saved_together_one_that_exists_keeps_all_out(self, store: Store, kind: type[Row]) -> None:
        made = [row_of(kind, project="p", id=str(n), **_own(kind, n)) for n in range(40)]
        add(store, made[20])
        with pytest.raises(Conflict):
            add(store, *made)
        assert stored(store, kind) == {("p", "20"): made[20]}

    @every_kind
    def test_any_row_can_become_any_other(self, store: Store, kind: type[Row]) -> None:
        needs_change_of(store, kind)

        @examples(25)
        @given(rows(kind), rows(kind))
        def becomes(before: Row, after: Row) -> None:
            after = replace(after, project=before.project, id=before.id)
            with trial(store) as transaction:
                transaction.save([Change(None, before)])
                transaction.save([Change(before, after)])
                assert transaction.load(kind, [key_of(before)]) == [after]

        becomes()

    @every_kind
    def test_a_plain_row_is_added_and_removed(self, store: Store, kind: type[Row]) -> None:
        row = row_of(kind, project="p", id="one")
        add(store, row)
        assert stored(store, kind) == {("p", "one"): row}
        needs_change_of(store, kind)
        write(store, Change(row, None))
        assert stored(store, kind) == {}

    @every_kind
    def test_a_row_is_known_by_its_project_and_id_together(self, store: Store, kind: type[Row]) -> None:
        here, there = row_of(kind, project="p", id="one"), row_of(kind, project="q", id="one")
        add(store, here, there)
        with store.begin("local", write=False) as transaction:
            assert transaction.load(kind, [("q", "one")]) == [there]
        needs_change_of(store, kind)
        write(store, Change(here, None))
        assert stored(store, kind) == {("q", "one"): there}

    @every_kind
    def test_adding_a_row_that_exists_is_a_conflict(self, store: Store, kind: type[Row]) -> None:
        row = row_of(kind, project="p", id="one")
        add(store, row)
        with pytest.raises(Conflict):
            add(store, row)
        assert stored(store, kind) == {("p", "one"): row}

    @every_kind
    def test_removing_a_row_that_is_gone_is_a_conflict(self, store: Store, kind: type[Row]) -> None:
        needs_change_of(store, kind)
        with pytest.raises(Conflict):
            write(store, Change(row_of(kind, project="p", id="one"), None))

    def test_changing_a_row_that_is_gone_is_a_conflict(self, store: Store) -> None:
        before = row_of(Agent, project="p", id="bo")
        with pytest.raises(Conflict):
            write(store, Change(before, replace(before, draining=True)))
        assert stored(store, Agent) == {}

    @pytest.mark.parametrize("field", ["version", "generation"])
    def test_a_task_that_moved_on_since_it_was_loaded_is_a_conflict(self, store: Store, field: str) -> None:
        old = row_of(Task, project="p", id="one")
        new = replace(old, **{field: 7})
        add(store, old)
        write(store, Change(old, new))
        with pytest.raises(Conflict):
            write(store, Change(old, replace(old, state="claimed")))
        with pytest.raises(Conflict):
            write(store, Change(old, None))
        assert stored(store, Task) == {("p", "one"): new}

    def test_a_change_that_changes_nothing_changes_nothing(self, store: Store) -> None:
        row = row_of(Task, project="p", id="one")
        add(store, row)
        write(store, Change(row, replace(row)))
        assert stored(store, Task) == {("p", "one"): row}

    def test_a_row_cannot_get_another_id(self, store: Store) -> None:
        row = row_of(Agent, project="p", id="one")
        add(store, row)
        with pytest.raises(Bug):
            write(store, Change(row, replace(row, id="two")))
        assert stored(store, Agent) == {("p", "one"): row}

    def test_a_change_of_nothing_into_nothing_is_refused(self, store: Store) -> None:
        with pytest.raises(Bug):
            write(store, Change(None, None))

    @pytest.mark.parametrize(("old", "new"), [(1, True), (True, 1), (1, 1.0), (0, False), ([], {})])
    def test_values_that_only_look_equal_are_told_apart(self, store: Store, old: Any, new: Any) -> None:
        before = row_of(Brief, project="p", id="one", metadata={"value": old})
        after = replace(before, metadata={"value": new})
        add(store, before)
        write(store, Change(before, after))
        found = stored(store, Brief)["p", "one"].metadata["value"]
        assert (found, type(found)) == (new, type(new))

    def test_a_missing_value_and_an_empty_one_are_told_apart(self, store: Store) -> None:
        rows_ = [row_of(Task, project="p", id=str(n), ref=str(n), step=r) for n, r in enumerate([None, "", "\x00"])]
        add(store, *rows_)
        assert [stored(store, Task)["p", str(n)].step for n in range(3)] == [None, "", "\x00"]

    def test_the_largest_number_fits(self, store: Store) -> None:
        add(store, row_of(Task, project="p", id="one", rank=BIGGEST, due_at=-BIGGEST - 1))
        row = stored(store, Task)["p", "one"]
        assert (row.rank, row.due_at) == (BIGGEST, -BIGGEST - 1)

    def test_load_leaves_out_what_is_unknown_and_gives_each_row_once(self, store: Store) -> None:
        tasks = [row_of(Task, project=f"p{n % 2}", id=f"t{n}", ref=str(n)) for n in range(700)]
        add(store, *tasks)
        wanted = [key_of(task) for task in tasks[:600]]
        with store.begin("local", write=False) as transaction:
            found = transaction.load(Task, [*wanted, *wanted, ("p0", "unknown"), ("p1", "t0")])
            assert transaction.load(Task, []) == []
        assert len(found) == 600
        assert {key_of(row) for row in found} == set(wanted)

    @pytest.mark.parametrize(
        ("kind", "fields"),
        [
            (Task, {"ref": "A-001"}),
            (Task, {"idempotency_key": "once"}),
            (Task, {"parent": "t", "parent_run": 1, "local_name": "part"}),
            (Claim, {"task": "t", "generation": 3}),
            (Result, {"task": "t", "run": 1, "accepted": True}),
        ],
    )
    def test_a_unique_value_is_given_once_in_a_project(
        self, store: Store, kind: type[Any], fields: dict[str, Any]
    ) -> None:
        plain = {"ref": "other"} if kind is Task and "ref" not in fields else {}
        first = row_of(kind, project="p", id="1", **fields)
        second = row_of(kind, project="p", id="2", **{**plain, **fields})
        add(store, first)
        with pytest.raises(Conflict):
            add(store, second)
        add(store, replace(second, project="q"))
        write(store, Change(first, None), Change(None, second))
        assert set(stored(store, kind)) == {("p", "2"), ("q", "2")}

    def test_an_unset_value_is_never_taken(self, store: Store) -> None:
        add(store, *[row_of(Task, project="p", id=str(n), ref=str(n), local_name=None) for n in range(3)])
        add(store, *[row_of(Task, project="p", id=f"c{n}", ref=f"c{n}", parent="t", parent_run=1) for n in range(3)])
        add(store, *[row_of(Result, project="p", id=str(n), task="t", run=1, accepted=False) for n in range(3)])
        assert (len(stored(store, Task)), len(stored(store, Result))) == (6, 3)

    def test_an_update_cannot_take_a_value_that_another_row_has(self, store: Store) -> None:
        one, two = (row_of(Task, project="p", id=n, ref=n) for n in "12")
        add(store, one, two)
        with pytest.raises(Conflict):
            write(store, Change(two, replace(two, ref="1")))
        write(store, Change(one, replace(one, ref="3")), Change(two, replace(two, ref="1")))
        assert [row.ref for row in stored(store, Task).values()] == ["3", "1"]

    def test_a_save_applies_whole_or_not_at_all(self, store: Store) -> None:
        agent = row_of(Agent, project="p", id="bo")
        add(store, agent)
        with pytest.raises(Conflict):
            write(
                store,
                Change(None, row_of(Task, project="p", id="new")),
                Change(agent, replace(agent, draining=True)),
                Change(None, agent),
            )
        assert stored(store, Task) == {}
        assert stored(store, Agent) == {("p", "bo"): agent}

    def test_a_failed_save_cannot_be_committed_by_swallowing_it(self, store: Store) -> None:
        def swallow() -> None:
            with store.begin("local", write=True) as transaction:
                transaction.save([Change(None, row_of(Agent, project="p", id="bo"))])
                with pytest.raises(Conflict):
                    transaction.save([Change(None, row_of(Agent, project="p", id="bo"))])

        with pytest.raises(Conflict):
            swallow()
        assert stored(store, Agent) == {}

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
    def test_a_block_that_ends_badly_leaves_no_trace(self, store: Store, error: type[BaseException]) -> None:
        before = row_of(Task, project="p", id="one", ref="1")
        gone = row_of(Task, project="p", id="two", ref="2")
        add(store, before, gone)
        with store.begin("local", write=False) as transaction:
            epoch = transaction.epoch

        def fail() -> None:
            with store.begin("local", write=True) as transaction:
                added = row_of(Task, project="p", id="three", ref="2")
                transaction.save([Change(before, replace(before, ref="9")), Change(gone, None), Change(None, added)])
                transaction.append([event_of(task="one", version=1)])
                transaction.set_epoch("00000000")
                raise error

        with pytest.raises(error):
            fail()
        assert stored(store, Task) == {("p", "one"): before, ("p", "two"): gone}
        assert logged(store) == []
        with store.begin("local", write=True) as transaction:
            assert transaction.epoch == epoch
            transaction.save([Change(None, row_of(Task, project="p", id="four", ref="9"))])
            transaction.append([event_of(task="one", version=1)])
        for ref in ("1", "2"):  # taken again by those who had them
            with pytest.raises(Conflict):
                add(store, row_of(Task, project="p", id="five", ref=ref))

    def test_a_transaction_sees_what_it_has_written(self, store: Store) -> None:
        with store.begin("local", write=True) as transaction:
            task = row_of(Task, project="p", id="one", lane="L", due_at=5)
            transaction.save([Change(None, task)])
            transaction.append([event_of()])
            assert transaction.find(Task, {"project": "p"}) == [task]
            assert [head.id for head in transaction.ready("p", "L")] == ["one"]
            assert (list(transaction.lanes("p")), transaction.next_due("p")) == (["L"], 5)
            assert len(transaction.events({})) == 1

    def test_a_reading_transaction_cannot_write(self, store: Store) -> None:
        attempts: list[Callable[[Any], None]] = [
            lambda tx: tx.save([Change(None, row_of(Agent, project="p", id="bo"))]),
            lambda tx: tx.append([event_of()]),
            lambda tx: tx.set_epoch("00000000"),
        ]
        for attempt in attempts:
            with store.begin("local", write=False) as transaction, pytest.raises(Bug):
                attempt(transaction)
        assert (stored(store, Agent), logged(store)) == ({}, [])

    def test_locks_are_taken_without_a_trace(self, store: Store) -> None:
        with store.begin("local", write=True) as transaction:
            transaction.lock("claim", ["p", "q"])
            transaction.lock("graph", ["p"])

    def test_a_foreign_tenant_is_refused_or_kept_apart(self, store: Store) -> None:
        add(store, row_of(Project, project="p", id="p"))
        if TENANTS not in store.features:
            with pytest.raises(InvalidInput):
                store.begin("other", write=False)
            with pytest.raises(InvalidInput):
                store.mark("other")
            with pytest.raises(InvalidInput):
                store.wait({"other": 0}, 0)
            return
        with store.begin("other", write=True) as transaction:
            assert transaction.find(Project, {}) == []
            transaction.save([Change(None, row_of(Project, project="p", id="p"))])
        assert len(stored(store, Project)) == 1

    def test_what_was_acknowledged_is_there_when_it_is_opened_again(
        self, store: Store, tmp_path: Path, clock: FakeClock
    ) -> None:
        needs(store, DURABLE)
        write(store, Change(None, row_of(Agent, project="p", id="bo")), events=[event_of()])
        before = (stored(store, Agent), logged(store))
        with store.begin("local", write=False) as transaction:
            epoch = transaction.epoch
        if PROCESSES not in store.features:
            store.close()
        again = self.open_store(tmp_path, clock)
        assert (stored(again, Agent), logged(again), again.is_copy) == (*before, False)
        with again.begin("local", write=False) as transaction:
            assert transaction.epoch == epoch
        again.close()

    def test_a_sound_store_has_nothing_wrong_with_it(self, store: Store) -> None:
        add(store, row_of(Task, project="p", id="x"), row_of(Brief, project="p", id="x"))
        assert store.check() == []
        store.settled_here()
        assert store.is_copy is False

    def test_a_backup_never_goes_over_a_file_that_exists(self, store: Store, tmp_path: Path) -> None:
        needs(store, BACKUP)
        target = tmp_path / "backup"
        target.write_text("precious")
        with pytest.raises(InvalidInput):
            store.backup(str(target))
        assert target.read_text() == "precious"

    def test_closing_twice_is_closing(self, store: Store) -> None:
        store.close()
        store.close()
