"""Batches that only fused verbs write share a project: they run side by side, and nobody sees anything torn."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tenure.client.caller import SystemRandom
from tenure.core import commands as c
from tenure.core.commands import NewTask
from tenure.core.errors import Conflict, StoreUnavailable, TenureError
from tenure.core.ids import Receipt, parse_receipt
from tenure.core.records import Agent, Result, Task
from tenure.engine import Context, Engine
from tenure.engine.runtime.optimistic import FROM
from tenure.stores.fast_path import TOLD, Completion, Grant, NeedsSlowPath, Renewal
from tenure.stores.port import Change
from tenure.stores.postgres import Postgres, hot_statements, statement_texts
from tenure.stores.postgres.log_cursor import settled
from tenure.testing.samples import event_of, row_of
from tenure.testing.suites.store_setting import logged
from tests.servers.postgres import PostgresServer, url_of

P = "shop"
MANY = FROM + 2


@pytest.fixture
def store(postgres: PostgresServer, tmp_path: Path) -> Iterator[Postgres]:
    store = Postgres(url_of(tmp_path))
    yield store
    store.close()


@pytest.fixture
def impatient(postgres: PostgresServer, tmp_path: Path) -> Iterator[Engine]:
    """An engine that gives up at once where it would have to wait for somebody else's lock."""
    store = Postgres(url_of(tmp_path), patience=0.05)
    yield Engine(store, SystemRandom())
    store.close()


@pytest.fixture
def engine(store: Postgres) -> Engine:
    engine = Engine(store, SystemRandom(), Context(pause=lambda _: None))
    engine.do(c.DefineProject(project=P))
    engine.run([c.Register(project=P, agent=f"ann{n}", session=f"s{n}") for n in range(MANY)])
    return engine


def added(engine: Engine, count: int = MANY, **fields: Any) -> list[str]:
    made = engine.run([c.Add(project=P, task=NewTask(title=f"Task {n}", **fields)) for n in range(count)])
    return [str(m.task["key"]) for m in made]  # type: ignore[union-attr, index]


def claims(request: str = "r") -> list[c.ClaimNext]:
    return [c.ClaimNext(project=P, agent=f"ann{n}", session=f"s{n}", request_id=f"{request}-{n}") for n in range(MANY)]


def claimed(engine: Engine, request: str = "r") -> list[str]:
    return [str(answer.receipt) for answer in engine.run(claims(request))]  # type: ignore[union-attr]


def submits(receipts: list[str]) -> list[c.Submit]:
    return [c.Submit(project=P, receipt=r, data=n, request_id=f"s-{r}") for n, r in enumerate(receipts)]


def told(answers: list[Any]) -> list[str]:
    return [a.code if isinstance(a, TenureError) else a.outcome for a in answers]


class Busy:
    """Somebody else who shares the project, in the midst of a transaction."""

    def __init__(self, store: Postgres, *names: str) -> None:
        self._store, self._names = store, names

    def __enter__(self) -> None:
        self._tx = self._store.begin("local", write=True)
        tx = self._tx.__enter__()
        for name in self._names or ("share",):
            tx.lock(name, [P])
        assert tx.now  # the first question takes them

    def __exit__(self, *error: object) -> None:
        self._tx.__exit__(None, None, None)


# --- who may be there at the same time -------------------------------------------------------------------------


def test_holders_and_claimers_run_side_by_side(engine: Engine, store: Postgres, impatient: Engine) -> None:
    added(engine, 2 * MANY)
    receipts = claimed(engine)
    with Busy(store):
        assert told(impatient.run([c.Renew(project=P, receipt=r) for r in receipts])) == ["RENEWED"] * MANY
        assert told(impatient.run(claims("again"))) == ["GRANTED"] * MANY
        assert told(impatient.run(submits(receipts))) == ["ACCEPTED"] * MANY
    assert engine.verify() == []


