"""Hosts that answer nothing: each address has its own deadline, then the next, and a silent one is tried last."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tenure.core import limits
from tenure.core.errors import StoreUnavailable
from tenure.core.records import Agent
from tenure.stores.mariadb import Mariadb
from tenure.stores.mariadb import connection as of_mariadb
from tenure.stores.mariadb.address import parse as parse_mariadb
from tenure.stores.port import Store
from tenure.stores.postgres import Postgres
from tenure.stores.postgres.address import parse
from tenure.stores.postgres.connection import connect
from tenure.stores.sql import hosts
from tenure.stores.sql.hosts import Place, SilentHosts
from tenure.stores.valkey import Valkey
from tenure.stores.valkey import connection as of_valkey
from tenure.testing.samples import row_of
from tenure.testing.suites.store_setting import add, stored
from tests.servers.postgres import PostgresServer, url_of
from tests.stores.black_hole import BlackHole

DEADLINE = 1  # second


class Noting(SilentHosts):
    """Each attempt at a place that answers nothing costs one deadline, and is noted."""

    def __init__(self) -> None:
        super().__init__()
        self.attempts: list[Place] = []

    def note(self, place: Place, now: float) -> None:
        self.attempts.append(place)
        super().note(place, now)


@pytest.fixture(autouse=True)
def silent(monkeypatch: pytest.MonkeyPatch) -> Noting:
    """As in a new process, with a short deadline."""
    silent = Noting()
    monkeypatch.setattr(hosts, "OF_THIS_PROCESS", silent)
    monkeypatch.setattr(of_mariadb, "_CONNECT", DEADLINE)
    monkeypatch.setattr(of_valkey, "CONNECT", DEADLINE)
    return silent


@pytest.fixture
def place(postgres: PostgresServer, tmp_path: Path) -> str:
    """The URL of a store that exists: to create one takes longer than a deadline."""
    Postgres(url_of(tmp_path)).close()
    return url_of(tmp_path, connect_timeout=str(DEADLINE))


@contextmanager
def named(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> Iterator[None]:
    """While it lasts, `db.test` has these addresses."""
    real = socket.getaddrinfo

    def resolved(host: Any, port: Any, *given: Any, **more: Any) -> Any:
        if host != "db.test":
            return real(host, port, *given, **more)
        return [found for address in addresses for found in real(address, port, *given, **more)]

    with monkeypatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", resolved)
        yield


# --- which are tried first -------------------------------------------------------------------------------------


def test_a_silent_place_is_tried_last_for_a_minute() -> None:
    places = [Place("a", 1), Place("b", 1), Place("c", 1)]
    silent = SilentHosts()
    assert silent.last(places, 0.0) == places
    silent.note(places[0], 100.0)
    assert silent.last(places, 100.0) == [places[1], places[2], places[0]]
    assert silent.last(places, 100.0 + limits.SILENT_HOST - 1) == [places[1], places[2], places[0]]
    assert silent.last(places, 100.0 + limits.SILENT_HOST) == places
    silent.note(places[1], 130.0)
    assert silent.last(places, 131.0) == [places[2], places[0], places[1]]
    silent.forget(places[0])
    assert silent.last(places, 131.0) == [places[0], places[2], places[1]]


def test_a_name_has_a_place_for_each_address(monkeypatch: pytest.MonkeyPatch, silent: Noting) -> None:
    with named(monkeypatch, "127.0.0.2", "127.0.0.1", "127.0.0.2"):
        assert hosts.places_of("db.test", 5) == [Place("db.test", 5, "127.0.0.2"), Place("db.test", 5, "127.0.0.1")]
    for host in ("127.0.0.1", "::1", "fe80::1%lo", "", "/run/postgresql", "@abstract", "nobody.invalid"):
        assert hosts.places_of(host, 5) == [Place(host, 5)]


# --- real servers behind a black hole --------------------------------------------------------------------------


def behind(opened: Callable[[], Store], silent: Noting) -> None:
    """Opening costs one deadline; what follows in this process none."""
    first = opened()
    assert len(silent.attempts) == 1
    add(first, row_of(Agent, project="p", id="bo"))
    second = opened()
    assert set(stored(second, Agent)) >= {("p", "bo")}
    for store in (first, second):
        store.close()
    assert len(silent.attempts) == 1


def test_postgres_behind_a_host_that_answers_nothing(place: str, silent: Noting) -> None:
    with BlackHole() as hole:
        url = place.replace("127.0.0.1:", f"127.0.0.1:{hole.port},127.0.0.1:", 1)
        behind(lambda: Postgres(url), silent)


def test_postgres_behind_an_address_of_its_name_that_answers_nothing(
    postgres: PostgresServer, place: str, monkeypatch: pytest.MonkeyPatch, silent: Noting
) -> None:
    url = place.replace("127.0.0.1", "db.test") + "&allow_insecure=1"
    with BlackHole("127.0.0.2", postgres.port), named(monkeypatch, "127.0.0.2", "127.0.0.1"):
        behind(lambda: Postgres(url), silent)


def test_postgres_behind_a_host_that_accepts_and_is_silent(place: str, silent: Noting) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = place.replace("127.0.0.1:", f"127.0.0.1:{mute.getsockname()[1]},127.0.0.1:", 1)
        behind(lambda: Postgres(url), silent)


def test_a_connection_that_was_open_is_replaced_at_the_next_host(place: str, silent: Noting) -> None:
    """The server goes away while a store has connections to it."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    store = Postgres(place.replace("127.0.0.1:", f"127.0.0.1:{port},127.0.0.1:", 1))  # refused there, and goes on
    add(store, row_of(Agent, project="p", id="bo"))
    with BlackHole(port=port):
        while store.connections._idle:
            store.connections._idle.pop().close()
        assert stored(store, Agent)
        assert len(silent.attempts) == 1
        while store.connections._idle:
            store.connections._idle.pop().close()
        assert stored(store, Agent)
        assert len(silent.attempts) == 1
    store.close()


