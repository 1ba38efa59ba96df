"""Concurrent single commands become batches: each caller gets its own answer, in its own order, within bounds."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core.commands import Principal
from tenure.core.errors import (
    Bug,
    Conflict,
    InvalidInput,
    NotAllowed,
    NotFound,
    OutcomeUnknown,
    Overloaded,
    StoreError,
    StoreUnavailable,
    TenureError,
)
from tenure.core.records import Task
from tenure.engine import Context, Engine
from tenure.engine.runtime import engine
from tenure.engine.runtime.batcher import MOST_PROJECTS, Batcher
from tenure.engine.runtime.engine import CheckedCommand
from tenure.engine.runtime.unit_of_work import Reply
from tenure.stores.memory import Memory
from tenure.stores.port import WRITERS
from tenure.testing.factories import PROJECT, Dice, code_of
from tests.engine.gathering_ground import OTHER, Crowd, Held, Room, add, memory, stored, titles, until
from tests.engine.test_transactions import Failing


@pytest.fixture
def room() -> Iterator[Room]:
    room = Room()
    yield room
    room.end()


# --- batches ---


def test_a_lone_command_is_answered_without_waiting_for_others(room: Room) -> None:
    room.engine.let_all()
    assert room.batcher.do(add("one")).outcome == "CREATED"
    with pytest.raises(NotFound):
        room.batcher.do(c.Cancel(project=PROJECT, task="A-999"))
    assert [len(batch) for batch in room.engine.batches] == [1, 1]


def test_what_comes_while_a_batch_is_in_flight_is_the_next_batch(room: Room) -> None:
    room.blocked()
    crowd = Crowd(5, lambda n: room.batcher.do(add(f"t{n}")))
    until(lambda: room.batcher.waiting == 5)
    room.engine.let_all()
    assert {n: o.task["title"] for n, o in crowd.ended().items()} == {n: f"t{n}" for n in range(5)}
    assert [len(batch) for batch in room.engine.batches] == [1, 5]


def test_a_batch_has_at_most_500_commands(room: Room) -> None:
    room.blocked()
    promises = [room.batcher.submit(add(f"t{n}"), caller=n) for n in range(1001)]
    room.engine.let_all()
    assert {p.result(30).outcome for p in promises} == {"CREATED"}
    assert [len(batch) for batch in room.engine.batches] == [1, 500, 500, 1]


def test_a_batch_claims_and_makes_at_most_500_tasks(room: Room) -> None:
    room.blocked()
    many = c.Plan(project=PROJECT, tasks=tuple(c.NewTask(title=f"t{n}") for n in range(600)))
    claims = [c.ClaimNext(project=PROJECT, agent=f"a{n}", session=f"s{n}", n=100) for n in range(6)]
    promises = [room.batcher.submit(command, caller=n) for n, command in enumerate([many, *claims])]
    room.engine.let_all()
    assert [p.result(30).ok for p in promises] == [True] * 7
    assert [len(batch) for batch in room.engine.batches] == [1, 1, 5, 1]


def test_a_batch_has_at_most_8_mib(room: Room) -> None:
    room.blocked()
    large = c.Note(project=PROJECT, task="A-001", text="x" * (3 << 20))  # too large for a note, not for a batch
    promises = [room.batcher.submit(large, caller=n) for n in range(5)]
    room.engine.let_all()
    assert [code_of(p.exception(30)) for p in promises] == ["TOO_LARGE"] * 5
    assert [len(batch) for batch in room.engine.batches] == [1, 2, 2, 1]


def test_the_store_tells_how_many_batches_may_be_in_flight() -> None:
    class SeveralWriters(Memory):
        features = frozenset({WRITERS})

    for store, workers in ((memory(), 1), (SeveralWriters(), 2)):
        before = threading.active_count()
        with Batcher(Held(store)):
            assert threading.active_count() == before + workers
        assert threading.active_count() == before


# --- each caller its own ---


def test_every_command_runs_on_behalf_of_its_own_principal(room: Room) -> None:
    room.blocked()
    agent, mia = Principal(role="agent", agent="ann"), Principal(role="member", user="mia")
    asked = [
        (add("of ann", request_id="r"), agent),
        (add("of mia", request_id="r"), mia),
        (c.Cancel(project=PROJECT, task="A-001"), agent),
        (c.Cancel(project=PROJECT, task="A-001"), mia),
        (add("of nobody"), Principal(role="viewer")),
        (add("of mia", request_id="r"), mia),
    ]
    promises = [room.batcher.submit(command, by, caller=n) for n, (command, by) in enumerate(asked)]
    room.engine.let_all()
    answers = [p.exception(30) or p.result() for p in promises]
    assert len(room.engine.batches[1]) == 6
    assert [code_of(a) for a in answers] == [
        "CREATED", "CREATED", "NOT_ALLOWED", "UPDATED", "NOT_ALLOWED", "CREATED",
    ]  # fmt: skip
    assert [answers[n].task["created_by"] for n in (0, 1)] == ["agent:ann", "human:mia"]
    assert (answers[5].again, answers[5].task["id"]) == (True, answers[1].task["id"])
    assert isinstance(answers[2], NotAllowed)


def test_a_bad_command_fails_alone(room: Room) -> None:
    room.blocked()
    with pytest.raises(InvalidInput):
        room.batcher.do(add("x", trace_id=7))
    assert room.batcher.waiting == 0, "what cannot be asked is never queued"
    bad = c.Cancel(project=PROJECT, task="A-999")
    promises = [room.batcher.submit(bad if n % 3 == 1 else add(f"t{n}"), caller=n) for n in range(9)]
    room.engine.let_all()
    answers = [p.exception(30) or p.result() for p in promises]
    assert [code_of(a) for a in answers] == ["CREATED", "NOT_FOUND", "CREATED"] * 3
    assert [a.task["title"] for a in answers if not isinstance(a, TenureError)] == ["t0", "t2", "t3", "t5", "t6", "t8"]


class Picky(Failing):
    """Cannot store a task with the title `bad`."""

    def fails(self, verb: str, about: Any) -> None:
        if verb == "save" and any(getattr(change.after, "title", "") == "bad" for change in about):
            raise self._error


@pytest.mark.parametrize(
    "error",
    [StoreError("no"), Conflict("never"), StoreUnavailable("full"), InvalidInput("no column for it"), Bug("ours")],
)
def test_what_the_store_cannot_keep_costs_only_the_command_it_is_about(error: TenureError) -> None:
    room = Room(Picky(memory(), "save", error))
    room.blocked()
    promises = [room.batcher.submit(add("bad" if n == 3 else f"t{n}"), caller=n) for n in range(7)]
    room.engine.let_all()
    answers = [p.exception(30) or p.result() for p in promises]
    assert [code_of(a) for a in answers] == ["CREATED"] * 3 + [error.code] + ["CREATED"] * 3
    room.end()
    assert stored(room.store) == ["first", "t0", "t1", "t2", "t4", "t5", "t6"]


def test_a_store_that_is_away_is_asked_once_for_a_batch() -> None:
    class Away(Failing):
        begun = 0

        def begin(self, tenant: str, *, write: bool) -> Any:
            if write:
                self.begun += 1
                raise StoreUnavailable("nobody is there")
            return self._store.begin(tenant, write=write)

    store = Away(memory(), "", StoreUnavailable(""))
    room = Room(store)
    promises = [room.batcher.submit(add(f"t{n}"), caller="one") for n in range(100)]
    room.engine.let_all()
    errors = [p.exception(30) for p in promises]
    assert {code_of(e) for e in errors if isinstance(e, TenureError)} == {"STORE_UNAVAILABLE"}
    assert store.begun == len(room.engine.batches)
    room.end()


def test_an_unknown_outcome_reaches_all_of_its_transaction_and_nobody_else() -> None:
    class Lost(Failing):
        def fails(self, verb: str, about: Any) -> None:
            if verb == "append" and any(event.details.get("title") == "t1" for event in about):
                raise OutcomeUnknown("the answer was lost")

    room = Room(Lost(memory(), "append", StoreError("")))
    room.blocked()
    among = [room.batcher.submit(add(f"t{n}"), caller=n) for n in range(3)]
    room.engine.let()
    assert titles(room.engine.next_batch()) == ["t0", "t1", "t2"]
    after = [room.batcher.submit(add(f"u{n}"), caller=n) for n in range(3)]
    room.engine.let_all()
    errors = [p.exception(30) for p in among]
    assert [code_of(e) for e in errors if isinstance(e, TenureError)] == ["OUTCOME_UNKNOWN"] * 3
    assert len({id(e) for e in errors}) == 3, "each may raise its own"
    assert {str(e) for e in errors} == {"the answer was lost"}
    assert [p.result(30).outcome for p in after] == ["CREATED"] * 3
    room.end()


# --- order and turns ---


class Watching(Held):
    """Notes when a caller, the first word of a title, is in two batches at once."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.flying: list[str] = []
        self.twice: list[str] = []

    def commit_checked(self, batch: Sequence[CheckedCommand], callers: Sequence[Hashable]) -> list[Reply]:
        named = list({title.split()[0] for title in titles([a.item.command for a in batch])})
        self.twice += [caller for caller in named if caller in self.flying]
        self.flying += named
        answers = super().commit_checked(batch, callers)
        for caller in named:
            self.flying.remove(caller)
        return answers


