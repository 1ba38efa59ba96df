"""A process that leads sends events on: real `serve` and `daemon` processes, a real NATS server, real receivers."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tenure import Client
from tenure.core import commands as c
from tenure.core import queries as q
from tests.cli.conftest import Tenure
from tests.servers.fixtures import running
from tests.servers.nats import NatsServer
from tests.sinks.receivers import Receiver
from tests.sinks.test_nats import stored

PATIENCE = 30.0
APPEND = "import sys; open({path!r}, 'a').write(sys.stdin.read() + '\\n')"


def until(is_so: Callable[[], object], what: str = "") -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, what or "it did not happen"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def nats() -> Iterator[NatsServer]:
    server = NatsServer(password="s3cret-nats")
    with running(server):
        yield server


def configure(tenure: Tenure, text: str, *, mode: int = 0o600) -> Path:
    path = tenure.folder / ".tenure" / "config.toml"
    path.write_text(text)
    path.chmod(mode)
    return path


@contextmanager
def running_verb(tenure: Tenure, *words: object) -> Iterator[subprocess.Popen[str]]:
    started = tenure.start(*words)
    try:
        yield started
    finally:
        started.send_signal(signal.SIGTERM)
        _, said = started.communicate(timeout=60)
        assert "Traceback" not in said, said


def client_of(tenure: Tenure) -> Client:
    return Client(
        str(tenure.folder / ".tenure" / "tenure.db"), "default", agent="ann", allow_http=True, networks=["127.0.0.0/8"]
    )


def finish(client: Client, title: str) -> str:
    """Add, claim and complete a task; its key."""
    key = str(client.add(title).task["key"])  # type: ignore[index]
    receipt = client.claim(key).receipt
    assert client.submit(receipt, "done").ok  # type: ignore[arg-type]
    return key


def bury(client: Client) -> None:
    key = str(client.do(c.Add(project="default", task=c.NewTask(title="bad", max_attempts=1))).task["key"])  # type: ignore[index]
    receipt = client.claim(key).receipt
    client.do(c.Fail(project="default", receipt=receipt or "", error_class="task", message="it broke"))


def completed(messages: list[dict[str, object]]) -> list[str]:
    return [str(m["payload"]["key"]) for m in messages if m["kind"] == "evt.task.completed"]  # type: ignore[index]


def has_row(client: Client, name: str) -> bool:
    return name in {row["name"] for row in client.query(q.Relays())}


@pytest.mark.parametrize("words", [("serve", "--port", 0), ("daemon",)], ids=["serve", "daemon"])
def test_a_process_that_leads_relays_to_nats_a_webhook_hooks_and_people(
    tenure: Tenure, nats: NatsServer, words: tuple[object, ...]
) -> None:
    hooked = tenure.folder / "hooked"
    command = [sys.executable, "-c", APPEND.format(path=str(hooked))]
    with Receiver() as webhook, Receiver() as slack, client_of(tenure) as client:
        configure(
            tenure,
            f"""
            [sinks.broker]
            url = "{nats.url}"
            prefix = "{words[0]}"
            [hooks]
            on_task_completed = {json.dumps(command)}
            [notify.team]
            url = "http://127.0.0.1:{slack.port}/services/SECRET"
            [webhooks]
            allow_http = true
            networks = "127.0.0.0/8"
            """,
        )
        address = f"http://127.0.0.1:{webhook.port}/hook"
        client.do(c.SetWebhook(project="default", webhook="ci", url=address, kinds=("task.completed",)))
        with running_verb(tenure, *words):
            until(lambda: all(has_row(client, name) for name in ("broker", "hooks", "notices")), "rows of the readers")
            keys = [finish(client, f"work {number}") for number in range(3)]
            bury(client)
            bury(client)
            until(lambda: len(webhook.requests) == 3, "the webhook's deliveries")
            until(lambda: hooked.exists() and len(hooked.read_text().splitlines()) == 3, "the hooks")
            until(lambda: slack.requests, "the notice")
            stream = f"{str(words[0]).upper()}_EVT"
            bodies: list[dict[str, object]] = []

            def arrived() -> bool:
                bodies[:] = [json.loads(m.body) for m in stored(nats.url, stream, str(words[0]))]
                return completed(bodies) == keys

            until(arrived, "the messages in NATS")
        assert sorted(completed([json.loads(request.body) for request in webhook.requests])) == keys
        assert sorted(completed([json.loads(line) for line in hooked.read_text().splitlines()])) == keys
        assert len(slack.requests) == 1
        assert "is a dead letter" in json.loads(slack.requests[0].body)["text"]
        ids = [body["message_id"] for body in bodies]
        assert len(ids) == len(set(ids))


def test_a_run_relays_while_it_leads_also_what_happens_at_its_end(tenure: Tenure, nats: NatsServer) -> None:
    hooked = tenure.folder / "hooked"
    with client_of(tenure) as client:
        text = f'[sinks.broker]\nurl = "{nats.url}"\nprefix = "run"\nkinds = ["task.*"]\n'
        configure(tenure, f'{text}[hooks]\non_task_completed = ["touch", "{hooked}"]\n')
        with running_verb(tenure, "daemon"):
            until(lambda: has_row(client, "broker") and has_row(client, "hooks"))
        client.add("work")
        said = tenure.process("run", "--once", "--agent", f"{sys.executable} -c print(1)")
        assert said.code == 0, said.err
        assert hooked.exists()
        assert "evt.task.completed" in [json.loads(m.body)["kind"] for m in stored(nats.url, "RUN_EVT", "run")]


def test_a_sink_that_hangs_delays_neither_claims_nor_leases_nor_the_stop(tenure: Tenure) -> None:
    """It accepts connections and never answers. Another sink's messages and the sweeps go on."""
    hanging = socket.create_server(("127.0.0.1", 0))
    with hanging, Receiver() as webhook, client_of(tenure) as client:
        configure(
            tenure,
            f"""
            [sinks.hanging]
            url = "nats://127.0.0.1:{hanging.getsockname()[1]}"
            [webhooks]
            allow_http = true
            networks = "127.0.0.0/8"
            """,
        )
        address = f"http://127.0.0.1:{webhook.port}/hook"
        client.do(c.SetWebhook(project="default", webhook="ci", url=address, kinds=("task.lease_expired",)))
        with running_verb(tenure, "daemon", "--every", "1") as daemon:
            until(lambda: has_row(client, "hanging"))
            key = str(client.add("slow").task["key"])  # type: ignore[index]
            claimed = client.do(c.ClaimTask(project="default", task=key, agent="ann", session="s", lease=1.0))
            assert claimed.outcome == "GRANTED"
            until(lambda: webhook.requests, "the lease expired while the sink hung, and a webhook says so")
            assert finish(client, "other")
            row = next(row for row in client.query(q.Relays()) if row["name"] == "hanging")
            assert row["sent"] == 0
            daemon.send_signal(signal.SIGTERM)
            assert daemon.wait(20) == 0


