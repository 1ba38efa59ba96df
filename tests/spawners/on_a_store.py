"""Spawners whose program is the runner: it claims a task of a store before its agent starts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from msgspec.structs import replace

from tenure.client import Client
from tenure.core.commands import NewTask
from tenure.spawners.port import SpawnRequest
from tenure.testing.suites.spawner import SpawnerSuite
from tests.spawners.requests import REQUEST


class OnAStore(SpawnerSuite):
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
        return replace(REQUEST, spawn=spawn, key=task["key"], task=task["id"], url=self.store, agent=agent, models=())

    def unknown_program(self, request: SpawnRequest) -> SpawnRequest | None:
        return replace(request, program="rm")

    def files(self) -> list[Path]:
        return list(self.state.glob("spawned/**/*.json"))
