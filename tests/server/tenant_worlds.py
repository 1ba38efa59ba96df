"""Two worlds that differ in one tenant: what their server answers to another must not.

The tenant `zeta` has a project with something of everything. In one world its store keeps the tenant `acme` too, which
has as much: its task keys are equal, and with an equal seed its ids too. In the other world there is no `acme`. Every
request of `zeta` goes to the server of the store in both, with names of both tenants in it. Each difference between the
two answers would be something that `acme` has let slip, whether it is a row, a count, an error or a status.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from tenure.core import commands as c
from tenure.core.commands import NewTask
from tenure.core.records import KINDS, ApiKey, Row, replace
from tenure.server.assembly import Assembly
from tenure.server.auth.policy import Policy
from tenure.server.docs_page import Operation, operations, resolved
from tenure.server.logs import ServerLog
from tenure.server.openapi import document
from tenure.stores.port import Store, Transaction
from tenure.testing.clock import FakeClock
from tenure.testing.factories import PROJECT, SECRETS, Dice, Scene
from tests.engine.rich_scene import Rich, enrich
from tests.server.api.ground import names_of

OURS, THEIRS = "zeta", "acme"
HIDDEN = "hidden"  # a project of theirs alone
ROLES = ("viewer", "agent", "member", "admin", "owner")
TRACE = "00-" + "ab" * 16 + "-" + "cd" * 8 + "-01"
# A new session's cookie and the span of a request are random.
_NOT_COMPARED = (b"traceparent", b"set-cookie", b"server-timing")
# Of a store whose tenants share one sequence: positions in the log say how much all of them have written.
_POSITIONS = re.compile(
    rb'"(sequence|mark|next|after|behind|first|last|lag_events|last_sequence_seen)(\\*)":\s*\\*"?\d+\\*"?'
)
_HASHES = re.compile(rb"\b(?:[0-9a-f]{64}){1,2}\b")  # and signatures, of a sealed log: its events have such positions
_SKIPPED = {"metrics", "login", "openapi"}  # of the process; a random cookie; a constant

OPERATIONS = {str(one.spec["operationId"]): one for one in operations(document())}


class Sent(NamedTuple):
    operation: str
    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    def __str__(self) -> str:
        named = {name: value for name, value in self.headers.items() if name not in ("traceparent", "Content-Type")}
        return f"{self.operation}: {self.method} {self.target} {named} {self.body[:300]!r}"


class Said(NamedTuple):
    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


class Served:
    """A server in this process, and its answers to requests."""

    def __init__(self, assembly: Assembly) -> None:
        self.assembly = assembly
        self.loop = asyncio.Runner()
        self._number = 0

    def send(self, sent: Sent) -> Said:
        return self.loop.run(self.answer(sent))

    async def answer(self, sent: Sent) -> Said:
        path, _, query = sent.target.partition("?")
        self._number += 1
        headers = {"Host": "localhost", "Content-Length": str(len(sent.body)), **sent.headers}
        scope = {
            "type": "http", "method": sent.method, "path": path, "raw_path": path.encode(),
            "query_string": query.encode(), "scheme": "https", "state": {}, "http_version": "1.1",
            # Each from another address: failed sign-ins are counted by it, in real time.
            "client": (f"10.{self._number >> 16 & 255}.{self._number >> 8 & 255}.{self._number & 255}", 4711),
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        }  # fmt: skip
        answer: list[dict[str, Any]] = []

        bodies = iter([{"type": "http.request", "body": sent.body, "more_body": False}])

        async def receive() -> dict[str, Any]:
            return next(bodies, None) or await asyncio.Event().wait() or {}

        async def send(message: Any) -> None:
            answer.append(message)

        await asyncio.wait_for(self.assembly.app(scope, receive, send), 60)
        body = b"".join(message.get("body", b"") for message in answer[1:])
        told = tuple(sorted(h for h in answer[0]["headers"] if h[0] not in _NOT_COMPARED))
        return Said(answer[0]["status"], told, body)

    def close(self) -> None:
        self.loop.run(self.assembly.tenants.close())
        self.loop.close()


class World(Served):
    """A server, and `zeta`, whose requests it answers. `theirs`: the seed of `acme`'s scene; None: it has no `acme`."""

    def __init__(self, open_store: Callable[[FakeClock], Store], theirs: int | None, *, now: int | None = None) -> None:
        self.clock = FakeClock()
        self.store = open_store(self.clock)
        self.home = Scene(self.store, self.clock, seed=9)
        self.home.do(c.AddTenant, project="", tenant=OURS)
        # Its rate is kept in real time: on a fast machine it would refuse a request in one of the worlds.
        self.home.do(c.ChangeTenant, project="", tenant=OURS, limits={"api_rate": 1_000_000})
        self.ours, self.rich = self._scene(OURS, 1)
        self.keys = {role: self._key(self.ours, role) for role in ROLES}
        self.theirs: Scene | None = None
        self.known = [self.rich]
        if theirs is not None:
            self.home.do(c.AddTenant, project="", tenant=THEIRS)
            self.theirs, rich = self._scene(THEIRS, theirs)
            self.theirs.do(c.DefineProject, project=HIDDEN)
            self.theirs.do(c.Add, project=HIDDEN, task=NewTask(title="hidden"))
            self.their_key = self._key(self.theirs, "owner")
            self.known.append(rich)
        if now is not None:
            self.clock.advance(seconds=(now - self.clock.now) / 1e6)
        self.home.engine.random = Dice(77)  # from here on, both worlds draw the same
        super().__init__(Assembly(self.home.engine, Policy(auth="required", rate=0), ServerLog("error")))
        for key in self.keys.values():  # their use is written in the background, once
            self.send(Sent("me", "GET", "/api/v1/me", {"Authorization": f"Bearer {key}"}, b""))
        self.loop.run(asyncio.sleep(0))
        while any(row.used_at is None for row in self.rows(self.ours, ApiKey) if row.user in ROLES):
            self.loop.run(asyncio.sleep(0.01))

    def _scene(self, tenant: str, seed: int) -> tuple[Scene, Rich]:
        with self.store.begin(tenant, write=True) as tx:
            tx.set_epoch("0e" * 4)  # which is random, and part of receipts
        scene = Scene(self.store, self.clock, seed, replace(SECRETS, tenant=tenant))
        return scene, enrich(scene)

    @staticmethod
    def _key(scene: Scene, role: str) -> str:
        made = scene.do(c.CreateKey, project="", name=role, role=role, user=role)
        assert made.secret is not None
        return made.secret

    @staticmethod
    def rows(scene: Scene, kind: type[Any]) -> list[Any]:
        def find(tx: Transaction) -> list[Any]:
            return tx.find(kind, {})

        return scene.engine.read(find)

    def dump(self, scene: Scene) -> dict[str, list[Row]]:
        """Every row of a tenant."""
        return {KINDS[kind].table: self.rows(scene, kind) for kind in KINDS}

    def close(self) -> None:
        super().close()
        self.store.close()


