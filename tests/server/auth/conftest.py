"""An authenticator with a store of keys, a clock that tests move, and requests as ASGI scopes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core.commands import Principal
from tenure.engine import Context, Engine
from tenure.server.auth.authenticator import Authenticator
from tenure.server.auth.policy import Policy
from tenure.server.auth.request_source import NAMED_TENANT
from tenure.server.auth.tokens import Fetch
from tenure.stores.memory import Memory
from tenure.testing.clock import FakeClock
from tenure.testing.factories import Dice


class Door:
    """An authenticator, with short calls for requests to it."""

    def __init__(
        self,
        policy: Policy | None = None,
        fetch: Fetch | None = None,
        tenant: str = "local",
        beside: Door | None = None,
    ) -> None:
        """`tenant`: one of several, in the store and at the server of the door `beside` if that is given."""
        self.clock = beside.clock if beside else FakeClock()
        self.tenant = tenant
        self._times = beside._times if beside else [0.0]
        self.home = Engine(beside.engine.store if beside else Memory(clock=self.clock), Dice())
        if tenant != "local":
            self.home.do(c.AddTenant(tenant=tenant))
        self.engine = self.home
        if tenant != "local":
            self.engine = Engine(self.home.store, Dice(len(tenant)), Context(tenant=tenant))
        self.engine.do(c.DefineProject(project="p"))
        self.lookups = 0
        self.policy = policy or Policy(auth="required")
        self.token = "tnl_" + "0f" * 32 if self.policy.needs_token else None
        self.authenticator = beside.authenticator if beside else Authenticator(
            self.home, self.policy, read_in_thread=self._read_in_thread, write_in_thread=self._write_in_thread,
            fetch=fetch, monotonic=lambda: self.seconds, token=self.token,
        )  # fmt: skip

    async def _read_in_thread(self, lookup: Callable[[], object]) -> object:
        self.lookups += 1
        return lookup()

    async def _write_in_thread(self, change: Callable[[], object]) -> None:
        change()

    @property
    def seconds(self) -> float:
        return self._times[0]

    def pass_time(self, seconds: float) -> None:
        self._times[0] += seconds
        self.clock.advance(seconds=seconds)

    def key(self, name: str = "k", **fields: Any) -> str:
        """The whole of a new key."""
        secret = self.engine.do(c.CreateKey(name=name, **fields)).secret
        assert secret is not None
        return secret

    def admit(self, key: str | None = None, *, below: str | None = None, **said: Any) -> Principal:
        """`below`: the tenant that the path names. A token or cookie is sent with the name of the door's tenant."""
        if key is not None:
            said["authorization"] = f"Bearer {key}"
        if self.tenant != "local" and below is None and not (key or "").startswith("tnr_"):
            said.setdefault("tenure_tenant", self.tenant)
        named = {} if below is None else {NAMED_TENANT: below}
        return asyncio.run(self.authenticator.authenticate(scope(**said) | named))


def scope(
    method: str = "GET", peer: str | None = "127.0.0.1", scheme: str = "http", host: str = "localhost:7420",
    **headers: str | None,
) -> dict[str, Any]:  # fmt: skip
    """A request; headers are written with underscores, and one that is None is left out."""
    named = {"host": host, **headers}
    return {
        "type": "http", "method": method, "path": "/api/v1/projects", "scheme": scheme,
        "client": None if peer is None else (peer, 4711),
        "headers": [(n.replace("_", "-").encode(), v.encode()) for n, v in named.items() if v is not None],
    }  # fmt: skip


@pytest.fixture
def door() -> Door:
    """Everybody has to sign in here."""
    return Door()


@pytest.fixture
def open_door() -> Door:
    """Loopback, where every user of the machine is let in."""
    return Door(Policy(auth="open"))
