"""A pool behind `tenure serve` works off a plan with the real CLI: nobody has started an agent."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.agents.script import Say, Usage
from tests.agents.stage import Stage
from tests.agents.views import at_work
from tests.processes.marks import marked
from tests.servers.processes import free_port

TASKS = 20
PATIENCE = 300.0


@pytest.mark.nightly
def test_a_pool_drains_a_plan_of_twenty_tasks(stage: Callable[..., Stage]) -> None:
    agent = stage(Say("A haiku."), usage=Usage(fresh=120, cached=30, output=25))
    tenure = at_work(agent, *(f"Write haiku {number}" for number in range(TASKS)))
    tenure("pool", "set", "coders", "--agent", agent.cli.name, "--size", "3")

    port, log = free_port(), agent.folder.parent / "log"
    with log.open("w") as output:
        server = agent.begin("tenure", "serve", "--port", str(port), output=output)
    try:
        give_up = time.monotonic() + PATIENCE
        while tenure("status")["tasks"] != {"completed": TASKS}:
            assert time.monotonic() < give_up, (tenure("status"), tenure("spawn", "list"), tenure("pool", "list"))
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)
        for pid in marked(f"TENURE_URL=http://127.0.0.1:{port}"):  # agents outlive their server
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    for task in tenure("list"):
        claims = tenure("history", task["key"])
        ends = [(c["agent"], c["generation"], c["release_reason"], c["error_class"], c["error"]) for c in claims]
        assert len(claims) == 1, (task["key"], ends, tenure("spawn", "list"), log.read_text()[-4000:])
        assert (claims[0]["generation"], claims[0]["result_accepted"]) == (1, True), ends
        assert claims[0]["agent"] in ("coders-1", "coders-2", "coders-3")
    assert not os.path.exists(f"/proc/{server.pid}")  # noqa: PTH110
