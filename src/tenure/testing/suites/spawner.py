"""The suite of a spawner's contract, with real processes. It needs Linux: processes are found in /proc.

class TestMine(SpawnerSuite):
    def open_spawner(self): return Mine(…)
    def request(self, spawn): ...  # an agent that runs `self.agent`
    def pid_of(self, handle): ...
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest

from tenure.spawners.port import Spawned, Spawner, SpawnFailed, SpawnRequest, SpawnUnknown

TIMEOUT = 10.0  # seconds: a spawner that works answers long before
SHORT = 1.0
WITHIN = 10.0  # seconds in which an ended agent must be gone
PATIENCE = 60.0  # seconds until a test gives up
TOKEN = "tenure_test_" + "5ecre7" * 5

# Runs until a file allows it to finish; leaves a process in another session behind. An agent finishes its task when it
# is asked to stop at the next opportunity.
AGENT = """
import os, signal, subprocess, sys, time
from pathlib import Path
folder = Path(sys.argv[1])
signal.signal(signal.SIGINT, lambda *_: None)
sys.stdin.read()
subprocess.Popen(["sleep", "1000"], start_new_session=True, stdout=subprocess.DEVNULL)
with (folder / "starts").open("a") as file:
    file.write(os.environ["TENURE_SPAWN"] + " " + os.environ.get("TENURE_KEY", "") + "\\n")
while not (folder / "release").exists():
    time.sleep(0.02)
with (folder / "finished").open("a") as file:
    file.write(os.environ["TENURE_SPAWN"] + "\\n")