@pytest.mark.parametrize("in_flight", [1, 2, 4])
def test_commands_of_one_caller_keep_their_order_and_are_in_one_batch_at_a_time(in_flight: int) -> None:
    engine = Watching(memory())
    batcher = Batcher(engine, in_flight=in_flight)
    callers = [f"c{n}" for n in range(5)]
    for n in range(30):
        for caller in callers:
            batcher.submit(add(f"{caller} {n:02d}"), caller=caller)
        engine.let()  # now and then, while more is coming
    engine.let_all()
    batcher.close()
    assert engine.twice == []
    order = [title for batch in engine.batches for title in titles(batch)]
    for caller in callers:
        assert [t for t in order if t.startswith(caller)] == [f"{caller} {n:02d}" for n in range(30)]


def test_a_second_batch_flies_beside_the_first_but_never_with_the_same_caller() -> None:
    room = Room(in_flight=2)
    room.blocked()
    behind = room.batcher.submit(add("behind the first", OTHER), caller="first")
    room.batcher.submit(add("beside", OTHER), caller="other")
    assert titles(room.engine.next_batch()) == ["beside"]
    assert not behind.running()
    room.engine.let_all()
    assert behind.result(30).outcome == "CREATED"
    room.end()


def test_no_two_batches_are_in_one_project() -> None:
    room = Room(in_flight=2)
    room.blocked()
    aside = [room.batcher.submit(add(f"aside {n}"), caller=f"aside {n}") for n in range(3)]
    room.batcher.submit(add("beside", OTHER), caller="other")
    room.batcher.submit(add("behind that"), caller="other")
    assert titles(room.engine.next_batch()) == ["beside"]
    assert not any(promise.running() for promise in aside)
    assert aside[1].cancel()
    room.engine.let_all()
    assert all(promise.result(30).outcome == "CREATED" for promise in (aside[0], aside[2]))
    room.end()
    assert stored(room.store) == ["first", "aside-0", "aside-2", "behind-that"]
    assert room.batcher.waiting == 0


