"""Two servers of one deployment, each in its region: a tenant's home takes its writes, the other names the home."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, NamedTuple

import pytest

from tenure import AsyncClient, Client
from tenure.client.tenant_move import move_tenant
from tenure.config import BadConfig
from tenure.core.errors import NotHome
from tenure.core.regions import is_home, parse_homes
from tests.client.stub import Time
from tests.reliability.many_tenants import key_of
from tests.server.test_many_tenants import HELLO
from tests.servers import processes
from tests.servers.postgres import PostgresServer
from tests.servers.replication import Pair
from tests.servers.tenure import TenureServer

MASTER = {"TENURE_MASTER_KEY": "0123456789abcdef" * 4}
TASKS = "/api/v1/projects/p/tasks"


class Told(NamedTuple):
    status: int
    body: str
    home: str | None
    age: str | None

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class World:
    """The tenant `acme` is at home in eu; `free` has no region."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.keys: dict[str, str] = {}
        with Client(url, "p", create=True) as home:
            home.add_tenant("acme", region="eu")
            home.add_tenant("free")
            self.keys["local"] = key_of(home.engine)
        for name in ("acme", "free"):
            with Client(url, "p", tenant=name, create=True) as client:
                client.add("first")
                self.keys[name] = key_of(client.engine)
        ports = {"eu": processes.free_port(), "us": processes.free_port()}
        self.urls = {region: f"http://127.0.0.1:{port}" for region, port in ports.items()}
        homes = ",".join(f"{region}={address}" for region, address in self.urls.items())
        self.servers = {
            region: TenureServer(
                url, port=port,
                settings={
                    "TENURE_SERVE_AUTH": "required", "TENURE_SERVE_REGION": region, "TENURE_SERVE_HOMES": homes,
                    **MASTER,
                },
            )
            for region, port in ports.items()
        }  # fmt: skip

    def ask(self, region: str, method: str, path: str, body: Any = None, tenant: str = "acme") -> Told:
        line = http.client.HTTPConnection("127.0.0.1", self.servers[region].port, timeout=60)
        said = {"Content-Type": "application/json", "Authorization": f"Bearer {self.keys[tenant]}"}
        try:
            line.request(method, path, None if body is None else json.dumps(body), said)
            answer = line.getresponse()
            told = answer.read().decode()
            return Told(answer.status, told, answer.getheader("tenure-home"), answer.getheader("tenure-age"))
        finally:
            line.close()

    def client(self, region: str, **how: Any) -> Client:
        return Client(self.urls[region], "p", key=self.keys["acme"], agent="ann", session="s-ann", **how)


@pytest.fixture(scope="module")
def world(postgres: PostgresServer) -> Iterator[World]:
    with pytest.MonkeyPatch.context() as patched:
        for name, value in MASTER.items():
            patched.setenv(name, value)
        world = World(postgres.create("regions"))
        with world.servers["eu"], world.servers["us"]:
            yield world


def test_only_the_home_takes_writes_and_the_other_names_it(world: World) -> None:
    new = {"task": {"title": "new"}}
    there = world.ask("us", "POST", TASKS, new)
    assert (there.status, there.json["code"], there.json["definite"]) == (421, "NOT_HOME", True)
    assert there.home == world.urls["eu"]
    assert world.ask("eu", "POST", TASKS, new).status == 201
    for path in (f"{TASKS}/A-001/claim", "/api/v1/projects/p/batch"):
        assert world.ask("us", "POST", path, {}).status == 421, path
    assert world.ask("us", "POST", "/mcp", HELLO).status == 421


def test_reads_elsewhere_must_allow_older_data_and_are_told_its_age(world: World) -> None:
    refused = world.ask("us", "GET", TASKS)
    assert (refused.status, refused.home) == (421, world.urls["eu"])
    older = world.ask("us", "GET", f"{TASKS}?stale=1&limit=1")
    assert (older.status, len(older.json["items"])) == (200, 1)
    assert float(older.age or "") >= 0
    assert world.ask("us", "GET", f"{TASKS}?stale=2").status == 400
    assert world.ask("us", "POST", f"{TASKS}?stale=1", {"task": {"title": "no"}}).status == 421
    here = world.ask("eu", "GET", TASKS)
    assert (here.status, here.age) == (200, None)


def test_a_tenant_without_a_region_is_at_home_everywhere(world: World) -> None:
    for region in ("eu", "us"):
        for tenant in ("free", "local"):
            assert world.ask(region, "POST", TASKS, {"task": {"title": region}}, tenant).status == 201


def test_a_stranger_learns_nothing_about_a_home(world: World) -> None:
    world.keys["bad"] = "tnr_acme_0000000000_" + "0" * 40
    assert world.ask("us", "GET", TASKS, tenant="bad").status == 401
    world.keys["none"] = "tnr_none_0000000000_" + "0" * 40
    assert world.ask("us", "GET", TASKS, tenant="none").status == 401


def test_a_client_sends_again_to_a_home_that_its_own_table_names(world: World) -> None:
    with world.client("us", homes={"eu": world.urls["eu"]}) as client:
        made = client.add("by a client of us").task or {}
        assert client.transport._calls.url == world.urls["eu"]
        assert client.show(made["key"])["title"] == "by a client of us"
    for homes in ({}, {"eu": "http://127.0.0.1:1"}, {"us": world.urls["us"]}):
        with world.client("us", homes=homes) as client, pytest.raises(NotHome) as refused:
            client.add("nowhere")
        assert refused.value.code == "NOT_HOME"
        assert world.urls["eu"] in (refused.value.hint or "")