def test_nothing_of_an_untrusted_file_is_sent_or_run(tenure: Tenure) -> None:
    marker = tenure.folder / "ran"
    (tenure.folder / "tenure.toml").write_text(f'[hooks]\non_task_completed = ["touch", "{marker}"]\n')
    with client_of(tenure) as client, running_verb(tenure, "daemon") as daemon:
        assert daemon.stderr is not None
        assert "you have not allowed it yet" in daemon.stderr.readline()
        finish(client, "work")
        assert not has_row(client, "hooks")
    assert not marker.exists()
    assert "`tenure trust`" in tenure("status").out
    assert tenure("trust", "-y").code == 0
    assert "hooks wait" in tenure("status").out
    with client_of(tenure) as client, running_verb(tenure, "daemon"):
        until(lambda: has_row(client, "hooks"))
        finish(client, "more")
        until(marker.exists)
        assert "hooks wait" not in tenure("status").out


def test_a_process_does_not_start_with_a_bad_sink(tenure: Tenure) -> None:
    configure(tenure, '[sinks.broker]\nurl = "gopher://host"\n')
    said = tenure.process("daemon")
    assert said.code != 0
    assert "sinks.broker: no sink has the scheme 'gopher'" in said.err


def test_triggers_fire_on_changed_files(tenure: Tenure) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tenure.folder, check=True)
    (tenure.folder / ".gitignore").write_text("*.log\n")
    with client_of(tenure) as client, running_verb(tenure, "daemon"):
        template = c.Template(tasks=(c.NewTask(title="look at it"),))
        client.do(c.SetTrigger(project="default", trigger="files", on="source.files_changed", template=template))
        number = 0

        def fired() -> bool:
            nonlocal number
            number += 1
            (tenure.folder / "noise.log").write_text(str(number))
            (tenure.folder / "code.py").write_text(f"x = {number}\n" * number)
            return any(task["title"] == "look at it" for task in client.tasks())

        until(fired)
        events = client.log(kind="source.files_changed")
        assert {path for event in events for path in event["details"]["paths"]} <= {"code.py", ".gitignore"}


def test_the_server_shows_its_sinks_in_metrics_and_health(tenure: Tenure, nats: NatsServer) -> None:
    configure(tenure, f'[sinks.broker]\nurl = "{nats.url}"\nprefix = "shown"\n[serve]\nauth = "open"\n')
    with running_verb(tenure, "serve", "--port", 0) as serving, client_of(tenure) as client:
        assert serving.stdout is not None
        url = serving.stdout.readline().split()[-1]
        until(lambda: has_row(client, "broker"))
        finish(client, "work")

        def page(path: str) -> str:
            with urllib.request.urlopen(url + path) as answer:
                return str(answer.read().decode())

        def sent() -> bool:
            found = re.search(r'tenure_relay_sent_total\{sink="broker"\} (\S+)', page("/metrics"))
            return found is not None and float(found[1]) > 0

        until(sent)
        assert 'tenure_relay_lag_events{sink="broker",tenant="local"}' in page("/metrics")
        assert 'tenure_consumer_lag{sink="broker"} 0.0' in page("/metrics")
        (sink,) = json.loads(page("/health/coordinator"))["sinks"]
        assert sink["name"] == "broker"
        assert "url" not in sink