def test_a_batch_leaves_some_of_many_projects_to_the_one_beside_it() -> None:
    room = Room(in_flight=2)
    room.blocked()
    room.batcher.submit(add("beside", OTHER), caller="other")
    room.engine.next_batch()
    names = [f"project-{n}" for n in range(MOST_PROJECTS + 2)]
    for name in names:
        Engine(room.store, Dice()).do(c.DefineProject(project=name))
    promises = [room.batcher.submit(add(f"{n} {name}", name), caller=(n, name)) for n in (1, 2) for name in names]
    room.engine.let()
    most, rest = names[:MOST_PROJECTS], names[MOST_PROJECTS:]
    assert titles(room.engine.next_batch()) == [f"{n} {name}" for n in (1, 2) for name in most]
    room.engine.let()
    assert titles(room.engine.next_batch()) == [f"{n} {name}" for n in (1, 2) for name in rest]
    room.engine.let_all()
    assert all(promise.result(30).outcome == "CREATED" for promise in promises)
    room.end()


def test_the_next_batch_need_not_wait_until_the_answers_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room(in_flight=2)
    room.blocked()
    room.batcher.submit(add("next"), caller="other")
    may_tell = threading.Event()

    def told(answers: Sequence[Any]) -> Sequence[Any]:
        assert may_tell.wait(30)
        return engine.final_answers(answers)

    monkeypatch.setattr("tenure.engine.runtime.batcher.final_answers", told)
    room.engine.let()
    assert titles(room.engine.next_batch()) == ["next"]
    may_tell.set()
    room.end()


