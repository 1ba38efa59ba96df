"""The pages about events, webhooks, notices, brokers and secrets: their sessions and programs run as written."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import tenure
from tenure.core.signatures import STANDARD, key_of, standard_headers
from tests.docs import sessions
from tests.servers.fixtures import running
from tests.servers.nats import NatsServer

PAGES = Path(__file__).parents[2] / "docs" / "how-to"
BROKER = "nats://127.0.0.1:4222"
PATIENCE = 30.0


class Shop:
    """A folder in which the blocks of a page run; a page's broker is ours."""

    def __init__(self, place: Path, page: str, broker: str = BROKER) -> None:
        self.folder, self.environ = place / "shop", sessions.environment(place / "home")
        self.folder.mkdir()
        self.text = (PAGES / page).read_text().replace(BROKER, broker)
        self.blocks = [sessions.steps_of(f"```console\n{block}```") for block in sessions.BLOCK.findall(self.text)]
        self.programs: list[str] = re.findall(r"```python\n(.*?)```", self.text, re.S)

    def play(self, *numbers: int) -> None:
        for number in numbers:
            sessions.play(self.blocks[number], self.folder, self.environ)

    def run(self, command: str) -> str:
        return sessions.run_raw(command, self.folder, self.environ)

    @contextmanager
    def daemon(self) -> Iterator[None]:
        words = [str(self.folder.parent / "home" / "bin" / "tenure"), "daemon"]
        with subprocess.Popen(words, cwd=self.folder, env=self.environ, stderr=subprocess.PIPE, text=True) as process:
            try:
                yield
            finally:
                process.send_signal(signal.SIGTERM)
                _, said = process.communicate(timeout=60)
                assert "Traceback" not in said, said


def until(is_so: Callable[[], Any], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.05)


@pytest.fixture(scope="module")
def nats() -> Iterator[NatsServer]:
    server = NatsServer()
    with running(server):
        yield server


def test_the_page_on_events_runs_as_written(
    tmp_path: Path, nats: NatsServer, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = Shop(tmp_path, "send-events.md", nats.url)
    shop.play(0)
    with shop.daemon():
        until(lambda: "broker" in shop.run("tenure relay list"), "no relay has begun")
        shop.play(1)
        until(lambda: '"lag_events":0' in shop.run("tenure relay list --json").replace(" ", ""), "not all was sent")
        (program,) = shop.programs
        exec(compile(program, "page", "exec"), {})
        assert "evt.task.claimed A-001-write-the-parser" in capsys.readouterr().out
        shop.play(2)
    shop.play(3)


def test_the_page_on_webhooks_runs_as_written(tmp_path: Path) -> None:
    shop = Shop(tmp_path, "send-to-a-webhook.md")
    shop.play(0, 1)
    verify, create = shop.programs
    names: dict[str, Any] = {}
    exec(compile(verify, "page", "exec"), names)
    secret, body = "whsec_" + "c2VjcmV0" * 4, b'{"kind": "evt.task.completed", "payload": {"key": "B-001"}}'
    headers = standard_headers([key_of(STANDARD, secret)], "evt_1", body, time.time_ns() // 1000)
    headers = {name.lower(): value for name, value in headers.items()}
    seen: set[str] = set()
    assert names["handle"](headers, body, secret, seen) == "evt.task.completed B-001"
    assert names["handle"](headers, body, secret, seen) is None
    with pytest.raises(Exception, match="signature"):
        names["handle"](headers, body + b" ", secret, seen)
    (shop.folder / "page.py").write_text(create)
    assert re.fullmatch(r"whsec_\S+ \['ok', 'ok'\] \[\]\n", shop.run(f"{sys.executable} page.py"))


def test_the_page_on_notices_runs_as_written(tmp_path: Path) -> None:
    shop = Shop(tmp_path, "notify-people.md")
    shop.run("tenure init")
    settings, hooks = re.findall(r"```toml\n(.*?)```", shop.text, re.S)
    config = shop.folder / ".tenure" / "config.toml"
    config.touch(mode=0o600)
    config.write_text(settings + hooks)
    (shop.folder / ".tenure" / "smtp-url").write_text("smtps://user:password@mail.example.org")
    shop.environ["SLACK_WEBHOOK"] = "https://hooks.slack.com/services/x"
    assert "no channel 'nobody'" in shop.run("tenure notify test nobody")  # all settings were read
    config.unlink()
    shop.play(0)


def test_the_page_on_secrets_runs_as_written(tmp_path: Path) -> None:
    shop = Shop(tmp_path, "keep-secrets.md")
    for session in range(5):
        shop.play(session)


def test_the_worker_on_the_page_is_driven_by_the_broker(
    tmp_path: Path, nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(tmp_path, "drive-workers-from-a-broker.md", nats.url + "/?prefix=drive")
    shop.run("tenure init")
    config = shop.folder / ".tenure" / "config.toml"
    config.touch(mode=0o600)
    config.write_text(f'[sinks.broker]\nurl = "{nats.url}/?prefix=drive"\n')
    monkeypatch.chdir(shop.folder)
    names: dict[str, Any] = {"__name__": "worker"}
    (program,) = shop.programs
    with shop.daemon():
        until(lambda: "broker" in shop.run("tenure relay list"), "no relay has begun")
        exec(compile(program, "page", "exec"), names)
        worker: tenure.Worker = names["worker"]
        thread = threading.Thread(target=worker.run)
        thread.start()
        try:
            shop.run("tenure add 'the parser' --type code")
            until(lambda: "built the parser" in shop.run("tenure show A-001 --json"), "the task was not done")
            shop.play(0)
            until(lambda: "pong: are you there?" in shop.run("tenure inbox --keep --json"), "no reply")
        finally:
            worker.stop()
            thread.join(PATIENCE)
            worker.close()


def test_every_variable_of_the_page_on_secrets_is_read() -> None:
    from tenure.sealing.master_key import VARIABLES

    text = (PAGES / "keep-secrets.md").read_text()
    assert set(re.findall(r"`(TENURE_MASTER_KEY\w*)`", text)) == set(VARIABLES)
