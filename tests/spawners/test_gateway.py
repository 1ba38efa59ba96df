"""A gateway on another "machine" (its own folder, home and state), and its client."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from standardwebhooks import Webhook

from tenure.core import signatures
from tenure.core.errors import InvalidInput
from tenure.spawners import gateway_wire as wire
from tenure.spawners.gateway import GatewaySpawner
from tenure.spawners.port import Spawned, Spawner, SpawnFailed, SpawnUnknown
from tenure.testing.suites.spawner import processes_of, until
from tests.servers.gateway import SECRET, GatewayServer
from tests.spawners.on_a_store import OnAStore
from tests.spawners.requests import REQUEST

KEY = signatures.key_of(signatures.STANDARD, SECRET)


class TestGateway(OnAStore):
    def begin(self, tmp_path: Path) -> None:
        super().begin(tmp_path)
        self.gateway = GatewayServer({"bot": self.agent}, options=("--grace", "1"))
        self.gateway.start()

    def stop(self) -> None:
        self.gateway.stop()

    def open_spawner(self) -> Spawner:
        return GatewaySpawner(self.gateway.url, KEY)

    def pid_of(self, handle: str) -> int:
        return int(msgspec.json.decode((self.gateway.children / f"{handle}.json").read_bytes())["pid"])

    def files(self) -> list[Path]:
        return list(self.gateway.children.glob("*.json"))

    def freeze(self) -> None:
        assert self.gateway.process is not None
        self.gateway.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.gateway.thaw()

    # --- the gateway ends ---

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
    def test_agents_outlive_the_gateway_and_the_next_one_knows_them(self, spawner: Spawner, number: int) -> None:
        request = self.new()
        spawned = self.started(spawner, request)
        assert self.gateway.process is not None
        self.gateway.process.send_signal(number)
        self.gateway.process.wait(20)
        assert spawner.status([spawned.handle]) == {spawned.handle: "unknown"}
        with pytest.raises(SpawnUnknown):
            spawner.end(spawned.handle, graceful=False)
        assert processes_of(request.spawn)
        self.gateway.start()
        assert spawner.status([spawned.handle]) == {spawned.handle: "running"}
        assert spawner.spawn(request, 10.0) == spawned
        spawner.end(spawned.handle, graceful=False)
        until(lambda: self.is_gone(spawner, spawned, request), "the agent to end")

    def test_a_gateway_killed_with_its_children_reports_them_as_lost(self, spawner: Spawner) -> None:
        requests = [self.new(), self.new()]
        spawned = [self.started(spawner, request) for request in requests]
        assert self.gateway.kill_with_children() >= 4
        until(lambda: not any(processes_of(request.spawn) for request in requests), "every process to end")
        self.gateway.start()
        handles = [one.handle for one in spawned]
        assert spawner.status(handles) == dict.fromkeys(handles, "ended")
        body = msgspec.json.encode({"action": "status", "sessions": handles})
        assert self.ask("POST", wire.STATUS, body) == (200, {"sessions": dict.fromkeys(handles, "lost")})
        lost = [json.loads(line) for line in self.gateway.log.read_text().splitlines() if '"lost"' in line]
        assert {line["spawn"] for line in lost} == {request.spawn for request in requests}
        assert spawner.spawn(requests[0], 10.0) == spawned[0], "it is not started again"
        assert processes_of(requests[0].spawn) == []

    def test_a_stop_reports_how_many_agents_run_on(self, spawner: Spawner) -> None:
        self.started(spawner, self.new())
        assert self.gateway.end() == 0
        assert json.loads(self.gateway.log.read_text().splitlines()[-1])["running"] == 1

    # --- what is refused ---

    def ask(
        self, method: str, path: str, body: bytes, *, key: bytes = KEY, at: float | None = None, **headers: str
    ) -> tuple[int, dict[str, object]]:
        now = round((time.time() if at is None else at) * 1e6)
        signed = signatures.standard_headers((key,), "id-1", body, now) | headers
        connection = http.client.HTTPConnection("127.0.0.1", self.gateway.port, timeout=20)
        connection.request(method, path, body, {k.replace("_", "-"): v for k, v in signed.items() if v})
        with closing(connection), connection.getresponse() as answer:
            return answer.status, json.loads(answer.read() or b"{}")

    def test_a_request_without_a_valid_signature_starts_nothing(self, spawner: Spawner) -> None:
        request = self.new()
        body = wire.spawn_body(request, "2026-11-17T10:00:00Z")
        for status, _ in (
            self.ask("POST", wire.SPAWN, body, key=b"x" * 32),
            self.ask("POST", wire.SPAWN, body, at=time.time() - 301),
            self.ask("POST", wire.SPAWN, body, at=time.time() + 301),
            self.ask("POST", wire.SPAWN, body, **{"webhook-signature": ""}),
            self.ask("POST", wire.SPAWN, body, **{"webhook-id": "another"}),
        ):
            assert status == 401
        assert self.files() == []

    def test_a_recorded_request_cannot_be_replayed_as_another(self, spawner: Spawner) -> None:
        request = self.new()
        spawned = self.started(spawner, request)
        status = msgspec.json.encode({"action": "status", "sessions": [spawned.handle]})
        assert self.ask("DELETE", wire.AGENTS + spawned.handle, status)[0] == 400
        delete = msgspec.json.encode({"action": "delete", "session": spawned.handle, "graceful": False})
        assert self.ask("DELETE", wire.AGENTS + "another", delete)[0] == 400
        assert self.ask("POST", wire.SPAWN, delete)[0] == 400
        assert spawner.status([spawned.handle]) == {spawned.handle: "running"}

    def test_a_program_that_the_gateway_does_not_name_is_refused_with_those_that_it_does(
        self, spawner: Spawner
    ) -> None:
        request = replace(self.new(), program="claude")
        with pytest.raises(SpawnFailed, match=r"refused the spawn \(422\): no program 'claude' is configured here"):
            spawner.spawn(request, 10.0)
        status, said = self.ask("POST", wire.SPAWN, wire.spawn_body(request, "x"))
        assert status == 422
        assert said["error"]["hint"] == "[programs.NAME] names one; here: bot"  # type: ignore[index]

    def test_an_idempotency_key_that_is_not_the_spawn_is_refused(self, spawner: Spawner) -> None:
        body = wire.spawn_body(self.new(), "x")
        assert self.ask("POST", wire.SPAWN, body, **{"Idempotency-Key": "another"})[0] == 400
        assert self.files() == []

    @pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"\xff", b'{"spawn": 1}', b'{"spawn": "s"'])
    def test_a_body_that_is_not_a_spawn_is_refused(self, spawner: Spawner, body: bytes) -> None:
        status, said = self.ask("POST", wire.SPAWN, body)
        assert status == 400
        assert "not a valid spawn" in str(said)

    def test_a_body_over_its_limit_is_refused(self, spawner: Spawner) -> None:
        assert self.ask("POST", wire.SPAWN, b"x" * (wire.LARGEST_BODY + 1))[0] == 413

    def test_deleting_what_it_does_not_have_changes_nothing(self, spawner: Spawner) -> None:
        spawner.end("s-never", graceful=False)
        assert spawner.status(["s-never"]) == {"s-never": "ended"}


def test_a_full_gateway_refuses_and_takes_the_next_when_one_has_ended(tmp_path: Path) -> None:
    words = ["sleep", "600"]
    with GatewayServer({"bot": words}, settings="size = 1") as gateway:
        spawner = GatewaySpawner(gateway.url, KEY)
        # Nothing listens at the server's URL: the runner tries to reach it, and is a process until it is ended.
        first = spawner.spawn(replace(REQUEST, spawn="s-one"), 10.0)
        with pytest.raises(SpawnFailed, match=r"gateway\.size is 1"):
            spawner.spawn(replace(REQUEST, spawn="s-two"), 10.0)
        assert gateway.spawns() == ["s-one"]
        spawner.end(first.handle, graceful=False)
        until(lambda: spawner.status([first.handle])[first.handle] == "ended", "the first to end")
        spawner.spawn(replace(REQUEST, spawn="s-two"), 10.0)


# --- the client, with gateways that are not ours ---


class Foreign:
    """A server that answers as it is told, and keeps the requests."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers, self.requests = list(answers), list[tuple[dict[str, str], bytes]]()
        self.sockets: list[socket.socket] = []
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        for answer in self.answers:
            connection, _ = self.listening.accept()
            self.sockets.append(connection)
            with connection.makefile("rb") as stream:
                stream.readline()
                headers = dict[str, str]()
                while line := stream.readline().strip().decode():
                    name, _, value = line.partition(": ")
                    headers[name.lower()] = value
                body = stream.read(int(headers["content-length"]))
            self.requests.append((headers, body))
            if answer is not None:
                connection.sendall(answer)
                connection.close()

    def close(self) -> None:
        for one in (self.listening, *self.sockets):
            one.close()


