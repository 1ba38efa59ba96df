"""The parent of workers, with workers that do nothing but live and die."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tenure.config import BadConfig
from tenure.server.workers import supervisor
from tenure.server.workers.supervisor import Handles, Supervisor

PATIENCE = 20.0


class Team:
    """Runs a supervisor in a child process; its workers say what they do through a pipe."""

    def __init__(self, reaction: str = "wait", count: int = 2) -> None:
        self._said, self._says = os.pipe()
        self._text = b""
        self.pid = os.fork()
        if self.pid == 0:
            code = 99
            try:
                notes = lambda event, **more: self._say(f"note {event.split()[0]} {more.get('pause')}")  # noqa: E731
                code = Supervisor(count, lambda handles: self._work(handles, reaction), notes).serve()
            except BadConfig as error:
                self._say(f"raised {error.message}")
                code = 11
            finally:
                os._exit(code)
        os.close(self._says)

    def _say(self, text: str) -> None:
        os.write(self._says, f"{text}\n".encode())

    def _work(self, handles: Handles, reaction: str) -> int:
        if reaction == "refuse":
            raise BadConfig("nothing works here")
        if reaction == "fail late" and handles.number == 0:
            self._say("dies early")
            return 3
        ended = threading.Event()
        signal.signal(
            signal.SIGTERM, (lambda *_: self._say("deaf")) if reaction == "deaf" else (lambda *_: ended.set())
        )
        handles.tell_ready(f"worker {os.getpid()}")
        self._say(f"after {handles.predecessor}")
        self._say(f"ready {handles.number} {os.getpid()}")
        until = time.monotonic() + 2 * PATIENCE
        while not ended.is_set() and time.monotonic() < until:
            if select.select([handles.life], [], [], 0.02)[0]:
                self._say(f"orphan {handles.number}")
                return 0
        self._say(f"{'ended' if ended.is_set() else 'forgotten'} {handles.number}")
        return 0

    def hear(self, word: str, count: int = 1) -> list[list[str]]:
        """The lines that begin with it, once so many are there."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            found = [line.split() for line in self._text.decode().splitlines() if line.startswith(word)]
            if len(found) >= count and self._text.endswith(b"\n"):
                return found
            if select.select([self._said], [], [], until - time.monotonic())[0]:
                self._text += os.read(self._said, 65536)
        raise AssertionError(self._text.decode())

    def end(self, number: int = signal.SIGTERM) -> int:
        os.kill(self.pid, number)
        return self.code()

    def code(self) -> int:
        pid, self.pid = self.pid, 0
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.fixture
def team() -> Iterator[Any]:
    made: list[Team] = []

    def start(*given: Any) -> Team:
        made.append(Team(*given))
        return made[-1]

    yield start
    for one in made:
        if one.pid:
            os.kill(one.pid, signal.SIGTERM)
            one.code()


def test_a_worker_that_dies_is_replaced_at_once_and_the_others_stay(team: Any) -> None:
    one = team()
    ready = {number: int(pid) for _, number, pid in one.hear("ready", 2)}
    os.kill(ready["1"], signal.SIGKILL)
    again = one.hear("ready", 3)[2]
    assert again[1] == "1"
    assert one.hear("note") == [["note", "a", "0.0"]]
    os.kill(ready["0"], 0)
    assert one.hear("after", 3)[2] == ["after", "worker", str(ready["1"])]


def test_a_worker_that_never_serves_is_started_after_growing_pauses(team: Any) -> None:
    one = team("fail late")
    pauses = [float(pause) for _, _, pause in one.hear("note", 3)]
    assert pauses[:3] == [0.2, 0.4, 0.8]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_all_end_together_and_well(team: Any, number: int) -> None:
    one = team()
    one.hear("ready", 2)
    assert one.end(number) == 0
    assert len(one.hear("ended", 2)) == 2


def test_workers_that_do_not_end_are_killed(team: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "PATIENCE", 0.2)
    one = team("deaf")
    pids = [int(pid) for _, _, pid in one.hear("ready", 2)]
    assert one.end() == 1
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_second_interrupt_ends_the_wait(team: Any) -> None:
    one = team("deaf")
    one.hear("ready", 2)
    os.kill(one.pid, signal.SIGINT)
    one.hear("deaf", 2)
    began = time.monotonic()
    assert one.end(signal.SIGINT) in (0, 1)
    assert time.monotonic() - began < supervisor.PATIENCE / 2


def test_workers_notice_that_their_parent_was_killed(team: Any) -> None:
    one = team()
    one.hear("ready", 2)
    assert one.end(signal.SIGKILL) == -signal.SIGKILL
    assert len(one.hear("orphan", 2)) == 2


def test_the_error_of_the_first_start_is_raised_in_the_parent(team: Any) -> None:
    one = team("refuse")
    assert one.code() == 11
    assert one.hear("raised") == [["raised", "nothing", "works", "here"]]
