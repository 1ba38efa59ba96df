"""Batches that only fused verbs write share a project: they run side by side, and nobody sees anything torn."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tenure.client.caller import SystemRandom
from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.commands import NewTask
from tenure.core.errors import StoreUnavailable, TenureError
from tenure.core.ids import IdMaker, Receipt, parse_receipt
from tenure.core.records import Agent, Result, Task
from tenure.engine import Context, Engine
from tenure.engine.audit import sealer
from tenure.engine.reads.query_table import read_query
from tenure.stores.fast_path import APART, Claims, Renewals, Submits, Unusual
from tenure.stores.port import Change
from tenure.stores.postgres import Postgres, hot_functions
from tenure.stores.postgres.connection import Connection
from tenure.stores.postgres.log_cursor import settled
from tenure.stores.postgres.schema import migrations
from tenure.testing.samples import event_of, row_of
from tenure.testing.suites.store_setting import logged
from tests.servers.postgres import PostgresServer, url_of

P = "shop"
MANY = 10


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
    """Somebody else in the midst of a transaction: one who shares the project, claims there, or has it alone."""

    def __init__(self, store: Postgres, *, claims: bool = False, is_alone: bool = False) -> None:
        self._store = store
        self._locks = [("project", "" if is_alone else "_shared"), *([("claim", "")] if claims else [])]

    def __enter__(self) -> Connection:
        self._link = self._store.connections.take()
        self._link.run([("BEGIN", ())])
        for name, how in self._locks:
            key = self._store.lock_key(name, "local", P)
            self._link.run([(f"SELECT pg_advisory_xact_lock{how}(?)", [key])])
        return self._link

    def __exit__(self, *error: object) -> None:
        self._link.run([("COMMIT", ())])
        self._store.connections.give(self._link)


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
    with Busy(store, claims=True):
        assert told(impatient.run(claims())) == ["STORE_UNAVAILABLE"] * MANY
    assert told(impatient.run(claims())) == ["GRANTED"] * MANY


def test_a_claim_holds_the_lock_of_claims_alone(engine: Engine, store: Postgres) -> None:
    added(engine)
    call, key = asked_for(store, 1), store.lock_key("claim", "local", P)
    early, late = store.connections.take(), store.connections.take()
    early.run([("BEGIN", ()), hot_functions.statement(store, "local", call, None, [call])])
    assert late.all("SELECT pg_try_advisory_xact_lock_shared(?)", [key]) == [(False,)]
    early.run([("ROLLBACK", ())])
    for link in (early, late):
        store.connections.give(link)


def test_nobody_is_beside_one_who_decides(engine: Engine, store: Postgres, impatient: Engine) -> None:
    added(engine)
    receipts = claimed(engine)
    with Busy(store, is_alone=True):
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
    [_with_a_dependent, _with_a_stale_receipt, _with_a_receipt_of_nothing, _with_somebody_new],
)
def test_what_has_to_be_decided_is_decided_alone_and_the_others_do_not_wait(
    engine: Engine, store: Postgres, impatient: Engine, batch: Callable[[Engine], list[Any]]
) -> None:
    commands = batch(engine)
    with Busy(store):
        assert told(impatient.run(commands)).count("STORE_UNAVAILABLE") == 1
    assert "STORE_UNAVAILABLE" not in told(impatient.run(commands))
    assert engine.verify() == []


def test_another_verb_has_its_batch_decided_alone(engine: Engine, store: Postgres, impatient: Engine) -> None:
    commands = _with_another_verb(engine)
    with Busy(store):
        assert set(told(impatient.run(commands))) == {"STORE_UNAVAILABLE"}
    assert "STORE_UNAVAILABLE" not in told(impatient.run(commands))
    assert engine.verify() == []


# --- two at one row --------------------------------------------------------------------------------------------


def handed_in(store: Postgres, receipts: list[str], seed: bytes = b"s" * 10, **other: Any) -> Submits:
    """A call, with something in it that no engine would send."""
    own = [parse_receipt(receipt) for receipt in receipts]
    size = len(own)
    look = store.look("local", P, ())
    assert look is not None
    call = Submits(
        P, look.seen, own[0].epoch, [r.name for r in own], [r.generation for r in own],
        b"".join(r.nonce for r in own), None, [IdMaker(0, seed).tail(2 * size + n + 1) for n in range(size)], None,
        [""] * size, [4] * size, [NOTHING] * size, None, None, None, None, seed,
    )  # fmt: skip
    return call._replace(**other)


def renewal(store: Postgres, receipts: list[str], seed: bytes = b"r" * 10, **other: Any) -> Renewals:
    own, maker = [parse_receipt(receipt) for receipt in receipts], IdMaker(0, seed)
    look = store.look("local", P, ())
    assert look is not None
    call = Renewals(
        P, look.seen, own[0].epoch, [r.name for r in own], [r.generation for r in own],
        b"".join(r.nonce for r in own), None, None, None, None, None, None, None,
        [maker.tail(n) for n in range(len(own))], [maker.tail(100 + n) for n in range(len(own))],
    )  # fmt: skip
    return call._replace(**other)


def asked_for(store: Postgres, count: int, **other: Any) -> Claims:
    agents = [f"ann{n}" for n in range(count)]
    look = store.look("local", P, agents)
    assert look is not None
    ones = list(range(1, count + 1))
    call = Claims(
        P, look.seen, look.lanes, [int(lane.split("|")[3]) for lane in look.lanes], ["1" * len(look.lanes)],
        [1] * count, [1] * count, ones, agents, [f"s{n}" for n in range(count)],
        [look.skills.get(agent, APART * 3) for agent in agents], None, [60_000_000] * count, None, None, None, None,
        None, None, None, bytes(range(16)) * count, b"c" * 10,
    )  # fmt: skip
    return call._replace(**other)


NOTHING = hashlib.sha256(b"null").hexdigest()[:32]
WAITS = "SELECT count(*) FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted"


@pytest.mark.parametrize("first", ["submit", "renew"])
@pytest.mark.parametrize("second", ["submit", "renew"])
def test_who_comes_second_to_a_row_does_nothing(engine: Engine, store: Postgres, first: str, second: str) -> None:
    """The second has seen the row before the first changed it, and waits: what it saw is not so any more."""
    added(engine)
    receipts = claimed(engine)
    store.call("local", [renewal(store, receipts)])  # a first renewal would also append an event of its version

    def call(verb: str, seed: bytes) -> Any:
        return (handed_in if verb == "submit" else renewal)(store, receipts, seed)

    with ThreadPoolExecutor(1) as pool:
        early = store.connections.take()
        early.run([("BEGIN", ()), hot_functions.statement(store, "local", call(first, b"e" * 10), None)])
        waiting = pool.submit(store.call, "local", [call(second, b"l" * 10)])
        while not store._read(WAITS)[0][0]:
            assert not waiting.done()
        early.run([("COMMIT", ())])
        store.connections.give(early)
        error = waiting.exception(30)
    assert isinstance(error, Unusual)
    with store.begin("local", write=False) as tx:
        assert len(tx.find(Result, {"project": P})) == (MANY if first == "submit" else 0)
        assert {t.state for t in tx.find(Task, {"project": P})} == {"completed" if first == "submit" else "running"}
    assert engine.verify() == []


def body(function: str) -> str:
    found = [
        text
        for step in migrations()
        for text in re.findall(rf"FUNCTION {function}\(.*?\nEND \$\$", step.text, re.DOTALL)
    ]
    return str(found[-1])


@pytest.mark.parametrize("function", ["submit_results", "renew_claims"])
def test_every_write_of_a_holder_asks_its_own_row_for_all_that_makes_it_the_holders(function: str) -> None:
    (where,) = re.findall(r"UPDATE task_hot AS t SET.*?WHERE (.*?)RETURNING", body(function), re.DOTALL)
    asked = {"space", "number", "generation", "nonce", "claim_epoch", "state", "renewals", "plain"}
    assert asked <= set(re.findall(r"\bt\.(\w+)", where))


@pytest.mark.parametrize("function", ["claim_tasks", "submit_results", "renew_claims"])
def test_locks_are_held_before_the_first_look(function: str) -> None:
    text = body(function)
    assert text.index("begin_hot(") < min(text.index(f"{word} task_hot") for word in ("UPDATE",))
    begin = body("begin_hot")
    assert begin.index("pg_advisory_xact_lock") < begin.index("FROM meta")
    assert begin.index("synchronous_commit") < begin.index("FROM meta")


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


# --- all or nothing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_alone", [False, True], ids=["among others", "alone"])
@pytest.mark.parametrize("count", [1, 6])
def test_a_call_is_done_whole_or_not_at_all(engine: Engine, store: Postgres, count: int, is_alone: bool) -> None:
    """One that is not as it should be, among others or alone: nothing of it stays, and it is named."""
    added(engine, count)
    before = logged(store)
    with pytest.raises(Unusual) as few:
        store.call("local", [asked_for(store, count + 1)])
    assert (few.value.why, few.value.which) == ("few", (count,))
    assert logged(store) == before
    assert len(store.call("local", [asked_for(store, count)])[0]()) == count
    with store.begin("local", write=False) as tx:
        refs = sorted(task.ref for task in tx.find(Task, {"project": P}))
        epoch = tx.epoch
    receipts = [str(Receipt(ref, 1, epoch, bytes(range(16)))) for ref in refs]
    stale = receipts[0].replace("@1:", "@2:")
    before = logged(store)
    with pytest.raises(Unusual) as odd:
        store.call("local", [handed_in(store, [stale] if is_alone else [*receipts[1:], stale])])
    assert odd.value.which == ((0,) if is_alone else (count - 1,))
    assert logged(store) == before
    assert len(store.call("local", [handed_in(store, receipts)])[0]()) == count
    assert engine.verify() == []


def test_several_calls_are_one_transaction(engine: Engine, store: Postgres) -> None:
    added(engine, MANY + 2)
    receipts = claimed(engine)
    before = logged(store)
    with pytest.raises(Unusual) as odd:
        store.call("local", [handed_in(store, receipts), asked_for(store, 9)])
    assert (odd.value.call, odd.value.why) == (1, "few")
    assert logged(store) == before
    done, granted = store.call("local", [handed_in(store, receipts), asked_for(store, 2)])
    assert (len(done()), len(granted())) == (MANY, 2)
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

    slow = store.connections.take()
    slow.run([("BEGIN", ()), hot_functions.statement(store, "local", handed_in(store, receipts[:5]), None)])
    assert told(engine.run([c.Renew(project=P, receipt=r) for r in receipts[5:]])) == ["RENEWED"] * (MANY - 5)
    assert later() == []
    slow.run([("COMMIT", ())])
    store.connections.give(slow)
    assert later() == ["task.completed"] * 5 + ["task.started"] * (MANY - 5)


def test_no_seal_passes_an_event_that_is_committed_late(engine: Engine, store: Postgres) -> None:
    added(engine)
    receipts = claimed(engine)
    engine.do(c.AuditOn(project=P))
    assert sealer.seal_all(engine, P) == len(logged(store))
    slow = store.connections.take()
    slow.run([("BEGIN", ()), hot_functions.statement(store, "local", handed_in(store, receipts[:5]), None)])
    assert told(engine.run([c.Renew(project=P, receipt=r) for r in receipts[5:]])) == ["RENEWED"] * (MANY - 5)
    assert sealer.next_page(engine, P)[1] == []
    slow.run([("COMMIT", ())])
    store.connections.give(slow)
    assert sealer.seal_all(engine, P) == MANY
    report = read_query(engine, q.VerifyAudit(project=P))
    assert (report["findings"], report["sealed"]) == ([], len(logged(store)))


def test_the_end_of_the_log_is_the_lowest_floor_of_those_who_write() -> None:
    assert settled(100, []) == 100
    assert settled(100, [90, 40, 70]) == 40
    assert settled(100, [120]) == 100  # it began after the end was read
    assert settled(0, [0]) == 0
    end = (7 << 31) + 5  # a lock's number has 31 bits of it
    assert settled(end, [(end - 10) % (1 << 31)]) == end - 10
    assert settled(end, [(end + 10) % (1 << 31)]) == end
