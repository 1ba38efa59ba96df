"""Where a caller sits: a client that speaks for it, and the receipts that its session keeps. All that a tool is given.

`Seats` are those over standard input and output, at the store of a folder; `hosted.py` has those of a server. The store
is looked for with every call: a process is started with its agent, often before there is one, and lives on when it is
made anew.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, MutableSet, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from tenure.agents import process_table
from tenure.agents.identity import Who
from tenure.agents.receipts import Kept, Receipts
from tenure.client import Client
from tenure.config import Home, NoStore, Value, file_of, find_home, read_settings
from tenure.core import limits
from tenure.core.commands import Process
from tenure.core.outcomes import Outcome
from tenure.engine.models.user_tables import UserTables
from tenure.mcp.speaking import Caller, who_speaks

STALE_AFTER = limits.CLI_AGENT_STALE


class Told(NamedTuple):
    """What the server was started with."""

    folder: str
    environ: Mapping[str, str]
    is_fixed: bool = False  # the folder was named: no other is looked at
    project: str | None = None
    agent: str | None = None
    session: str | None = None


class Keeping(Protocol):
    """What a session keeps of its receipts, so that it can be shown them again."""

    def keep(self, task: str, key: str, receipt: str) -> None: ...

    def settle(self, receipt: str, outcome: Outcome, *, ends: bool = False) -> Outcome:
        """Note a receipt's last word; `ends`: the command gives the claim back if it is granted."""

    def live(self) -> list[Kept]: ...


class Seat(NamedTuple):
    who: Who
    client: Client
    receipts: Keeping
    settings: Mapping[str, Value]
    folder: str | None  # where the work is; None where it is on another machine
    introduced: MutableSet[Client]

    @property
    def process(self) -> Process | None:
        """Whose end ends the session: what it holds may then be taken over before its lease is over."""
        found = self.who.process
        if found is None:
            return None
        return Process(host=process_table.host(), boot=process_table.boot_id(), pid=found.pid, start=found.start)

    def introduce(self) -> None:
        """Tell of this agent, unless it is known: whoever joined by name has said more than is known here."""
        if self.client in self.introduced:
            return
        if not any(agent["name"] == self.who.agent for agent in self.client.agents()):
            self._register()
        self.introduced.add(self.client)

    def _register(self) -> None:
        process = self.process
        where = {} if process is None else {
            "host": process.host, "boot": process.boot, "pid": process.pid, "pid_start": process.start
        }  # fmt: skip
        self.client.register(type=self.who.type, stale_after=STALE_AFTER, user=self.who.user, **where)


class Seats:
    """The seats of one server, most often a single one. Safe to share between threads."""

    def __init__(self, told: Told) -> None:
        self.told = told
        self._lock = threading.Lock()
        self._clients: dict[tuple[str, ...], Client] = {}
        self._introduced: set[Client] = set()

    def find(self, caller: Caller, roots: Sequence[str] = ()) -> Seat:
        """The caller's seat, at the store of the server's folder, else of the first of the roots that has one."""
        told = self.told
        folder, settings, home = self._home(roots)
        who = who_speaks(caller, told.environ, told.agent, told.session)
        project = str(settings["project"].value)
        with self._lock:
            client = self._client(home, project, who, settings["key"].value)
        receipts = Receipts(home, project, who.session, who.agent, told.environ)
        if not client.is_remote:
            client.engine.own = UserTables(file_of(settings, "prices"), file_of(settings, "tiers"))
        return Seat(who, client, receipts, settings, folder, self._introduced)

    def _home(self, roots: Sequence[str]) -> tuple[str, Mapping[str, Value], Home]:
        told = self.told
        missing: NoStore | None = None
        for folder in (told.folder, *roots):
            settings = read_settings(folder, told.environ, {"project": told.project})
            try:
                return folder, settings, find_home(folder, settings)
            except NoStore as error:
                missing = missing or error
        assert missing is not None
        raise missing

    def _client(self, home: Home, project: str, who: Who, shown: str | None) -> Client:
        # A store that was made anew has the same path and is another file.
        key = (home.url, _file(home.url), project, who.agent, who.session)
        if key not in self._clients:
            self._clients[key] = Client(
                home.url, project, key=shown, agent=who.agent, session=who.session, role="agent", user=who.user,
                create=False,
            )  # fmt: skip
        return self._clients[key]

    def close(self) -> None:
        """Close every store. What was claimed stays claimed: the session may go on elsewhere."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()


def _file(url: str) -> str:
    try:
        found = Path(url.removeprefix("sqlite://")).stat()
    except OSError:
        return ""
    return f"{found.st_dev}:{found.st_ino}"
