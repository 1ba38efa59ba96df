"""`find`, `count`, `sums` and `tally` answer as `core.filters.matches` does on the rows themselves."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.errors import InvalidInput
from tenure.core.filters import Contains, Prefix, Present, Range, matches
from tenure.core.records import Agent, Row, Task
from tenure.stores.port import Change, Store
from tenure.testing.samples import integers, row_of, rows, texts
from tenure.testing.suites.store_setting import Setting, add, examples, trial

# Few values, so that many rows share them and many questions have answers.
_few = st.sampled_from(["", "a", "ab", "A", "b", "\x00", "%", "🙂", "\U0010ffff"])
_numbers = st.sampled_from([-5, 0, 1, 7, 2**63 - 1])

_agents = rows(
    Agent,
    project=st.sampled_from(["p", "q"]),
    id=st.text("abc", min_size=1, max_size=2),
    type=_few,
    region=st.none() | _few,
    capabilities=st.lists(_few, max_size=3).map(tuple),
    models=st.lists(texts(), max_size=2).map(tuple),
    pid=st.none() | _numbers,
    last_seen=_numbers,
)
_questions = st.fixed_dictionaries(
    {},
    optional={
        "project": st.sampled_from(["p", "q"]),
        "type": _few | st.lists(_few, max_size=3).map(tuple) | _few.map(Prefix) | st.builds(Range, _few, _few),
        "region": st.none()
        | _few
        | st.lists(st.none() | _few, max_size=3).map(tuple)
        | st.builds(Present, st.booleans()),
        "pid": st.builds(Range, st.none() | _numbers, st.none() | _numbers) | st.builds(Present, st.booleans()),
        "last_seen": _numbers | st.builds(Range, st.none() | integers(), st.none() | integers()),
        "capabilities": _few.map(Contains),
        "models": texts().map(Contains),
        "draining": st.booleans(),
    },
)
_orders = st.sampled_from(["id", "-id", "last_seen", "-last_seen", "region", "-region", "pid", "-pid", "draining"])


class Finding(Setting):
    def test_find_and_count_agree_with_the_plain_reading_of_any_question(self, store: Store) -> None:
        @examples(80)
        @given(st.lists(_agents, max_size=12, unique_by=lambda a: (a.project, a.id)), _questions, _orders)
        def agree(agents: list[Agent], where: dict[str, Any], order: str) -> None:
            expected = _sorted([a for a in agents if matches(a, where)], order)
            with trial(store) as transaction:
                transaction.save([Change(None, agent) for agent in agents])
                found = transaction.find(Agent, where, order=order)
                assert _places(found, order) == _places(expected, order)
                assert {(a.project, a.id) for a in found} == {(a.project, a.id) for a in expected}
                assert transaction.count(Agent, where, "region") == Counter(a.region for a in expected)
                assert transaction.tally(Agent, where, 100) == len(expected)

        agree()

    def test_pages_put_together_are_the_whole_list(self, store: Store) -> None:
        @examples(60)
        @given(st.lists(_agents, max_size=12, unique_by=lambda a: a.id), _orders, st.integers(1, 5))
        def whole(agents: list[Agent], order: str, size: int) -> None:
            field = order.removeprefix("-")
            with trial(store) as transaction:
                transaction.save([Change(None, agent) for agent in agents])
                found: list[Agent] = []
                after = None
                while page := transaction.find(Agent, {}, order=order, after=after, limit=size):
                    found += page
                    assert len(found) <= len(agents)
                    after = (getattr(page[-1], field), page[-1].id)
                assert found == transaction.find(Agent, {}, order=order) == _sorted(agents, order)

        whole()

    def test_texts_sort_by_their_characters_down_to_nul(self, store: Store) -> None:
        regions = ["", "\x00", "\x00\x00", "\x00a", "\x01", "\x01\x01", "\x01\x02", "\x02", " ", "a", "a ", "b"]
        # Ids run the other way: texts that a store takes for equal would change places.
        agents = [row_of(Agent, project="p", id=f"{50 - n}", region=region) for n, region in enumerate(regions)]
        add(store, *agents)
        with store.begin("local", write=False) as transaction:
            for limit in (None, len(regions)):  # a server may sort the first few in another way
                assert [a.region for a in transaction.find(Agent, {}, order="region", limit=limit)] == regions
                assert [a.region for a in transaction.find(Agent, {}, order="-region", limit=limit)] == regions[::-1]
            assert transaction.count(Agent, {}, "region") == dict.fromkeys(regions, 1)
            for agent in agents:
                assert transaction.find(Agent, {"region": agent.region}) == [agent]

    def test_no_limit_gives_all_and_a_limit_the_first(self, store: Store) -> None:
        add(store, *[row_of(Agent, project="p", id=f"{n:04d}") for n in range(1200)])
        with store.begin("local", write=False) as transaction:
            assert len(transaction.find(Agent, {"project": "p"})) == 1200
            assert [a.id for a in transaction.find(Agent, {}, limit=2)] == ["0000", "0001"]
            assert [a.id for a in transaction.find(Agent, {}, order="-id", limit=2)] == ["1199", "1198"]
            assert transaction.find(Agent, {}, limit=0) == []

    def test_a_prefix_knows_case_and_no_wildcards(self, store: Store) -> None:
        keys = ["A-001-x", "A-001", "A-0010", "a-001", "A_001", "A%001", "A-00", "B"]
        add(store, *[row_of(Task, project="p", id=str(n), ref=str(n), key=key) for n, key in enumerate(keys)])
        with store.begin("local", write=False) as transaction:
            for prefix in ("A-001", "A_", "A%", "a", "", "C", "A-001-x"):
                found = transaction.find(Task, {"project": "p", "key": Prefix(prefix)}, order="key")
                assert [t.key for t in found] == sorted(key for key in keys if key.startswith(prefix))

    def test_a_list_contains_whole_items_only(self, store: Store) -> None:
        tags = [(), ("a",), ("ab", "c"), ('"a"',), ("a,b",), (",",), ("x", "y"), ("\x00",), ("naïve", "🙂"), ("\\",)]
        add(store, *[row_of(Task, project="p", id=str(n), ref=str(n), tags=t) for n, t in enumerate(tags)])
        with store.begin("local", write=False) as transaction:
            for item in {*(item for some in tags for item in some), "b", "", '"', "[", "naive"}:
                found = transaction.find(Task, {"tags": Contains(item)})
                assert [t.tags for t in found] == [some for some in tags if item in some], item
            for items in (("x", "y"), ("y", "x"), ("ab", "a"), ("c", "ab", "c")):
                found = transaction.find(Task, {"tags": Contains(items[0], items[1:])})
                assert [t.tags for t in found] == [some for some in tags if set(items) <= set(some)], items

    def test_a_thousand_values_may_be_asked_for_at_once(self, store: Store) -> None:
        add(store, *[row_of(Agent, project="p", id=f"{n:04d}") for n in range(1100)])
        wanted = tuple(f"{n:04d}" for n in range(0, 1100, 2)) + tuple(f"x{n}" for n in range(500))
        with store.begin("local", write=False) as transaction:
            assert len(transaction.find(Agent, {"project": "p", "id": wanted})) == 550
            assert transaction.tally(Agent, {"id": ()}, 10) == 0
            assert transaction.count(Agent, {"id": ()}, "type") == {}
            assert transaction.find(Agent, {"id": ()}) == []

    def test_a_count_has_each_value_of_the_field(self, store: Store) -> None:
        add(store, *[row_of(Agent, project="p", id=str(n), draining=n > 2, pid=n % 2 or None) for n in range(5)])
        with store.begin("local", write=False) as transaction:
            assert transaction.count(Agent, {}, "draining") == {False: 3, True: 2}
            assert all(type(key) is bool for key in transaction.count(Agent, {}, "draining"))
            assert transaction.count(Agent, {}, "pid") == {None: 3, 1: 2}
            assert transaction.count(Agent, {"project": "q"}, "pid") == {}

    def test_sums_are_of_each_value_of_the_field(self, store: Store) -> None:
        rows = [
            row_of(Agent, project="p", id=str(n), draining=n > 2, pid=n if n % 2 else None, heartbeat=10**n)
            for n in range(5)
        ]
        add(store, *rows, row_of(Agent, project="q", id="0", pid=None, heartbeat=-7))
        with store.begin("local", write=False) as transaction:
            by_drain = transaction.sums(Agent, {"project": "p"}, "draining", ("pid", "heartbeat"))
            assert by_drain == {False: (1, 111), True: (3, 11_000)}
            assert all(type(key) is bool for key in by_drain)
            assert transaction.sums(Agent, {"pid": None}, "project", ("pid", "heartbeat")) == {
                "p": (None, 10_101),
                "q": (None, -7),
            }
            assert transaction.sums(Agent, {"project": "r"}, "project", ("pid",)) == {}
            assert transaction.sums(Agent, {"id": ()}, "project", ("pid",)) == {}
            for field in ("type", "draining", "capabilities", "nothing", 'pid") --'):
                with pytest.raises(InvalidInput):
                    transaction.sums(Agent, {}, "project", (field,))

    def test_a_tally_ends_at_the_most_that_is_asked_for(self, store: Store) -> None:
        add(store, *[row_of(Agent, project="p", id=str(n)) for n in range(5)])
        with store.begin("local", write=False) as transaction:
            assert [transaction.tally(Agent, {"project": "p"}, most) for most in (0, 3, 5, 9)] == [0, 3, 5, 5]
            assert transaction.tally(Agent, {"project": "q"}, 5) == 0

    @pytest.mark.parametrize("field", ["nothing", "", "id; DROP TABLE agent", 'id" = id OR "id', "tenant", "rowid"])
    def test_a_field_that_the_kind_does_not_have_is_refused(self, store: Store, field: str) -> None:
        with store.begin("local", write=False) as transaction:
            for ask in (
                lambda: transaction.find(Agent, {field: "x"}),
                lambda: transaction.find(Agent, {}, order=field),
                lambda: transaction.count(Agent, {}, field),
                lambda: transaction.sums(Agent, {}, field, ("pid",)),
                lambda: transaction.tally(Agent, {field: "x"}, 1),
                lambda: transaction.events({field: "x"}),
            ):
                with pytest.raises(InvalidInput):
                    ask()

    @pytest.mark.parametrize(
        "where",
        [{"capabilities": "a"}, {"capabilities": ("a",)}, {"capabilities": Range("a")}, {"type": Contains("a")}],
    )
    def test_a_question_that_does_not_suit_the_field_is_refused(self, store: Store, where: dict[str, Any]) -> None:
        with store.begin("local", write=False) as transaction, pytest.raises(InvalidInput):
            transaction.find(Agent, where)


def _places(agents: list[Agent], order: str) -> list[tuple[Any, str]]:
    field = order.removeprefix("-")
    return [(getattr(agent, field), agent.id) for agent in agents]


def _sorted(agents: list[Agent], order: str) -> list[Agent]:
    """Missing values first when rising; the id turns with the field."""
    field = order.removeprefix("-")

    def place(row: Row) -> tuple[bool, Any, str]:
        value = getattr(row, field)
        return (value is not None, 0 if value is None else value, row.id)

    return sorted(agents, key=place, reverse=field != order)
