"""One server, several tenants: each gets its own tasks, events, metrics and tools, whichever way it asks."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tenure import Client
from tenure.core import commands as c
from tenure.engine import Engine
from tenure.engine.runtime.tenancy import TenantEngines
from tests.reliability.many_tenants import claimed, drain, key_of, limited
from tests.runner.conftest import until
from tests.servers.postgres import PostgresServer
from tests.servers.tenure import TenureServer

HELLO = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "claude-code", "version": "2"},
    },
}  # fmt: skip
SHOW = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "show", "arguments": {}}}


class Told(NamedTuple):
    status: int
    body: str
    session: str | None = None

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class House:
    """A server with the tenants `acme` and `zeta`: equal projects, equal task keys."""

    def __init__(self, url: str, *options: str) -> None:
        self.home = Client(url, "p", create=True)
        engines = TenantEngines(self.home.engine, lambda: 0.0)
        self.engines: dict[str, Engine] = {}
        for name in ("acme", "zeta"):
            self.home.engine.do(c.AddTenant(tenant=name))
            self.engines[name] = engines.find(name)
            self.engines[name].do(c.DefineProject(project="p"))
        self.keys = {name: key_of(engine) for name, engine in self.engines.items()}
        self.keys["local"] = key_of(self.home.engine)
        self.server = TenureServer(url, *options, settings={"TENURE_SERVE_AUTH": "required"})

    def client(self, tenant: str, agent: str = "agent") -> Client:
        return Client(self.server.url, "p", key=self.keys[tenant], agent=agent, session=f"s-{agent}")

    def ask(self, tenant: str | None, method: str, path: str, body: Any = None, **headers: str) -> Told:
        line = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        told = {"Content-Type": "application/json", **{n.replace("_", "-"): v for n, v in headers.items()}}
        if tenant is not None:
            told["Authorization"] = f"Bearer {self.keys[tenant]}"
        line.request(method, path, None if body is None else json.dumps(body), told)
        answer = line.getresponse()
        try:
            return Told(answer.status, answer.read().decode(), answer.getheader("mcp-session-id"))
        finally:
            line.close()


@pytest.fixture(scope="module", params=[1, 2], ids=["one process", "two workers"])
def house(request: pytest.FixtureRequest, postgres: PostgresServer) -> Iterator[House]:
    url = postgres.create(f"house{request.param}")
    house = House(url, "--workers", str(request.param))
    with house.server:
        yield house
    house.home.close()


def test_each_tenant_sees_its_own_tasks_by_equal_keys(house: House) -> None:
    for name in house.engines:
        with house.client(name) as client:
            client.add(f"task of {name}", idempotency_key="mine")
    for name in house.engines:
        found = house.ask(name, "GET", "/api/v1/projects/p/tasks").json["items"]
        assert [task["title"] for task in found if task["title"].startswith("task of")] == [f"task of {name}"]
    assert house.ask("acme", "GET", "/api/v1/me").json["tenant"] == "acme"


def test_a_foreign_tenant_is_answered_like_one_that_does_not_exist(house: House) -> None:
    for path in ("/api/v1/me", "/api/v1/projects", "/metrics", "/mcp"):
        for how in ("path", "header"):
            said = []
            for name in ("zeta", "none"):
                told = (
                    house.ask("acme", "GET", f"/t/{name}{path}")
                    if how == "path"
                    else house.ask("acme", "GET", path, Tenure_Tenant=name)
                )
                said.append((told.status, told.body.replace(name, "NAME")))
            assert said[0] == said[1]
            assert said[0][0] == 404
    assert house.ask("acme", "GET", "/t/acme/api/v1/me").status == 200


def test_a_waiting_claim_is_woken_by_its_own_tenant_alone(house: House) -> None:
    got: dict[str, str] = {}

    def wait(name: str) -> None:
        with house.client(name, "waiting") as client:
            found = client.claim(types=["rare"], wait=30)
            got[name] = str((found.task or {}).get("title"))

    waiting = [threading.Thread(target=wait, args=(name,)) for name in house.engines]
    for thread in waiting:
        thread.start()
    for name in house.engines:
        with house.client(name) as client:
            client.add(f"rare of {name}", type="rare")
    for thread in waiting:
        thread.join(60)
    assert got == {name: f"rare of {name}" for name in house.engines}


def test_a_stream_has_the_events_of_its_tenant_alone(house: House) -> None:
    line = http.client.HTTPConnection("127.0.0.1", house.server.port, timeout=60)
    headers = {"Authorization": f"Bearer {house.keys['acme']}", "Accept": "text/event-stream"}
    line.request("GET", "/api/v1/projects/p/events?kind=task.created", headers=headers)
    stream = line.getresponse()
    assert stream.readline() == b"retry: 1000\n"
    with house.client("zeta") as client:
        client.add("streamed of zeta")
    with house.client("acme") as client:
        client.add("streamed of acme")
    while b"data:" not in (got := stream.readline()):
        pass
    line.close()
    assert "streamed-of-acme" in got.decode()


def test_whoever_waits_or_follows_in_a_tenant_ends_with_it(house: House) -> None:
    house.home.add_tenant("gone")
    engine = TenantEngines(house.home.engine, lambda: 0.0).find("gone")
    engine.do(c.DefineProject(project="p"))
    house.keys["gone"] = key_of(engine)
    line = http.client.HTTPConnection("127.0.0.1", house.server.port, timeout=60)
    headers = {"Authorization": f"Bearer {house.keys['gone']}", "Accept": "text/event-stream"}
    line.request("GET", "/api/v1/projects/p/events", headers=headers)
    stream = line.getresponse()
    assert stream.readline() == b"retry: 1000\n"
    waited: list[Told] = []
    ask = {"agent": "ann", "session": "s"}
    wait = threading.Thread(
        target=lambda: waited.append(house.ask("gone", "POST", "/api/v1/projects/p/claims?wait=50", ask))
    )
    wait.start()
    until(lambda: waiting_in(house) > 0, "the claim waits")
    began = time.monotonic()
    house.home.close_tenant("gone")
    stream.read()
    wait.join(60)
    assert time.monotonic() - began < 14  # a beat is 15 s away, the end of the wait 50 s
    assert (waited[0].status, waited[0].json.get("code")) == (401, "NOT_SIGNED_IN"), waited[0].json
    assert house.ask("gone", "GET", "/api/v1/me").status == 401
    line.close()


def waiting_in(house: House) -> float:
    page = house.ask("local", "GET", "/metrics").body
    found = [text for text in page.splitlines() if text.startswith("tenure_held_requests{") and "claims" in text]
    return sum(float(text.rpartition(" ")[2]) for text in found)


def test_metrics_of_a_tenant_show_no_other_and_nothing_of_the_process(house: House) -> None:
    for name in house.engines:
        with house.client(name) as client:
            client.add("counted")
            client.claim()
    page = house.ask("acme", "GET", "/metrics").body
    lines = [line for line in page.splitlines() if line and not line.startswith("#")]
    assert lines
    assert all('tenant="acme"' in line for line in lines)
    assert "zeta" not in page
    assert "process_" not in page


def test_the_log_and_the_coordinator_say_nothing_of_another_tenant(house: House) -> None:
    for path in ("status", "logs", "logs?level=debug"):
        told = house.ask("acme", "GET", f"/api/v1/coordinator/{path}")
        assert told.status == 200
        assert "zeta" not in told.body
    assert (
        house.ask("acme", "GET", "/api/v1/coordinator/logs?tenant=zeta").body.replace("zeta", "none")
        == house.ask("acme", "GET", "/api/v1/coordinator/logs?tenant=none").body
    )
    assert house.ask("acme", "GET", "/api/v1/tenants").status == 403


def test_tools_work_in_the_tenant_of_the_key(house: House) -> None:
    both = {"Accept": "application/json, text/event-stream"}
    sessions = {}
    for name, engine in house.engines.items():
        engine.do(c.DefineProject(project="tools"))
        engine.do(c.Add(project="tools", task=c.NewTask(title=f"tool task of {name}")))
        sessions[name] = house.ask(name, "POST", "/mcp?project=tools", HELLO, **both).session or ""
        told = house.ask(name, "POST", "/mcp?project=tools", SHOW, Mcp_Session_Id=sessions[name], **both)
        assert told.status == 200
        assert f"tool task of {name}" in told.body.replace("-", " ")
        assert "of " + ("zeta" if name == "acme" else "acme") not in told.body.replace("-", " ")
    foreign = house.ask("acme", "POST", "/mcp?project=tools", SHOW, Mcp_Session_Id=sessions["zeta"], **both)
    unknown = house.ask("acme", "POST", "/mcp?project=tools", SHOW, Mcp_Session_Id="0" * 32, **both)
    assert (foreign.status, foreign.body) == (unknown.status, unknown.body)


def test_a_lost_lease_is_settled_in_a_tenant_that_nobody_asks(house: House) -> None:
    """By the leader's thread: no request settles it."""
    engine = house.engines["zeta"]
    engine.do(c.DefineProject(project="q"))
    engine.do(c.Add(project="q", task=c.NewTask(title="t", not_before_in=1)))
    assert claimed(engine, "q", 1) == 0
    mark = engine.mark()
    while not any(event.new_state == "ready" for event in engine.read(lambda tx: tx.events({"project": "q"}))):
        assert engine.wait(mark, 30), "nothing was settled"
        mark = engine.mark()


def test_tenants_are_drained_of_their_own_tasks(postgres: PostgresServer) -> None:
    told = drain(postgres.create("drained"), 5, 4)
    assert (told["drained"], told["left"], told["wrong_tenants"], told["foreign"]) == (20, 0, 0, 0)


def test_claims_count_over_the_projects_of_a_tenant(postgres: PostgresServer) -> None:
    told = limited(postgres.create("limited"), 160)
    assert told == {
        "default_held": 100, "default_101st": "DENIED_LIMIT", "enterprise_held": 160,
        "enterprise_next": "DENIED_LIMIT",
    }  # fmt: skip
