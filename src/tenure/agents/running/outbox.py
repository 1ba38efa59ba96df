"""The outbox of the runners: before the first try a file is written, and its runner sees to it as long as it lives.

Files that an earlier version left in `.tenure/outbox` are found and sent too. Work that is to be landed is landed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress

from tenure.agents import processes
from tenure.client import Client, outbox
from tenure.client.outbox import Finished, Sent, is_unknown
from tenure.core.commands import Process
from tenure.core.outcomes import Outcome

__all__ = ["Finished", "Outbox", "Sent", "is_unknown", "send"]


def send(client: Client, finished: Finished) -> Outcome:
    """As for any finished work; what is to be landed is landed first."""
    if finished.what != "land":
        return outbox.send(client, finished)
    from tenure.agents.running.trees import land

    outbox.send_usage(client, finished)
    return land(client, finished)


class Outbox(outbox.Outbox):
    def __init__(self, home: str, url: str, environ: Mapping[str, str]) -> None:
        """`home` is the store's `.tenure`, `url` how the store is found."""
        super().__init__(url, environ, home)

    def _sweep(self) -> None:
        """Take away what a writer was killed over: half a file, of which nobody has heard."""
        for path in self.paths():
            writer = path.removesuffix(".new").rpartition(".")[2]
            if path.endswith(".new") and writer.isdigit() and processes.look_up(int(writer)) is None:
                with suppress(FileNotFoundError):
                    os.unlink(path)

    def flush(self, client: Client) -> list[Sent]:
        """Send what lies there and nobody sees to. Stops, and keeps the rest, where the store gives no answer."""
        self._sweep()
        return self.sent(client, send, lambda finished: not _is_seen_to(finished.process))


def _is_seen_to(process: Process | None) -> bool:
    """Does the runner that wrote it still run? Where that cannot be known it does not matter: a repeat is harmless."""
    if process is None or (process.host, process.boot) != (processes.host(), processes.boot_id()):
        return False
    return not processes.has_ended(process.pid, process.start)