def test_claims_go_one_after_another(engine: Engine, store: Postgres, impatient: Engine) -> None:
    added(engine)
    with Busy(store, "share", "claim"):
        assert told(impatient.run(claims())) == ["STORE_UNAVAILABLE"] * MANY
    assert told(impatient.run(claims())) == ["GRANTED"] * MANY


def test_nobody_is_beside_one_who_decides(engine: Engine, store: Postgres, impatient: Engine) -> None:
    added(engine)
    receipts = claimed(engine)
    with Busy(store, "write"):
        assert told(impatient.run(submits(receipts))) == ["STORE_UNAVAILABLE"] * MANY
    with Busy(store), pytest.raises(StoreUnavailable):
        impatient.do(c.Add(project=P, task=NewTask(title="x")))
    assert told(impatient.run(submits(receipts))) == ["ACCEPTED"] * MANY


def _with_a_dependent(engine: Engine) -> list[Any]:
    keys = added(engine)
    receipts = claimed(engine)
    engine.do(c.Add(project=P, task=NewTask(title="after", depends_on=(keys[3],))))
    return list(submits(receipts))


def _with_a_stale_receipt(engine: Engine) -> list[Any]:
    added(engine)
    receipts = claimed(engine)
    engine.do(c.Release(project=P, receipt=receipts[2]))
    return list(submits(receipts))


def _with_a_receipt_of_nothing(engine: Engine) -> list[Any]:
    """Refused without a word in any row: what is not there must not come while it is looked for."""
    added(engine)
    receipts = claimed(engine)
    return list(submits([*receipts[1:], "Z-999" + receipts[0][receipts[0].index("@") :]]))


def _with_somebody_new(engine: Engine) -> list[Any]:
    added(engine)
    return [*claims()[1:], c.ClaimNext(project=P, agent="new", session="s-new")]


def _with_another_verb(engine: Engine) -> list[Any]:
    added(engine)
    receipts = claimed(engine)
    return [*submits(receipts[1:]), c.Release(project=P, receipt=receipts[0])]


@pytest.mark.parametrize(
    "batch",
    [_with_a_dependent, _with_a_stale_receipt, _with_a_receipt_of_nothing, _with_somebody_new, _with_another_verb],
)
def test_what_has_to_be_decided_is_decided_alone(
    engine: Engine, store: Postgres, impatient: Engine, batch: Callable[[Engine], list[Any]]
) -> None:
    commands = batch(engine)
    with Busy(store):
        assert set(told(impatient.run(commands))) == {"STORE_UNAVAILABLE"}
    assert "STORE_UNAVAILABLE" not in told(impatient.run(commands))
    assert engine.verify() == []


def test_after_a_batch_that_had_to_be_alone_sharing_is_tried_again(
    engine: Engine, store: Postgres, impatient: Engine
) -> None:
    impatient.run(_with_a_stale_receipt(engine))
    added(engine, 2 * MANY)
    first, second = claimed(engine, "one"), claimed(engine, "two")
    assert told(impatient.run(submits(first))) == ["ACCEPTED"] * MANY  # alone: it is left so for one batch
    with Busy(store):
        assert told(impatient.run(submits(second))) == ["ACCEPTED"] * MANY


# --- two at one row --------------------------------------------------------------------------------------------


def completion(receipt: str, result: str) -> Completion:
    own = parse_receipt(receipt)
    return Completion(
        P, own.name, own.generation, own.nonce, result, None, "", 4, "0" * 32, None, f"evt_{result}", "cmd_1", None,
        None, None, f'{{"id":"{result}","project":"{P}","size":4,"digest":"{"0" * 32}"}}',
    )  # fmt: skip


def renewal(receipt: str, event: str) -> Renewal:
    own = parse_receipt(receipt)
    return Renewal(
        P, own.name, own.generation, own.nonce, None, event, "cmd_1", None, None, None, None, None
    )  # fmt: skip


WAITS = "SELECT count(*) FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted"


def without_address(text: str) -> str:
    """As a server runs it that does not look at the address again when it has waited for another writer."""
    return re.sub(r"\b[tc]\.ctid = f\.\w+\s+AND ", "", text)


