"""Processes that held a claim and have ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from tenure.core import commands
from tenure.process_table import HostTable

if TYPE_CHECKING:
    from tenure.client import Client
    from tenure.core.views import ProcessView


def ended_holders(client: Client) -> list[ProcessView]:
    """The processes behind live claims that ran on this host since its boot, and have ended."""
    return ended_here(client.processes())


def ended_here(found: Iterable[ProcessView]) -> list[ProcessView]:
    table = HostTable()
    return [p for p in found if table.has_ended(named(p))]


def named(view: ProcessView) -> commands.Process:
    return commands.Process(host=view["host"], boot=view["boot"], pid=view["pid"], start=view["start"])


def release_ended(client: Client, say: Callable[[str], None] = lambda _: None) -> tuple[str, ...]:
    """End the claims of processes of this host that have ended. Returns the keys of their tasks, which are free again.

    Only for a local store: a server does not trust a client's word, and its claims end with their leases.
    """
    gone = [] if client.is_remote else ended_holders(client)
    if not gone:
        return ()
    freed = client.gone(map(named, gone))
    for key in freed.changed or ():
        say(f"{key}: the process that held it has ended; it can be taken over")
    return freed.changed or ()
