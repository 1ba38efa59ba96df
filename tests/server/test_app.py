"""The API from outside, by a plain HTTP client, on a real process."""

import json
import socket
import threading
import time
from contextlib import closing, contextmanager
from http.client import HTTPConnection

import pytest

import tenure
from tests.servers.fixtures import running
from tests.servers.tenure import TenureServer


class Caller:
    """Requests over one connection."""

    def __init__(self, server: TenureServer) -> None:
        self.connection = HTTPConnection("127.0.0.1", server.port, timeout=30)

    def __call__(self, method: str, path: str, body=None, **headers: str):
        data = body if isinstance(body, bytes | None) else json.dumps(body)
        self.connection.request(method, path, data, {name.replace("_", "-"): v for name, v in headers.items()})
        response = self.connection.getresponse()
        raw = response.read()
        return response.status, response.headers, json.loads(raw) if raw else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()


def once(server, *request):
    """One request over a connection of its own."""
    with Caller(server) as call:
        return call(*request)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    store = str(tmp_path_factory.mktemp("store") / "tenure.db")
    with tenure.Client(store, "p", create=True) as client:
        client.init()
    server = TenureServer(store)
    with running(server):
        yield server


@pytest.fixture
def call(server):
    with Caller(server) as call:
        yield call


P = "/api/v1/projects/p"


def added(call, title="work", **fields):
    status, _, outcome = call("POST", P + "/tasks", {"task": {"title": title, **fields}})
    assert status == 201, outcome
    return outcome["task"]


def claimed(call, agent="ann"):
    status, _, outcome = call("POST", P + "/claims", {"agent": agent, "session": agent})
    assert (status, outcome["outcome"]) == (200, "GRANTED"), outcome
    return outcome


def test_a_task_from_making_to_result(call):
    task = added(call, deadline="2030-01-01T00:00:00Z")
    assert task["deadline"] == "2030-01-01T00:00:00.000000Z"
    claim = claimed(call)
    path = f"{P}/tasks/{claim['task']['key']}"
    status, _, told = call("POST", path + "/progress", {"receipt": claim["receipt"], "percent": 50})
    assert (status, told["outcome"]) == (200, "OK")
    status, _, told = call("POST", path + "/submit", {"receipt": claim["receipt"], "data": {"answer": 42}})
    assert (status, told["outcome"]) == (200, "ACCEPTED")
    status, headers, seen = call("GET", path)
    assert (status, seen["state"], seen["result"]["data"]) == (200, "completed", {"answer": 42})
    assert headers["ETag"].startswith(f'"{seen["version"]}-')


def test_a_stale_holder_is_refused_with_409(call):
    added(call)
    claim = claimed(call)
    path = f"{P}/tasks/{claim['task']['key']}"
    status, _, told = call("POST", path + "/recover", {"reason": "lost"})
    assert status == 200, told
    other = claimed(call, "bob")
    assert other["task"]["id"] == claim["task"]["id"]
    status, _, told = call("POST", path + "/submit", {"receipt": claim["receipt"]})
    assert (status, told["outcome"]) == (409, "STALE_GENERATION")
    status, _, told = call("POST", path + "/submit", {"receipt": other["receipt"]})
    assert (status, told["outcome"]) == (200, "ACCEPTED")


def test_nothing_to_claim_is_an_empty_list(call):
    status, _, told = call("POST", P + "/claims", {"agent": "z", "session": "z", "tracks": ["NOPE"]})
    assert (status, told["outcome"], told["claims"]) == (200, "NO_TASK", [])


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/api/v1/nothing", None, 404, "NO_ROUTE"),
        ("DELETE", P, None, 405, "NO_METHOD"),
        ("GET", "/api/v1/projects/nope", None, 404, "NOT_FOUND"),
        ("GET", P + "/tasks/NOPE-999", None, 404, "NOT_FOUND"),
        ("GET", P + "/tasks?state=nope", None, 400, "INVALID_INPUT"),
        ("GET", P + "/tasks?colour=red", None, 400, "INVALID_INPUT"),
        ("GET", P + "/tasks?limit=ten", None, 400, "INVALID_INPUT"),
        ("GET", P + "/tasks?after=%5B", None, 400, "INVALID_INPUT"),
        ("POST", P + "/tasks", b"{", 400, "INVALID_INPUT"),
        ("POST", P + "/tasks", b"[" * 50_000, 400, "INVALID_INPUT"),
        ("POST", P + "/tasks", {"task": {"title": "x", "colour": "red"}}, 400, "INVALID_INPUT"),
        ("POST", P + "/tasks", {"task": {"title": "x", "deadline": "tomorrow"}}, 400, "INVALID_INPUT"),
        ("POST", P + "/claims?wait=1000", {"agent": "a", "session": "s"}, 400, "INVALID_INPUT"),
        ("POST", P + "/tasks/A-001/submit", {"receipt": "B-002@1:XYZ"}, 400, "INVALID_INPUT"),
    ],
)
def test_bad_requests_are_told_as_problems(call, method, path, body, status, code):
    got, headers, problem = call(method, path, body)
    assert (got, problem["code"], problem["status"]) == (status, code, status)
    assert headers["Content-Type"] == "application/problem+json"
    assert problem["definite"] is True
    assert problem["detail"]
    if status == 405:
        assert headers["Allow"] == "GET, PUT"