class Apart:
    """Sends the same requests to both worlds, and keeps the differences."""

    def __init__(self, open_store: Callable[[FakeClock, str], Store], seed: int, *, theirs: int = 2) -> None:
        """`theirs`: the seed of the other tenant; with 1 all ids of the two are equal."""
        self.both = World(lambda clock: open_store(clock, "both"), theirs)
        self.alone = World(lambda clock: open_store(clock, "alone"), None, now=self.both.clock.now)
        self.dice = random.Random(seed)
        self.has_one_log = "snapshots" in self.both.store.features and "wake_ups" in self.both.store.features
        self.names = self._names()
        self.before = self.both.dump(self.both.theirs) if self.both.theirs else {}
        self.findings: list[str] = []
        self.statuses: Counter[int] = Counter()
        self.reached: set[str] = set()
        self.done = 0

    def _names(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for rich in self.both.known:
            for what, names in names_of(rich).items():
                found.setdefault(what, []).extend(names)
        for scene in filter(None, (self.both.ours, self.both.theirs)):
            for kind, what in (("task", "task"), ("dag", "dag"), ("api_key", "key"), ("message", "reply_to")):
                rows = [row for row in self.both.dump(scene)[kind] if getattr(row, "user", None) not in ROLES]
                found.setdefault(what, []).extend(row.id for row in rows)
        more = {
            "project": [PROJECT, PROJECT, HIDDEN, "nowhere"], "tenant": [OURS, THEIRS, "local", "beta"],
            "user": ["mia", "gone", "nobody"], "schedule": ["hourly", "none"], "trigger": ["noted", "pushed"],
            "webhook": ["out", "none"], "pool": ["crew", "none"], "sink": ["nats"], "name": ["a/b.txt", "old.txt"],
            "url": ["https://example.org/hook"], "cron": ["0 3 * * *"], "on": ["webhook"], "body": ["e30="],
            "old": ["1" * 40], "new": ["2" * 40], "title": ["a title"], "text": ["hello"], "role": ["member"],
        }  # fmt: skip
        return {what: list(dict.fromkeys(names)) for what, names in (found | more).items()}

    # --- requests ---

    def every_operation(self) -> Iterator[Sent]:
        """One request of each, by an owner."""
        for name in OPERATIONS:
            if name not in _SKIPPED:
                yield self._request(name, {"Authorization": f"Bearer {self.both.keys['owner']}"}, "")

    def any_request(self) -> Sent:
        name = self.dice.choice([name for name in OPERATIONS if name not in _SKIPPED])
        dice = self.dice.random()
        headers: dict[str, str] = {}
        if dice < 0.05:
            # Their key opens their tenant alone: with one digit changed it is nobody's, in both worlds.
            headers["Authorization"] = f"Bearer {_wrong(self.both.their_key)}"
        elif dice < 0.97:
            role = "owner" if dice < 0.7 else self.dice.choice(ROLES)
            headers["Authorization"] = f"Bearer {self.both.keys[role]}"
        place = self.dice.random()
        if place < 0.1:
            headers["Tenure-Tenant"] = self.dice.choice((OURS, THEIRS, "beta"))
        below = f"/t/{self.dice.choice((OURS, THEIRS, 'beta'))}" if 0.1 <= place < 0.2 else ""
        return self._request(name, headers, below)

    def _request(self, name: str, headers: dict[str, str], below: str) -> Sent:
        operation = OPERATIONS[name]
        path = re.sub(r"\{(\w+)\}", lambda found: quote(self._pick(found[1]), safe=""), operation.path)
        parameters = [resolved(one) for one in operation.spec.get("parameters", ())]
        query = [
            (one["name"], self._pick(one["name"]))
            for one in parameters
            if one["in"] == "query" and (one.get("required") or (one["name"] in self.names and self._is_likely()))
        ]
        body, kind = self._body(operation)
        told = {"traceparent": TRACE, "Idempotency-Key": f"r{self.done}-{name}", **kind, **headers}
        target = below + path + (f"?{urlencode(query)}" if query else "")
        return Sent(name, operation.method.upper(), target, told, body)

    def _is_likely(self) -> bool:
        return self.dice.random() < 0.4

    def _pick(self, what: str) -> str:
        return self.dice.choice(self.names.get(what, ["x"]))

    def _body(self, operation: Operation) -> tuple[bytes, dict[str, str]]:
        content = operation.spec.get("requestBody", {}).get("content", {})
        if not content:
            return b"", {}
        if "application/json" not in content:
            return b"x", {"Tenure-Receipt": self._pick("receipt")}
        made = self._value(content["application/json"]["schema"], "")
        return json.dumps(made).encode(), {"Content-Type": "application/json"}

    def _value(self, schema: dict[str, Any], name: str) -> Any:
        schema = resolved(schema)
        for several in ("anyOf", "oneOf"):
            if several in schema:
                options = [one for one in schema[several] if resolved(one).get("type") != "null"]
                return self._value(self.dice.choice(options), name)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self.dice.choice(schema["enum"])
        kind = schema.get("type")
        if kind == "object":
            known, required = schema.get("properties", {}), schema.get("required", ())
            wanted = [one for one in known if one in required or (one in self.names and self._is_likely())]
            return {one: self._value(known[one], one) for one in wanted}
        if kind == "array":
            return [self._value(schema.get("items", {}), name) for _ in range(max(1, schema.get("minItems", 0)))]
        if kind in ("integer", "number"):
            return schema.get("minimum", 1)
        if kind == "boolean":
            return self.dice.random() < 0.5
        return self._pick(name)

    # --- answers ---

    def ask(self, sent: Sent) -> None:
        """Send it to both; whether the answers differ is noted."""
        self.done += 1
        one, other = (self._told(world.send(sent)) for world in (self.both, self.alone))
        self.statuses[one.status] += 1
        if one.status < 300:
            self.reached.add(sent.operation)
        if one != other:
            self.findings.append(f"{sent}\n  with {THEIRS}:    {_shown(one)}\n  without {THEIRS}: {_shown(other)}")

    def _told(self, said: Said) -> Said:
        if not self.has_one_log:
            return said
        # Lengths and tags follow from what is left out.
        kept = tuple(one for one in said.headers if one[0] not in (b"content-length", b"etag"))
        return Said(said.status, kept, _HASHES.sub(b"0", _POSITIONS.sub(rb'"\1":0', said.body)))

    def pass_time(self) -> None:
        seconds = self.dice.choice((1, 10, 60))
        for world in (self.both, self.alone):
            world.clock.advance(seconds=seconds)

    def run(self, count: int) -> None:
        for _ in range(count):
            self.ask(self.any_request())
            if self.dice.random() < 0.02:
                self.pass_time()

    def end(self) -> Sequence[str]:
        """All findings: differences between answers, and rows of theirs that our requests have changed."""
        if self.both.theirs is not None:
            after = self.both.dump(self.both.theirs)
            changed = [table for table, rows in after.items() if rows != self.before[table]]
            self.findings += [f"requests of {OURS} have changed rows of {THEIRS}: {table}" for table in changed]
        for world in (self.both, self.alone):
            self.findings += [f"broken: {promise}" for promise in world.ours.engine.verify()]
            world.close()
        return self.findings


def _wrong(key: str) -> str:
    return key[:-1] + ("0" if key[-1] != "0" else "1")


def _shown(said: Said) -> str:
    return f"{said.status} {said.body[:600]!r} {dict(said.headers)}"
