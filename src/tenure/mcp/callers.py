"""A caller: its identity, a client that acts for it, and the receipts of its session. Every tool gets one.

`LocalCallers` are those over standard input and output, with the store of a folder; `remote_callers.py` has those of a
server. The store is looked up with every call: the process starts with its agent, often before there is a store, and
continues when the store is recreated.

A caller is the same agent and session as in the agent's own shell, if that can be known. Claude Code, Copilot CLI,
Gemini CLI and OpenCode give a server the same variables as a shell. Codex gives it an empty environment, and sends its
session's id with each call. The names that clients give themselves fill the gaps.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Hashable, Mapping, MutableSet, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from tenure import process_table
from tenure.agents.identity import KNOWN, Known, Who, marked, recognise
from tenure.agents.receipts import Kept, Receipts
from tenure.client import Client
from tenure.client.signed_submits import session_key
from tenure.config import (
    Home,
    Value,
    file_of,
    find_home,
    homes_of,
    leader_lease_of,
    read_settings,
    task_defaults_of,
)
from tenure.core import limits
from tenure.core.commands import Process
from tenure.core.errors import NoStore, close_all
from tenure.core.outcomes import Outcome
from tenure.core.task_defaults import TaskDefaults
from tenure.engine.runtime.context import UserTables
from tenure.trust.ownership import check_store


class StartOptions(NamedTuple):
    """The options of the server's start."""

    folder: str
    environ: Mapping[str, str]
    is_fixed: bool = False  # the folder was given explicitly: no other is used
    project: str | None = None
    agent: str | None = None
    session: str | None = None
    tenant: str | None = None


class ReceiptKeeper(Protocol):
    """Keeps the receipts of a session, so that it can see them again."""

    def keep(self, task: str, key: str, receipt: str) -> None: ...

    def settle(self, receipt: str, outcome: Outcome, *, ends: bool = False) -> Outcome:
        """Drop a receipt that the outcome ends; `ends`: the command ends the claim if it succeeds."""

    def live(self) -> list[Kept]: ...


class Caller(NamedTuple):
    who: Who
    client: Client
    receipts: ReceiptKeeper
    settings: Mapping[str, Value]
    folder: str | None  # where the agent works; None if that is another machine
    introduced: MutableSet[Client]

    @property
    def process(self) -> Process | None:
        """The process of the session: when it is gone, its claims may end before their leases expire."""
        found = self.who.process
        if found is None:
            return None
        return Process(host=process_table.host(), boot=process_table.boot_id(), pid=found.pid, start=found.start)

    def introduce(self) -> None:
        """Register this agent, unless it is known: an agent that joined has given more details."""
        if self.client in self.introduced:
            return
        if not any(agent["name"] == self.who.agent for agent in self.client.agents()):
            self._register()
        self.introduced.add(self.client)

    def _register(self) -> None:
        where: dict[str, Any] = {}
        if (process := self.process) is not None:
            where = {"host": process.host, "boot": process.boot, "pid": process.pid, "pid_start": process.start}
        self.client.register(type=self.who.type, stale_after=limits.CLI_AGENT_STALE, user=self.who.user, **where)


