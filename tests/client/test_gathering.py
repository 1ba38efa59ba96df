"""`tenure.Client` with `gather=True`, shared by threads: the same answers, in fewer transactions."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tenure import Client
from tenure.core.commands import Principal
from tenure.core.errors import NotAllowed, StoreUnavailable
from tenure.engine.runtime.batcher import Batcher
from tests.engine.gathering_ground import Crowd

THREADS = 16
EACH = 10


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory://" if request.param == "memory" else str(tmp_path / ".tenure" / "tenure.db")


def speaking(client: Client, agent: str) -> Client:
    """The same store and batcher, spoken to by another agent."""
    other = copy.copy(client)
    other.agent, other.session = agent, f"s-{agent}"
    other.principal = Principal(role="agent", agent=agent, session=other.session)
    return other


def test_threads_that_share_a_client_each_get_their_own_work(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    real = Batcher._commit

    def counted(batcher: Batcher, batch: Any) -> Any:
        sizes.append(len(batch))
        return real(batcher, batch)

    monkeypatch.setattr(Batcher, "_commit", counted)
    with Client(url, "shop", gather=True, create=True) as client:
        client.init()
        for n in range(THREADS * EACH):
            client.add(f"Task {n}")

        def work(number: int) -> set[str]:
            me = speaking(client, f"agent-{number}")
            with pytest.raises(NotAllowed):
                me.cancel("A-001")
            done = set()
            for _ in range(EACH):
                grant = me.claim(wait=1.0)
                assert grant.task is not None
                assert grant.task["agent"] == me.agent
                assert me.submit(grant.receipt or "", {"by": me.agent}).outcome == "ACCEPTED"
                done.add(str(grant.task["key"]))
            return done

        got = Crowd(THREADS, work).ended()
        assert [error for error in got.values() if isinstance(error, BaseException)] == []
        assert sum(map(len, got.values())) == len(set().union(*got.values())) == THREADS * EACH
        for number, keys in got.items():
            for key in keys:
                assert client.show(key)["result"]["data"] == {"by": f"agent-{number}"}
        assert client.verify() == []
        assert sum(sizes) >= 1 + 3 * THREADS * EACH + THREADS, "every command went through the batcher"
        assert max(sizes) > 1
    with pytest.raises(StoreUnavailable):
        client.add("late")


def test_a_client_gathers_only_when_asked_to(url: str) -> None:
    script = f"""
import sys, tenure
with tenure.Client({url!r}, "shop", create=True) as client:
    client.init()
    client.add("x")
    assert client.claim().ok and client.batcher is None
print([m for m in ("tenure.engine.runtime.batcher", "concurrent.futures", "asyncio") if m in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
