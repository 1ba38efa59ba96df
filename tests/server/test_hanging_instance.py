"""A tenant whose own store hangs, which is worse than one that is gone: nobody else may wait for it."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tenure import Client
from tenure.core import commands as c
from tests.reliability.many_tenants import key_of
from tests.server.test_many_tenants import HELLO, SHOW, House, Told
from tests.server.test_tenant_instances import MASTER, instance
from tests.servers.postgres import PostgresServer

__all__ = ["instance"]  # a fixture
APART = ("one", "two", "three", "four", "five")  # one more than the server has threads that read for all
BOTH = {"Accept": "application/json, text/event-stream"}
LONG_ENOUGH = 3.0  # seconds: more than keys are kept in memory
PROMPT = 5.0  # seconds: a statement of a store that hangs is given up after ten


@contextmanager
def stopped(server: PostgresServer) -> Iterator[None]:
    """All its processes stop where they are."""
    assert server.process is not None
    pids = [server.process.pid, *children(server.process.pid)]
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.nightly
def test_a_store_that_hangs_is_its_own_tenants_trouble_alone(
    postgres: PostgresServer, instance: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in MASTER.items():
        monkeypatch.setenv(name, value)
    house = House(postgres.create("hanging"))
    house.server.settings |= MASTER
    sessions = {}
    for name in APART:
        house.home.add_tenant(name, isolation="instance", store=instance.create(name))
        with Client(house.home.store.url, "p", tenant=name, create=True) as client:
            house.keys[name] = key_of(client.engine)
    house.home.engine.do(c.ChangeTenant(tenant="acme", limits={"api_rate": 100_000}))

    numbers = itertools.count(2)

    def show(name: str) -> Told:
        asked = SHOW | {"id": next(numbers)}
        return house.ask(name, "POST", "/mcp?project=p", asked, Mcp_Session_Id=sessions[name], **BOTH)

    def look(name: str) -> Told:
        return house.ask(name, "GET", "/api/v1/projects/p/tasks")

    def others_go_on() -> None:
        began = now = time.monotonic()
        while now - began < LONG_ENOUGH:
            add = house.ask("acme", "POST", "/api/v1/projects/p/tasks", {"task": {"title": "goes on"}})
            assert (look("acme").status, add.status, show("acme").status) == (200, 201, 200)
            before, now = now, time.monotonic()
            assert now - before < PROMPT

    asking: list[threading.Thread] = []

    def ask_all(do: Callable[[str], Told]) -> None:
        started = [threading.Thread(target=do, args=(name,)) for name in APART * 2]
        for thread in started:
            thread.start()
        asking.extend(started)

    with house.server:
        for name in (*APART, "acme"):
            sessions[name] = house.ask(name, "POST", "/mcp?project=p", HELLO, **BOTH).session or ""
        for name in (*APART, "acme"):
            assert (show(name).status, look(name).status) == (200, 200)
        with stopped(instance):
            ask_all(show)  # their keys are still known
            others_go_on()
            ask_all(look)  # their keys have to be read again
            others_go_on()
        for thread in asking:
            thread.join()
    house.home.close()
