"""Rows and events commit together or not at all, and whole transactions are tried again inside."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core.errors import Conflict, OutcomeUnknown, StoreError, StoreUnavailable, TenureError
from tenure.core.records import Task
from tenure.engine import Context, Engine
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.stores.open_store import open_store
from tenure.testing import FakeClock


class Chance:
    """Counts up, so that every run is the same."""

    def __init__(self) -> None:
        self.count = 0

    def token(self, size: int) -> bytes:
        self.count += 1
        return self.count.to_bytes(size, "big")

    def fraction(self) -> float:
        return 0.5


class Failing:
    """A real store whose transactions fail at one verb for the first `times` times."""

    def __init__(self, store: Any, verb: str, error: Exception, times: int = 1) -> None:
        self._store, self._verb, self._error, self._times = store, verb, error, times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @contextmanager
    def begin(self, tenant: str, *, write: bool) -> Iterator[Any]:
        with self._store.begin(tenant, write=write) as tx:
            yield _FailingTransaction(tx, self)

    def fails(self, verb: str, about: Any) -> None:
        if verb == self._verb and self._times > 0 and about:
            self._times -= 1
            raise self._error


class _FailingTransaction:
    def __init__(self, tx: Any, store: Failing) -> None:
        self._tx, self._failing = tx, store

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._tx, name)
        if name not in ("save", "append"):
            return real

        def call(about: Any, **how: Any) -> None:
            self._failing.fails(name, about)
            real(about, **how)

        return call


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/t/tenure.db"
    opened = open_store(url, clock=FakeClock())
    Engine(opened, Chance()).do(c.DefineProject(project="p"))
    yield opened
    opened.close()


def keys(store: Any) -> list[str]:
    with store.begin("local", write=False) as tx:
        return [t.key for t in tx.find(Task, {"project": "p"})]


def add(title: str) -> c.Add:
    return c.Add(project="p", task=c.NewTask(title=title))


def test_rows_without_their_events_are_never_kept(store: Any) -> None:
    engine = Engine(Failing(store, "append", StoreUnavailable("the disk is gone")), Chance())
    with pytest.raises(StoreUnavailable):
        engine.do(add("first"))
    assert keys(store) == []


def test_a_conflict_runs_the_whole_transaction_again(store: Any) -> None:
    waits: list[float] = []
    engine = Engine(
        Failing(store, "save", Conflict("changed under us"), times=3), Chance(), Context(pause=waits.append)
    )
    assert engine.do(add("first")).outcome == "CREATED"
    assert keys(store) == ["A-001-first"]
    assert len(waits) == 3


def test_a_conflict_that_does_not_end_reaches_the_caller_as_definite(store: Any) -> None:
    engine = Engine(Failing(store, "save", Conflict("changed under us"), times=10**6), Chance())
    with pytest.raises(Conflict) as caught:
        engine.do(add("first"))
    assert caught.value.definite
    assert keys(store) == []


def test_a_lost_answer_is_told_as_unknown(store: Any) -> None:
    engine = Engine(Failing(store, "append", OutcomeUnknown("the answer was lost")), Chance())
    with pytest.raises(OutcomeUnknown) as caught:
        engine.do(add("first"))
    assert not caught.value.definite


def test_a_store_error_in_a_batch_costs_only_the_command_it_is_about(store: Any) -> None:
    class Picky(Failing):
        def fails(self, verb: str, about: Any) -> None:
            if verb == "save" and any(getattr(ch.after, "title", "") == "bad" for ch in about):
                raise StoreError("this row cannot be stored")

    engine = Engine(Picky(store, "save", StoreError("")), Chance())
    answers = engine.run([add("one"), add("two"), add("bad"), add("four")])
    assert [a.code if isinstance(a, TenureError) else a.outcome for a in answers] == [
        "CREATED", "CREATED", "STORE_ERROR", "CREATED",
    ]  # fmt: skip
    assert sorted(keys(store)) == ["A-001-one", "A-002-two", "A-003-four"]


def test_the_rows_of_a_transaction_are_freed_with_its_end(store: Any) -> None:
    engine = Engine(store, Chance())
    engine.do(add("first"))
    gc.collect()
    gc.disable()
    try:
        before = sum(isinstance(found, UnitOfWork) for found in gc.get_objects())
        granted = engine.do(c.ClaimNext(project="p", agent="ann", session="s"))
        engine.do(c.Submit(project="p", receipt=granted.receipt or "", data={}))
        assert sum(isinstance(found, UnitOfWork) for found in gc.get_objects()) == before
    finally:
        gc.enable()
