"""Deliveries of webhooks to real receivers: signed, in order per task, eight in flight."""

from __future__ import annotations

import json
import socket
import threading
import time
from base64 import b64encode
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook as Judge

from tenure.core import signatures
from tenure.core import webhook_delivery as rule
from tenure.core.events import Event
from tenure.core.messaging_records import Delivery, Webhook
from tenure.core.webhook_delivery import Tried
from tenure.sinks.addresses import networks_of
from tenure.sinks.envelope import Facts, messages_of
from tenure.sinks.http_sender import HttpSender
from tenure.sinks.webhook import WebhookSender, body_of
from tests.sinks.receivers import Receiver, Request, answer

KEY, OLD = bytes(range(32)), bytes(range(1, 33))
NOW = 1_700_000_000_000_000
SECOND = 1_000_000


def event(sequence: int = 1, task: str | None = "t1") -> Event:
    return Event(
        sequence=sequence, id=f"evt_{sequence}", time=NOW, kind="task.completed", project="web", task=task, key="A-001",
        previous_state="in_progress", new_state="completed", generation=1,
    )  # fmt: skip


def delivery(sequence: int, task: str | None = "t1") -> Delivery:
    row = Webhook(project="web", id="ci", url="", kinds=("*",), filter={}, created_at=0, changed_at=0)
    return rule.new_delivery(row, event(sequence, task), "task.completed", b'{"n":%d}' % sequence, NOW)


@pytest.fixture
def http() -> Iterator[HttpSender]:
    sender = HttpSender(allow_http=True, networks=networks_of(["127.0.0.0/8"]), resolve=lambda *_: ["127.0.0.1"])
    yield sender
    sender.close()


@pytest.fixture
def sender(http: HttpSender) -> WebhookSender:
    return WebhookSender(http, lambda: NOW)


# --- signatures ---------------------------------------------------------------------------------------------


def judged_by(key: bytes, headers: dict[str, str], body: bytes) -> object:
    return Judge(b64encode(key).decode()).verify(body, headers)


def test_a_delivery_is_accepted_by_the_standardwebhooks_package(http: HttpSender) -> None:
    with Receiver() as receiver:
        current = WebhookSender(http, lambda: round(time.time() * SECOND))
        assert current.send(receiver.url, (KEY,), delivery(1)).is_delivered
        (request,) = receiver.requests
        assert judged_by(KEY, request.headers, request.body) == {"n": 1}
        assert request.headers["webhook-id"] == "evt_1"
        assert request.headers["content-type"] == "application/json"
        with pytest.raises(Exception, match="No matching signature"):
            judged_by(OLD, request.headers, request.body)


def test_during_a_rotation_both_secrets_verify(sender: WebhookSender) -> None:
    with Receiver() as receiver:
        sender.send(receiver.url, (KEY, OLD), delivery(1))
        (request,) = receiver.requests
        assert len(request.headers["webhook-signature"].split(" ")) == 2
        for key in (KEY, OLD):
            assert signatures.verified("standard", (key,), request.headers, request.body, NOW)
        assert signatures.verified("standard", (bytes(32),), request.headers, request.body, NOW) is None


@given(st.binary(min_size=24, max_size=64), st.from_regex(r"[A-Za-z0-9_-]{1,40}", fullmatch=True), st.binary())
def test_what_we_sign_we_verify_and_so_does_the_package(key: bytes, id: str, body: bytes) -> None:
    now = round(time.time() * SECOND)
    headers = signatures.standard_headers((key,), id, body, now)
    assert signatures.verified("standard", (key,), headers, body, now) == (id, None)
    judge = Judge(b64encode(key).decode())
    text = body.decode("latin-1")
    headers = signatures.standard_headers((key,), id, text.encode(), now)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("standardwebhooks.webhooks.json.loads", lambda data: data)
        assert judge.verify(text, headers) == text


# --- bodies -------------------------------------------------------------------------------------------------


def test_a_change_of_status_has_its_seven_fields_beside_the_envelope() -> None:
    (message, *_) = messages_of(event(), Facts("acme"))
    assert body_of("task.completed", event(), message) is message.body
    plain, changed = json.loads(message.body), json.loads(body_of("task.status_changed", event(), message))
    names = ("event", "taskId", "previousStatus", "newStatus", "workspaceId", "projectId")
    assert {name: changed.pop(name) for name in names} == {
        "event": "task.status_changed", "taskId": "t1", "previousStatus": "in_progress", "newStatus": "completed",
        "workspaceId": "acme", "projectId": "web",
    }  # fmt: skip
    assert changed.pop("timestamp") == plain["emitted_at"]
    assert changed == plain | {"message_id": "evt_1-status", "kind": "evt.task.status_changed"}


# --- answers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "header", "wanted"),
    [
        (204, "", Tried(204)),
        (410, "", Tried(410)),
        (429, "Retry-After: 30", Tried(429, None, 30 * SECOND)),
        (500, "", Tried(500)),
    ],
)
def test_the_answer_is_passed_on(sender: WebhookSender, status: int, header: str, wanted: Tried) -> None:
    with Receiver(answer(status, b"", *filter(None, [header]))) as receiver:
        assert sender.send(receiver.url, (KEY,), delivery(1))._replace(duration=0) == wanted