def test_a_body_that_is_too_large_is_refused_unread(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as line:
        line.sendall(f"POST {P}/tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 999999999\r\n\r\n".encode())
        assert line.recv(100).startswith(b"HTTP/1.1 413 ")


def test_the_same_request_again_has_one_effect(call):
    body = {"task": {"title": "once"}}
    _, _, first = call("POST", P + "/tasks", body, Idempotency_Key="k1")
    _, _, again = call("POST", P + "/tasks", body, Idempotency_Key="k1")
    assert (again["task"]["id"], again["again"]) == (first["task"]["id"], True)
    status, _, told = call("POST", P + "/tasks", {"task": {"title": "other"}}, Idempotency_Key="k1")
    assert (status, told["code"]) == (409, "REQUEST_ID_REUSED")


def test_an_edit_with_an_old_etag_is_refused(call):
    task = added(call)
    path = f"{P}/tasks/{task['key']}"
    status, _, told = call("PATCH", path, {"changes": {"title": "new"}}, If_Match=f'"{task["version"]}"')
    assert (status, told["outcome"]) == (200, "UPDATED")
    status, _, told = call("PATCH", path, {"changes": {"title": "newer"}}, If_Match=f'"{task["version"]}"')
    assert (status, told["outcome"]) == (412, "VERSION_CONFLICT")
    status, _, told = call("PATCH", path, {"changes": {"title": "newer"}, "version": task["version"]})
    assert (status, told["outcome"]) == (409, "VERSION_CONFLICT")


def test_a_batch_has_one_answer_each(call):
    body = {
        "commands": [
            {"command": "add", "task": {"title": "one"}},
            {"command": "nope"},
            {"command": "cancel", "task": "NOPE-1"},
            {"command": "add", "task": {"title": "two", "not_before": "2031-01-01T00:00:00Z"}},
        ]
    }
    status, _, told = call("POST", P + "/batch", body)
    assert status == 200
    assert [a.get("outcome") or a["code"] for a in told["outcomes"]] == [
        "CREATED", "INVALID_INPUT", "NOT_FOUND", "CREATED",
    ]  # fmt: skip


def test_a_preview_writes_nothing(call):
    before = call("GET", P)[2]["tasks"]
    _, _, told = call("POST", P + "/preview", {"commands": [{"command": "add", "task": {"title": "never"}}]})
    assert told["outcomes"][0]["outcome"] == "CREATED"
    assert call("GET", P)[2]["tasks"] == before


def test_pages_follow_their_cursor(call):
    made = {added(call, f"page {n}", type="paged")["id"] for n in range(7)}
    seen, cursor = [], ""
    while cursor is not None:
        path = f"{P}/tasks?type=paged&limit=3&order=-priority"
        if cursor:
            path += "&after=" + cursor.replace('"', "%22").replace("[", "%5B").replace("]", "%5D")
        _, _, page = call("GET", path)
        seen += [task["id"] for task in page["items"]]
        cursor = page["next"]
    assert sorted(seen) == sorted(made)


def test_a_search_goes_by_title_and_key(call):
    task = added(call, "A needle in here", type="hay")
    for text in ("NEEDLE", task["key"]):
        _, _, page = call("GET", f"{P}/tasks?type=hay&text={text}")
        assert [t["id"] for t in page["items"]] == [task["id"]]


def test_a_waiting_claim_gets_what_comes(server, call):
    got = []
    waiter = threading.Thread(
        target=lambda: got.append(
            once(server, "POST", P + "/claims?wait=20", {"agent": "w", "session": "w", "types": ["rare"]})
        )
    )
    waiter.start()
    task = added(call, type="rare")
    waiter.join(20)
    ((status, _, told),) = got
    assert (status, told["outcome"], told["task"]["id"]) == (200, "GRANTED", task["id"])


def test_who_hangs_up_while_waiting_is_given_nothing(server, call):
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as line:
        body = json.dumps({"agent": "gone", "session": "gone", "types": ["left"]}).encode()
        head = f"POST {P}/claims?wait=30 HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
        line.sendall(head.encode() + body)
        until(lambda: any(a["name"] == "gone" for a in call("GET", P + "/agents")[2]["items"]))
    added(call, type="left")
    status, _, told = call("POST", P + "/claims?wait=20", {"agent": "b", "session": "b", "types": ["left"]})
    assert (status, told["outcome"]) == (200, "GRANTED")


def until(is_so) -> None:
    give_up = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < give_up


@contextmanager
def events(server, path, **headers):
    """A live stream, as (id, kind, data) one by one; it has begun when the block is entered."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=20)
    given = {"Accept": "text/event-stream", **{n.replace("_", "-"): v for n, v in headers.items()}}
    connection.request("GET", path, headers=given)
    response = connection.getresponse()
    assert response.headers["Content-Type"] == "text/event-stream"
    assert response.readline() == b"retry: 1000\n"
    with closing(connection), closing(response):
        yield _parsed(response)


def _parsed(response):
    fields = {}
    while line := response.readline():
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name:
            fields[name] = value
        elif "id" in fields:
            yield int(fields["id"]), fields["event"], json.loads(fields["data"])
            fields = {}


def test_events_of_sinks_come_live_to_those_who_may_see_them(server, call):
    with (
        tenure.Client(server.store, "p") as client,
        events(server, P + "/events?store=true&kind=sink&kind=task.created") as live,
    ):
        client.engine.transact((), lambda work: work.record("sink.behind", project="", details={"sink": "far"}))
        added(call)
        seen = [next(live), next(live)]
    assert [kind for _, kind, _ in seen] == ["sink.behind", "task.created"]
    assert seen[0][2]["notice"] == "sink behind"
    with events(
        server, P + "/events?store=true&kind=sink&kind=task.created", Last_Event_ID=str(seen[0][0] - 1)
    ) as again:
        assert [kind for _, kind, _ in (next(again), next(again))] == ["sink.behind", "task.created"]
    with events(server, P + "/events?kind=sink&kind=task.created", Last_Event_ID=str(seen[0][0] - 1)) as without:
        assert next(without)[1] == "task.created"


def test_events_come_live_and_go_on_behind_the_last_one_seen(server, call):
    before = call("GET", P + "/events?limit=1")[2]["items"][0]["sequence"]
    with events(server, P + "/events?kind=task.created") as live:
        first, second = added(call), added(call)
        id, kind, data = next(live)
        assert (kind, data["task"]) == ("task.created", first["id"])
        assert data["text"].endswith(f" adds {first['key']}")
        assert next(live)[2]["task"] == second["id"]
    with events(server, P + "/events?kind=task.created", Last_Event_ID=str(before)) as again:
        assert [next(again)[2]["task"] for _ in range(2)] == [first["id"], second["id"]]
    with events(server, f"{P}/events?task={second['key']}&after={id}") as of_one:
        assert next(of_one)[2]["task"] == second["id"]
    with events(server, f"{P}/events?kind=task") as of_tasks:
        third = added(call)
        assert next(of_tasks)[2]["task"] == third["id"]


def test_news_say_how_far_the_log_is(call):
    mark = call("GET", P + "/news")[2]["mark"]
    added(call)
    beyond = call("GET", f"{P}/news?mark={mark}&wait=20")[2]["mark"]
    assert beyond > mark


def test_a_server_that_is_asked_to_go_answers_who_waits_and_leaves(tmp_path):
    store = str(tmp_path / "tenure.db")
    with tenure.Client(store, "p", create=True) as client:
        client.init()
    server = TenureServer(store)
    with running(server):
        got = []
        waiters = [
            threading.Thread(
                target=lambda n=n: got.append(
                    once(server, "POST", P + "/claims?wait=60", {"agent": f"a{n}", "session": f"s{n}"})
                )
            )
            for n in range(5)
        ]
        for waiter in waiters:
            waiter.start()
        until(lambda: len(once(server, "GET", P + "/agents")[2]["items"]) == 5)
        with events(server, P + "/events?after=0") as live:
            assert next(live)
            assert server.end() == 0
        for waiter in waiters:
            waiter.join(20)
        assert [(status, told["outcome"]) for status, _, told in got] == [(200, "NO_TASK")] * 5
