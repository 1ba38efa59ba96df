"""The verbs that keep claiming and settling cheap: lanes, ready, due."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tenure.core.records import Task, replace
from tenure.stores.port import Change, Head, Store
from tenure.testing.samples import row_of
from tenure.testing.suites.store_setting import Setting, add, examples, trial, write

_small = st.integers(-2, 2)
_tasks = st.lists(
    st.tuples(
        st.sampled_from("pq"), st.sampled_from([None, "L", "M", "é"]), _small, _small, _small, st.none() | _small
    ),
    max_size=15,
).map(
    lambda given: [
        row_of(Task, project=p, id=f"t{n}", ref=str(n), lane=lane, band=band, rank=rank, sequence=number, due_at=due)
        for n, (p, lane, band, rank, number, due) in enumerate(given)
    ]
)


def _head(task: Task) -> Head:
    return Head(task.band, task.rank, task.sequence, task.id, task.plain)


class Queues(Setting):
    def test_lanes_are_those_that_have_a_task_to_claim(self, store: Store) -> None:
        tasks = [
            row_of(Task, project=project, id=str(n), ref=str(n), lane=lane)
            for n, (project, lane) in enumerate(
                [("p", "b"), ("p", "a"), ("p", "a"), ("p", None), ("q", "c"), ("p", "")]
            )
        ]
        add(store, *tasks)
        with store.begin("local", write=False) as transaction:
            assert transaction.lanes("p") == {"": [_head(tasks[5])], "a": [_head(tasks[1])], "b": [_head(tasks[0])]}
            assert list(transaction.lanes("p")) == ["", "a", "b"]
            assert transaction.lanes("p", 2)["a"] == [_head(tasks[1]), _head(tasks[2])]
            assert [len(heads) for heads in transaction.lanes("p", 9).values()] == [1, 2, 1]
            assert (transaction.lanes("q"), transaction.lanes("r")) == ({"c": [_head(tasks[4])]}, {})
        write(store, Change(tasks[0], replace(tasks[0], lane=None)))
        with store.begin("local", write=False) as transaction:
            assert list(transaction.lanes("p")) == ["", "a"]

    def test_ready_gives_band_before_rank_before_sequence_before_id(self, store: Store) -> None:
        places = [(1, 0, 0), (0, 9, 9), (0, 9, 1), (0, -5, 4), (2, -9, 0), (0, 9, 1)]
        add(
            store,
            *[
                row_of(Task, project="p", id=f"t{n}", ref=str(n), lane="L", band=band, rank=rank, sequence=sequence)
                for n, (band, rank, sequence) in enumerate(places)
            ],
        )
        with store.begin("local", write=False) as transaction:
            heads = transaction.ready("p", "L", limit=10)
            assert [head.id for head in heads] == ["t3", "t2", "t5", "t1", "t0", "t4"]
            assert heads[0] == Head(0, -5, 4, "t3", plain=False)
            assert transaction.ready("p", "L") == heads[:1]
            assert transaction.ready("p", "M") == transaction.ready("q", "L") == []

    def test_ready_goes_on_behind_any_place(self, store: Store) -> None:
        @examples(60)
        @given(_tasks, st.integers(1, 4))
        def goes_on(tasks: list[Task], size: int) -> None:
            expected = sorted(_head(t) for t in tasks if t.project == "p" and t.lane == "L")
            found: list[Head] = []
            with trial(store) as transaction:
                transaction.save([Change(None, task) for task in tasks])
                while page := transaction.ready("p", "L", after=found[-1] if found else None, limit=size):
                    found += page
                lanes = transaction.lanes("p", size)
            assert found == expected
            assert list(lanes) == sorted({t.lane for t in tasks if t.project == "p" and t.lane is not None})
            assert lanes.get("L", []) == expected[:size]

        goes_on()

    def test_due_gives_the_earliest_first_up_to_and_with_the_time(self, store: Store) -> None:
        @examples(60)
        @given(_tasks, _small, st.integers(0, 20))
        def earliest_first(tasks: list[Task], until: int, limit: int) -> None:
            times = {t.id: t.due_at for t in tasks if t.due_at is not None}
            due = sorted((time, i) for i, time in times.items() if time <= until)
            projects = {t.id: t.project for t in tasks}
            with trial(store) as transaction:
                transaction.save([Change(None, task) for task in tasks])
                everywhere = transaction.due(None, until, limit)
                here = transaction.due("p", until, limit)
                next_due = transaction.next_due("p")
                is_due = transaction.is_due("p")
            assert [(t.due_at, t.id) for t in everywhere] == due[:limit]
            assert [(t.due_at, t.id) for t in here] == [d for d in due if projects[d[1]] == "p"][:limit]
            assert next_due == min((time for i, time in times.items() if projects[i] == "p"), default=None)
            assert is_due == (next_due is not None)  # these are all long past

        earliest_first()

    def test_a_transaction_knows_what_is_due_at_its_own_now(self, store: Store) -> None:
        later = 1 << 60
        add(store, row_of(Task, project="p", id="past", ref="1", due_at=5))
        add(store, row_of(Task, project="q", id="future", ref="2", due_at=later))
        for is_written in (False, True):
            with store.begin("local", write=is_written) as transaction:
                transaction.lock("write", ["p", "q"])
                assert [transaction.is_due(project) for project in ("p", "q", "r")] == [True, False, False]
        with store.begin("local", write=True) as transaction:
            transaction.lock("write", ["p", "q"])
            assert not transaction.is_due("q")
            transaction.save([Change(None, row_of(Task, project="q", id="now", ref="3", due_at=transaction.now))])
            assert transaction.is_due("q")
