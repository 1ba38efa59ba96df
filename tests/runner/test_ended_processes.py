"""Claims of processes that have ended, found by the process that leads: no runner and no claim has to come by."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.agents.ended_processes import EndedProcesses
from tenure.agents.leader_process import LeaderProcess, Place
from tenure.client import Client
from tenure.process_table import described
from tenure.server.coordinator import coordinator_of
from tenure.sinks.settings import Messaging
from tests.runner.conftest import until


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with Client(str(tmp_path / "tenure.db"), "p", agent="ann", session="s", create=True) as client:
        client.init()
        yield client


@pytest.fixture
def agent() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process


def claimed(client: Client, agent: subprocess.Popen[bytes]) -> str:
    client.add("one")
    claim = client.claim(process=described(agent.pid), lease=3600).check()
    assert claim.task is not None
    return claim.task["key"]


def killed(agent: subprocess.Popen[bytes]) -> None:
    agent.kill()
    agent.wait()


def test_the_leader_frees_the_task_of_a_process_that_has_ended(client: Client, agent: subprocess.Popen[bytes]) -> None:
    key, leads = claimed(client, agent), threading.Event()
    assert client.engine is not None
    engine = client.engine
    coordinator = coordinator_of(engine)
    watch = EndedProcesses(engine, lambda: coordinator.led() if leads.is_set() else None)
    leads.set()
    coordinator.start()
    try:
        until(lambda: coordinator.led() is not None, "a leader")
        watch.step()
        assert client.show(key)["state"] == "claimed"  # the agent runs
        killed(agent)
        leads.clear()
        watch.step()
        assert client.show(key)["state"] == "claimed"  # another process leads
        leads.set()
        watch.step()
    finally:
        coordinator.stop()
    assert client.show(key)["state"] == "ready"
    assert {"task.process_gone", "agent.died"} <= {event["kind"] for event in client.log()}
    assert client.agent_details("ann")["status"] == "offline"


def test_every_process_that_leads_looks_for_them(
    client: Client, agent: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EndedProcesses, "every", 0.02)
    key = claimed(client, agent)
    assert client.engine is not None
    leader = LeaderProcess(coordinator_of(client.engine), Messaging({}), Place(str(tmp_path), "p", {}))
    leader.start()
    try:
        killed(agent)
        until(lambda: client.show(key)["state"] == "ready", "the task to be free")
    finally:
        leader.stop()