def test_when_all_are_silent_each_is_tried_and_named() -> None:
    with BlackHole() as one, BlackHole() as other:
        url = f"postgresql://nobody@127.0.0.1:{one.port},127.0.0.1:{other.port}/none?connect_timeout={DEADLINE}"
        with pytest.raises(StoreUnavailable) as raised:
            Postgres(url)
    for hole in (one, other):
        assert f"127.0.0.1:{hole.port}: no answer within the connect_timeout" in raised.value.message


@pytest.mark.parametrize(
    ("wanted", "found"), [("read-write", True), ("primary", True), ("any", True), ("prefer-standby", True),
                          ("standby", False), ("read-only", False)],
)  # fmt: skip
def test_the_kind_of_server_that_is_wanted_counts_at_each_host(
    postgres: PostgresServer, wanted: str, found: bool
) -> None:
    with BlackHole() as hole:
        at = postgres.url.replace("127.0.0.1:", f"127.0.0.1:{hole.port},127.0.0.1:", 1)
        conninfo = parse(f"{at}?connect_timeout={DEADLINE}&target_session_attrs={wanted}").conninfo
        if found:
            connect(conninfo, 5).close()
        else:
            with pytest.raises(StoreUnavailable, match=r"not|read"):
                connect(conninfo, 5)


def test_an_open_connection_has_a_deadline_of_its_own(postgres: PostgresServer) -> None:
    connection = connect(parse(postgres.url).conninfo, 5)
    with socket.socket(fileno=socket.dup(connection._wire.socket)) as wire:
        levels = {name: wire.getsockopt(socket.IPPROTO_TCP, option) for name, option in OPTIONS.items()}
    connection.close()
    assert levels == {"TCP_USER_TIMEOUT": 10_000, "TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 2}


OPTIONS = {name: getattr(socket, name) for name in ("TCP_USER_TIMEOUT", "TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")}


def test_mariadb_behind_an_address_of_its_name_that_answers_nothing(
    mariadb: Any, monkeypatch: pytest.MonkeyPatch, silent: Noting
) -> None:
    place = mariadb.place("silent_hosts")
    Mariadb(place).close()  # a new database takes longer
    with BlackHole("127.0.0.2", mariadb.port), named(monkeypatch, "127.0.0.2", "127.0.0.1"):
        where = place.replace("127.0.0.1", "db.test")
        url = f"{where}{'&' if '?' in where else '?'}allow_insecure=1"
        behind(lambda: Mariadb(url), silent)
        connection = of_mariadb.connect(parse_mariadb(url), wait=5, silence=5)
        assert connection._raw._sock.getsockopt(socket.IPPROTO_TCP, OPTIONS["TCP_USER_TIMEOUT"]) == 10_000
        connection.close()


def test_valkey_behind_a_host_and_an_address_that_answer_nothing(
    valkey: Any, monkeypatch: pytest.MonkeyPatch, silent: Noting
) -> None:
    place = valkey.place("silent_hosts")
    port = urlsplit(place).port
    with BlackHole() as hole:
        behind(lambda: Valkey(place.replace("127.0.0.1:", f"127.0.0.1:{hole.port},127.0.0.1:", 1)), silent)
    with BlackHole("127.0.0.2", port or 0), named(monkeypatch, "127.0.0.2", "127.0.0.1"):
        where = place.replace("127.0.0.1", "db.test")
        store = Valkey(f"{where}{'&' if '?' in where else '?'}allow_insecure=1")
        with store.connections.taken() as connection:
            assert connection._raw._sock.getsockopt(socket.IPPROTO_TCP, OPTIONS["TCP_USER_TIMEOUT"]) == 10_000
            assert connection._raw.host == "db.test"
        store.close()
