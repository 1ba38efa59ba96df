"""A tenant with its own tables, in a schema of the same database: served like the others, on the same connections."""

from __future__ import annotations

import time

import psycopg
import pytest

from tenure import Client
from tenure.core import commands as c
from tenure.core.errors import InvalidInput, StoreUnavailable
from tenure.stores.memory import Memory
from tenure.stores.postgres import Postgres, row_security
from tenure.testing.clock import FakeClock
from tenure.testing.factories import Scene
from tests.reliability.many_tenants import key_of
from tests.server.test_many_tenants import House
from tests.servers.postgres import PostgresServer
from tests.servers.restricted import OWNER, ROLE, prepare


def rows(postgres: PostgresServer, database: str, schema: str) -> int:
    with psycopg.connect(postgres.database(database)) as link:
        found = link.execute(f'SELECT count(*) FROM "{schema}".task_base'.encode()).fetchone()
    assert found is not None
    return int(found[0])


def test_a_server_keeps_the_rows_of_each_tenant_where_it_says(postgres: PostgresServer) -> None:
    url = postgres.create("schemas")
    house = House(url)
    schemas = {}
    for name in ("one", "two"):
        schemas[name] = (house.home.add_tenant(name, isolation="schema").tenant or {})["schema"]
        with Client(url, "p", tenant=name, create=True) as client:
            house.keys[name] = key_of(client.engine)
    assert len(set(schemas.values())) == 2
    with house.server:
        for name in ("one", "two", "acme"):
            with house.client(name) as client:
                client.add(f"of {name}", idempotency_key="same")
                assert (client.claim(lease="5m").task or {})["title"] == f"of {name}"
        foreign, unknown = (house.ask("one", "GET", f"/t/{name}/api/v1/me") for name in ("two", "none"))
        assert (foreign.status, foreign.body.replace("two", "none")) == (404, unknown.body)
        house.home.close_tenant("two")
        until = time.monotonic() + 60
        while house.ask("two", "GET", "/api/v1/me").status != 401:  # servers notice within two seconds
            assert time.monotonic() < until, "a closed tenant is still served"
        assert house.ask("one", "GET", "/api/v1/projects/p/tasks").status == 200
    counts = {name: rows(postgres, "schemas", schema) for name, schema in schemas.items()}
    assert (counts, rows(postgres, "schemas", "tenure")) == ({"one": 1, "two": 1}, 1)
    house.home.reopen_tenant("two")
    with Client(url, "p", tenant="two") as client:
        assert [task["title"] for task in client.tasks()] == ["of two"]
    house.home.close()


def test_the_schema_of_a_tenant_uses_the_connections_of_its_home(postgres: PostgresServer) -> None:
    home = Postgres(postgres.create("one_pool"))
    store = home.in_schema("t_0123456789abcdef")
    assert store.connections is home.connections
    store.close()
    assert home.mark("local") == 0  # its connections are still open
    home.close()


def test_under_policies_the_owner_makes_the_schema_and_the_role_uses_it(postgres: PostgresServer) -> None:
    prepare(postgres)
    url = postgres.create("owned")
    postgres.ask(f'GRANT CREATE ON DATABASE owned TO "{OWNER}"')
    owner, role = (url.replace("tenure@", f"{name}@") for name in (OWNER, ROLE))
    with Client(owner, "p", create=True) as home:
        home.add_tenant("acme", isolation="schema")
    row_security.run(owner, "on", ROLE)
    with pytest.raises(StoreUnavailable), Client(role, "p", tenant="acme"):
        pass  # the role may not make it
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TENURE_OWNER_URL", owner)
        with Client(role, "p") as home:
            assert home.transport.open_schemas() == ["acme"]  # type: ignore[union-attr]  # it is local
    with Client(role, "p", tenant="acme", create=True) as client:
        client.add("in its schema")
        assert client.claim().ok
        assert client.engine.verify() == []


def test_a_store_without_schemas_refuses_one() -> None:
    clock = FakeClock()
    scene = Scene(Memory(clock=clock), clock)
    with pytest.raises(InvalidInput, match="no schemas"):
        scene.engine.do(c.AddTenant(tenant="acme", isolation="schema"))
