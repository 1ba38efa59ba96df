"""All agents stop at once, as behind a lost network or a sleeping laptop: people are told, and nothing is taken away.

Real processes: they are stopped by SIGSTOP and continued, or killed; a server leads and reports.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import tenure
from tests.servers.fixtures import running
from tests.servers.tenure import TenureServer

AGENTS = 4
# Claims one task, gives a sign of life every 0.3 s, and submits when its input ends.
AGENT = """
import sys, threading, tenure
url, name = sys.argv[1:]
with tenure.Client(url, "p", agent=name) as client:
    client.register(stale_after=2.0, heartbeat=1.0, managed=True)
    receipt = client.claim(lease=120).receipt
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    print("working", flush=True)
    while not over.wait(0.3):
        client.heartbeat()
    print(client.submit(receipt, name).outcome, flush=True)
"""


class Team:
    def __init__(self, url: str, client: tenure.Client, scope: ExitStack) -> None:
        self.client = client
        self.agents = [self._start(url, f"agent-{n}", scope) for n in range(AGENTS)]

    @staticmethod
    def _start(url: str, name: str, scope: ExitStack) -> subprocess.Popen[str]:
        child = scope.enter_context(
            subprocess.Popen(
                [sys.executable, "-c", AGENT, url, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        )
        scope.callback(child.kill)
        assert child.stdout is not None
        assert child.stdout.readline() == "working\n"
        return child

    def signal(self, number: int) -> None:
        for child in self.agents:
            os.kill(child.pid, number)

    def until(self, is_so: Callable[[], bool]) -> None:
        """Looked at with each event, at least every second."""
        for _ in range(60):
            mark = self.client.mark()
            if is_so():
                return
            self.client.wait_for_news(mark, 1.0)
        raise AssertionError("it never came")

    def statuses(self) -> set[str]:
        return {str(agent["status"]) for agent in self.client.agents(managed=True)}


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    url = f"sqlite://{tmp_path}/s.db"
    with ExitStack() as scope:
        client = scope.enter_context(tenure.Client(url, "p", agent="mia", create=True))
        client.init()
        for n in range(AGENTS):
            client.add(f"Task {n}")
        scope.enter_context(running(TenureServer(url)))
        yield Team(url, client, scope)


def test_agents_that_all_fall_silent_are_stale_keep_their_claims_and_come_back(team: Team) -> None:
    team.signal(signal.SIGSTOP)
    team.until(lambda: len(team.client.log(kind="agent.stale")) == AGENTS)
    assert team.statuses() == {"stale"}
    assert len(team.client.tasks(state=("claimed", "running"))) == AGENTS  # staleness takes nothing away

    team.signal(signal.SIGCONT)
    team.until(lambda: len(team.client.log(kind="agent.recovered")) == AGENTS)

    for child in team.agents:
        assert child.communicate()[0] == "ACCEPTED\n"
    done = team.client.tasks(state="completed")
    assert len(done) == AGENTS
    assert {len(team.client.history(task["key"])) for task in done} == {1}  # nothing was done twice


def test_after_all_have_died_an_operator_frees_their_tasks_at_once(team: Team) -> None:
    team.signal(signal.SIGKILL)
    team.until(lambda: team.statuses() == {"stale"})
    for task in team.client.tasks(state=("claimed", "running")):
        assert team.client.recover(task["key"]).ok  # without it: when the lease ends
    taken = [team.client.claim(lease=60) for _ in range(AGENTS)]
    assert {(one.outcome, one.generation, one.attempt) for one in taken} == {("GRANTED", 2, 1)}
