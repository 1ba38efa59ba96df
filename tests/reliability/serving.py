"""Servers under load are killed, sent home and started again, and so is their PostgreSQL: clients carry on.

Worker processes share one project through two `tenure serve` on one store, one of them with three processes on its
port, by the SDK, with its own patience. Servers and single processes of theirs are killed with kill -9 or asked to go,
PostgreSQL is shut down at once and started again, its backends are ended, and workers are killed. At the end every
answer that a worker wrote down is compared with the store, and what is left is worked off.
"""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tenure.client import Client
from tenure.core import commands
from tenure.core.errors import OutcomeUnknown, StoreUnavailable, TenureError
from tenure.core.outcomes import Outcome
from tests.reliability.chaos import Faults, prove
from tests.reliability.chaos_worker import Steadfast
from tests.reliability.storm import ends, judged, make_store
from tests.reliability.storm_answers import RENEWED_AGAIN, Verdict
from tests.reliability.storm_worker import MOST_RETRIED, NAMED, PROJECT
from tests.servers.postgres import PostgresServer
from tests.servers.tenure import TenureServer

PROCESSES = (1, 3)  # of each server
ADDRESSES = "servers"  # the file in the folder that has the servers' URLs
SHARES = {
    "serve killed": 25, "serve's process killed": 20, "serve sent home": 10, "server restarted": 10,
    "backend terminated": 20, "backend killed": 5, "worker killed": 10,
}  # fmt: skip


class Caller(Steadfast):
    """A worker that knows no store, only the address of a server."""

    client: Client

    def opened(self) -> Any:
        self.parent = os.getppid()
        urls = (self.folder / ADDRESSES).read_text().split()
        self.client = Client(urls[self.slot % len(urls)], PROJECT, agent=self.name, session=self.name)

    def close(self) -> None:
        self.client.close()
        self.log.close()

    def send(self, batch: list[commands.Command]) -> list[Outcome | TenureError]:
        try:
            return self.client.batch(batch) if len(batch) > 1 else [self.client.do(batch[0])]
        except (StoreUnavailable, OutcomeUnknown) as error:  # beyond the SDK's patience
            return [error] * len(batch)

    def dead_letters(self) -> list[Any]:
        found = self.patiently(lambda: self.client.tasks(state="dead_lettered", limit=MOST_RETRIED))
        return [SimpleNamespace(ref=task["ref"]) for task in found]


class Serving(Faults):
    def __init__(
        self, folder: Path, processes: int, seed: int, server: PostgresServer, servers: list[TenureServer]
    ) -> None:
        super().__init__(folder, processes, seed, server, Caller)
        self.shares = SHARES
        self.servers = servers

    def strike(self, fault: str) -> bool:
        if not fault.startswith(("serve ", "serve's")):
            return super().strike(fault)
        if fault == "serve's process killed":
            return self._kill_process(self.servers[-1])
        served = self.dice.choice(self.servers)
        if fault == "serve killed":
            served.kill()
        elif code := served.end():
            self.errors.append(f"a server that was asked to go ended with {code}")
        served.start()
        return True

    def _kill_process(self, served: TenureServer) -> bool:
        """One of those that share the port; False where none is there at the moment."""
        assert served.process is not None
        pid = served.process.pid
        with suppress(OSError):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            if children:
                os.kill(int(self.dice.choice(children)), signal.SIGKILL)
                return True
        return False

    def pause(self, seconds: float) -> None:
        super().pause(seconds)
        for served in self.servers:
            if served.process is not None and served.process.poll() is not None:
                said = served.log.read_text(errors="replace")[-1000:]
                self.errors.append(f"a server ended by itself, with {served.process.returncode}: {said}")
                served.start()


def serving(folder: Path, faults: int, processes: int, rate: float, seed: int) -> tuple[Faults, Verdict]:
    """What was struck, and what became of the work."""
    with PostgresServer() as server, ExitStack() as stack:
        url = f"{server.url}?schema=storm"
        (folder / NAMED).write_text(url)
        make_store(folder)
        # Backends of servers are found as those of workers are.
        named = f"{url}&application_name={NAMED}-0"
        servers = [stack.enter_context(TenureServer(named, "--workers", str(count))) for count in PROCESSES]
        (folder / ADDRESSES).write_text("\n".join(served.url for served in servers))
        raging = Serving(folder, processes, seed, server, servers)
        with ends(raging):
            raging.break_things(faults, rate)
        for served in servers:
            served.end()
        result = judged(folder, raging)
    # A renewal whose answer was cut off is sent again by the SDK itself, unseen by the worker; it does no harm.
    result.findings = [(kind, text) for kind, text in result.findings if kind != RENEWED_AGAIN]
    return raging, result


def main(argv: list[str]) -> int:
    return prove("serving", serving, argv, __doc__ or "", rate=2.0)
