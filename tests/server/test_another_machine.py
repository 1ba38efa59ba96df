"""A gateway on another machine: another user, network, process table and home; TLS between the two."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.core.commands import CreateKey
from tenure.testing.suites.spawner import processes_of, until
from tests.server.test_fleet import Fleet, agent_in
from tests.servers.gateway import SECRET
from tests.servers.machine import USER, Machine, MachineGateway
from tests.servers.processes import Unavailable


class Far(Fleet):
    """A pool whose agents run on the other machine, and leave their traces there."""

    def __init__(self, folder: Path, gateway: MachineGateway) -> None:
        secret = folder / "secret"
        secret.write_text(SECRET)
        secret.chmod(0o600)
        settings = (
            f'[spawners.far]\nkind = "gateway"\nurl = "{gateway.url}"\nsecret_file = "{secret}"\n'
            f'authorities = "{gateway.authorities}"\n'
        )
        certificate = str(gateway.certificate)
        served = {
            "TENURE_SERVE_AUTH": "required", "TENURE_SERVE_HOST": "0.0.0.0", "TENURE_SERVE_TLS_CERT": certificate,
            "TENURE_SERVE_TLS_KEY": certificate,
        }  # fmt: skip
        super().__init__(folder, settings, "far", size=2, served=served)
        self.server.settings["TENURE_SERVE_URL"] = f"https://{gateway.machine.here}:{self.server.port}"
        self.client.do(CreateKey(name="ann", role="member"))
        self.folder = gateway.folder


@pytest.fixture
def machine() -> Iterator[Machine]:
    try:
        with Machine() as made:
            yield made
    except Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def gateway(machine: Machine) -> Iterator[MachineGateway]:
    made = MachineGateway(machine)
    made.allow({"bot": agent_in(made.folder)}, ("--grace", "1"))
    yield made
    made.stop()


@pytest.fixture
def far(tmp_path: Path, gateway: MachineGateway) -> Iterator[Far]:
    made = Far(tmp_path, gateway)
    yield made
    made.close()


@pytest.mark.parametrize("cuts", [1, pytest.param(3, marks=pytest.mark.nightly)])
def test_a_machine_that_loses_its_power_leaves_no_task_in_limbo_and_none_is_done_twice(
    far: Far, gateway: MachineGateway, cuts: int
) -> None:
    keys = far.add(2 * cuts + 2)
    (far.folder / "slow").touch()
    gateway.start()
    far.server.start()
    for cut in range(1, cuts + 1):
        until(lambda: len(far.starts()) == 2 * cut, "two agents on the other machine", 60)  # noqa: B023 - called here
        for _, _, spawn in far.starts()[-2:]:
            assert_elsewhere(spawn)
        assert gateway.kill_with_children() >= 4
        if cut == cuts:
            (far.folder / "slow").unlink()
        gateway.start()
    until(lambda: far.is_drained(len(keys)), "the plan", 120)
    far.accepted_once(keys)
    ends = [claim["release_reason"] for key in keys for claim in far.client.history(key)]
    assert (ends.count("EXPIRED"), ends.count("COMPLETED")) == (2 * cuts, len(keys))
    until(lambda: not far.client.spawns(state=("starting", "running")), "every spawn to end")


def assert_elsewhere(spawn: str) -> None:
    """Another user, whose processes and network are not ours."""
    pids = processes_of(spawn)
    assert pids
    for pid in pids:
        assert Path(f"/proc/{pid}").stat().st_uid == USER
        for kind in ("net", "pid", "mnt"):
            assert Path(f"/proc/{pid}/ns/{kind}").readlink() != Path(f"/proc/self/ns/{kind}").readlink()


def test_an_agent_there_is_terminated_from_here_and_cannot_read_the_store(far: Far, gateway: MachineGateway) -> None:
    (key,) = far.add(1)
    (far.folder / "slow").touch()
    gateway.start()
    far.server.start()
    until((far.folder / "kept").exists, "a checkpoint from the other machine", 60)
    read = f"import os; os.setgid({USER}); os.setuid({USER}); open({far.server.store!r})"
    denied = subprocess.run([sys.executable, "-c", read], capture_output=True, check=False)
    assert b"PermissionError" in denied.stderr
    ((_, agent, spawn),) = far.starts()
    far.client.terminate(agent, graceful=False)
    until(lambda: not processes_of(spawn), "its processes there to end", 15)
    until(lambda: far.is_drained(1), "another agent there to take over from the checkpoint", 60)
    assert [claim["agent"] for claim in far.client.history(key)] == ["coders-1", "coders-2"]
