"""Two servers on one store: one leads, both answer for it, and the other takes over."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

import tenure
from tenure.client.caller import SystemRandom
from tenure.core.commands import DefineProject, PausePool, Principal, SetPool
from tenure.core.errors import SchemaMismatch, StoreCorrupt, StoreUnavailable, TenureError
from tenure.core.records import Leader, Pool, replace
from tenure.engine import Engine
from tenure.engine.duties.coordinator import Coordinator
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.server import coordinator_routes
from tenure.server.coordinator_routes import CoordinatorEndpoints
from tenure.server.requests import Request
from tenure.server.service import Service
from tenure.server.write_watch import WriteWatch
from tenure.stores.memory import Memory
from tenure.stores.port import Change, Transaction
from tenure.testing.clock import FakeClock
from tests.sampling import places
from tests.servers.fixtures import running
from tests.servers.postgres import PostgresServer, url_of
from tests.servers.tenure import TenureServer

API = "/api/v1/coordinator"


def ask(server: TenureServer, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    line = HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        line.request(method, path, None if body is None else json.dumps(body), told)
        answer = line.getresponse()
        return answer.status, json.loads(answer.read() or b"null")
    finally:
        line.close()


def status(server: TenureServer) -> dict[str, Any]:
    code, value = ask(server, "GET", f"{API}/status")
    assert code == 200, value
    return dict(value)


def until(client: tenure.Client, is_so: Callable[[], bool]) -> None:
    """Looked at with each event; the longest pause is a second."""
    for _ in range(60):
        mark = client.mark()
        if is_so():
            return
        client.wait_for_news(mark, 1.0)
    raise AssertionError("it never came")


class Two:
    def __init__(self, url: str, client: tenure.Client, stack: ExitStack) -> None:
        self.client = client
        self.servers = [TenureServer(url) for _ in range(2)]
        for server in self.servers:
            stack.enter_context(running(server))
        until(client, lambda: status(self.servers[0])["active"])

    def by_leading(self) -> tuple[TenureServer, TenureServer]:
        """The one that leads, and the other."""
        first, second = self.servers
        return (first, second) if status(first)["here"]["leads"] else (second, first)


@pytest.fixture(params=places("sqlite", "postgres"))
def two(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Two]:
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        url = url_of(tmp_path, server.url)
    else:
        url = str(tmp_path / "tenure.db")
    with ExitStack() as stack, tenure.Client(url, "p", create=True) as client:
        client.init()
        yield Two(url, client, stack)


def test_one_leads_and_the_other_follows_however_it_ends(two: Two) -> None:
    seen = [status(server) for server in two.servers]
    assert sorted(one["here"]["leads"] for one in seen) == [False, True]
    assert {one["instance"] for one in seen} == {one["here"]["instance"] for one in seen if one["here"]["leads"]}
    leader, other = two.by_leading()
    term = seen[0]["term"]

    assert leader.end() == 0  # it steps down, and is followed at once
    until(two.client, lambda: bool(status(other)["here"]["leads"]))
    assert status(other)["term"] == term + 1
    leader.start()
    until(two.client, lambda: not status(leader)["here"]["leads"])

    other.kill()
    _let_the_lease_end(two.client)
    until(two.client, lambda: bool(status(leader)["here"]["leads"]))
    assert status(leader)["term"] == term + 2


def _let_the_lease_end(client: tenure.Client) -> None:
    """As if it had been waited for; whoever stands by looks again when something is written."""
    with client.store.begin("local", write=True) as tx:
        tx.lock("write", ("",))
        (leader,) = tx.load(Leader, (("", "coordinator"),))
        tx.save([Change(leader, replace(leader, until=tx.now))])
    client.add("news")


# --- one server ---


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TenureServer]:
    store = str(tmp_path_factory.mktemp("store") / "tenure.db")
    with tenure.Client(store, "p", agent="ann", create=True) as client:
        client.init()
        client.add("One")
        server = TenureServer(store)
        with running(server):
            until(client, lambda: bool(status(server)["active"]) and status(server)["cycles"] > 0)
            yield server


def test_the_status_tells_who_leads_and_what_there_is(server: TenureServer) -> None:
    seen = status(server)
    expected = {"active": True, "term": 1, "projects": ["p"], "pending_tasks": 1, "running_tasks": 0}
    assert {name: seen[name] for name in expected} == expected
    assert seen["since"].endswith("Z")
    assert 0 < seen["lease"] <= 30
    assert seen["cycles"] >= 1


def test_recover_tells_what_it_did(server: TenureServer) -> None:
    assert ask(server, "POST", f"{API}/recover") == (
        200, {"settled": 0, "projects": [{"project": "p", "settled": 0, "events": {}, "failed": {}}]},
    )  # fmt: skip
    assert ask(server, "POST", f"{API}/recover", {"project": "none"})[0] == 404
    assert ask(server, "POST", f"{API}/recover", {"project": 7})[0] == 400
    assert ask(server, "POST", f"{API}/recover", {"projet": "p"})[0] == 400


def test_the_log_is_read_by_level_and_time(server: TenureServer) -> None:
    code, value = ask(server, "GET", f"{API}/logs")
    assert code == 200
    assert {"leader.elected", "coordinator.note"} <= {line["kind"] for line in value["items"]}
    assert ask(server, "GET", f"{API}/logs?level=critical") == (200, {"items": [], "next": None})
    assert ask(server, "GET", f"{API}/logs?since=2100-01-01T00:00:00Z") == (200, {"items": [], "next": None})
    for wrong in ("level=loud", "limit=x", "limit=-1", "since=yesterday"):
        assert ask(server, "GET", f"{API}/logs?{wrong}")[0] == 400


@pytest.mark.parametrize("role", ["viewer", "agent", "member"])
def test_it_is_for_admins(server: TenureServer, role: str) -> None:
    assert ask(server, "GET", f"{API}/status", Tenure_Role="admin")[0] == 200
    assert ask(server, "GET", f"{API}/status", Tenure_Role=role)[0] == 403
    assert ask(server, "GET", f"{API}/logs", Tenure_Role=role)[0] == 403
    assert ask(server, "POST", f"{API}/recover", Tenure_Role=role)[0] == 403


def test_probes_are_answered(server: TenureServer) -> None:
    assert ask(server, "GET", "/health")[1]["status"] == "ok"
    assert ask(server, "GET", "/ready") == (200, {"status": "ready"})
    code, value = ask(server, "GET", "/health/coordinator")
    assert (code, value["active"], value["store"], value["here"]) == (200, True, "ok", True)
    assert [value[name] for name in ("status", "database", "sinks", "spawners")] == ["healthy", "ok", [], []]


async def test_a_spawner_that_fails_degrades_the_health_and_no_error_is_shown() -> None:
    engine = Engine(Memory(), SystemRandom())
    engine.do(DefineProject(project="p"))
    engine.do(SetPool(project="p", pool="coders", program="claude"))
    coordinator = Coordinator(engine, "one", lambda: 0.0)
    coordinator.step()
    service = Service(engine)
    endpoints = CoordinatorEndpoints(service, coordinator)
    request = Request({"headers": []}, lambda: None)  # type: ignore[arg-type, return-value]

    async def health() -> tuple[int, dict[str, Any]]:
        answer = await endpoints.coordinator_health(request)
        return answer.status, json.loads(answer.body)

    def fail(work: UnitOfWork) -> None:
        pool = work.require(Pool, "p", "coders")
        work.put(replace(pool, error="cannot start /home/ann/agent", error_at=work.now))

    code, value = await health()
    assert (code, value["status"], value["spawners"]) == (
        200,
        "healthy",
        [{"name": "local", "state": "ok", "pools": 1}],
    )
    engine.transact(("p",), fail)
    code, value = await health()
    assert (code, value["status"], value["spawners"][0]["state"]) == (200, "degraded", "failing")
    assert "ann" not in json.dumps(value)
    engine.do(PausePool(project="p", pool="coders"))
    assert (await health())[1]["status"] == "healthy"
    service.shut()


# --- a store that hangs ---


async def test_probes_of_a_store_that_hangs_say_so_and_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Memory()
    begin, goes_on, asked = store.begin, threading.Event(), []

    def hanging(tenant: str, *, write: bool) -> AbstractContextManager[Transaction]:
        asked.append(tenant)
        assert goes_on.wait(30)
        return begin(tenant, write=write)

    engine = Engine(store, SystemRandom())
    service = Service(engine)
    endpoints = CoordinatorEndpoints(service, Coordinator(engine, "one", lambda: 0.0))
    request = Request({"headers": []}, lambda: None)  # type: ignore[arg-type, return-value]
    monkeypatch.setattr(coordinator_routes, "PATIENCE", 0.05)
    monkeypatch.setattr(store, "begin", hanging)
    for _ in range(3):
        answer = await endpoints.ready(request)
        assert (answer.status, dict(answer.headers)[b"retry-after"]) == (503, b"1")
        answer = await endpoints.coordinator_health(request)
        value = json.loads(answer.body)
        assert (answer.status, value["status"], value["database"]) == (503, "degraded", "unavailable")
    assert len(asked) == 1
    assert (await endpoints.health(request)).status == 200
    goes_on.set()
    monkeypatch.setattr(coordinator_routes, "PATIENCE", 30.0)
    assert (await endpoints.ready(request)).status == 200
    answer = await endpoints.coordinator_health(request)
    assert (answer.status, json.loads(answer.body)["active"]) == (503, False)  # nobody leads
    service.shut()


# --- what probes say of the store ---


class Failing(Memory):
    """Its reads, or its writes, fail when a test says so."""

    reads: TenureError | None = None
    writes: TenureError | None = None

    def begin(self, tenant: str, *, write: bool) -> AbstractContextManager[Transaction]:
        failure = self.writes if write else self.reads
        if failure is not None:
            raise failure
        return super().begin(tenant, write=write)


SECRET = "postgresql://ops@db.internal:5432/work: "
AWAY, FULL = StoreUnavailable(SECRET + "connection refused"), StoreUnavailable(SECRET + "no space left on device")


@pytest.mark.parametrize(
    ("error", "database", "code"),
    [
        (AWAY, "unavailable", "STORE_UNAVAILABLE"),
        (SchemaMismatch(SECRET + "schema 19"), "other_schema", "SCHEMA_MISMATCH"),
        (StoreCorrupt(SECRET + "page 7"), "damaged", "STORE_CORRUPT"),
    ],
)
async def test_probes_say_why_the_store_cannot_be_read_and_name_no_place_to_strangers(
    error: TenureError, database: str, code: str
) -> None:
    store = Failing()
    service = Service(Engine(store, SystemRandom()))
    store.reads = error
    for is_owner in (False, True):
        coordinator = Coordinator(service.engine, "one", lambda: 0.0)
        endpoints = CoordinatorEndpoints(service, coordinator, is_owner=lambda _, is_owner=is_owner: is_owner)
        for probe in (endpoints.ready, endpoints.coordinator_health):
            request = Request({"headers": []}, lambda: None)  # type: ignore[arg-type, return-value]
            answer = await probe(request)
            value = json.loads(answer.body)
            assert answer.status == 503
            assert ("db.internal" in answer.body.decode()) is is_owner
            assert value.get("code", code) == code
            assert value.get("database", database) == database
            assert value.get("reason") or value["detail"]
            assert request.cause is error  # for the log
    service.shut()


async def test_failing_writes_are_told_while_reads_work_until_one_succeeds_or_for_a_minute() -> None:
    now, clock = [0.0], FakeClock()
    store = Failing(clock=clock)
    engine = Engine(store, SystemRandom())
    writes = WriteWatch(lambda: now[0])
    coordinator = Coordinator(engine, "one", lambda: now[0], cycled=writes.cycled)
    service = Service(engine)
    service.observers.append(writes.observe)
    endpoints = CoordinatorEndpoints(service, coordinator, writes=writes)

    async def told() -> tuple[int, str, str | None]:
        request = Request({"headers": []}, lambda: None)  # type: ignore[arg-type, return-value]
        ready = json.loads((await endpoints.ready(request)).body)
        assert ready["status"] == "ready"
        assert "db.internal" not in str(ready)
        value = json.loads((answer := await endpoints.coordinator_health(request)).body)
        assert ready.get("database", "ok") == value["database"]
        assert ("reason" in ready) is bool(value["reason"])
        return answer.status, value["status"], value["database"]

    coordinator.step()
    assert await told() == (200, "healthy", "ok")
    store.writes = FULL
    with pytest.raises(StoreUnavailable):
        await service.do(DefineProject(project="p"), Principal())
    assert await told() == (200, "degraded", "read_only")
    store.writes = None
    await service.do(DefineProject(project="p"), Principal())
    assert await told() == (200, "healthy", "ok")
    store.writes = FULL
    now[0] += 1000
    clock.advance(seconds=1000)
    coordinator.step()  # its lease is over: it stands again
    coordinator.step()
    assert (await told())[1:] == ("degraded", "read_only")
    now[0] += 60
    assert (await told())[2] == "ok"
    service.shut()