@pytest.mark.parametrize("server", ["checks the address again", "does not"])
@pytest.mark.parametrize("first", ["complete", "renew"])
@pytest.mark.parametrize("second", ["complete", "renew"])
def test_who_comes_second_to_a_row_begins_anew(
    engine: Engine, store: Postgres, monkeypatch: pytest.MonkeyPatch, first: str, second: str, server: str
) -> None:
    """The second has seen the row before the first changed it, and waits: what it saw is not so any more."""
    if server == "does not":
        texts = hot_statements.hot_of(store.queries.dialect)
        without = hot_statements.Hot(*map(without_address, texts))
        assert without.renew != texts.renew
        monkeypatch.setattr(hot_statements, "hot_of", lambda _: without)
    added(engine, 5)
    receipts = [str(a.receipt) for a in engine.run(claims()[:5])]  # type: ignore[union-attr]

    def write(tx: Any, verb: str, name: str) -> None:
        if verb == "complete":
            tx.complete([completion(r, f"{name}-{n}") for n, r in enumerate(receipts)], 0, last=False)
        else:
            tx.renew([renewal(r, f"evt-{name}-{n}") for n, r in enumerate(receipts)], 1, 0, last=False)

    def late() -> None:
        with store.begin("local", write=True) as tx:
            tx.lock("share", [P])
            write(tx, second, "late")

    with ThreadPoolExecutor(1) as pool:
        with store.begin("local", write=True) as early:
            early.lock("share", [P])
            write(early, first, "early")
            waiting = pool.submit(late)
            while not store._read(WAITS)[0][0]:
                assert not waiting.done()
        assert isinstance(waiting.exception(30), Conflict)
    with store.begin("local", write=False) as tx:
        results = tx.find(Result, {"project": P})
        assert [r.id for r in results] == ([f"early-{n}" for n in range(5)] if first == "complete" else [])
        assert {t.state for t in tx.find(Task, {"project": P})} == {"completed" if first == "complete" else "running"}


def test_every_write_of_a_holder_asks_its_own_row_for_all_that_makes_it_the_holders() -> None:
    texts = hot_statements.hot_of(statement_texts.queries_of("x").dialect)
    for text in (texts.complete, texts.complete_each, texts.renew):
        writes = re.findall(r"UPDATE \S*?(\w+) AS (\w).*?WHERE (.*?)\n?(?:RETURNING|\), )", text, re.DOTALL)
        assert [table for table, _, _ in writes] in (["task_hot", "claim"], ["task_hot"])
        for table, row, where in writes:
            asked = {"tenant", "project", "id", "generation", "state"}
            asked |= {"nonce", "epoch"} if table == "claim" else {"claim_epoch", "plain", "renewals"}
            assert asked <= set(re.findall(rf"\b{row}\.(\w+)", where)), (table, where)


def test_the_same_batch_twice_at_once_is_done_once_and_told_twice(engine: Engine, store: Postgres) -> None:
    for round in range(8):
        added(engine)
        receipts = claimed(engine, f"round-{round}")
        barrier = threading.Barrier(2)

        def hand_in(receipts: list[str] = receipts, barrier: threading.Barrier = barrier) -> list[str]:
            barrier.wait(30)
            return told(engine.run(submits(receipts)))

        with ThreadPoolExecutor(2) as pool:
            both = [pool.submit(hand_in) for _ in range(2)]
            assert [answers.result(60) for answers in both] == [["ACCEPTED"] * MANY] * 2
    with store.begin("local", write=False) as tx:
        assert len(tx.find(Result, {"project": P})) == 8 * MANY
    assert engine.verify() == []


# --- what goes with the commit ---------------------------------------------------------------------------------


def grant(task: str, number: int) -> Grant:
    return Grant(
        P, task, f"ann{number}", f"s{number}", None, 60_000_000, b"n" * 16, None, None, None, f"evt_{number}", "cmd_1",
        None, None, None, None,
    )  # fmt: skip