print("done")
"""

T = TypeVar("T")


def until(look: Callable[[], T], what: str, seconds: float = PATIENCE) -> T:
    """The first true value of `look`; the test fails where there is none in time."""
    pause, give_up = threading.Event(), time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < give_up, f"timed out waiting for {what}"
        pause.wait(0.02)
    return found


def processes_of(spawn: str) -> list[int]:
    """The running processes of a spawn, by their environment."""
    found = []
    mark = f"TENURE_SPAWN={spawn}".encode()
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


class SpawnerSuite:
    """Every test gets `spawner`. Its agents are `agent`, which works in `folder`."""

    can_hang = True  # a caller can be kept waiting: by another machine, or by a command

    folder: Path
    agent: list[str]

    def open_spawner(self) -> Spawner:
        """A spawner of this test's machine, each time a new one."""
        raise NotImplementedError

    def request(self, spawn: str) -> SpawnRequest:
        """A request that starts `self.agent`, with TOKEN as its key."""
        raise NotImplementedError

    def unknown_program(self, request: SpawnRequest) -> SpawnRequest | None:
        """The request for a program that cannot be started; None where there is no such thing."""
        raise NotImplementedError

    def pid_of(self, handle: str) -> int:
        """The process at the top of an agent's tree."""
        raise NotImplementedError

    def files(self) -> list[Path]:
        """The files that the spawner keeps about its children."""
        raise NotImplementedError

    def freeze(self) -> None:
        """Keep the spawner's other side from answering."""
        raise NotImplementedError

    def thaw(self) -> None:
        raise NotImplementedError

    @pytest.fixture
    def spawner(self, tmp_path: Path) -> Iterator[Spawner]:
        self.folder = tmp_path / "agents"
        self.folder.mkdir()
        script = self.folder / "agent.py"
        script.write_text(AGENT)
        self.agent = [sys.executable, str(script), str(self.folder)]
        self._spawns: list[str] = []
        self.begin(tmp_path)
        spawner = self.open_spawner()
        yield spawner
        spawner.close()
        for spawn in self._spawns:
            for pid in processes_of(spawn):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.stop()

    def begin(self, tmp_path: Path) -> None:
        """Called before the first spawner is opened."""

    def stop(self) -> None:
        """Called after the last."""

    # --- what the agent has done ---

    def new(self) -> SpawnRequest:
        spawn = f"s-{uuid.uuid4().hex}"
        self._spawns.append(spawn)
        return self.request(spawn)

    def lines(self, name: str) -> list[str]:
        with suppress(FileNotFoundError):
            return (self.folder / name).read_text().splitlines()
        return []

    def started(self, spawner: Spawner, request: SpawnRequest) -> Spawned:
        """Spawn it, and wait until its agent works."""
        spawned = spawner.spawn(request, TIMEOUT)
        until(lambda: any(line.startswith(request.spawn) for line in self.lines("starts")), "the agent to start")
        return spawned

    def is_gone(self, spawner: Spawner, spawned: Spawned, request: SpawnRequest) -> bool:
        return spawner.status([spawned.handle]) == {spawned.handle: "ended"} and not processes_of(request.spawn)

    def release(self) -> None:
        (self.folder / "release").touch()

    # --- spawning ---

    def test_an_agent_is_started_and_reported_until_it_ends(self, spawner: Spawner) -> None:
        request = self.new()
        spawned = self.started(spawner, request)
        assert spawner.status([spawned.handle]) == {spawned.handle: "running"}
        self.release()
        until(lambda: self.is_gone(spawner, spawned, request), "the agent to end")
        assert self.lines("finished") == [request.spawn]

    def test_the_same_spawn_again_gives_the_same_process(self, spawner: Spawner) -> None:
        request = self.new()
        spawned = self.started(spawner, request)
        assert spawner.spawn(request, TIMEOUT) == spawned
        restarted = self.open_spawner()
        assert restarted.spawn(request, TIMEOUT) == spawned
        restarted.close()
        self.release()
        until(lambda: self.is_gone(spawner, spawned, request), "the agent to end")
        assert spawner.spawn(request, TIMEOUT) == spawned, "also after its end"
        assert [line.split()[0] for line in self.lines("starts")] == [request.spawn]

    def test_of_concurrent_calls_for_one_spawn_one_starts_it(self, spawner: Spawner) -> None:
        request, answers = self.new(), list[object]()
        gate = threading.Barrier(4)

        def call() -> None:
            mine = self.open_spawner()
            gate.wait(TIMEOUT)
            try:
                answers.append(mine.spawn(request, TIMEOUT))
            except SpawnUnknown as error:  # the other call is not done: allowed, and no second process
                answers.append(error)
            mine.close()

        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        given = [answer for answer in answers if isinstance(answer, Spawned)]
        assert given
        assert len({answer.handle for answer in given}) == 1
        until(lambda: self.lines("starts"), "the agent to start")
        self.release()
        until(lambda: self.is_gone(spawner, given[0], request), "the agent to end")
        assert len(self.lines("starts")) == 1

    def test_two_spawns_are_two_processes(self, spawner: Spawner) -> None:
        requests = [self.new(), self.new()]
        spawned = [self.started(spawner, request) for request in requests]
        handles = [one.handle for one in spawned]
        assert spawner.status(handles) == dict.fromkeys(handles, "running")
        spawner.end(handles[0], graceful=False)
        until(lambda: self.is_gone(spawner, spawned[0], requests[0]), "the first to end", WITHIN)
        assert spawner.status(handles) == {handles[0]: "ended", handles[1]: "running"}

    def test_agents_outlive_the_spawner(self, spawner: Spawner) -> None:
        request = self.new()
        spawned = self.started(spawner, request)
        spawner.close()
        other = self.open_spawner()
        assert other.status([spawned.handle]) == {spawned.handle: "running"}
        self.release()
        until(lambda: self.is_gone(other, spawned, request), "the agent to end")
        assert self.lines("finished") == [request.spawn]

    def test_a_program_that_cannot_be_started_is_a_definite_failure(self, spawner: Spawner) -> None:
        request = self.unknown_program(self.new())
        if request is None:
            return
        for _ in range(2):
            with pytest.raises(SpawnFailed):
                spawner.spawn(request, TIMEOUT)
        assert processes_of(request.spawn) == []
        assert self.files() == []

    def test_the_key_reaches_the_agent_and_neither_a_command_line_nor_a_file(self, spawner: Spawner) -> None:
        request = self.new()
        self.started(spawner, request)
        assert self.lines("starts") == [f"{request.spawn} {TOKEN}"]
        words = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in processes_of(request.spawn)]
        assert words
        assert not [line for line in words if TOKEN.encode() in line]
        for file in self.files():
            assert TOKEN not in file.read_text()
            assert file.stat().st_mode & 0o777 == 0o600
            assert file.parent.stat().st_mode & 0o777 == 0o700

    # --- finding ---

    def test_the_process_of_a_spawn_is_found_by_its_id_also_after_a_restart_and_its_end(self, spawner: Spawner) -> None:
        request, other = self.new(), self.new()
        spawned = self.started(spawner, request)
        wanted = {request.spawn: spawned, other.spawn: None}
        assert spawner.find([request.spawn, other.spawn]) == wanted
        assert spawner.find([]) == {}
        restarted = self.open_spawner()
        assert restarted.home() == spawner.home() != ""
        assert restarted.find(list(wanted)) == wanted
        restarted.close()
        self.release()
        until(lambda: self.is_gone(spawner, spawned, request), "the agent to end")
        assert spawner.find(list(wanted)) == wanted

    def test_a_spawn_that_cannot_be_read_is_left_out(self, spawner: Spawner) -> None:
        request = self.new()
        self.started(spawner, request)
        (file,) = [file for file in self.files() if request.spawn in file.name]
        kept = file.read_bytes()
        file.write_bytes(b"{")
        assert spawner.find([request.spawn]) == {}
        file.write_bytes(kept)

    # --- status and end ---

    def test_a_handle_that_was_never_given_does_not_run(self, spawner: Spawner) -> None:
        for handle in ("", "nonsense", f"1:{uuid.uuid4().hex}:elsewhere", "99999999:1:x"):
            assert spawner.status([handle])[handle] != "running"
        assert spawner.status([]) == {}

    def test_an_agent_is_ended_with_everything_that_it_started(self, spawner: Spawner) -> None:
        request = self.new()
        spawned = self.started(spawner, request)
        assert len(processes_of(request.spawn)) >= 2
        spawner.end(spawned.handle, graceful=False)
        until(lambda: self.is_gone(spawner, spawned, request), "the tree to end", WITHIN)
        assert self.lines("finished") == []
        spawner.end(spawned.handle, graceful=False)

    def test_a_graceful_end_lets_the_agent_finish_its_task(self, spawner: Spawner) -> None:
        request = self.new()
        spawned = self.started(spawner, request)
        spawner.end(spawned.handle, graceful=True)
        assert spawner.status([spawned.handle]) == {spawned.handle: "running"}
        self.release()
        until(lambda: self.is_gone(spawner, spawned, request), "the agent to end")
        assert self.lines("finished") == [request.spawn]

    def test_killing_the_process_group_leaves_nothing(self, spawner: Spawner) -> None:
        request = self.new()
        spawned = self.started(spawner, request)
        os.killpg(os.getpgid(self.pid_of(spawned.handle)), signal.SIGKILL)
        until(lambda: self.is_gone(spawner, spawned, request), "the tree to end", WITHIN)

    # --- a spawner that hangs ---

    def test_a_call_without_an_answer_is_unknown_and_bounded(self, spawner: Spawner) -> None:
        if not self.can_hang:
            return
        request = self.new()
        self.freeze()
        began = time.monotonic()
        with pytest.raises(SpawnUnknown):
            spawner.spawn(request, SHORT)
        assert time.monotonic() - began < SHORT + 5
        assert spawner.find([request.spawn]) == {}, "whether it runs is not known"
        self.thaw()
        with suppress(SpawnUnknown, SpawnFailed):
            spawner.spawn(request, TIMEOUT)
        assert len([line for line in self.lines("starts") if line.startswith(request.spawn)]) <= 1
