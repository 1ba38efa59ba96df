"""Guards that a second one hides: each is asked alone, with rows that no engine would leave like that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.client.caller import SystemRandom
from tenure.core import commands as c
from tenure.core.errors import StoreUnavailable
from tenure.core.records import Claim, Row, Task, replace
from tenure.engine import Engine
from tenure.stores.fast_path import NeedsSlowPath
from tenure.stores.port import Change, Transaction
from tenure.stores.postgres import Postgres
from tests.servers.postgres import PostgresServer, url_of
from tests.stores.test_postgres_sharing import P, added, completes, grants, renewal

OTHER_EPOCH = "00000000"


@pytest.fixture
def store(postgres: PostgresServer, tmp_path: Path) -> Iterator[Postgres]:
    store = Postgres(url_of(tmp_path))
    yield store
    store.close()


@pytest.fixture
def impatient(store: Postgres, tmp_path: Path) -> Iterator[Postgres]:
    """It gives up at once where it would have to wait for a lock."""
    impatient = Postgres(url_of(tmp_path), patience=0.05)
    yield impatient
    impatient.close()


@pytest.fixture
def task(store: Postgres) -> Task:
    """One that is ready and plain."""
    engine = Engine(store, SystemRandom())
    engine.do(c.DefineProject(project=P))
    engine.do(c.Register(project=P, agent="ann0", session="s0"))
    added(engine, 1)
    return only(store, Task)


def only(store: Postgres, kind: type[Row]) -> Task:
    with store.begin("local", write=False) as tx:
        (row,) = tx.find(kind, {"project": P})
    return row  # type: ignore[return-value]  # tasks, mostly


def rewritten(store: Postgres, row: Row, **fields: object) -> None:
    with store.begin("local", write=True) as tx:
        tx.lock("write", [P])
        tx.save([Change(row, replace(row, **fields))])


def read_epoch(tx: Transaction) -> None:
    tx.lock("write", [P])
    assert tx.epoch  # the first question takes the locks


def renews(store: Postgres, receipt: str) -> int:
    with store.begin("local", write=True) as tx:
        tx.lock("share", [P])
        renewed = tx.renew([renewal(receipt, "evt_renewed")], 1, 0, last=False)
    return len(renewed())


@pytest.mark.parametrize("kind", [Task, Claim])
def test_the_fast_path_checks_the_epoch_in_the_task_and_in_the_claim(
    store: Postgres, task: Task, kind: type[Task] | type[Claim]
) -> None:
    (receipt,) = grants(store, [task.id])
    assert renews(store, receipt) == 1
    row = only(store, kind)
    rewritten(store, row, **{"claim_epoch" if kind is Task else "epoch": OTHER_EPOCH})
    assert renews(store, receipt) == 0
    with pytest.raises(NeedsSlowPath):
        completes(store, [receipt])
    assert only(store, Task).state != "completed"


def test_the_fast_path_grants_nothing_that_stands_in_no_lane(store: Postgres, task: Task) -> None:
    """It may have been set aside, or offered to another, since its lane was read."""
    rewritten(store, task, lane=None)
    with pytest.raises(NeedsSlowPath):
        grants(store, [task.id])
    assert only(store, Task).generation == 0


def test_a_new_epoch_waits_for_every_writer_that_has_read_the_old_one(store: Postgres, impatient: Postgres) -> None:
    with store.begin("local", write=True) as writer:
        read_epoch(writer)
        with pytest.raises(StoreUnavailable), impatient.begin("local", write=True) as other:
            other.set_epoch(OTHER_EPOCH)
    with impatient.begin("local", write=True) as other:
        other.set_epoch(OTHER_EPOCH)


def test_no_writer_begins_while_a_new_epoch_is_put_in_force(store: Postgres, impatient: Postgres) -> None:
    with store.begin("local", write=True) as tx:
        tx.set_epoch(OTHER_EPOCH)
        with pytest.raises(StoreUnavailable), impatient.begin("local", write=True) as writer:
            read_epoch(writer)
    with impatient.begin("local", write=True) as writer:
        assert writer.epoch == OTHER_EPOCH
