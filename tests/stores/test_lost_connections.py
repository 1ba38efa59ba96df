"""A server that ends the connection before any of the statements of a verb: the caller gets an error of tenure, and a
definite one only where nothing was done.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tenure.client.caller import SystemRandom
from tenure.core import commands as c
from tenure.core.commands import NewTask
from tenure.core.errors import OutcomeUnknown, TenureError
from tenure.core.queries import Tasks
from tenure.engine import Context, Engine
from tenure.engine.reads.query_table import read_query
from tenure.stores.mariadb import Mariadb
from tenure.stores.mariadb import connection as of_mariadb
from tenure.stores.postgres import Postgres
from tenure.stores.postgres import connection as of_postgres
from tenure.stores.valkey import Valkey
from tenure.stores.valkey import connection as of_valkey
from tenure.stores.valkey.address import parse
from tests.servers.postgres import PostgresServer, url_of

MOST = 20  # round trips of one verb that are tried
ALONE = ("claim", "renew", "submit", "release", "add")  # one command in one transaction


class Break:
    """Ends a connection of this process right before its n-th round trip, counted from `arm`."""

    def __init__(self, end: Callable[[Any], object]) -> None:
        self._end, self.left = end, -1

    def arm(self, at: int) -> None:
        self.left = at

    @property
    def happened(self) -> bool:
        return self.left < 0

    def before(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def broken(connection: Any, *given: Any, **more: Any) -> Any:
            if self.left >= 0:
                self.left -= 1
                if self.left < 0:
                    self._end(connection)
            return call(connection, *given, **more)

        return broken


def until(is_so: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < give_up
        threading.Event().wait(0.001)


@pytest.fixture(params=["postgres", "mariadb", "valkey"])
def opened(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A store, and what breaks its connections."""
    made: Any
    closing: list[Any] = []
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        made = Postgres(url_of(tmp_path))
        gone = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid = {}"

        def end(connection: Any) -> None:
            if connection.is_open:
                until(lambda: server.ask(gone.format(connection.reported_process)) == "0")

        broken, kind, calls = Break(end), of_postgres.Connection, ("_exchange", "post")
    elif request.param == "mariadb":
        place = request.getfixturevalue("mariadb").place("lost_connections")
        made = Mariadb(place)
        admin: Any = of_mariadb.connect(made._where, wait=30, silence=30)
        asked = "SELECT count(*) FROM information_schema.processlist WHERE id = ?"

        def end(connection: Any) -> None:
            if connection.is_open:
                number = connection._raw.thread_id()
                with suppress(of_mariadb.Failed):  # it was gone already
                    admin.run([(f"KILL CONNECTION {number}", ())])
                until(lambda: admin.all(asked, [number]) == ((0,),))

        broken, kind, calls = Break(end), of_mariadb.Connection, ("_send",)
        closing.append(admin)
    else:
        place = request.getfixturevalue("valkey").place("lost_connections")
        made, other = Valkey(place), of_valkey.Connection(parse(place))
        other.open()
        unbroken = of_valkey.Connection.ask

        def end(connection: Any) -> None:
            if connection.is_open:
                unbroken(other, [("CLIENT", "KILL", "ID", connection.number)])

        broken, kind, calls = Break(end), of_valkey.Connection, ("ask",)
        closing.append(other)
    for name in calls:
        monkeypatch.setattr(kind, name, broken.before(getattr(kind, name)))
    yield made, broken
    for one in (made, *closing):
        one.close()


class Bench:
    """A project of its own: what a verb asks does not grow with those before it."""

    def __init__(self, store: Any, project: str, *, fast: bool) -> None:
        self.store, self.project = store, project
        self.who: Any = {"project": project, "agent": "ann", "session": "s"}
        self.engine = Engine(store, SystemRandom(), Context(fast_path=fast))
        self.engine.do(c.DefineProject(project=self.project))
        self.engine.do(c.Register(project=self.project, agent="ann", session="s"))
        self.add(3)
        self.receipts = [self.claim(), self.claim()]
        self.stale = self.claim()
        self.engine.do(c.Release(project=self.project, receipt=self.stale))

    def add(self, number: int) -> None:
        self.engine.run([c.Add(project=self.project, task=NewTask(title="t")) for _ in range(number)])

    def claim(self) -> str:
        return str(self.engine.do(c.ClaimNext(**self.who)).receipt)

    def do(self, *batch: c.Command) -> None:
        """Every error is in its answer; what is raised instead is one of the whole batch."""
        for answer in self.engine.run(batch):
            if isinstance(answer, TenureError):
                raise answer


def _of(bench: Bench, kind: type[Any], *receipts: str) -> list[Any]:
    return [kind(project=bench.project, receipt=receipt) for receipt in receipts]


VERBS: dict[str, Callable[[Bench], object]] = {
    "claim": lambda b: b.do(c.ClaimNext(**b.who)),
    "claims of two": lambda b: b.do(c.ClaimNext(**b.who), c.ClaimNext(**{**b.who, "session": "t"})),
    "claims of more than there are": lambda b: b.do(*[c.ClaimNext(**b.who)] * 3),
    "renew": lambda b: b.do(*_of(b, c.Renew, b.receipts[0])),
    "renew a stale one": lambda b: b.do(*_of(b, c.Renew, b.stale, b.receipts[0])),
    "submit": lambda b: b.do(*_of(b, c.Submit, b.receipts[0])),
    "submit two": lambda b: b.do(*_of(b, c.Submit, *b.receipts)),
    "submit a stale one too": lambda b: b.do(*_of(b, c.Submit, b.stale, *b.receipts)),
    "claim, renew and submit": lambda b: b.do(
        c.ClaimNext(**b.who), *_of(b, c.Renew, b.receipts[0]), *_of(b, c.Submit, b.stale, b.receipts[1])
    ),
    "release": lambda b: b.do(*_of(b, c.Release, b.receipts[0])),
    "add": lambda b: b.do(c.Add(project=b.project, task=NewTask(title="t"))),
    "list": lambda b: read_query(b.engine, Tasks(project=b.project)),
    "mark": lambda b: b.store.marks(["local", "acme"]),
    "wait": lambda b: b.store.wait({"local": 1 << 60}, 0),
    "new epoch": lambda b: b.engine.new_epoch("a test"),
    "settle": lambda b: b.store.settled_here(),
    "check": lambda b: b.store.check(),
}


@pytest.mark.sampled(one_in=12)
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("fast", [True, False], ids=["fast", "slow"])
def test_only_errors_of_tenure_reach_the_caller(opened: tuple[Any, Break], verb: str, fast: bool) -> None:
    store, broken = opened
    tries = 0
    while tries < MOST:
        bench = Bench(store, f"p{tries}", fast=fast)
        before = state(bench)
        broken.arm(tries)
        error: TenureError | None = None
        try:
            VERBS[verb](bench)
        except TenureError as raised:  # and nothing else
            error = raised
        if error is not None:
            assert broken.happened, error
            assert error.definite != isinstance(error, OutcomeUnknown)
            assert state(bench) == before or not (error.definite and verb in ALONE), (verb, tries, error)
        if not broken.happened:
            broken.arm(-1)
            break
        tries += 1
    assert tries


def state(bench: Bench) -> Any:
    """What the log has: an error that is definite has left nothing there."""
    return bench.engine.read(lambda tx: [event.kind for event in tx.events({"project": bench.project})])
