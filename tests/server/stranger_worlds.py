"""A server whose tenants have stores that can be away, and all the forms in which a stranger can name one of them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from math import inf
from typing import Any

from tenure.core import commands as c
from tenure.core.commands import NewTask, Template
from tenure.core.errors import StoreUnavailable
from tenure.core.records import replace
from tenure.engine import Engine
from tenure.server.assembly import Assembly
from tenure.server.auth.policy import Jwt, Policy
from tenure.server.logs import ServerLog
from tenure.stores.memory import Memory
from tenure.testing.clock import FakeClock
from tenure.testing.factories import SECRETS, Dice
from tests.server.auth.test_tokens import SECRET, shared_token
from tests.server.tenant_worlds import Said, Sent, Served

NEAR, FAR, NONE = "near", "afar", "none"  # a tenant of the home store, one with its own, one that does not exist
NAMES = (NEAR, FAR, NONE)
# What a driver says, with everything that is nobody's business.
TOLD = 'connection to server at "10.9.8.7", port 47532 failed: role "tenure_app" of database "inst" may not log in'
SECRET_WORDS = (b"10.9.8.7", b"47532", b"tenure_app", b"inst", b"memory://", b"postgresql://")
JWT = Jwt("https://issuer.example", "tenure", secret=SECRET, tenant="org")
_ID, _SECRET = "0" * 13, "0" * 52
SIGNED = {"webhook-id": "msg_1", "webhook-timestamp": "1", "webhook-signature": "v1,AAAA"}


class Fallible(Memory):
    """A store whose server can be away."""

    is_away = False
    tried = 0

    def begin(self, tenant: str, *, write: bool) -> Any:
        self.tried += 1
        if self.is_away:
            raise StoreUnavailable(TOLD)
        return super().begin(tenant, write=write)


class House(Served):
    """`near` and `afar` have a project, a trigger and a key for each role of a member."""

    def __init__(self, log: ServerLog | None = None) -> None:
        self.clock, self.seconds = FakeClock(), 0.0
        self.home_store, self.own = Fallible(clock=self.clock), Fallible("memory://own", clock=self.clock)
        self.home = Engine(self.home_store, Dice(), replace(SECRETS, open_store=self._open))
        self.keys: dict[str, str] = {"local": self._made(self.home)}
        self.home.do(c.AddTenant(tenant=NEAR))
        self.home.do(c.AddTenant(tenant=FAR, isolation="instance", store="memory://own"))
        for name, store in ((NEAR, self.home_store), (FAR, self.own)):
            self.keys[name] = self._made(Engine(store, Dice(7), replace(SECRETS, tenant=name)))
        log = log or ServerLog("error", stream=io.BytesIO())
        super().__init__(Assembly(self.home, Policy(auth="required", rate=0, jwt=JWT), log))
        self.assembly.engines._router._open = self._open  # type: ignore[union-attr]

    @staticmethod
    def _made(engine: Engine) -> str:
        engine.do(c.DefineProject(project="p"))
        template = Template(tasks=(NewTask(title="t"),))
        engine.do(c.SetTrigger(project="p", trigger="pushed", on="webhook", template=template))
        return str(engine.do(c.CreateKey(name="boss", role="owner", user="boss")).secret)

    def _open(self, url: str) -> Memory:
        assert url == "memory://own"
        if self.own.is_away:
            raise StoreUnavailable(TOLD)
        return self.own

    def ask(self, method: str, target: str, body: bytes = b"", **headers: str) -> Said:
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.send(Sent("", method, target, told, body))

    def me(self, name: str) -> int:
        """The status that the tenant's own key gets."""
        return self.ask("GET", "/api/v1/me", authorization=f"Bearer {self.keys[name]}").status

    def age(self, seconds: float = inf) -> None:
        """Let all rows of sign-ins be as old as those that are read again; by default as those that are forgotten."""
        authenticator = self.assembly.authenticator
        authenticator._lookups.home_read_at = -1e9
        for cache in (authenticator._tenant_cache, *(rows.keys for rows in authenticator._tenants.values())):
            for id, entry in list(cache._known.items()):
                cache._known[id] = entry._replace(at=entry.at - seconds)

    def close(self) -> None:
        self.own.is_away = self.home_store.is_away = False
        super().close()


