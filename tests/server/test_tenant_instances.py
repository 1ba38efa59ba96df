"""A tenant with its own store: served like the others, and alone in trouble when that store is."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tenure import Client
from tenure.core import commands as c
from tenure.core.errors import InvalidInput, NotAllowed, NotFound, Overloaded, StoreUnavailable, TenureError
from tenure.core.records import replace
from tenure.engine import Engine
from tenure.engine.runtime.tenancy import TenantEngines, url_of
from tenure.stores.memory import Memory
from tenure.stores.port import Store
from tenure.stores.router import AGAIN, Router
from tenure.testing.clock import FakeClock
from tenure.testing.factories import SECRETS, Dice, Scene
from tests.reliability.many_tenants import key_of
from tests.server.test_many_tenants import House
from tests.servers import processes
from tests.servers.fixtures import running
from tests.servers.postgres import PostgresServer

MASTER = {"TENURE_MASTER_KEY": "0123456789abcdef" * 4}


# --- the router -----------------------------------------------------------------------------------------------


class Opened:
    """Stores that are opened by URL, and counted."""

    def __init__(self) -> None:
        self.now, self.opened, self.is_away = 0.0, 0, False

    def __call__(self, url: str) -> Store:
        self.opened += 1
        if self.is_away:
            raise StoreUnavailable(f"{url} is away")
        return Memory(url)


def test_a_store_is_opened_once_and_again_after_it_was_closed() -> None:
    opened = Opened()
    router = Router(opened, lambda: opened.now)
    first = router.store("acme", b"", lambda open_url: open_url("memory://a"))
    assert router.store("acme", b"", lambda open_url: open_url("memory://a")) is first is router.find("acme", b"")
    router.close_one("acme")
    assert router.find("acme", b"") is None
    assert router.store("acme", b"", lambda open_url: open_url("memory://a")) is not first
    assert opened.opened == 2


def test_a_store_that_is_away_is_tried_again_a_moment_later_and_its_url_is_told_nobody() -> None:
    opened = Opened()
    router = Router(opened, lambda: opened.now)
    opened.is_away = True
    for _ in range(3):
        with pytest.raises(StoreUnavailable) as refused:
            router.store("acme", b"", lambda open_url: open_url("memory://secret"))
        assert "secret" not in refused.value.message + (refused.value.hint or "")
    assert opened.opened == 1
    opened.is_away, opened.now = False, AGAIN
    assert router.store("acme", b"", lambda open_url: open_url("memory://secret")).url == "memory://secret"
    assert router.store("zeta", b"", lambda open_url: open_url("memory://z"))


def test_no_more_stores_are_opened_than_allowed() -> None:
    opened = Opened()
    router = Router(opened, lambda: 0.0, most=1)
    router.store("acme", b"", lambda open_url: open_url("memory://a"))
    with pytest.raises(Overloaded):
        router.store("zeta", b"", lambda open_url: open_url("memory://z"))
    router.close_one("acme")
    assert router.store("zeta", b"", lambda open_url: open_url("memory://z"))


# --- rows -----------------------------------------------------------------------------------------------------


@pytest.fixture
def home() -> Scene:
    clock = FakeClock()
    return Scene(Memory(clock=clock), clock, context=SECRETS)


def test_the_url_of_a_store_is_sealed_and_opens_in_its_row_alone(home: Scene) -> None:
    made = home.engine.do(c.AddTenant(tenant="acme", isolation="instance", store="memory://sec-ret", region="eu"))
    assert made.tenant is not None
    assert (made.tenant["isolation"], made.tenant["region"]) == ("instance", "eu")
    (row,) = TenantEngines(home.engine, lambda: 0.0).rows()
    assert b"sec-ret" not in row.store
    assert "sec-ret" not in str(home.events())
    assert url_of(home.engine, row.id, row.store) == "memory://sec-ret"
    home.engine.do(c.AddTenant(tenant="zeta"))
    with pytest.raises(TenureError):
        url_of(home.engine, "zeta", row.store)


@pytest.mark.parametrize(
    "how",
    [
        {"isolation": "instance"}, {"store": "postgresql://x"}, {"isolation": "none"}, {"region": "no region"},
        {"isolation": "instance", "store": "sqlite:///x"}, {"isolation": "instance", "store": "x"},
    ],
)  # fmt: skip
def test_a_place_that_cannot_be_is_refused(home: Scene, how: dict[str, str]) -> None:
    with pytest.raises(TenureError) as refused:
        home.engine.do(c.AddTenant(tenant="acme", **how))
    assert refused.value.code == "INVALID_INPUT"


def test_the_store_of_a_new_tenant_is_opened_before_it_is_added_and_by_no_preview(home: Scene) -> None:
    opened = Opened()
    engine = Engine(home.store, home.engine.random, replace(SECRETS, open_store=opened))
    add = c.AddTenant(tenant="acme", isolation="instance", store="memory://proven")
    assert [getattr(answer, "outcome", answer) for answer in engine.preview([add])] == ["CREATED"]
    assert opened.opened == 0
    opened.is_away = True
    with pytest.raises(InvalidInput, match="cannot be opened: memory://proven is away"):
        engine.do(add)
    assert TenantEngines(engine, lambda: 0.0).rows() == []
    opened.is_away = False
    with pytest.raises(NotAllowed):
        engine.do(add, c.Principal(role="admin"))
    assert opened.opened == 1, "who may not add a tenant opens no store"
    assert engine.do(add).outcome == "CREATED"
    assert (engine.do(add).outcome, opened.opened) == ("EXISTS", 2)


def test_rows_of_an_instance_are_in_its_own_store(home: Scene) -> None:
    home.engine.do(c.AddTenant(tenant="acme", isolation="instance", store="memory://own"))
    opened = Opened()
    engines = TenantEngines(home.engine, lambda: 0.0, router=Router(opened, lambda: 0.0))
    engine = engines.find("acme")
    engine.do(c.DefineProject(project="p"))
    assert engine.store.url == "memory://own"
    assert engines.find("acme") is engine
    engines.close_one("acme")
    assert engines.find("acme") is not engine
    with pytest.raises(StoreUnavailable):
        TenantEngines(home.engine, lambda: 0.0).find("acme")
    assert isinstance(engine.random, Dice)


# --- a server -------------------------------------------------------------------------------------------------


@pytest.fixture
def instance() -> Iterator[PostgresServer]:
    server = PostgresServer()
    with running(server):
        yield server


def test_a_dead_instance_is_its_own_tenants_trouble_alone(
    postgres: PostgresServer, instance: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in MASTER.items():
        monkeypatch.setenv(name, value)
    url = postgres.create("apart")
    house = House(url)
    house.server.settings |= MASTER
    house.home.add_tenant("big", isolation="instance", store=instance.create("own"))
    with Client(url, "p", tenant="big", create=True) as client:
        house.keys["big"] = key_of(client.engine)
        assert f":{instance.port}/own" in client.store.url
    with house.server:
        with house.client("big") as client:
            client.add("in its own store")
            assert client.claim(lease="5m").ok
        assert house.ask("big", "GET", "/api/v1/me").json["tenant"] == "big"
        assert instance.process is not None
        processes.end(instance.process, signal.SIGQUIT)
        dead = house.ask("big", "GET", "/api/v1/projects/p/tasks")
        assert dead.status == 503
        for name in ("acme", "zeta"):
            with house.client(name) as client:
                client.add("goes on")
                assert client.claim().ok
            assert house.ask(name, "GET", "/api/v1/projects/p/tasks").status == 200
        assert house.ask(None, "GET", "/ready").status == 200
        instance.run()
        with house.client("big") as client:
            (task,) = client.tasks()
            assert task["title"] == "in its own store"
    with pytest.raises(NotFound):
        Client(url, "p", tenant="bog")
    house.home.close()


def test_a_tenant_whose_store_cannot_be_opened_is_not_added(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its URL is sealed in its row, and could not be corrected."""
    for name, value in MASTER.items():
        monkeypatch.setenv(name, value)
    house = House(postgres.create("proven"))
    house.server.settings |= MASTER
    body = {"tenant": "lost", "isolation": "instance", "store": "postgresql://nobody:hush@127.0.0.1:1/none"}
    with house.server:
        refused = house.ask("local", "POST", "/api/v1/tenants", body)
        assert (refused.status, refused.json["code"]) == (400, "INVALID_INPUT"), refused
        assert "the tenant's store cannot be opened: " in refused.body
        assert "hush" not in refused.body
        assert house.ask("local", "GET", "/api/v1/tenants/lost").status == 404
        added = house.ask("local", "POST", "/api/v1/tenants", body | {"store": postgres.create("proven_own")})
        assert added.json["outcome"] == "CREATED", added
    house.home.close()
