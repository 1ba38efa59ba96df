"""What a process of this machine holds that was killed: the next claim takes it, and nobody calls its agent active."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.client import Client
from tenure.core.commands import ClaimNext
from tenure.process_table import described
from tests.client.conftest import Place


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def held_by(client: Client, victim: subprocess.Popen[bytes]) -> tuple[str, str]:
    """An urgent task that the process holds, and one that is ready."""
    urgent = client.add("Urgent", priority="critical").check().task
    other = client.add("Other").check().task
    assert urgent is not None
    assert other is not None
    client.claim(urgent["key"], process=described(victim.pid), lease=3600).check()
    return urgent["key"], other["key"]


def end(victim: subprocess.Popen[bytes]) -> None:
    victim.kill()
    victim.wait()


@pytest.mark.parametrize("way", ["claim", "batch", "wait", "gather"])
def test_the_urgent_task_of_a_killed_process_comes_first(
    tmp_path: Path, victim: subprocess.Popen[bytes], way: str
) -> None:
    store = str(tmp_path / "store.db")
    with Client(store, "shop", agent="ann", session="s-ann", create=True) as ann:
        ann.init()
        urgent, _ = held_by(ann, victim)
        assert [one["status"] for one in ann.agents()] == ["active"]
        end(victim)
        assert [one["status"] for one in ann.agents()] == ["offline"]
        assert [one["status"] for one in ann.status()["agents"]] == ["offline"]
        with Client(store, "shop", agent="bo", session="s-bo", gather=way == "gather") as bo:
            if way == "batch":
                (taken,) = bo.batch([ClaimNext(project="shop", agent="bo", session="s-bo")])
            else:
                taken = bo.claim(wait=5 if way == "wait" else 0)
            assert taken.task is not None
            assert (taken.task["key"], taken.generation, taken.attempt) == (urgent, 2, 2)


def test_a_server_calls_no_agent_active_whose_process_was_killed(
    served: Place, victim: subprocess.Popen[bytes]
) -> None:
    with Client(served.store, "shop", agent="ann", session="s-ann") as ann, served.client() as mia:
        held_by(ann, victim)
        assert [one["status"] for one in mia.agents()] == ["active"]
        end(victim)
        assert [one["status"] for one in mia.agents()] == ["offline"]
        assert [one["status"] for one in mia.status()["agents"]] == ["offline"]
