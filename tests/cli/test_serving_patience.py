"""`tenure serve` waits at its start for an unavailable PostgreSQL, and for nothing else."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tenure.config import read_settings
from tenure.core.errors import StoreUnavailable
from tenure.server.serve import waiting_server
from tenure.server.store_wait import LONGEST, open_with_retries
from tests.cli.conftest import Tenure
from tests.servers import processes
from tests.servers.postgres import PostgresServer


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """One that a test may stop."""
    with PostgresServer() as server:
        yield server


@contextmanager
def ended(serving: subprocess.Popen[str]) -> Iterator[None]:
    """Its parent waits for it, also where the test has failed."""
    try:
        yield
    except BaseException:
        serving.kill()
        raise


def ask(port: int, path: str, token: str | None = None) -> tuple[int, str]:
    line = HTTPConnection("127.0.0.1", port, timeout=30)
    line.request("GET", path, headers={} if token is None else {"Authorization": f"Bearer {token}"})
    answer = line.getresponse()
    text = answer.read().decode()
    line.close()
    return answer.status, text


@pytest.mark.sampled
@pytest.mark.parametrize("workers", [1, 2])
def test_a_server_that_comes_back_is_waited_for_and_the_metrics_answer_meanwhile(
    bare: Tenure, server: PostgresServer, tmp_path: Path, workers: int
) -> None:
    bare.environ["TENURE_URL"] = server.url
    assert bare.process("init").code == 0
    token = tmp_path / "token"
    token.write_text("5f" * 32)
    bare.environ |= {"TENURE_SERVE_METRICS_TOKEN": str(token), "TENURE_SERVE_AUTH": "required"}
    assert bare.process("key", "create", "mia", "--role", "viewer").code == 0
    assert server.process is not None
    processes.end(server.process)
    port = processes.free_port()
    with bare.start("serve", "--port", port, "--workers", workers) as serving, ended(serving):
        assert serving.stderr is not None
        assert serving.stdout is not None
        assert "the store is unavailable; retrying" in serving.stderr.readline()
        assert ask(port, "/health")[0] == 200
        assert ask(port, "/ready")[0] == 503
        assert '"database":"unavailable"' in ask(port, "/health/coordinator")[1]
        status, page = ask(port, "/metrics", "5f" * 32)
        assert (status, "tenure_store_up 0.0" in page, "tenure_build{" in page) == (200, True, True)
        assert [ask(port, "/metrics", sent)[0] for sent in (None, "6e" * 32)] == [401, 503]
        assert ask(port, "/api/v1/projects", "5f" * 32)[0] == 503
        server.run()
        assert serving.stdout.readline().startswith("serving ")
        warnings = iter(serving.stderr.readline, "")
        assert next(line for line in warnings if "artifacts, and results over 1 MiB, are refused" in line)
        status, page = ask(port, "/metrics", "5f" * 32)
        assert (status, "tenure_store_up 1.0" in page) == (200, True)
        assert ask(port, "/api/v1/projects", "5f" * 32)[0] == 401
        serving.send_signal(signal.SIGTERM)
        assert serving.wait(60) == 0


def test_a_signal_ends_the_waiting(bare: Tenure, server: PostgresServer) -> None:
    bare.environ["TENURE_URL"] = server.url
    assert server.process is not None
    processes.end(server.process)
    with bare.start("serve", "--port", 0) as serving:
        assert serving.stderr is not None
        assert "retrying" in serving.stderr.readline()
        serving.send_signal(signal.SIGTERM)
        assert serving.wait(60) == 0


@pytest.mark.parametrize("url", ["postgresql://tenure@127.0.0.1:1/postgres", "postgresql://tenure@no.such.invalid/x"])
def test_waiting_can_be_left_out_and_an_unknown_host_is_not_waited_for(bare: Tenure, url: str) -> None:
    words = ["--store-wait", 0] if "127" in url else []
    said = bare.process("serve", "--port", 0, *words, TENURE_URL=url)
    assert said.code != 0
    assert "retrying" not in said.err
    assert "Traceback" not in said.err


def test_a_server_that_answers_and_refuses_is_not_waited_for(bare: Tenure, postgres: PostgresServer) -> None:
    for url in (postgres.database("no-such-database"), postgres.url.replace("tenure@", "nobody@")):
        said = bare.process("serve", "--port", 0, TENURE_URL=url)
        assert said.code != 0
        assert "retrying" not in said.err
        assert "does not exist" in said.err


def test_pauses_grow_and_end_with_the_time_that_was_given() -> None:
    now, pauses, told = [0.0], [], []

    def away() -> None:
        raise StoreUnavailable("no answer")

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += seconds

    def tell(event: str, **more: object) -> None:
        told.append(more["why"])

    with pytest.raises(StoreUnavailable):
        open_with_retries(away, lambda _: True, 60.0, tell, pause=pause, monotonic=lambda: now[0])
    assert pauses[:4] == [0.5, 1.0, 2.0, 4.0]
    assert (max(pauses) <= LONGEST, sum(pauses)) == (True, 60.0)
    assert told == ["no answer"] * len(pauses)


def test_a_worker_that_waits_for_the_store_answers_at_its_own_socket_and_leaves_it_open(tmp_path: Path) -> None:
    settings = read_settings(str(tmp_path), {"TENURE_SERVE_AUTH": "open"})
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with waiting_server(settings, listening) as waiting:
            waiting.start()
            waiting.start()  # before each pause
            assert ask(port, "/health")[0] == 200
        with socket.create_connection(("127.0.0.1", port)):
            listening.accept()[0].close()


@pytest.mark.sampled
@pytest.mark.parametrize("workers", [1, 2])
def test_a_start_that_ends_by_a_wrong_setting_never_says_that_it_serves(bare: Tenure, workers: int) -> None:
    folder = bare.folder / ".tenure"
    assert bare.process("init").code == 0
    (folder / "config.toml").write_text('[spawners.far]\nkind = "gateway"\nurl = "https://build.example:7430"\n')
    (folder / "config.toml").chmod(0o600)
    said = bare.process("serve", "--port", 0, "--workers", workers)
    assert said.code != 0
    assert "spawners.far" in said.err
    assert "serving" not in said.out
