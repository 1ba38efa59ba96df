"""Callers of a server: remote agents that share one store, each identified by its sign-in and its client.

Nothing of a remote caller is written to the server's disk. The receipts of a connection are kept in memory, so that an
agent whose context was cut can see them again. An agent that returns on another connection, or to another server, sees
which tasks it holds but no receipts: the name of a session is not a secret.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from weakref import WeakSet

from tenure.agents.identity import Who
from tenure.agents.receipts import LAST_WORDS, Kept
from tenure.client import Client
from tenure.client.transports.local import LocalTransport
from tenure.config import Value
from tenure.core import ids, limits, roles
from tenure.core.commands import Command, Principal
from tenure.core.errors import NotAllowed, TenureError
from tenure.core.outcomes import Outcome
from tenure.core.queries import Query
from tenure.core.records import Session, replace
from tenure.engine import Engine
from tenure.engine.runtime.batcher import Batcher, TenantBatcher
from tenure.mcp.callers import Caller, kind_of, type_of


class RemoteRequest(NamedTuple):
    """Who sends a request, by its sign-in and its headers."""

    principal: Principal
    client: str = ""  # the client's name for itself
    connection: str | None = None  # the id of its MCP session, a secret
    session: str | None = None  # as the client sends it with each call
    project: str | None = None


Observe = Callable[[Command, Principal, "Outcome | TenureError", float], None]
Looked = Callable[[Query, Principal, Any], None]  # a query and its view, or its error


class SharedTransport(LocalTransport):
    """The server's engine and batcher, which outlive any caller.

    `observe` is called for each command, `looked` for each query.
    """

    def __init__(self, engine: Engine, batcher: Batcher | TenantBatcher, observe: Observe, looked: Looked) -> None:
        self.store, self.engine, self.batcher = engine.store, engine, batcher
        self.url = engine.store.url
        self._monotonic = time.monotonic
        self._observe, self._looked = observe, looked

    def _end_ended(self, batch: Sequence[Command], principal: Principal) -> None:
        """A thread of the server looks for processes that have ended."""

    def query(self, query: Query, principal: Principal) -> Any:
        try:
            view = super().query(query, principal)
        except TenureError as error:
            self._looked(query, principal, error)
            raise
        self._looked(query, principal, view)
        return view

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


class CallerClient(Client):
    """The client of one caller, on a transport that all share."""

    def __init__(self, transport: SharedTransport, project: str, principal: Principal) -> None:
        assert principal.agent is not None
        assert principal.session is not None
        self.transport, self.project, self.principal = transport, project, principal
        self.agent, self.session, self.user = principal.agent, principal.session, principal.user


class MemoryReceipts:
    """Receipts in memory."""

    def __init__(self, project: str) -> None:
        self._project = project
        self._kept: OrderedDict[str, Kept] = OrderedDict()

    def keep(self, task: str, key: str, receipt: str) -> None:
        self._kept[receipt] = Kept(project=self._project, task=task, key=key, receipt=receipt)
        while len(self._kept) > limits.MCP_RECEIPTS:
            self._kept.popitem(last=False)

    def settle(self, receipt: str, outcome: Outcome, *, ends: bool = False) -> Outcome:
        if outcome.outcome in LAST_WORDS or (ends and outcome.ok):
            self._kept.pop(receipt, None)
        return outcome

    def live(self) -> list[Kept]:
        return list(self._kept.values())


class NoReceipts(MemoryReceipts):
    """Keeps nothing: for a caller without a connection, since anybody who knows its session's name could read them."""

    def keep(self, task: str, key: str, receipt: str) -> None:
        pass


class RemoteCallers:
    """The callers of one server process. Thread-safe."""

    def __init__(
        self,
        engine: Engine,
        batcher: Batcher,
        settings: Mapping[str, Value],
        project: str,
        observe: Observe = lambda *_: None,
        looked: Looked = lambda *_: None,
        *,
        engine_of: Callable[[str], Engine] | None = None,
        batcher_of: Callable[[Engine], Batcher | TenantBatcher] | None = None,
        is_apart: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`project` is the default; `observe` is called for each command with its outcome and its seconds, `looked` for
        each query with its view. `engine_of`: of another tenant than the engine's; `batcher_of`: its batcher.
        `is_apart`: whether the tenant has its own store.
        """
        self.is_apart = is_apart
        self._engine, self._batcher, self._observers = engine, batcher, (observe, looked)
        self._engine_of, self._batcher_of = engine_of, batcher_of or batcher.of
        self._settings, self._project = settings, project
        self._lock = threading.Lock()
        self._callers: OrderedDict[tuple[str | None, str, Principal], Caller] = OrderedDict()
        self._introduced: WeakSet[Client] = WeakSet()

    def find(self, asked: RemoteRequest) -> Caller:
        """The caller of a request; the same for the same connection, project and principal."""
        project = asked.project or (
            asked.principal.projects[0] if len(asked.principal.projects) == 1 else self._project
        )
        who, principal = identify_remote(asked)
        engine = self._of(principal.tenant)
        _refuse_signers(engine, project, who.session)
        key = (asked.connection, project, principal)
        with self._lock:
            if key not in self._callers:
                receipts = MemoryReceipts(project) if asked.connection else NoReceipts(project)
                batcher = self._batcher if engine is self._engine else self._batcher_of(engine)
                transport = SharedTransport(engine, batcher, *self._observers)
                client = CallerClient(transport, project, principal)
                self._callers[key] = Caller(who, client, receipts, self._settings, None, self._introduced)
            self._callers.move_to_end(key)
            while len(self._callers) > limits.MCP_CONNECTIONS:
                self._callers.popitem(last=False)
            return self._callers[key]

    def _of(self, tenant: str | None) -> Engine:
        """The engine of the caller's tenant."""
        if tenant is None or tenant == self._engine.tenant or self._engine_of is None:
            return self._engine
        return self._engine_of(tenant)


def _refuse_signers(engine: Engine, project: str, session: str) -> None:
    """A server holds no private key: what such a session submits here could never count."""
    found = engine.read(lambda tx: tx.load(Session, ((project, session),)))
    if found and found[0].public_key is not None:
        raise NotAllowed(
            f"session {session} signs its results, which is not possible over the server's MCP",
            "use the command line or the SDK where its key is, or another session",
        )


def identify_remote(asked: RemoteRequest) -> tuple[Who, Principal]:
    """The identity of a request: its key first, then its client; never with more rights than an agent has."""
    signed_in, kind = asked.principal, kind_of(asked.client)
    mark = _mark(asked.connection or signed_in.key or signed_in.user or "")
    agent = signed_in.agent or f"{kind}-{mark[:4]}"
    session = (
        signed_in.session
        or asked.session
        or (f"mcp-{mark}" if asked.connection else ids.fitted_session(f"mcp-{agent}"))
    )
    ids.check_name(session, "session")
    principal = replace(signed_in, role=roles.lower_of(signed_in.role, "agent"), agent=agent, session=session)
    who = Who(agent, session, principal.role, type_of(asked.client), signed_in.user or "", "the connection", None)
    return who, principal


def _mark(secret: str) -> str:
    """A name for a secret that does not reveal it."""
    return hashlib.sha256(secret.encode()).hexdigest()[:16]
