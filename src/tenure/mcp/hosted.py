"""Seats of a server: remote callers, all at the one store, each known by how it signed in and what its client says.

Nothing of a remote caller is kept on the server's disk. A connection's receipts are remembered for as long as the
process lives, so that an agent whose context was cut can be shown them again; one that comes back on another
connection, or to another server, is told what it holds, and no more: a session's name is no secret.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from weakref import WeakSet

from tenure.agents.identity import Who
from tenure.agents.receipts import LAST_WORDS, Kept
from tenure.client import Client
from tenure.client.ways.local import Local
from tenure.config import Value
from tenure.core import ids, limits, roles
from tenure.core.commands import Command, Principal
from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome
from tenure.core.records import replace
from tenure.engine import Engine
from tenure.engine.runtime.batcher import Batcher
from tenure.mcp.seats import Seat
from tenure.mcp.speaking import kind_of, type_of

MOST_SEATS = limits.MCP_CONNECTIONS
MOST_KEPT = limits.MCP_RECEIPTS


class Visitor(NamedTuple):
    """What a request says of who makes it."""

    principal: Principal
    client: str = ""  # what the client calls itself
    connection: str | None = None  # a secret between it and us, for as long as it stays connected
    session: str | None = None  # as its client tells with each call
    project: str | None = None


Observe = Callable[[Command, Principal, "Outcome | TenureError", float], None]


class Shared(Local):
    """The server's own engine and gatherer, which live longer than any seat; `observe` is told of each command."""

    def __init__(self, engine: Engine, gatherer: Batcher, observe: Observe) -> None:
        self.store, self.engine, self.gatherer = engine.store, engine, gatherer
        self.url = engine.store.url
        self._monotonic = time.monotonic
        self._observe = observe

    def do(self, command: Command, principal: Principal) -> Outcome:
        began = time.perf_counter()
        try:
            outcome = super().do(command, principal)
        except TenureError as error:
            self._observe(command, principal, error, time.perf_counter() - began)
            raise
        self._observe(command, principal, outcome, time.perf_counter() - began)
        return outcome

    def run(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]:
        began = time.perf_counter()
        answers = super().run(batch, principal)
        for command, answer in zip(batch, answers, strict=True):
            self._observe(command, principal, answer, time.perf_counter() - began)
        return answers

    def close(self) -> None:
        pass


class Seated(Client):
    """Speaks for one caller by a way that all share."""

    def __init__(self, way: Shared, project: str, principal: Principal) -> None:
        assert principal.agent is not None
        assert principal.session is not None
        self.way, self.project, self.principal = way, project, principal
        self.agent, self.session, self.user = principal.agent, principal.session, principal.user


class Remembered:
    """Receipts in memory."""

    def __init__(self, project: str) -> None:
        self._project = project
        self._kept: OrderedDict[str, Kept] = OrderedDict()

    def keep(self, task: str, key: str, receipt: str) -> None:
        self._kept[receipt] = Kept(project=self._project, task=task, key=key, receipt=receipt)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)

    def settle(self, receipt: str, outcome: Outcome, *, ends: bool = False) -> Outcome:
        if outcome.outcome in LAST_WORDS or (ends and outcome.ok):
            self._kept.pop(receipt, None)
        return outcome

    def live(self) -> list[Kept]:
        return list(self._kept.values())


class Unkept(Remembered):
    """Of a caller without a connection: whoever knows its session's name could ask for them."""

    def keep(self, task: str, key: str, receipt: str) -> None:
        pass


class Hosted:
    """The seats of one server process. Safe to share between threads."""

    def __init__(
        self,
        engine: Engine,
        gatherer: Batcher,
        settings: Mapping[str, Value],
        project: str,
        observe: Observe = lambda *_: None,
    ) -> None:
        """`project` is for those who name none; `observe` is told of each command with its answer and its seconds."""
        self._way = Shared(engine, gatherer, observe)
        self._settings, self._project = settings, project
        self._lock = threading.Lock()
        self._seats: OrderedDict[tuple[str | None, str, Principal], Seat] = OrderedDict()
        self._introduced: WeakSet[Client] = WeakSet()

    def find(self, visitor: Visitor) -> Seat:
        """The visitor's seat; the same for the same connection, project and principal."""
        project = visitor.project or (
            visitor.principal.projects[0] if len(visitor.principal.projects) == 1 else self._project
        )
        who, principal = who_visits(visitor)
        key = (visitor.connection, project, principal)
        with self._lock:
            if key not in self._seats:
                receipts = Remembered(project) if visitor.connection else Unkept(project)
                client = Seated(self._way, project, principal)
                self._seats[key] = Seat(who, client, receipts, self._settings, None, self._introduced)
            self._seats.move_to_end(key)
            while len(self._seats) > MOST_SEATS:
                self._seats.popitem(last=False)
            return self._seats[key]


def who_visits(visitor: Visitor) -> tuple[Who, Principal]:
    """Who it is, by what its key says before what its client says; never with more rights than an agent has."""
    told, kind = visitor.principal, kind_of(visitor.client)
    mark = _mark(visitor.connection or told.key or told.user or "")
    agent = told.agent or f"{kind}-{mark[:4]}"
    session = told.session or visitor.session or (f"mcp-{mark}" if visitor.connection else f"mcp-{agent}")
    ids.check_name(session, "session")
    principal = replace(told, role=roles.lower_of(told.role, "agent"), agent=agent, session=session)
    who = Who(agent, session, principal.role, type_of(visitor.client), told.user or "", "the connection", None)
    return who, principal


def _mark(secret: str) -> str:
    """A name for it that does not give it away."""
    return hashlib.sha256(secret.encode()).hexdigest()[:16]