def answered(status: int, body: bytes) -> bytes:
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)


@pytest.fixture
def foreign() -> Iterator[list[Foreign]]:
    made: list[Foreign] = []
    yield made
    for one in made:
        one.close()


@pytest.mark.parametrize("body", [b'{"session": "abc"}', b'{"session": {"sessionKey": "abc", "x": 1}, "y": 2}'])
def test_both_forms_of_a_session_are_read(foreign: list[Foreign], body: bytes) -> None:
    foreign.append(Foreign(answered(200, body)))
    spawned = GatewaySpawner(foreign[0].url, KEY).spawn(REQUEST, 5.0)
    assert (spawned.handle, spawned.session) == ("abc", "abc")


@pytest.mark.parametrize(
    ("given", "expected"),
    [({"context": {"goal": 7}, "prompt": "x"}, {"goal": 7}), ({"goal": 7}, {"goal": 7}), (None, None)],
)
def test_the_input_context_is_what_the_task_has_as_context(given: object, expected: object) -> None:
    context = msgspec.structs.replace(REQUEST.context, input=given)
    body = json.loads(wire.spawn_body(msgspec.structs.replace(REQUEST, context=context), "2027-01-15T08:02:00.000000Z"))
    assert (body["context"]["inputContext"], body["context"]["input"]) == (expected, given)


