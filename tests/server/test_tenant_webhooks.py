"""Webhooks of several tenants by one server: each receiver gets the events of its own tenant, wherever its rows are."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from tenure import Client
from tenure.agents.tenant_parts import TenantParts
from tenure.core.errors import StoreUnavailable
from tenure.engine import Engine
from tenure.stores.memory import Memory
from tenure.stores.port import Transaction
from tenure.testing.factories import Dice
from tests.reliability.many_tenants import key_of
from tests.server.test_many_tenants import House
from tests.servers.postgres import PostgresServer
from tests.sinks.receivers import Receiver

SETTINGS = {
    "TENURE_MASTER_KEY": "5a" * 32, "TENURE_WEBHOOKS_ALLOW_HTTP": "true", "TENURE_WEBHOOKS_NETWORKS": "127.0.0.0/8",
}  # fmt: skip
LONGEST = 60.0


def until(is_so: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + LONGEST
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.02)  # a receiver of its own thread


def titles(receiver: Receiver) -> set[str]:
    bodies = [json.loads(request.body) for request in receiver.requests]
    return {f"{body['tenant']}: {body['payload']['title']}" for body in bodies}


def test_each_receiver_gets_the_events_of_its_own_tenant(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    house = House(postgres.create("webhooks"))
    house.server.settings |= SETTINGS
    house.home.add_tenant("walled", isolation="schema")
    with Client(house.home.store.url, "p", tenant="walled", create=True) as client:
        house.keys["walled"] = key_of(client.engine)
    names = ("acme", "zeta", "walled")
    with ExitStack() as stack:
        receivers = {name: stack.enter_context(Receiver()) for name in names}
        stack.enter_context(house.server)
        for name, receiver in receivers.items():
            with house.client(name) as client:
                url = receiver.url.replace("receiver.test", "127.0.0.1")
                client.set_webhook("out", url=url, kinds=("task.created",))
                client.add(f"of {name}")
        for name, receiver in receivers.items():
            until(lambda receiver=receiver: bool(receiver.requests), f"nothing was sent for {name}")  # type: ignore[misc]
    house.home.close()
    for name, receiver in receivers.items():
        assert titles(receiver) == {f"{name}: of {name}"}


class Led:
    """A coordinator that leads one store, as far as `TenantParts` asks."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.tenants = engine, self
        self.listeners: list[Callable[[str], None]] = []

    def led_of(self, _: str) -> Engine:
        return self.engine


class Away(Memory):
    """Unavailable when it is first asked."""

    asked = 0

    def begin(self, tenant: str, *, write: bool) -> Transaction:
        self.asked += 1
        if self.asked == 1:
            raise StoreUnavailable("away")
        return super().begin(tenant, write=write)


def test_a_tenant_is_asked_again_after_its_store_was_unavailable() -> None:
    """No later event would bring it back."""
    store = Away()
    coordinator: Any = Led(Engine(store, Dice()))
    parts = TenantParts(coordinator, lambda *_: (), is_for_all=False)
    parts.start()
    coordinator.listeners[0]("acme")
    until(lambda: store.asked > 1, "it was not asked again")
    parts.stop()
