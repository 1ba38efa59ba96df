"""Guards that a second one hides: each is asked alone, with rows that no engine would leave like that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure.client.caller import SystemRandom
from tenure.core import commands as c
from tenure.core import team
from tenure.core.errors import StoreUnavailable
from tenure.core.ids import Receipt, parse_receipt
from tenure.core.records import Claim, Row, Session, Task, replace
from tenure.engine import Engine
from tenure.stores.fast_path import Unusual
from tenure.stores.port import Asked, Change, Transaction
from tenure.stores.postgres import Postgres
from tenure.testing.samples import event_of
from tests.servers.postgres import PostgresServer, url_of
from tests.stores.test_postgres_sharing import P, added, asked_for, handed_in, renewal

OTHER_EPOCH = "00000000"
NEEDS_A, NEEDS_B, NEEDS_C = ({"required_capabilities": [one]} for one in "abc")


@pytest.fixture
def store(postgres: PostgresServer, tmp_path: Path) -> Iterator[Postgres]:
    store = Postgres(url_of(tmp_path))
    _URLS[id(store)] = url_of(tmp_path)
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


_URLS: dict[int, str] = {}


def store_url(store: Postgres) -> str:
    return _URLS[id(store)]


def read_epoch(tx: Transaction) -> None:
    tx.lock("write", [P])
    assert tx.epoch  # the first question takes the locks


def granted(store: Postgres) -> str:
    """A receipt of the one task, by a call of the store."""
    call = asked_for(store, 1)
    ((*_, epoch, _held),) = ((row[0], row[4], row[5]) for row in store.call("local", [call])[0]())
    return str(Receipt(only(store, Task).ref, 1, epoch, call.nonces))


def refuses(store: Postgres, *calls: Any) -> None:
    before = only(store, Task)
    for call in calls:
        with pytest.raises(Unusual):
            store.call("local", [call])
    assert only(store, Task) == before


def named(store: Postgres) -> str:
    """A receipt of the one task, of a claim with a row of its own."""
    claim = c.ClaimTask(project=P, task=only(store, Task).key, agent="ann0", session="s0")
    return str(Engine(store, SystemRandom()).do(claim).receipt)


FORMS = {"narrow": granted, "own row": named}
OTHERS: dict[str, dict[str, Any]] = {
    "generation": {"generation": [2]},
    "nonce": {"nonces": b"x" * 16},
    "epoch": {"epoch": OTHER_EPOCH},
    "task": {"ref": ["Z-999"]},
    "agent": {"agent": ["bo"]},
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("form", FORMS)
def test_a_holder_is_asked_for_all_that_its_receipt_says(store: Postgres, task: Task, form: str, other: str) -> None:
    receipt, changed = FORMS[form](store), OTHERS[other]
    assert parse_receipt(receipt).epoch != OTHER_EPOCH
    calls = handed_in(store, [receipt], **changed), renewal(store, [receipt], **changed)
    refuses(store, *calls, calls[0]._replace(follows=True))
    assert len(store.call("local", [renewal(store, [receipt])])[0]()) == 1
    assert len(store.call("local", [handed_in(store, [receipt])])[0]()) == 1


def test_a_claim_with_a_row_of_its_own_is_asked_too(store: Postgres, task: Task) -> None:
    receipt = named(store)
    rewritten(store, only(store, Claim), state="released")
    refuses(store, handed_in(store, [receipt]))


def test_a_call_that_is_refused_leaves_its_transaction_as_it_was(store: Postgres, task: Task) -> None:
    receipt = granted(store)
    with store.begin("local", write=True) as tx:
        tx.lock("write", [P])
        with pytest.raises(Unusual):
            tx.call(handed_in(store, [receipt], nonces=b"x" * 16))
        assert len(tx.call(handed_in(store, [receipt]))()) == 1
    assert only(store, Task).state == "completed"


@pytest.mark.parametrize(
    "fields", [{"claim_epoch": OTHER_EPOCH}, {"plain": False}, {"generation": 2}, {"lease_until": 1}], ids=str
)
def test_a_holders_row_is_asked_too(store: Postgres, task: Task, fields: dict[str, Any]) -> None:
    receipt = granted(store)
    rewritten(store, only(store, Task), **fields)
    refuses(store, handed_in(store, [receipt]), renewal(store, [receipt]))


def test_a_receipt_of_an_ended_epoch_is_refused_though_its_row_is_left(store: Postgres, task: Task) -> None:
    """Every live claim is ended with its epoch, in as many transactions as that takes."""
    receipt = granted(store)
    with store.begin("local", write=True) as tx:
        tx.set_epoch(OTHER_EPOCH)
    refuses(store, handed_in(store, [receipt]), renewal(store, [receipt]))


@pytest.mark.parametrize("fields", [{"lane": None}, {"state": "pending"}, {"plain": False}, {"generation": 1}])
def test_a_claim_takes_nothing_that_is_not_ready_and_plain(store: Postgres, task: Task, fields: dict[str, Any]) -> None:
    """The queue is asked first, and the row again: here they do not say the same."""
    names = ", ".join(f"{name} = ?" for name in fields)
    schema = store.queries.dialect.schema
    store.use(lambda link: link.run([(f"UPDATE {schema}task_hot SET {names}", list(fields.values()))]))
    refuses(store, asked_for(store, 1))


def test_a_call_is_refused_where_what_it_relies_on_has_changed(store: Postgres, task: Task) -> None:
    call = asked_for(store, 1)
    others = ({"seen": "other"}, {"skills": ["other"]}, {"lanes": ["A|code|other|10|"]}, {"session": ["s9"]})
    refuses(store, *(call._replace(**other) for other in others))
    assert len(store.call("local", [call])[0]()) == 1


@pytest.mark.parametrize(
    "unknown",
    [{"type": "build"}, {"constraints": NEEDS_A}, {"constraints": NEEDS_C}],
    ids=["before", "between", "behind"],
)
def test_a_lane_that_the_caller_does_not_know_might_have_had_the_best_task(
    store: Postgres, task: Task, unknown: dict[str, Any]
) -> None:
    engine = Engine(store, SystemRandom())
    added(engine, 1, constraints=NEEDS_B)
    known = asked_for(store, 1)
    added(engine, 1, **unknown)
    with pytest.raises(Unusual, match="lanes"):
        store.call("local", [known])
    look = store.look("local", P, ())
    assert look is not None
    assert (len(look.lanes), len(known.lanes)) == (3, 2)
    assert look.lanes == sorted(look.lanes)


def test_what_was_read_ahead_is_not_used_after_a_write(store: Postgres, task: Task) -> None:
    with store.begin("local", write=True) as tx:
        tx.lock("write", [P])
        tx.expect([Asked("load", (Task, [(P, task.id)]))])
        assert tx.load(Task, [(P, task.id)]) == [task]
        tx.save([Change(task, replace(task, height=7))])
        assert [found.height for found in tx.load(Task, [(P, task.id)])] == [7]


def test_a_call_is_refused_while_a_task_is_due(store: Postgres, task: Task) -> None:
    """Also a call that concerns another task: every answer is one of settled rows."""
    call = asked_for(store, 1)
    rewritten(store, task, due_at=1)
    refuses(store, call)


@pytest.mark.parametrize("known", [0, -1, 1_000_000])
def test_the_server_that_goes_back_in_time_does_not_take_the_log_with_it(
    store: Postgres, task: Task, known: int
) -> None:
    """Whichever event of the project the caller knows; a store that was restored may have lost it."""
    with store.begin("local", write=False) as tx:
        (last,) = tx.events({"project": P}, limit=1, last=True)
    call = asked_for(store, 1)
    behind = Postgres(store_url(store), clock=lambda: last.time - 600_000_000)
    behind.last_events["local", P] = last.sequence + known
    ((_, now, *_),) = behind.call("local", [call])[0]()
    assert now == last.time
    assert behind.last_events == {("local", P): last.sequence + 1}
    behind.close()


@pytest.mark.parametrize("known", [0, None])
def test_time_does_not_go_back_behind_claims_of_the_fast_path_either(
    store: Postgres, task: Task, known: int | None
) -> None:
    """Their events are in a block, behind the last row of the log itself."""
    added(Engine(store, SystemRandom()), 1)
    first, second = asked_for(store, 1), asked_for(store, 1, seed=b"d" * 10)
    store.call("local", [first])
    with store.begin("local", write=False) as tx:
        (last,) = tx.events({"project": P}, limit=1, last=True)
    schema = store.queries.dialect.schema
    assert store._read(f"SELECT max(last) FROM {schema}event_block") == [(last.sequence,)]
    assert store._read(f"SELECT max(time) < {last.time} FROM {schema}event") == [(True,)]
    behind = Postgres(store_url(store), clock=lambda: last.time - 600_000_000)
    if known is not None:
        behind.last_events["local", P] = last.sequence + known
    ((_, now, *_),) = behind.call("local", [second])[0]()
    assert now == last.time
    behind.close()


@pytest.mark.parametrize(("silent", "is_refused"), [(0, True), (1_000_000, False)], ids=["idle", "not yet"])
def test_a_session_that_was_silent_too_long_claims_nothing_by_the_fast_path(
    store: Postgres, task: Task, silent: int, is_refused: bool
) -> None:
    """A sweep that has not come by yet makes no difference."""
    session = only(store, Session)
    now = session.last_activity + team.SESSION_IDLE - silent
    later = Postgres(store_url(store), clock=lambda: now)
    if is_refused:
        with pytest.raises(Unusual, match="claimants"):
            later.call("local", [asked_for(later, 1)])
        assert only(store, Task) == task
    else:
        assert len(later.call("local", [asked_for(later, 1)])[0]()) == 1
    later.close()


def test_what_is_not_due_any_more_holds_up_nobody(store: Postgres, task: Task) -> None:
    """A block of due times outlives its tasks, and whoever meets it drops it."""
    receipt = granted(store)
    store.call("local", [renewal(store, [receipt])])
    store.call("local", [handed_in(store, [receipt])])
    schema = store.queries.dialect.schema
    blocks = f"SELECT count(*) FROM {schema}due_block"
    assert store._read(blocks) == [(2,)]
    with store.begin("local", write=False) as tx:
        assert tx.next_due(P) is None
    engine = Engine(store, SystemRandom())
    added(engine, 1)
    later = Postgres(store_url(store), clock=lambda: 1 << 60)
    assert not _is_due(later)
    assert store._read(blocks) == [(0,)]
    later.close()


def _is_due(store: Postgres) -> bool:
    with store.begin("local", write=True) as tx:
        found: bool = tx.is_due(P)
        tx.append([event_of(id="e", project="q")])
    return found


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