def test_a_receiver_that_is_down_or_refused_is_an_error_and_no_exception(http: HttpSender) -> None:
    with Receiver() as receiver:
        url = receiver.url
    sender = WebhookSender(http, lambda: NOW)
    assert "cannot be reached" in (sender.send(url, (KEY,), delivery(1)).error or "")
    strict = WebhookSender(HttpSender(), lambda: NOW)
    assert "must begin with https" in (strict.send(url, (KEY,), delivery(1)).error or "")


# --- rounds -------------------------------------------------------------------------------------------------


def lanes(*tasks: str) -> rule.Lanes:
    found: dict[str, list[Delivery]] = {}
    for sequence, task in enumerate(tasks):
        found.setdefault(task, []).append(delivery(sequence, task))
    return list(found.values())


def test_a_round_keeps_the_order_of_each_task(sender: WebhookSender) -> None:
    tasks = [f"t{number % 20}" for number in range(200)]
    with Receiver() as receiver:
        results = sender.send_round(receiver.url, (KEY,), lanes(*tasks))
        assert len(results) == 200
        assert all(tried is not None and tried.is_delivered for _, tried in results)
        arrived = [json.loads(request.body)["n"] for request in receiver.requests]
        for first in range(20):
            assert [number for number in arrived if number % 20 == first] == list(range(first, 200, 20))
        assert receiver.connections <= 8


def test_eight_are_in_flight_and_no_more(sender: WebhookSender) -> None:
    together = threading.Barrier(8)

    def behave(sock: socket.socket, request: Request) -> bool | None:
        together.wait(20)
        return answer()(sock, request)

    with Receiver(behave) as receiver:
        results = sender.send_round(receiver.url, (KEY,), lanes(*[f"t{number}" for number in range(24)]))
        assert len(results) == 24
        assert receiver.most_at_once == 8


def test_a_lane_ends_at_its_first_failure_and_the_others_go_on(sender: WebhookSender) -> None:
    def behave(sock: socket.socket, request: Request) -> bool | None:
        return answer(500 if json.loads(request.body)["n"] == 1 else 200)(sock, request)

    with Receiver(behave) as receiver:
        results = sender.send_round(receiver.url, (KEY,), lanes("a", "b", "a", "b", "a", "b"))
        found = {one.sequence: tried and tried.status for one, tried in results}
        assert found == {0: 200, 2: 200, 4: 200, 1: 500, 3: None, 5: None}


def test_a_receiver_that_hangs_costs_one_timeout_and_not_one_for_each_task(http: HttpSender) -> None:
    sender = WebhookSender(http, lambda: NOW, seconds=0.2)
    with Receiver() as receiver:
        receiver.behave = lambda *_: receiver.ended.wait(30) and None
        results = sender.send_round(receiver.url, (KEY,), lanes(*[f"t{number}" for number in range(100)]))
        tried = [result for _, result in results if result is not None]
        assert 8 <= len(tried) <= 16
        assert all("did not answer in time" in (one.error or "") for one in tried)
        assert len(results) == 100


def test_after_a_failure_one_delivery_goes_first_alone(sender: WebhookSender) -> None:
    many = lanes(*[f"t{number}" for number in range(50)])
    with Receiver(answer(500)) as receiver:
        results = sender.send_round(receiver.url, (KEY,), many, is_cautious=True)
        assert len(receiver.requests) == 1
        assert sum(tried is None for _, tried in results) == 49
        receiver.behave = answer()
        sender.send_round(receiver.url, (KEY,), many, is_cautious=True)
        assert len(receiver.requests) == 51


def test_a_relay_that_no_longer_leads_sends_nothing_more(sender: WebhookSender) -> None:
    with Receiver() as receiver:
        results = sender.send_round(receiver.url, (KEY,), lanes("a", "b"), is_wanted=lambda: False)
        assert receiver.requests == []
        assert [tried for _, tried in results] == [None, None]


def test_a_flapping_receiver_gets_everything_at_least_once_and_in_order(sender: WebhookSender) -> None:
    count = iter(range(10_000))

    def behave(sock: socket.socket, request: Request) -> bool | None:
        if next(count) % 5 in (1, 2, 3):
            return False  # it dies with the request
        return answer(503 if next(count) % 7 == 0 else 200)(sock, request)

    row = Webhook(project="web", id="ci", url="", kinds=("*",), filter={}, created_at=0, changed_at=0)
    parked = {one.id: one for one in (delivery(number, f"t{number % 5}") for number in range(1, 60))}
    with Receiver(behave) as receiver:
        for now in range(NOW, NOW + 1000 * 3600 * SECOND, 5 * SECOND):
            due = rule.lanes(row, parked.values(), now)
            if due:
                results = sender.send_round(receiver.url, (KEY,), due, is_cautious=rule.is_cautious(row))
                after = rule.after_round(row, results, now)
                row = after.webhook
                parked |= {one.id: one for one in after.deliveries}
                parked = {id: one for id, one in parked.items() if one.state == "parked"}
            if not parked:
                break
        assert parked == {}
        arrived = [json.loads(request.body)["n"] for request in receiver.requests]
        assert set(arrived) == set(range(1, 60))
        for task in range(5):
            ours = [number for number in arrived if number % 5 == task]
            assert list(dict.fromkeys(ours)) == sorted(set(ours))