class LocalCallers:
    """The callers of one server, usually one. Thread-safe."""

    def __init__(self, options: StartOptions) -> None:
        self.options = options
        self._lock = threading.Lock()
        self._clients: dict[tuple[Hashable, ...], Client] = {}
        self._introduced: set[Client] = set()

    def find(self, client_info: ClientInfo, roots: Sequence[str] = ()) -> Caller:
        """The caller, with the store of the server's folder, else of the first root that has one."""
        options = self.options
        folder, settings, home = self._home(roots)
        who = identify(client_info, options.environ, options.agent, options.session)
        project = str(settings["project"].value)
        tables = UserTables(file_of(settings, "prices"), file_of(settings, "tiers"))
        with self._lock:
            client = self._client(
                home,
                project,
                who,
                settings["key"].value,
                tables,
                task_defaults_of(settings),
                leader_lease_of(settings),
                homes_of(settings),
            )
            if client.signing_key is None:  # `join --key` may come at any time
                named = settings["signing_key"].value
                path = None if named is None else str(Path(folder, named))
                client.signing_key = session_key(options.environ, who.session, path)
        receipts = Receipts(home, project, who.session, who.agent, options.environ)
        return Caller(who, client, receipts, settings, folder, self._introduced)

    def _home(self, roots: Sequence[str]) -> tuple[str, Mapping[str, Value], Home]:
        options = self.options
        missing: NoStore | None = None
        for folder in (options.folder, *roots):
            settings = read_settings(folder, options.environ, {"project": options.project, "tenant": options.tenant})
            try:
                return folder, settings, find_home(folder, settings)
            except NoStore as error:
                missing = missing or error
        assert missing is not None
        raise missing

    def _client(
        self,
        home: Home,
        project: str,
        who: Who,
        shown: str | None,
        tables: UserTables,
        task_defaults: TaskDefaults,
        leader_lease: float,
        homes: Mapping[str, str] | None,
    ) -> Client:
        # A recreated store has the same path but is another file.
        key = (
            home.url,
            home.tenant,
            _file(home.url),
            project,
            who.agent,
            who.session,
            tables,
            task_defaults,
            leader_lease,
        )
        if key not in self._clients:
            check_store(home, self.options.environ)
            self._clients[key] = Client(
                home.url,
                project,
                key=shown,
                tenant=home.tenant,
                homes=homes,
                agent=who.agent,
                session=who.session,
                role="agent",
                user=who.user,
                create=False,
                tables=tables,
                task_defaults=task_defaults,
                leader_lease=leader_lease,
            )
        return self._clients[key]

    def close(self) -> None:
        """Close every store. Claims stay: the session may continue elsewhere."""
        with self._lock:
            clients, self._clients = self._clients, {}
        close_all(*(client.close for client in clients.values()))


def _file(url: str) -> str:
    try:
        found = Path(url.removeprefix("sqlite://")).stat()
    except OSError:
        return ""
    return f"{found.st_dev}:{found.st_ino}"


_SESSION_OF_CALL = {"codex": "sessionId"}  # the field in which a client sends its session with each call


class ClientInfo(NamedTuple):
    """The client of a call, and its session."""

    client: str  # the client's name for itself
    session: str | None = None


def client_info_of(client: str | None, meta: Mapping[str, Any] | None) -> ClientInfo:
    known = _known(client or "")
    session = (meta or {}).get(_SESSION_OF_CALL.get(known.type, "")) if known else None
    return ClientInfo(client or "", session if isinstance(session, str) and session else None)


def identify(
    client_info: ClientInfo, environ: Mapping[str, str], agent: str | None = None, session: str | None = None
) -> Who:
    """Who makes this call; always with the role agent. `agent` and `session` are the values of flags."""
    known = _known(client_info.client)
    seen = {**environ, "TENURE_ROLE": "agent"}
    if known is not None:
        for marker in known.markers:
            if marker != known.session:
                seen.setdefault(marker, "1")
        if known.session and client_info.session:
            seen[known.session] = client_info.session
    who = recognise(seen, agent, session)
    return who if marked(seen) else _unknown_client(who, client_info, seen, agent, session)


def kind_of(client: str) -> str:
    """A short name for a client: the known agent, else the client's name for itself."""
    known = _known(client)
    return known.type if known else re.sub(r"[^a-z0-9]+", "-", client.lower()).strip("-")[:40] or "mcp"


def type_of(client: str) -> str:
    known = _known(client)
    return known.type if known else "generic"


def _known(client: str) -> Known | None:
    """By a word of the name: `claude-code`, `codex-mcp-client`, `gemini-cli-mcp-client`, `opencode`, `copilot-cli`."""
    words = re.split(r"[^a-z0-9]+", client.lower())
    return next((agent for agent in KNOWN.values() if agent.type in words), None)


def _unknown_client(
    who: Who, client_info: ClientInfo, environ: Mapping[str, str], agent: str | None, session: str | None
) -> Who:
    """An unknown client: its process is the session, since it started this server for itself."""
    kind = kind_of(client_info.client)
    parent = process_table.look_up(os.getppid())
    if not (session or environ.get("TENURE_SESSION")) and parent is not None:
        who = msgspec.structs.replace(
            who, session=f"{kind}-{parent.pid}-{parent.start}", source="the client's process", process=parent
        )
    if not (agent or environ.get("TENURE_AGENT")):
        who = msgspec.structs.replace(who, agent=f"{kind}-{parent.pid if parent else os.getpid()}")
    return msgspec.structs.replace(who, type="generic")
