"""Webhooks over HTTP: no key, but a signature; nothing is read, told or written without one."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

import tenure
from tenure.core import signatures
from tenure.core.commands import NewTask
from tests.servers.fixtures import running
from tests.servers.tenure import TenureServer, with_master_key

P = "/api/v1/projects/p"
BODY = json.dumps({"action": "opened", "pull_request": {"title": "Mend it"}}).encode()


class Hooked:
    """A server at which everybody has to sign in, and a webhook on it."""

    def __init__(self, folder: Path) -> None:
        self.store = str(folder / "tenure.db")
        self.client = tenure.Client(self.store, "p", create=True)
        self.client.init()
        self.key = self.client.do(tenure.core.commands.CreateKey(name="k", role="admin")).secret
        self.secret = self._hook("pulls")
        self.server = TenureServer(self.store, settings={"TENURE_SERVE_AUTH": "required", **with_master_key()})

    def _hook(self, name: str, **fields: Any) -> str:
        outcome = self.client.set_trigger(name, "webhook", NewTask(title="Review {body.pull_request.title}"), **fields)
        assert outcome.secret is not None
        return outcome.secret

    def post(self, body: bytes = BODY, *, path: str = "", **headers: str) -> tuple[int, Any, dict[str, str]]:
        line = HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        try:
            line.request("POST", path or f"{P}/triggers/pulls/deliveries", body, headers)
            answer = line.getresponse()
            return answer.status, json.loads(answer.read()), {k.lower(): v for k, v in answer.headers.items()}
        finally:
            line.close()

    def signed(self, id: str, body: bytes = BODY, secret: str = "") -> dict[str, str]:
        key = signatures.key_of("standard", secret or self.secret)
        return signatures.signed_headers("standard", key, id, body, time.time_ns() // 1000)

    def titles(self) -> list[str]:
        return [task["title"] for task in self.client.tasks()]


@pytest.fixture
def hooked(tmp_path: Path) -> Iterator[Hooked]:
    hooked = Hooked(tmp_path)
    with running(hooked.server), hooked.client:
        yield hooked


def test_a_signed_delivery_needs_no_key_and_makes_one_task(hooked: Hooked) -> None:
    headers = hooked.signed("msg_1")
    status, told, _ = hooked.post(**headers)
    assert (status, told) == (201, {"outcome": "CREATED", "message": "taken"})
    status, told, _ = hooked.post(**headers)
    assert (status, told["outcome"], told["again"]) == (200, "EXISTS", True)
    assert hooked.titles() == ["Review «Mend it»"]
    (event,) = hooked.client.log(kind="trigger.fired")
    assert event["address"] == "127.0.0.1"


def test_github_signs_its_own_way(hooked: Hooked) -> None:
    secret = hooked._hook("github", signature="github", where={"delivery.event": "pull_request"})
    key = signatures.key_of("github", secret)
    headers = signatures.signed_headers("github", key, "guid-1", BODY, 0) | {"X-GitHub-Event": "pull_request"}
    path = f"{P}/triggers/github/deliveries"
    assert [hooked.post(path=path, **headers)[0] for _ in range(2)] == [201, 200]
    assert len(hooked.titles()) == 1


def test_what_is_not_genuine_is_told_nothing_and_keeps_nothing_genuine_out(hooked: Hooked) -> None:
    unsigned = hooked.post()
    wrong = hooked.post(**{**hooked.signed("m"), "webhook-signature": "v1,AAAA"})
    unknown = hooked.post(path=f"{P}/triggers/nobody/deliveries", **hooked.signed("m"))
    elsewhere = hooked.post(path="/api/v1/projects/q/triggers/pulls/deliveries", **hooked.signed("m"))
    answers = [(status, told) for status, told, _ in (unsigned, wrong, unknown, elsewhere)]
    assert answers == [answers[0]] * 4
    assert (answers[0][0], answers[0][1]["code"]) == (401, "NOT_SIGNED_IN")
    for headers in ({}, {**hooked.signed("m"), "webhook-signature": "v1,AAAA"}):
        answers_ = [hooked.post(**headers) for _ in range(12)]
        status, _, told = answers_[-1]
        assert (status, int(told["retry-after"]) >= 1) == (429, True)
    assert hooked.titles() == []
    assert hooked.post(**hooked.signed("m"))[0] == 201  # from the same address, to the same trigger
    assert len(hooked.titles()) == 1


def test_without_a_signature_no_body_is_waited_for(hooked: Hooked) -> None:
    """Answered although not a byte of what was announced is sent."""
    request = f"POST {P}/triggers/pulls/deliveries HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", hooked.server.port), timeout=10) as line:
        line.sendall(request.encode())
        assert line.recv(100).startswith(b"HTTP/1.1 401")


def test_a_body_is_bounded_before_it_is_judged(hooked: Hooked) -> None:
    large = b'"' + b"x" * signatures.LARGEST_BODY + b'"'
    assert hooked.post(large, **hooked.signed("m", large))[0] == 413
    assert hooked.titles() == []


def test_more_than_it_takes_in_an_hour_is_429_with_the_time_to_wait(hooked: Hooked) -> None:
    secret = hooked._hook("few", most=1)
    path = f"{P}/triggers/few/deliveries"
    assert hooked.post(path=path, **hooked.signed("a", secret=secret))[0] == 201
    status, told, headers = hooked.post(path=path, **hooked.signed("b", secret=secret))
    assert (status, told["code"]) == (429, "RATE_LIMITED")
    assert 3000 < int(headers["retry-after"]) <= 3600


def test_every_other_verb_of_triggers_wants_a_key(hooked: Hooked) -> None:
    for path in ("pulls/deliver", "pulls/rotate", "pulls/try", "pulls/pause"):
        assert hooked.post(b"{}", path=f"{P}/triggers/{path}", **hooked.signed("m", b"{}"))[0] == 401
    allowed = hooked.post(b"{}", path=f"{P}/triggers/pulls/pause", Authorization=f"Bearer {hooked.key}")
    assert (allowed[0], allowed[1]["trigger"]["enabled"]) == (200, False)
    assert "secret" not in json.dumps(allowed[1]["trigger"])


def test_over_a_server_the_client_sets_schedules_and_sees_them(hooked: Hooked) -> None:
    with tenure.Client(hooked.server.url, "p", key=hooked.key) as client:
        made = client.set_schedule("nightly", "30 2 * * *", NewTask(title="x"), zone="Europe/Berlin")
        assert made.schedule is not None
        assert (
            client.schedule("nightly")["ticks"][0]["at"]
            == made.schedule["next_at"]
            == (client.schedules()[0]["next_at"])
        )
        secret = client.set_trigger("own", "webhook", NewTask(title="y")).secret
        assert secret is not None
        headers = hooked.signed("d", b"{}", secret)
        assert client.deliver("own", headers, b"{}").outcome == "CREATED"
        assert client.rotate_secret("own").secret != secret
        assert client.watched()["on"] is False
