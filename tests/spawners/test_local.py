"""Agents on this machine: real `tenure run` processes on a real store."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from tenure.agents.runner.clis import KNOWN
from tenure.client import Client
from tenure.processes.detached import process_id
from tenure.spawners.children import Child, Children
from tenure.spawners.local import LocalSpawner
from tenure.spawners.port import Spawner, SpawnFailed
from tenure.spawners.programs import AGENTS, Program, Programs
from tenure.testing.suites.spawner import processes_of, until
from tests.spawners.on_a_store import OnAStore
from tests.spawners.requests import REQUEST


class TestLocal(OnAStore):
    can_hang = False  # the start of a process on this machine does not hang

    def programs(self, known: tuple[str, ...]) -> Programs:
        bot = Program(shlex.join(self.agent), str(self.folder), ("--grace", "1"))
        return Programs({"bot": bot}, known, str(self.folder), self.environ())

    def open_spawner(self) -> Spawner:
        return LocalSpawner(self.programs(AGENTS), Children(str(self.state / "spawned" / "local")))

    def pid_of(self, handle: str) -> int:
        found = process_id(handle)
        assert found is not None
        return found.pid

    def test_the_agent_completes_its_task(self, spawner: Spawner) -> None:
        request = self.new()
        spawned = self.started(spawner, request)
        self.release()
        until(lambda: self.is_gone(spawner, spawned, request), "the agent to end")
        with Client(self.store, "shop") as client:
            task = client.show(request.key)
            (claim,) = client.history(request.key)
        assert (task["state"], claim["agent"], claim["result_accepted"]) == ("completed", request.agent, True)

    def test_an_ended_agent_gives_its_task_back(self, spawner: Spawner) -> None:
        request = self.new()
        spawned = self.started(spawner, request)
        spawner.end(spawned.handle, graceful=False)
        until(lambda: self.is_gone(spawner, spawned, request), "the agent to end")
        with Client(self.store, "shop") as client:
            assert client.show(request.key)["state"] == "ready"
            (claim,) = client.history(request.key)
        assert claim["release_reason"] == "STOPPED"

    def test_a_spawner_that_died_before_its_order_has_started_nothing(self, spawner: Spawner) -> None:
        """The file is there, the process is not: the spawn has ended, and is not started again."""
        request = self.new()
        children = Children(str(self.state / "spawned" / "local"))
        children.record(Child(request.spawn, pid=2**22 - 1, start="1@x", host=os.uname().nodename))
        spawned = spawner.spawn(request, 10.0)
        assert spawner.status([spawned.handle]) == {spawned.handle: "ended"}
        assert processes_of(request.spawn) == []

    def test_the_file_has_the_spawn_and_its_process_and_nothing_else(self, spawner: Spawner) -> None:
        request = self.new()
        spawned = self.started(spawner, request)
        (file,) = self.files()
        found = process_id(spawned.handle)
        assert found is not None
        kept = msgspec.json.decode(file.read_bytes())
        assert {name: value for name, value in kept.items() if value} == {
            "spawn": request.spawn, "pid": found.pid, "start": found.start, "host": found.host
        }  # fmt: skip


def test_a_process_of_another_host_is_unknown_and_one_of_another_boot_has_ended() -> None:
    spawner = LocalSpawner(Programs({}, (), "/", {}), Children("/nowhere"))
    mine = os.uname().nodename
    handles = [f"{os.getpid()}:1@other-boot:{mine}", f"{os.getpid()}:1@x:another-host"]
    assert list(spawner.status(handles).values()) == ["ended", "unknown"]


def test_two_folders_have_two_homes(tmp_path: Path) -> None:
    first, second = (Children(str(tmp_path / name)) for name in ("a", "b"))
    assert first.home() == first.home() != second.home()
    assert list(first.all()) == []
    assert Children("/dev/null/none").home() == ""


def test_agents_that_need_no_table_are_those_that_the_runner_knows() -> None:
    assert set(AGENTS) == set(KNOWN)


def test_the_command_of_a_child_names_its_spawn_task_and_agent() -> None:
    programs = Programs({"bot": Program("claude --effort high", "/repo", ("--land",))}, AGENTS, "/here", {})
    words = programs.command(REQUEST)
    assert words[words.index("run") :] == [
        "run", "--once", "--spawn=s-1", "--task=B-003", "--name=coders-1", "--agent=claude --effort high",
        "--model=opus", "--cap=python", "--land",
    ]  # fmt: skip


def test_no_value_of_a_spawn_is_an_option_of_its_command() -> None:
    odd = replace(REQUEST, spawn="--land", key="--once", agent="-x", models=("--sign",), capabilities=("--bwrap",))
    words = Programs({}, AGENTS, "/here", {}).command(replace(odd, program="claude"))
    assert not {"--land", "-x", "--sign", "--bwrap"}.intersection(words)
    with pytest.raises(SpawnFailed, match="may not have the character NUL"):
        Programs({}, AGENTS, "/here", {}).command(replace(REQUEST, program="claude", agent="a\0b"))


def test_a_child_gets_neither_the_identity_nor_the_access_of_the_server() -> None:
    given = {
        "PATH": "/bin", "TENURE_KEY": "server", "TENURE_URL": "server", "TENURE_AGENT": "x", "TENURE_SESSION": "x",
        "TENURE_MASTER_KEY": "secret", "TENURE_SERVE_JWT_SECRET": "x", "TENURE_GATEWAY_SECRET": "x",
        "TENURE_STATE": "/state", "TENURE_RUN_TIMEOUT": "9",
    }  # fmt: skip
    env = Programs({}, (), "/", given).environment(REQUEST)
    assert env == {
        "PATH": "/bin", "TENURE_STATE": "/state", "TENURE_RUN_TIMEOUT": "9", "TENURE_URL": REQUEST.url,
        "TENURE_KEY": REQUEST.token, "TENURE_PROJECT": "shop", "TENURE_SPAWN": "s-1",
    }  # fmt: skip
