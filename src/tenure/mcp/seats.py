"""Where a caller sits: the store that serves it, a client that speaks for it, the receipts that its session keeps.

The store is looked for with every call: a server is started with its agent, often before there is one, and lives on
when it is made anew.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tenure.agents import processes
from tenure.agents.identity import Who
from tenure.agents.receipts import Receipts
from tenure.client import Client
from tenure.config import Home, NoStore, Value, find_home, read_settings
from tenure.core.commands import Process
from tenure.mcp.speaking import Caller, who_speaks

STALE_AFTER = 1800.0  # an agent that thinks is silent for longer than a worker that beats


class Told(NamedTuple):
    """What the server was started with."""

    folder: str
    environ: Mapping[str, str]
    is_fixed: bool = False  # the folder was named: no other is looked at
    project: str | None = None
    agent: str | None = None
    session: str | None = None


class Seat(NamedTuple):
    who: Who
    client: Client
    receipts: Receipts
    settings: Mapping[str, Value]
    folder: str  # where the work is
    introduced: set[Client]

    @property
    def process(self) -> Process | None:
        """Whose end ends the session: what it holds may then be taken over before its lease is over."""
        found = self.who.process
        if found is None:
            return None
        return Process(host=processes.host(), boot=processes.boot_id(), pid=found.pid, start=found.start)

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
            client = self._client(home, project, who)
        receipts = Receipts(home.folder, project, who.session)
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

    def _client(self, home: Home, project: str, who: Who) -> Client:
        # A store that was made anew has the same path and is another file.
        key = (home.url, _file(home.url), project, who.agent, who.session)
        if key not in self._clients:
            self._clients[key] = Client(
                home.url, project, agent=who.agent, session=who.session, role="agent", user=who.user, create=False
            )
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
