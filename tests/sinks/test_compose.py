"""The compose file of brokers, without Docker: its commands start the brokers, its script serves and sends to each."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tenure.testing.suites.spawner import until
from tests.servers import nats, processes, valkey
from tests.servers.rabbitmq import RabbitServer

pytestmark = pytest.mark.nightly
COMPOSE = Path(__file__).parents[2] / "deploy" / "compose.messaging.yml"
SINKS = {"nats", "rabbitmq", "valkey"}


@pytest.fixture
def services() -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe").load(COMPOSE.read_text())["services"]
    return found


@pytest.fixture
def started(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., None]:
    """Starts a command in the background; it ends with the test."""

    def start(words: list[str], port: int, **environ: str) -> None:
        log = tmp_path / f"log-{port}"
        with log.open("wb") as out:
            process = subprocess.Popen(words, cwd=tmp_path, env={**os.environ, **environ}, stdout=out, stderr=out)
        request.addfinalizer(lambda: processes.end(process, signal.SIGTERM))
        processes.wait_until(lambda: listens(port), process, log)

    return start


def listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def test_what_compose_starts_sends_a_task_to_every_broker(
    services: dict[str, Any], started: Callable[..., None], tmp_path: Path
) -> None:
    ports = {name: processes.free_port() for name in ("nats", "http", "valkey", "serve")}
    data = {name: tmp_path / name for name in ("nats", "valkey", "work")}
    for folder in data.values():
        folder.mkdir()
    words = [
        w.replace("/data", str(data["nats"])).replace("8222", str(ports["http"])) for w in services["nats"]["command"]
    ]
    started([str(nats.program()), *words, "--port", str(ports["nats"])], ports["nats"])
    words = [*services["valkey"]["command"][1:], "--port", str(ports["valkey"]), "--dir", str(data["valkey"])]
    started([str(valkey.program(Path(sys.executable))), *words], ports["valkey"])
    with RabbitServer() as rabbit:
        (script,) = services["serve"]["command"]
        script = script.replace("nats:4222", f"127.0.0.1:{ports['nats']}")
        script = script.replace("valkey:6379", f"127.0.0.1:{ports['valkey']}")
        script = re.sub(r"amqp://[^\"]+", rabbit.url, script)
        environ = {
            "HOME": str(tmp_path), "TENURE_STATE": str(tmp_path / "state"), "TENURE_SERVE_PORT": str(ports["serve"]),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **services["serve"]["environment"],
        }  # fmt: skip
        shell = [*services["serve"]["entrypoint"], f"cd {data['work']}\n{script}"]
        started(shell, ports["serve"], **environ)

        def said(*verb: str) -> Any:
            asked = [sys.executable, "-P", "-m", "tenure", *verb, "--json"]
            done = subprocess.run(
                asked, cwd=data["work"], env={**os.environ, **environ}, capture_output=True, text=True, check=True
            )
            return json.loads(done.stdout)

        def sent() -> set[str]:
            return {sink["name"] for sink in said("relay", "list") if sink["sent"]}

        until(lambda: {sink["name"] for sink in said("relay", "list")} == SINKS, "the three sinks", 30)
        said("add", "a first task")
        until(lambda: sent() == SINKS, "the task to be sent to each", 30)