async def test_the_asynchronous_client_does_the_same(world: World) -> None:
    async with AsyncClient(world.urls["us"], "p", key=world.keys["acme"], homes={"eu": world.urls["eu"]}) as client:
        assert (await client.add("async")).outcome == "CREATED"
    async with AsyncClient(world.urls["us"], "p", key=world.keys["acme"], homes={}) as client:
        with pytest.raises(NotHome):
            await client.add("nowhere")


class _Liar(BaseHTTPRequestHandler):
    """A server that names another as the home."""

    seen: list[str]
    told: str

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.seen.append(self.path)
        body = json.dumps({"code": "NOT_HOME", "detail": "elsewhere", "definite": True}).encode()
        self.send_response(421)
        for name, value in {
            "Content-Type": "application/problem+json", "Content-Length": str(len(body)), "Tenure-Home": self.told,
        }.items():  # fmt: skip
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def test_a_key_goes_to_no_server_that_only_an_answer_names() -> None:
    """Nor does a ring of servers, each of which names the next, keep a client busy."""
    servers = [HTTPServer(("127.0.0.1", 0), type(f"_Liar{n}", (_Liar,), {"seen": []})) for n in range(2)]
    urls = [f"http://127.0.0.1:{server.server_port}" for server in servers]
    for server, told in zip(servers, reversed(urls), strict=True):
        server.RequestHandlerClass.told = told  # type: ignore[attr-defined]
    threads = [threading.Thread(target=server.serve_forever) for server in servers]
    for thread in threads:
        thread.start()
    seen = [server.RequestHandlerClass.seen for server in servers]  # type: ignore[attr-defined]
    try:
        far = {"eu": "https://example.org"}
        with Client(urls[0], "p", key="tnr_x", homes=far) as client, pytest.raises(NotHome):
            client.add("x")
        assert (len(seen[0]), len(seen[1])) == (1, 0)
        ring, time = {"a": urls[0], "b": urls[1]}, Time()
        paced = {"monotonic": time.monotonic, "pause": time.pause}
        with Client(urls[0], "p", key="tnr_x", homes=ring, **paced) as client, pytest.raises(NotHome):
            client.add("x")
        assert len(seen[0]) + len(seen[1]) < 30
    finally:
        for server, thread in zip(servers, threads, strict=True):
            server.shutdown()
            thread.join()
            server.server_close()


def test_after_a_move_the_other_server_is_the_home(world: World, postgres: PostgresServer) -> None:
    there = postgres.create("regions_there")
    with world.client("eu", homes=dict(world.urls)) as client:
        receipt = client.claim().receipt or ""
        move_tenant(world.url, "acme", to="us", store=there)
        try:
            assert client.add("after the move").outcome == "CREATED"
            assert client.transport._calls.url == world.urls["us"]
            assert client.submit(receipt, "late").outcome == "STALE_EPOCH"
            assert world.ask("eu", "POST", TASKS, {"task": {"title": "no"}}).home == world.urls["us"]
            titles = [task["title"] for task in world.ask("us", "GET", TASKS).json["items"]]
            assert "after the move" in titles
        finally:
            move_tenant(world.url, "acme", to="eu", store="home")
        assert client.add("back again").outcome == "CREATED"
        assert client.transport._calls.url == world.urls["eu"]


@pytest.mark.nightly
def test_a_server_on_a_standby_reads_and_tells_how_old_its_data_is() -> None:
    pair = Pair()
    with pair:
        url = f"{pair.primary.url}?schema=tenure"
        with Client(url, "p", create=True) as client:
            client.add("replicated")
            key = key_of(client.engine)
        pair.be_in_step()
        settings = {"TENURE_SERVE_AUTH": "required", "TENURE_SERVE_REGION": "us"}
        server = TenureServer(f"{pair.standby.url}?schema=tenure&target_session_attrs=any", settings=settings)
        with server:
            line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            head = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
            told = []
            for method, path, body in (
                ("GET", f"{TASKS}?stale=1", None), ("GET", TASKS, None),
                ("POST", TASKS, json.dumps({"task": {"title": "no"}})),
            ):  # fmt: skip
                line.request(method, path, body, head)
                answer = line.getresponse()
                told.append((answer.status, answer.getheader("tenure-age"), answer.read()))
            line.close()
            assert [status for status, *_ in told] == [200, 421, 421]
            assert told[0][1] == "unknown" or float(told[0][1] or "") >= 0
            assert b"replicated" in told[0][2]


# --- rules ----------------------------------------------------------------------------------------------------


def test_homes_are_regions_with_urls() -> None:
    assert parse_homes(None) == {}
    given = " eu = https://eu.example.org/ ,us=http://127.0.0.1:1, "
    assert parse_homes(given) == {"eu": "https://eu.example.org", "us": "http://127.0.0.1:1"}
    for bad in ("eu", "eu=ftp://x", "eu=x", "a b=https://x", "eu=https://x y"):
        with pytest.raises(Exception, match=r"must|region"):
            parse_homes(bad)


def test_where_a_home_is() -> None:
    assert is_home("eu", "eu")
    assert not is_home("eu", "us")
    assert is_home(None, "us")
    assert is_home("eu", None)
    assert not is_home(None, None, is_standby=True)


def test_a_bad_table_of_homes_ends_the_start(postgres: PostgresServer) -> None:
    from tenure.config import homes_of, read_settings

    with pytest.raises(BadConfig):
        homes_of(read_settings("/", {"TENURE_HOMES": "eu"}))
    assert homes_of(read_settings("/", {"TENURE_HOMES": "eu=https://x"})) == {"eu": "https://x"}
