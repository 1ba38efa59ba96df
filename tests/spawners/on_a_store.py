"""Spawners whose program is the runner: it claims a task of a store before its agent starts."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tenure.client import Client
from tenure.core.commands import NewTask
from tenure.core.records import Pool, Spawn
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.spawners.port import SpawnRequest
from tenure.testing.suites.spawner import SpawnerSuite
from tests.spawners.requests import REQUEST


def record(client: Client, spawn: str, agent: str, key: str, place: int = 1, **fields: Any) -> None:
    """The rows that a leader writes before it calls a spawner: without them the claim is denied."""
    task, project = client.show(key), client.project

    def decide(work: UnitOfWork) -> None:
        times = {"created_at": work.now, "changed_at": work.now}
        if work.get(Pool, project, "coders") is None:
            work.put(Pool(project=project, id="coders", program="bot", size=100, idle=60_000_000, **times))
        given = {"started_at": work.now, "offer_until": work.now + 120_000_000} | fields
        work.put(
            Spawn(
                project=project,
                id=spawn,
                pool="coders",
                place=place,
                agent=agent,
                task=task["id"],
                task_key=key,
                spawner="local",
                term=1,
                **given,
            )
        )

    client.engine.transact((project,), decide)


class OnAStore(SpawnerSuite):
    place = 0

    def begin(self, tmp_path: Path) -> None:
        self.store = str(tmp_path / "store.db")
        self.state = tmp_path / "state"
        with Client(self.store, "shop", create=True) as client:
            client.init()

    def environ(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"], "HOME": str(self.folder), "PYTHONPATH": os.pathsep.join(sys.path),
            "TENURE_STATE": str(self.state), "TENURE_KEY": "of the server", "TENURE_AGENT": "the server's",
        }  # fmt: skip

    def request(self, spawn: str) -> SpawnRequest:
        with Client(self.store, "shop") as client:
            (task,) = client.plan([NewTask(title="Add the cart")]).tasks or ()
            agent = f"coders-{spawn[-6:]}"
            self.place += 1
            record(client, spawn, agent, task["key"], self.place)
        return replace(REQUEST, spawn=spawn, key=task["key"], task=task["id"], url=self.store, agent=agent, models=())

    def unknown_program(self, request: SpawnRequest) -> SpawnRequest | None:
        return replace(request, program="rm")

    def files(self) -> list[Path]:
        return list(self.state.glob("spawned/**/*.json"))