def test_callers_take_turns(room: Room) -> None:
    room.blocked()
    for n in range(2000):
        room.batcher.submit(add(f"greedy {n}"), caller="greedy")
    for n in range(3):
        room.batcher.submit(add(f"modest {n}"), caller=f"modest {n}")
    room.engine.let()
    batch = titles(room.engine.next_batch())
    assert batch[:4] == ["greedy 0", "modest 0", "modest 1", "modest 2"]
    room.batcher.submit(add("late"), caller="late")
    room.engine.let()
    assert titles(room.engine.next_batch())[:2] == ["late", "greedy 497"]


def test_a_batch_is_of_one_tenant_and_tenants_take_turns(room: Room) -> None:
    room.blocked()
    tenants = {}
    for name in ("acme", "zeta"):
        made = Engine(room.store, Dice(), Context(tenant=name))
        made.do(c.DefineProject(project=PROJECT))
        tenants[name] = room.batcher.of(made)
    promises = [tenants["acme"].submit(add(f"acme {n}"), caller=n) for n in range(3)]
    promises += [tenants["zeta"].submit(add(f"zeta {n}"), caller=n) for n in range(3)]
    promises += [room.batcher.submit(add(f"home {n}"), caller=n) for n in range(3)]
    room.engine.let_all()
    assert all(promise.result(30).outcome == "CREATED" for promise in promises)
    for name in ("acme", "zeta"):
        with room.store.begin(name, write=False) as tx:
            keys = [task.key.split("-", 2)[2] for task in tx.find(Task, {}, order="sequence")]
        assert keys == [f"{name}-{n}" for n in range(3)]
    assert stored(room.store) == ["first", "home-0", "home-1", "home-2"]


def test_a_thread_is_one_caller_unless_it_says_otherwise(room: Room) -> None:
    room.blocked()
    promises = [room.batcher.submit(add(f"t{n}")) for n in range(3)]
    room.engine.let_all()
    assert room.batcher.do(add("t3")).outcome == "CREATED"
    assert all(p.done() for p in promises), "it came after what the thread sent before"
    assert stored(room.store) == ["first", "t0", "t1", "t2", "t3"]


# --- bounds ---


def test_over_its_bound_it_refuses_at_once_and_keeps_nothing() -> None:
    room = Room(most_waiting=3)
    room.blocked()
    waiting = [room.batcher.submit(add(f"t{n}"), caller=n) for n in range(3)]
    for ask in (room.batcher.submit, room.batcher.do):
        with pytest.raises(Overloaded, match="3 commands") as caught:
            ask(add("one too many"), caller="other")  # type: ignore[operator]  # two ways to ask
        assert (caught.value.code, caught.value.definite) == ("OVERLOADED", True)
        assert "again" in (caught.value.hint or "")
    assert room.batcher.waiting == 3
    room.engine.let_all()
    assert [p.result(30).outcome for p in waiting] == ["CREATED"] * 3
    assert room.batcher.do(add("later")).outcome == "CREATED"
    room.end()
    assert stored(room.store) == ["first", "t0", "t1", "t2", "later"]


def test_bytes_that_wait_are_bounded_too() -> None:
    room = Room(most_bytes=8 << 20)
    room.blocked()
    large = c.Note(project=PROJECT, task="A-001", text="x" * (5 << 20))
    waiting = room.batcher.submit(large, caller="one")
    with pytest.raises(Overloaded, match="bytes"):
        room.batcher.submit(large, caller="two")
    assert waiting.cancel()
    room.batcher.submit(large, caller="two")  # what left has made room
    room.end()


@pytest.mark.parametrize("options", [{"in_flight": 0}, {"most_waiting": 0}, {"most_bytes": 1000}])
def test_bounds_that_let_nothing_through_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(InvalidInput):
        Batcher(Held(memory()), **options)  # type: ignore[arg-type]  # one option at a time