def forms(house: House) -> Iterator[tuple[str, Callable[[str], Sent]]]:
    """Each form of a request of somebody who is not of the tenant, by name: how it names the tenant."""
    mine = f"Bearer {house.keys['local']}"
    token = f"Bearer {shared_token(org='else')}"

    def sent(method: str, target: str, body: bytes = b"", **headers: str) -> Sent:
        return Sent("", method, target, {n.replace("_", "-"): v for n, v in headers.items()}, body)

    def key(name: str, id: str = _ID) -> str:
        return f"tnr_{name}_{id}_{_SECRET}"

    def bearer(name: str, id: str = _ID) -> str:
        return f"Bearer {key(name, id)}"

    def cookie(name: str) -> str:
        return f"__Host-tenure={name}:{'00' * 32}"

    paths = {
        "me": "/api/v1/me", "tasks": "/api/v1/projects/p/tasks", "unknown path": "/api/v1/nothing",
        "metrics": "/metrics", "coordinator": "/api/v1/coordinator/status", "mcp": "/mcp", "static": "/static/none",
    }  # fmt: skip
    for what, path in paths.items():
        yield f"key, {what}", lambda n, path=path: sent("GET", path, authorization=bearer(n))
        yield f"path and key, {what}", lambda n, path=path: sent("GET", f"/t/{n}{path}", authorization=bearer(n))
        yield f"cookie, {what}", lambda n, path=path: sent("GET", path, cookie=cookie(n))
        yield f"path, {what}", lambda n, path=path: sent("GET", f"/t/{n}{path}")
        yield f"header, {what}", lambda n, path=path: sent("GET", path, tenure_tenant=n)
        yield f"own key, path, {what}", lambda n, path=path: sent("GET", f"/t/{n}{path}", authorization=mine)
        yield f"own key, header, {what}", lambda n, path=path: sent("GET", path, authorization=mine, tenure_tenant=n)
        yield f"token of another, path, {what}", lambda n, path=path: sent("GET", f"/t/{n}{path}", authorization=token)
    events = {"accept": "text/event-stream"}
    yield "key, stream", lambda n: sent("GET", "/api/v1/projects/p/events", authorization=bearer(n), **events)
    yield "key, preview", lambda n: sent("POST", "/api/v1/projects/p/preview", b"{}", authorization=bearer(n))
    yield "key, write", lambda n: sent("POST", "/api/v1/projects/p/tasks", b"{}", authorization=bearer(n))
    yield "another guess", lambda n: sent("GET", "/api/v1/me", authorization=bearer(n, "1" * 13))
    origin = {"origin": "https://localhost", "content_type": "application/json"}
    yield "sign-in", lambda n: sent("POST", "/login", json.dumps({"key": key(n)}).encode(), **origin)
    yield "sign-in below", lambda n: sent("POST", f"/t/{n}/login", json.dumps({"key": key(n)}).encode(), **origin)
    yield "sign-out", lambda n: sent("POST", "/logout", cookie=cookie(n), **origin)
    yield "page", lambda n: sent("GET", f"/t/{n}/")
    yield "ready", lambda n: sent("GET", f"/t/{n}/ready")
    yield "health", lambda n: sent("GET", f"/t/{n}/health")
    delivery = "/api/v1/projects/p/triggers/pushed/deliveries"
    yield "delivery without a signature", lambda n: sent("POST", f"/t/{n}{delivery}", b"{}")
    yield "delivery", lambda n: sent("POST", f"/t/{n}{delivery}", b"{}", **SIGNED)
    yield "delivery by header", lambda n: sent("POST", delivery, b"{}", tenure_tenant=n, **SIGNED)


def differences(house: House, names: tuple[str, ...] = NAMES) -> tuple[int, list[str]]:
    """How many requests were sent, and the forms whose answers tell names apart or say what is nobody's business."""
    found, count = [], 0
    for what, request in forms(house):
        told: dict[str, tuple[Any, ...]] = {}
        for name in names:
            said = house.send(request(name))
            count += 1
            told[name] = (said.status, said.headers, said.body.replace(name.encode(), b"NAME"))
            if said.status >= 500 and said.status != 503:
                found.append(f"{what}, {name}: {said.status}")
            found += [f"{what}, {name}: says {word!r}" for word in SECRET_WORDS if word in said.body]
        if len(set(told.values())) > 1:
            found.append(f"{what}: " + "; ".join(f"{name}: {said[0]} {said[2][:200]!r}" for name, said in told.items()))
    return count, found
