"""What the parts of the store's suite share: how a store is opened, filled and looked at."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings

from tenure.core.events import Event
from tenure.core.records import PrunedLeaves, Row, Seal
from tenure.stores.port import KEEPS_SEALS, Change, Clock, Store, Transaction
from tenure.testing.clock import FakeClock

R = TypeVar("R", bound=Row)


class Setting:
    """Every test gets `store`, new and empty, and its `clock`."""

    def open_store(self, tmp_path: Path, clock: Clock) -> Store:
        """The store of this folder: a new one at first, later the same one again."""
        raise NotImplementedError

    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock()

    @pytest.fixture
    def store(self, tmp_path: Path, clock: FakeClock) -> Iterator[Store]:
        store = self.open_store(tmp_path, clock)
        yield store
        store.close()


def examples(number: int) -> settings:
    """Run `number` examples with Hypothesis's default profile; another profile's `max_examples` scales it.

    Neither the store nor the machine need be fast: there is no deadline, and no check of how fast examples are drawn.
    """
    return settings(
        max_examples=max(1, number * settings().max_examples // 100),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def needs(store: Store, feature: str) -> None:
    if feature not in store.features:
        pytest.skip(f"does not declare {feature!r}")


def needs_change_of(store: Store, kind: type[Row]) -> None:
    """For a test that changes or removes a row of this kind."""
    if KEEPS_SEALS in store.features and kind in (Seal, PrunedLeaves):
        pytest.skip("this store lets nobody change a seal")


def write(store: Store, *changes: Change, events: Collection[Event] = (), tenant: str = "local") -> None:
    with store.begin(tenant, write=True) as transaction:
        transaction.save(changes)
        transaction.append(list(events))


@contextmanager
def trial(store: Store) -> Iterator[Transaction]:
    """A write transaction that is taken back at its end, so that one store serves many examples."""
    with suppress(_TakenBack), store.begin("local", write=True) as transaction:
        yield transaction
        raise _TakenBack


class _TakenBack(Exception):  # not an error: it ends a block so that nothing stays
    pass


def add(store: Store, *rows: Row) -> None:
    write(store, *(Change(None, row) for row in rows))


def stored(store: Store, kind: type[R]) -> dict[tuple[str, str], R]:
    """All rows of a kind."""
    with store.begin("local", write=False) as transaction:
        return {(row.project, row.id): row for row in transaction.find(kind, {})}


def logged(store: Store) -> list[Event]:
    with store.begin("local", write=False) as transaction:
        transaction.lock("log", ())
        return transaction.events({}, limit=1_000_000)