def test_a_spawn_has_our_names_and_the_others_and_is_signed_as_a_standard_webhook(foreign: list[Foreign]) -> None:
    foreign.append(Foreign(answered(201, b'{"session": "abc"}')))
    GatewaySpawner(foreign[0].url, KEY, now=lambda: 1_800_000_000.0).spawn(REQUEST, 5.0)
    ((headers, body),) = foreign[0].requests
    assert headers["idempotency-key"] == headers["webhook-id"] == "s-1"
    said = json.loads(body)
    assert said.pop("context") == {
        "title": "Add the cart", "description": "With tests", "input": {"a": 1}, "checkpoint": {"step": 2},
        "taskTitle": "Add the cart", "taskDescription": "With tests", "inputContext": {"a": 1},
        "checkpointData": {"step": 2},
    }  # fmt: skip
    assert said == {
        "spawn": "s-1", "tenant": "acme", "workspaceId": "acme", "project": "shop", "projectId": "shop",
        "pool": "coders",
        "agent": "coders-1", "agentId": "coders-1", "task": "t-1", "taskId": "t-1", "key": "B-003",
        "label": "task:B-003:Add the cart", "offer_seconds": 120.0, "offer_until": "2027-01-15T08:02:00.000000Z",
        "url": "http://127.0.0.1:1", "program": "bot", "token": REQUEST.token, "models": ["opus"],
        "capabilities": ["python"],
    }  # fmt: skip
    signed = signatures.standard_headers((KEY,), "s-1", body, round(time.time() * 1e6))
    assert Webhook(SECRET).verify(body.decode(), signed)
    assert signatures.verified(signatures.STANDARD, (KEY,), headers, body, 1_800_000_000_000_000)


def test_what_the_client_sends_is_what_the_gateway_reads() -> None:
    assert wire.spawn_request(wire.spawn_body(REQUEST, "x")) == REQUEST


def test_a_context_that_is_too_large_is_cut_to_what_the_task_is_about() -> None:
    large = replace(REQUEST, context=replace(REQUEST.context, input="x" * wire.LARGEST_BODY))
    read = wire.spawn_request(wire.spawn_body(large, "x"))
    assert (read.context.title, read.context.input, read.spawn) == ("Add the cart", None, "s-1")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (answered(400, b"{}"), SpawnFailed),
        (answered(401, b'{"error": {"message": "no"}}'), SpawnFailed),
        (answered(429, b""), SpawnFailed),
        (answered(500, b""), SpawnUnknown),
        (answered(302, b""), SpawnUnknown),
        (answered(200, b"{}"), SpawnUnknown),
        (answered(200, b'{"session": ""}'), SpawnUnknown),
        (answered(200, b'{"session": {"sessionKey": 5}}'), SpawnUnknown),
        (answered(200, b"not json"), SpawnUnknown),
        (b"nonsense\r\n\r\n", SpawnUnknown),
        (b"", SpawnUnknown),
        (None, SpawnUnknown),
    ],
)
def test_an_answer_is_definite_only_where_the_gateway_refused(
    foreign: list[Foreign], answer: bytes | None, error: type[Exception]
) -> None:
    foreign.append(Foreign(answer))
    with pytest.raises(error):
        GatewaySpawner(foreign[0].url, KEY).spawn(REQUEST, 0.5 if answer is None else 5.0)


def test_a_gateway_that_cannot_be_reached_has_started_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    spawner = GatewaySpawner(f"http://127.0.0.1:{port}", KEY)
    with pytest.raises(SpawnFailed, match="cannot reach the gateway"):
        spawner.spawn(REQUEST, 5.0)
    assert spawner.status(["a"]) == {"a": "unknown"}
    assert spawner.find(["a"]) == {}
    with pytest.raises(SpawnUnknown):
        spawner.end("a", graceful=True)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'{"spawns": {"a": "x", "b": null}}', {"a": Spawned(handle="x", session="x"), "b": None}),
        (b'{"spawns": {"a": 5, "b": ""}}', {}),
        (b'{"spawns": []}', {}),
        (b"{}", {}),
        (b"nonsense", {}),
    ],
)
def test_only_a_clear_answer_says_that_there_is_no_process(
    foreign: list[Foreign], body: bytes, found: dict[str, Spawned | None]
) -> None:
    foreign += [Foreign(answered(200, body)), Foreign(answered(404, body))]
    assert GatewaySpawner(foreign[0].url, KEY).find(["a", "b"]) == found
    assert GatewaySpawner(foreign[1].url, KEY).find(["a", "b"]) == {}


@pytest.mark.parametrize("url", ["ftp://host", "http://user:word@host", "", "http://host#x"])
def test_a_url_that_is_not_valid_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        GatewaySpawner(url, KEY)


def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "http_proxy", "http://127.0.0.1:1")
    foreign = Foreign(answered(200, b'{"session": "abc"}'))
    assert GatewaySpawner(foreign.url, KEY).spawn(REQUEST, 5.0).handle == "abc"
    foreign.close()
