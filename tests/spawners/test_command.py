"""Agents by a command: as the command itself, and by one that prints the handle of an agent elsewhere."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from tenure.core.errors import InvalidInput
from tenure.processes.detached import process_id
from tenure.spawners.children import Children
from tenure.spawners.command import CommandSpawner, Templates, filled
from tenure.spawners.port import Spawner, SpawnFailed, SpawnRequest, SpawnUnknown
from tenure.testing.suites.spawner import SpawnerSuite, until
from tests.servers.processes import end_with_us
from tests.spawners import machine
from tests.spawners.requests import REQUEST

PYTHON = (sys.executable, "-I", "-c")


class CommandSuite(SpawnerSuite):
    def begin(self, tmp_path: Path) -> None:
        self.state = tmp_path / "state"

    def spawner_of(self, templates: Templates) -> CommandSpawner:
        environ = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), "TENURE_KEY": "the server's"}
        return CommandSpawner(templates, Children(str(self.state)), folder=str(self.folder), environ=environ)

    def request(self, spawn: str) -> SpawnRequest:
        return replace(REQUEST, spawn=spawn, program=self.agent[0])

    def unknown_program(self, request: SpawnRequest) -> SpawnRequest | None:
        return replace(request, program="/nowhere/agent")

    def files(self) -> list[Path]:
        return list(self.state.glob("**/*.json"))


class TestProcess(CommandSuite):
    can_hang = False  # the command is started, and not waited for

    def open_spawner(self) -> Spawner:
        return self.spawner_of(Templates(("{program}", *self.agent[1:])))

    def pid_of(self, handle: str) -> int:
        found = process_id(handle)
        assert found is not None
        return found.pid


class TestPrintedHandle(CommandSuite):
    def begin(self, tmp_path: Path) -> None:
        super().begin(tmp_path)
        self.socket = str(tmp_path / "machine")
        self.daemon = subprocess.Popen(
            [sys.executable, machine.__file__, "daemon", self.socket],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            preexec_fn=end_with_us(),  # noqa: PLW1509 - it calls the kernel and nothing of Python's
        )
        until(self._listens, "the machine")

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as connection, suppress(OSError):
            connection.connect(self.socket)
            return True
        return False

    def stop(self) -> None:
        self.daemon.kill()
        self.daemon.wait()

    def open_spawner(self) -> Spawner:
        client = (sys.executable, machine.__file__)
        return self.spawner_of(
            Templates(
                (*client, "start", self.socket, "{program}", *self.agent[1:]),
                (*client, "status", self.socket, "{handle}"),
                (*client, "end", self.socket, "{handle}", "{graceful}"),
            )
        )

    def pid_of(self, handle: str) -> int:
        return int(handle)

    def freeze(self) -> None:
        self.daemon.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.daemon.send_signal(signal.SIGCONT)


# --- templates ---


def test_placeholders_are_replaced_in_each_word_and_never_split() -> None:
    words = filled(("ssh", "host", "{agent}:{label}", "{x"), {"agent": "a b; rm", "label": "--option 'c'"})
    assert words == ["ssh", "host", "a b; rm:--option 'c'", "{x"]


def test_a_value_for_the_shell_of_another_machine_is_quoted() -> None:
    words = filled(("ssh", "host", "cd {project:sh} && run {key:sh} {x:sh"), {"project": "a;b $(c)", "key": "B-003"})
    assert words == ["ssh", "host", "cd 'a;b $(c)' && run B-003 {x:sh"]


def test_a_value_is_not_searched_for_placeholders(tmp_path: Path) -> None:
    out = tmp_path / "out"
    code = f"import sys; open({str(out)!r}, 'w').write(sys.argv[1])"
    spawner = _spawner(tmp_path, Templates((*PYTHON, code, "{label}")))
    spawner.spawn(replace(REQUEST, label="{url} {agent}"), 10.0)
    assert until(lambda: out.exists() and out.read_text(), "the command") == "{url} {agent}"


@pytest.mark.parametrize(
    ("templates", "said"),
    [
        (Templates(("docker", "run", "{taks}")), "start: there is no placeholder {taks}"),
        (Templates(("docker", "-e", "KEY={token}")), "start: there is no placeholder {token}"),
        (Templates(("a",), ("b", "{spawn}"), ("c",)), "status: there is no placeholder {spawn}"),
    ],
)
def test_a_placeholder_that_does_not_exist_is_refused(tmp_path: Path, templates: Templates, said: str) -> None:
    with pytest.raises(InvalidInput) as error:
        _spawner(tmp_path, templates)
    assert error.value.message == said


def test_a_command_that_fails_has_started_nothing_and_may_be_tried_again(tmp_path: Path) -> None:
    spawner = _spawner(tmp_path, Templates((*PYTHON, "raise SystemExit(3)"), ("true",), ("true",)))
    for _ in range(2):
        with pytest.raises(SpawnFailed, match="ended with 3"):
            spawner.spawn(REQUEST, 10.0)


def test_a_command_without_a_handle_is_unknown_and_not_run_again(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    code = f"open({str(runs)!r}, 'a').write('x')"
    spawner = _spawner(tmp_path, Templates((*PYTHON, code), ("true",), ("true",)))
    for _ in range(2):
        with pytest.raises(SpawnUnknown):
            spawner.spawn(REQUEST, 10.0)
    assert runs.read_text() == "x"


@pytest.mark.parametrize(("code", "state"), [(0, "running"), (1, "ended"), (2, "unknown"), (127, "unknown")])
def test_the_exit_code_of_status_is_the_state(tmp_path: Path, code: int, state: str) -> None:
    spawner = _spawner(tmp_path, Templates(("true",), (*PYTHON, f"raise SystemExit({code})"), ("true",)))
    assert spawner.status(["h"]) == {"h": state}


def test_an_end_that_fails_is_unknown_unless_the_agent_has_ended(tmp_path: Path) -> None:
    for code, is_ended in ((0, False), (1, True)):
        status = (*PYTHON, f"raise SystemExit({code})")
        spawner = _spawner(tmp_path, Templates(("true",), status, (*PYTHON, "raise SystemExit(5)")))
        if is_ended:
            spawner.end("h", graceful=False)
        else:
            with pytest.raises(SpawnUnknown, match="ended with 5"):
                spawner.end("h", graceful=False)


def _spawner(folder: Path, templates: Templates) -> CommandSpawner:
    return CommandSpawner(
        templates, Children(str(folder / "state")), folder=str(folder), environ={"PATH": os.environ["PATH"]}
    )
