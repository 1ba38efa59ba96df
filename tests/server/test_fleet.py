"""Pools behind a real server, with real processes: terminate, take over, another machine."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tenure.client import Client
from tenure.core.commands import NewTask
from tenure.core.records import RetryPolicy
from tenure.testing.suites.spawner import processes_of, until
from tests.servers.gateway import SECRET, GatewayServer
from tests.servers.tenure import TenureServer

# Keeps a checkpoint and waits for its end; an agent that finds a checkpoint continues from it.
AGENT = """
import os, subprocess, sys, time
from pathlib import Path
folder, prompt = Path(sys.argv[1]), sys.stdin.read()
with (folder / "starts").open("a") as file:
    file.write(f"{os.environ['TENURE_TASK']} {os.environ['TENURE_AGENT']} {os.environ['TENURE_SPAWN']}\\n")
if "half of the cart" in prompt:
    print("the other half of the cart")
    sys.exit()
if (folder / "slow").exists():
    words = [sys.executable, "-P", "-m", "tenure", "checkpoint", "save", "--next-action", "half of the cart"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    (folder / "kept").touch()
    time.sleep(600)
print("done")
"""


def agent_in(folder: Path) -> list[str]:
    """The words of the agent, which leaves its traces in this folder."""
    (folder / "agent.py").write_text(AGENT)
    return [sys.executable, str(folder / "agent.py"), str(folder)]


class Fleet:
    """A store with a pool, its server, and the folder where its agents leave their traces."""

    def __init__(
        self,
        folder: Path,
        settings: str = "",
        spawner: str = "local",
        size: int = 3,
        served: dict[str, str] | None = None,
    ) -> None:
        """`served`: TENURE_* variables of the server."""
        self.folder, self.state = folder, folder / "state"
        self.words = agent_in(folder)
        self.client = Client(str(folder / "store.db"), "default", agent="ann", create=True)
        self.client.init()
        text = f'[programs.bot]\nagent = "{shlex.join(self.words)}"\noptions = ["--grace", "1"]\n'
        environ = {"TENURE_STATE": str(self.state)} | (served or {})
        self.server = TenureServer(str(folder / "store.db"), settings=environ)
        (self.server.folder / "tenure.toml").write_text(text + settings)
        self._trust()
        self.client.set_pool("coders", "bot", size=size, spawner=spawner)

    def _trust(self) -> None:
        from tenure.config import read_settings
        from tenure.trust.grants import Trusted

        path = self.server.folder / "tenure.toml"
        settings = read_settings(str(self.server.folder), {})
        Trusted(self.state).trust(path, settings.sources[str(path)].risky)

    def add(self, count: int) -> list[str]:
        retry = RetryPolicy(strategy="immediate", poison=0)
        tasks = self.client.plan([NewTask(title="Add the cart", max_attempts=9, retry=retry)] * count).tasks or ()
        return [str(task["key"]) for task in tasks]

    def starts(self) -> list[list[str]]:
        with suppress(FileNotFoundError):
            return [line.split() for line in (self.folder / "starts").read_text().splitlines()]
        return []

    def is_drained(self, count: int) -> bool:
        return bool(self.client.status()["tasks"] == {"completed": count})

    def accepted_once(self, keys: list[str]) -> None:
        for key in keys:
            assert [result["accepted"] for result in self.client.results(key)].count(True) == 1
        assert self.client.verify() == []

    def close(self) -> None:
        self.server.stop()
        for _, _, spawn in self.starts():
            for pid in processes_of(spawn):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.client.close()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    made = Fleet(tmp_path)
    yield made
    made.close()


@pytest.mark.nightly  # the page on pools runs one by day
def test_a_pool_drains_a_plan_and_nobody_has_started_an_agent(fleet: Fleet) -> None:
    keys = fleet.add(20)
    fleet.server.start()
    until(lambda: fleet.is_drained(20), "the plan", 120)
    fleet.accepted_once(keys)
    assert {agent for _, agent, _ in fleet.starts()} == {"coders-1", "coders-2", "coders-3"}
    assert len(fleet.starts()) == 20
    until(lambda: not fleet.client.spawns(state=("starting", "running")), "every spawn to end")
    assert not [pid for _, _, spawn in fleet.starts() for pid in processes_of(spawn)]


def test_a_terminated_agent_is_ended_and_its_task_taken_over_from_its_checkpoint(fleet: Fleet) -> None:
    (key,) = fleet.add(1)
    (fleet.folder / "slow").touch()
    fleet.server.start()
    until((fleet.folder / "kept").exists, "the checkpoint", 60)
    ((_, agent, spawn),) = fleet.starts()
    assert processes_of(spawn)

    began = time.monotonic()
    fleet.client.terminate(agent, graceful=False, reason="runs wild")
    until(lambda: not processes_of(spawn), "its processes to end", 15)
    took = time.monotonic() - began

    until(lambda: fleet.is_drained(1), "another agent to take over", 60)
    assert took < 5.0, f"the processes of a terminated agent ended after {took:.1f} s"
    first, second = fleet.client.history(key)
    assert (first["agent"], second["agent"] != agent) == (agent, True)
    (result,) = [result for result in fleet.client.results(key) if result["accepted"]]
    assert "the other half of the cart" in str(result)


def test_agents_survive_a_server_that_is_killed_and_their_work_counts(fleet: Fleet) -> None:
    keys = fleet.add(2)
    (fleet.folder / "slow").touch()
    fleet.server.start()
    until(lambda: len(fleet.starts()) == 2, "two agents", 60)
    fleet.server.kill()
    spawns = [spawn for _, _, spawn in fleet.starts()]
    assert all(map(processes_of, spawns))
    fleet.server.start()
    until(lambda: len(fleet.client.spawns(state=("running",))) == 2, "both to be known again")
    (fleet.folder / "slow").unlink()
    for _, agent, _ in fleet.starts():
        fleet.client.terminate(agent, graceful=False)
    until(lambda: fleet.is_drained(2), "the plan", 60)
    fleet.accepted_once(keys)


@pytest.mark.nightly
def test_a_gateway_that_is_killed_with_its_children_leaves_no_task_in_limbo(tmp_path: Path) -> None:
    """Another machine: its own folder, home and state, reached at an address of its own."""
    with GatewayServer({"bot": agent_in(tmp_path)}, options=("--grace", "1")) as gateway:
        secret = tmp_path / "secret"
        secret.write_text(SECRET)
        secret.chmod(0o600)
        settings = f'[spawners.far]\nkind = "gateway"\nurl = "{gateway.url}"\nsecret_file = "{secret}"\n'
        fleet = Fleet(tmp_path, settings, "far", size=2)
        try:
            keys = fleet.add(4)
            (fleet.folder / "slow").touch()
            fleet.server.start()
            until(lambda: len(fleet.starts()) == 2, "two agents on the other machine", 60)
            held = {key for key, _, _ in fleet.starts()}
            assert gateway.kill_with_children() >= 4
            (fleet.folder / "slow").unlink()
            gateway.start()
            until(lambda: fleet.is_drained(4), "the plan", 120)
            fleet.accepted_once(keys)
            for key in held:
                first, *_ = fleet.client.history(key)
                assert first["release_reason"] == "EXPIRED"
        finally:
            fleet.close()
