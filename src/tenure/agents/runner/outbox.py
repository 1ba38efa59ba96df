"""The outbox of the runners: a file is written before the first try, and its runner handles it as long as it runs.

Files that an earlier version left in `.tenure/outbox` are found and sent too."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from msgspec import structs

from tenure import process_table
from tenure.client import Client, outbox
from tenure.client.outbox import Finished, Sent, is_unknown
from tenure.core.commands import Process
from tenure.core.outcomes import Outcome

__all__ = ["Finished", "Outbox", "Sent", "is_unknown", "named", "send"]


def send(client: Client, finished: Finished) -> Outcome:
    """As for any finished work. An entry that an earlier version kept to be landed becomes a submit."""
    if finished.what == "land":
        from tenure.agents.runner.claim_worktree import with_request

        finished = with_request(finished)
    return outbox.send(client, finished)


def named(finished: Finished, at: Mapping[str, Any]) -> Finished:
    """The result with the commits of the worktree; in its summary where the contract checks the data itself."""
    if finished.judged:
        from tenure.agents.land import named_in

        return structs.replace(finished, summary=named_in(finished.summary, at))
    data = finished.data if isinstance(finished.data, dict) else {"result": finished.data}
    return structs.replace(finished, data={**data, **at})


class Outbox(outbox.Outbox):
    def __init__(self, home: str, url: str, environ: Mapping[str, str]) -> None:
        """`home` is the store's `.tenure`, `url` its URL."""
        super().__init__(url, environ, home)

    def _sweep(self) -> None:
        """Remove partial files of killed writers."""
        for path in self.paths():
            writer = path.removesuffix(".new").rpartition(".")[2]
            if path.endswith(".new") and writer.isdigit() and process_table.look_up(int(writer)) is None:
                with suppress(FileNotFoundError):
                    os.unlink(path)

    def flush(self, client: Client) -> list[Sent]:
        """Send the reports whose runner has ended. Stops, and keeps the rest, where the store does not answer."""
        self._sweep()
        return self.sent(client, send, lambda finished: not _is_handled(finished.process))


def _is_handled(process: Process | None) -> bool:
    """Does the runner that wrote it still run? False where that cannot be known: a repeat is harmless."""
    if process is None or (process.host, process.boot) != (process_table.host(), process_table.boot_id()):
        return False
    return not process_table.has_ended(process.pid, process.start)
