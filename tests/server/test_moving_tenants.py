"""A tenant that moves under a server: each store that it leaves is closed, with its connections and threads."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from tenure import Client
from tenure.client.tenant_move import HERE, move_tenant
from tenure.core.errors import NotFound, NotSignedIn
from tests.reliability.many_tenants import key_of
from tests.runner.conftest import until
from tests.server.test_many_tenants import House
from tests.servers.postgres import PostgresServer

MASTER = {"TENURE_MASTER_KEY": "0123456789abcdef" * 4}


def connections(postgres: PostgresServer, *names: str) -> dict[str, int]:
    """How many each of these databases has; none is left out."""
    counted = {
        name: int(postgres.ask(f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'")) for name in names
    }
    return {name: count for name, count in counted.items() if count}


def threads(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


@pytest.fixture
def master_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in MASTER.items():
        monkeypatch.setenv(name, value)


def housed(url: str, isolation: str) -> House:
    """A server, not started, with the tenant `big`."""
    house = House(url)
    house.server.settings |= MASTER
    house.home.add_tenant("big", isolation=isolation)
    with Client(url, "p", tenant="big", create=True) as client:
        house.keys["big"] = key_of(client.engine)
        client.add("it goes with the tenant")
    return house


def work(house: House) -> None:
    """Write and read in the tenant, through the server, as soon as that knows that it is open."""
    until(lambda: _worked(house), "an answer")


def _worked(house: House) -> bool:
    with house.client("big") as client, suppress(NotFound, NotSignedIn):
        return client.add("more").ok and bool(client.tasks(limit=5))
    return False


@pytest.mark.nightly
@pytest.mark.parametrize("moves", [6, 60])
def test_a_tenant_that_moves_leaves_no_connection_and_no_thread(
    postgres: PostgresServer, master_key: None, moves: int
) -> None:
    url, names = postgres.create(f"left{moves}"), (f"left{moves}_0", f"left{moves}_1")
    places = [*(postgres.create(name) for name in names), HERE]
    house = housed(url, "logical")
    with house.server:
        assert house.server.process is not None
        pid = house.server.process.pid

        def move(times: int) -> None:
            for number in range(times):
                move_tenant(url, "big", to=places[number % 3])
                work(house)
            until(lambda: not connections(postgres, *names), "no connection to the stores that it has left")

        move(3)
        before = threads(pid)
        move(moves)
        most = before + moves // 2  # pools of threads grow to their size; each move that leaks one adds one
        until(lambda: threads(pid) <= most, f"no more than {most} threads")
        assert "Traceback" not in house.server.log.read_text()
        assert "could not be closed" not in house.server.log.read_text()
    house.home.close()


@pytest.mark.nightly  # a server notices each closing after two seconds
def test_a_tenant_that_is_closed_leaves_no_thread_of_its_schema(postgres: PostgresServer) -> None:
    house = housed(postgres.create("shut"), "schema")
    with house.server:
        assert house.server.process is not None
        pid = house.server.process.pid

        def close(times: int) -> None:
            for _ in range(times):
                work(house)
                house.home.close_tenant("big")
                until(lambda: house.ask("big", "GET", "/api/v1/me").status == 401, "it is closed")
                house.home.reopen_tenant("big")

        close(3)  # pools of threads grow to their size
        work(house)
        before = threads(pid)
        close(3)
        work(house)
        most = before + 2  # pools of threads grow to their size; each closing that leaks one adds one
        until(lambda: threads(pid) <= most, f"no more than {most} threads")
        assert "Traceback" not in house.server.log.read_text()
        assert "could not be closed" not in house.server.log.read_text()
    house.home.close()