def grants(store: Postgres, tasks: list[str]) -> list[str]:
    """Receipts of these tasks, in a transaction that does nothing else."""
    with store.begin("local", write=True) as tx:
        tx.lock("share", [P])
        granted = tx.grant([grant(task, n) for n, task in enumerate(tasks)], last=True)
        epoch = tx.epoch
    return [str(Receipt(row[TOLD.index("ref")], 1, epoch, b"n" * 16)) for row in granted.rows()]


def completes(store: Postgres, receipts: list[str]) -> int:
    with store.begin("local", write=True) as tx:
        tx.lock("share", [P])
        completed = tx.complete([completion(r, f"r{n}") for n, r in enumerate(receipts)], 0, last=True)
    return len(completed())


@pytest.mark.parametrize("is_alone", [False, True], ids=["among others", "alone"])
@pytest.mark.parametrize("count", [1, 6])
def test_a_verb_goes_with_the_commit_whole_or_not_at_all(
    engine: Engine, store: Postgres, count: int, is_alone: bool
) -> None:
    """One that is not as it should be, among others or alone: nothing of the transaction stays."""
    added(engine, count)
    with store.begin("local", write=False) as tx:
        tasks = [task.id for task in tx.find(Task, {"project": P})]
    before = logged(store)
    with pytest.raises(NeedsSlowPath):
        grants(store, ["gone"] if is_alone else [*tasks, "gone"])
    assert logged(store) == before
    receipts = grants(store, tasks)
    stale = receipts[0].replace("@1:", "@2:")
    before = logged(store)
    with pytest.raises(NeedsSlowPath):
        completes(store, [stale] if is_alone else [*receipts[1:], stale])
    assert logged(store) == before
    assert completes(store, receipts) == count
    assert engine.verify() == []


# --- the log ---------------------------------------------------------------------------------------------------


def test_a_transaction_that_began_first_may_be_given_its_sequences_last(store: Postgres) -> None:
    """Neither the order of transactions nor that of sequences is that of commits: nothing of either is skipped."""
    with store.begin("local", write=True) as second:
        with store.begin("local", write=True) as first:
            first.save([Change(None, row_of(Agent, project="p", id="bo"))])
            second.append([event_of(id="low", project="q")])
            assert [e.id for e in second.events({})] == ["low"]  # it has its sequence by now
            first.append([event_of(id="high", project="p")])
        assert logged(store) == []
        with store.begin("local", write=False) as tx:
            assert [e.id for e in tx.events({"project": "p"})] == ["high"]  # who does not go on from it sees it
    assert [e.id for e in logged(store)] == ["low", "high"]


def test_of_two_who_share_a_project_the_later_hides_none_of_the_earlier(engine: Engine, store: Postgres) -> None:
    added(engine)
    receipts = claimed(engine)
    before = logged(store)[-1].sequence

    def later() -> list[str]:
        with store.begin("local", write=False) as tx:
            tx.lock("log", ())
            return [str(e.kind) for e in tx.events({"project": P}, after=before)]

    with store.begin("local", write=True) as slow:
        slow.lock("share", [P])
        slow.complete([completion(r, f"slow-{n}") for n, r in enumerate(receipts[:5])], 0, last=False)
        assert told(engine.run([c.Renew(project=P, receipt=r) for r in receipts[5:]] * 2)) == ["RENEWED"] * 10
        assert later() == []
    assert later() == ["task.completed"] * 5 + ["task.started"] * 5


def test_the_end_of_the_log_is_the_lowest_floor_of_those_who_write() -> None:
    assert settled(100, []) == 100
    assert settled(100, [90, 40, 70]) == 40
    assert settled(100, [120]) == 100  # it began after the end was read
    assert settled(0, [0]) == 0
    end = (7 << 31) + 5  # a lock's number has 31 bits of it
    assert settled(end, [(end - 10) % (1 << 31)]) == end - 10
    assert settled(end, [(end + 10) % (1 << 31)]) == end
