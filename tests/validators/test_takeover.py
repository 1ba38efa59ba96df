"""A validator that is killed, or stopped and late: another takes over, and one verdict counts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tenure import Client
from tenure.agents.result_checker import CheckedResult, ResultChecker, Tools
from tenure.validators.commands import Command
from tests.servers.postgres import PostgresServer
from tests.validators.test_commands import marking, on_linux, with_mark

PATIENCE = 30.0  # seconds
OUTPUT = {"validation": "test-pass", "settings": {"command": "unit"}}

VALIDATOR = """
import sys
from tenure import Client
from tenure.agents.result_checker import ResultChecker, Tools
from tenure.validators.commands import Command
url, code, folder, name, value = sys.argv[1:]
unit = Command(argv=(sys.executable, "-c", code), sandbox="never", set={name: value})
client = Client(url, "shop", agent="first", session="first")
found = ResultChecker(client, Tools({"unit": unit}, root=folder), lease=2.0).check_next()
print(found.outcome.outcome, flush=True)
"""
WAITS = "import os, sys, time\nwhile not os.path.exists('go'): time.sleep(0.05)"

pytestmark = pytest.mark.sampled


@pytest.fixture(params=["sqlite", "postgres"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Client]:
    url = str(tmp_path / "tenure.db")
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        url = f"{server.url}?schema=taking_over_{uuid.uuid4().hex[:8]}"
    with Client(url, "shop", agent="second", session="second", create=True) as client:
        client.init()
        client.add("checked", output=OUTPUT)
        assert client.submit(str(client.claim("A-001").receipt), "work").outcome == "VALIDATING"
        yield client


def begun(client: Client, folder: Path, mark: str) -> subprocess.Popen[str]:
    """A validator in a process of its own, whose command runs."""
    ((name, value),) = marking(mark).items()
    process = subprocess.Popen(
        [sys.executable, "-c", VALIDATOR, client.transport.url, WAITS, str(folder), name, value],
        stdout=subprocess.PIPE,
        text=True,
    )
    until(lambda: bool(with_mark(mark)))
    return process


def until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, "it never happened"
        os.sched_yield()


def taken_over(client: Client, folder: Path, code: str) -> CheckedResult:
    unit = Command(argv=(sys.executable, "-c", code), sandbox="never")
    checker = ResultChecker(client, Tools({"unit": unit}, root=str(folder)), lease=2.0)
    end = time.monotonic() + PATIENCE
    while (found := checker.check_next()) is None:
        assert time.monotonic() < end, "nobody could take over"
        client.wait_for_news(client.mark(), 0.1)
    return found


@on_linux
def test_after_a_kill_another_takes_over_and_nothing_is_left(client: Client, tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    first = begun(client, tmp_path, mark)
    assert client.show("A-001")["validation"]["state"] == "running"
    first.send_signal(signal.SIGKILL)
    first.communicate()
    until(lambda: not with_mark(mark))  # its command goes with it
    found = taken_over(client, tmp_path, "pass")
    assert (found.outcome.outcome, client.show("A-001")["state"]) == ("ACCEPTED", "completed")
    (entry,) = client.history("A-001")
    assert (entry["validation"]["state"], entry["validation"]["tries"]) == ("passed", 2)


@on_linux
def test_who_wakes_up_late_has_no_say_any_more(client: Client, tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    first = begun(client, tmp_path, mark)
    first.send_signal(signal.SIGSTOP)
    found = taken_over(client, tmp_path, "raise SystemExit('two tests fail')")
    assert found.verdict is not None
    assert (found.verdict.ok, client.show("A-001")["state"]) == (False, "retrying")
    (tmp_path / "go").touch()  # its tests pass, an age later
    first.send_signal(signal.SIGCONT)
    said, _ = first.communicate(timeout=PATIENCE)
    assert said.split() in (["STALE_GENERATION"], ["NO_CLAIM"])
    until(lambda: not with_mark(mark))
    assert client.show("A-001")["state"] in ("retrying", "ready")
    kinds = [event["kind"] for event in client.log(task="A-001", limit=1000)]
    assert (kinds.count("task.failed"), kinds.count("task.completed")) == (1, 0)
