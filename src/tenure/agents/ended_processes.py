"""Processes that held a claim and have ended, as the process table of this host proves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenure.agents import process_table
from tenure.client import Client
from tenure.core.commands import Process


def of_this_host(client: Client) -> list[dict[str, Any]]:
    """The processes behind live claims that ran on this host since its boot."""
    here = (process_table.host(), process_table.boot_id())
    return [p for p in client.processes() if (p["host"], p["boot"]) == here]


def has_ended(process: dict[str, Any]) -> bool:
    return process_table.has_ended(process["pid"], process["start"])


def release_ended(client: Client, say: Callable[[str], None] = lambda _: None) -> tuple[str, ...]:
    """End the claims of processes of this host that have ended. Returns the keys of their tasks, which are free again.

    Only for a local store: a server does not trust a client's word, and its claims end with their leases.
    """
    if client.is_remote:
        return ()
    gone = [p for p in of_this_host(client) if has_ended(p)]
    if not gone:
        return ()
    freed = client.gone(Process(host=p["host"], boot=p["boot"], pid=p["pid"], start=p["start"]) for p in gone)
    for key in freed.changed or ():
        say(f"{key}: the process that held it has ended; it can be taken over")
    return freed.changed or ()
