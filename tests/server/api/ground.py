"""A project in which there is something of everything, behind a real server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from tenure.stores.open_store import open_store
from tenure.testing.clock import FakeClock
from tenure.testing.factories import PROJECT, Scene
from tests.engine.rich_scene import Rich, enrich
from tests.servers.tenure import TenureServer

HOURS = 3  # so long before now the project began


def made(store: str) -> Rich:
    """A store with the rich project; its last hours lie behind us, so that a server's clock is never behind it."""
    clock = FakeClock(int((time.time() - HOURS * 3600) * 1e6))
    scene = Scene(open_store(store, clock=clock), clock)
    rich = enrich(scene)
    scene.store.close()
    return rich


def names_of(rich: Rich) -> dict[str, list[str]]:
    """What a request may name, by the word that stands for it on the wire."""
    tasks = [*rich.tasks.values(), rich.archived]
    agents = list(rich.agents)
    return {
        "project": [PROJECT],
        "task": tasks,
        "needs": tasks,
        "parent": tasks,
        "agent": agents,
        "sender": agents,
        "session": [f"s-{name}" for name in agents],
        "dag": [rich.dag, rich.lone_dag],
        "receipt": [*rich.receipts.values(), rich.reservation],
        "command_id": list(rich.commands),
        "result": [rich.result],
        "reply_to": [rich.message],
        "code": ["A", "B", "Q"],
        "track": ["A", "B", "Q"],
        "key": ["boss", "robot"],
        "projects": [PROJECT],
        "tracks": ["A", "B"],
        "scope": ["project:", "track:A", "agent:ann", "agent:dee", "type:code", f"dag:{rich.dag}", "tenant"],
        "source": ["project", "agent:dee"],
        "target": ["project", "agent:dee"],
        "usd": ["5"],
        "amount": ["0.01"],
        "holder": ["ann"],
        "branch": ["main"],
        "cost_usd": ["0.5"],
        "patterns": ["src/a", "port:80"],
        "to": ["@all", "ann"],
    }


@contextmanager
def served(store: str) -> Iterator[tuple[TenureServer, Rich]]:
    rich = made(store)
    server = TenureServer(store)
    try:
        server.start()
        yield server, rich
    finally:
        server.stop()
