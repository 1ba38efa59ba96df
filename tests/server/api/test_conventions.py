"""What clients of other HTTP APIs expect: ETags, compression, Location, media types, bare bodies, the usual filters."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from typing import Any

import pytest

from tenure.server import responses
from tests.engine.rich_scene import Rich
from tests.servers.tenure import TenureServer

API = "/api/v1/projects/usual"


class Told:
    def __init__(self, response: HTTPResponse) -> None:
        self.status, self.headers, self.raw = response.status, response.headers, response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.raw)


class Asker:
    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=30)

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Told:
        sent = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request(method, path if path.startswith(("/api", "/openapi")) else API + path, sent, named)
        return Told(self._connection.getresponse())

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def ask(rich_server: tuple[TenureServer, Rich]) -> Iterator[Asker]:
    asker = Asker(rich_server[0].port)
    assert asker("PUT", "").status in (200, 201)
    yield asker
    asker.close()


def added(ask: Asker, title: str = "work", **fields: Any) -> dict[str, Any]:
    told = ask("POST", "/tasks", {"title": title, **fields})
    assert told.status == 201, told.raw
    task: dict[str, Any] = told.json["task"]
    return task


# --- bodies ---


def test_a_task_may_be_sent_bare_or_wrapped(ask: Asker) -> None:
    bare = ask("POST", "/tasks", {"title": "bare", "deadline": "2031-01-01T00:00:00Z"})
    wrapped = ask("POST", "/tasks", {"task": {"title": "wrapped", "deadline": "2031-01-01T00:00:00Z"}})
    assert (bare.status, wrapped.status) == (201, 201)
    assert bare.json["task"]["deadline"] == wrapped.json["task"]["deadline"]


def test_an_edit_may_name_its_fields_bare(ask: Asker) -> None:
    task = added(ask)
    told = ask("PATCH", f"/tasks/{task['key']}", {"title": "renamed", "tags": ["x"], "version": task["version"]})
    assert (told.status, told.json["outcome"]) == (200, "UPDATED")
    seen = ask("GET", f"/tasks/{task['key']}").json
    assert (seen["title"], seen["tags"]) == ("renamed", ["x"])
    told = ask("PATCH", f"/tasks/{task['key']}", {"title": "again", "version": task["version"]})
    assert (told.status, told.json["outcome"]) == (409, "VERSION_CONFLICT")


@pytest.mark.parametrize(
    ("method", "path", "body", "meant"),
    [
        ("POST", "/tasks", {"titel": "three"}, "title"),
        ("POST", "/tasks", {"task": {"title": "x", "prioritty": 3}}, "priority"),
        ("POST", "/claims", {"leese": 60}, "lease"),
        ("GET", "/tasks?stat=ready", None, "state"),
    ],
)
def test_a_misspelt_field_is_answered_with_the_nearest(
    ask: Asker, method: str, path: str, body: Any, meant: str
) -> None:
    told = ask(method, path, body)
    assert (told.status, told.json["hint"].split("?")[0]) == (400, f"did you mean {meant}")


def test_a_body_that_is_not_json_is_said_to_be_so(ask: Asker) -> None:
    told = ask("POST", "/tasks", b"{")
    assert (told.status, "not valid JSON" in told.json["detail"], told.json.get("hint")) == (400, True, None)
    told = ask("POST", "/tasks", {"title": "x", "deadline": "tomorrow"})
    assert (told.status, "JSON" in told.json["detail"]) == (400, False)


@pytest.mark.parametrize("body", [{}, {"titel": "typo"}, {"task": {"title": "x"}, "title": "both"}, [], "text"])
def test_a_body_that_is_neither_is_refused_with_both_forms(ask: Asker, body: Any) -> None:
    told = ask("POST", "/tasks", body)
    assert (told.status, told.json["code"]) == (400, "INVALID_INPUT")
    assert "`task`" in told.json["hint"]


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x"])
def test_a_body_of_another_media_type_is_415(ask: Asker, kind: str) -> None:
    told = ask("POST", "/tasks", {"title": "x"}, Content_Type=kind)
    assert (told.status, told.json["code"]) == (415, "UNSUPPORTED_TYPE")
    assert "application/json" in told.json["hint"]


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "APPLICATION/JSON", "application/vnd.x+json"])
def test_json_by_any_name_is_read(ask: Asker, kind: str) -> None:
    assert ask("POST", "/tasks", {"title": "x"}, Content_Type=kind).status == 201


# --- what was created ---


def test_what_was_created_is_at_its_location(ask: Asker) -> None:
    told = ask("POST", "/tasks", {"title": "somewhere"})
    assert told.headers["Location"] == f"{API}/tasks/{told.json['task']['key']}"
    assert ask("GET", told.headers["Location"]).json["title"] == "somewhere"
    told = ask("POST", "/dags", {"tasks": [{"title": "a", "name": "a"}]})
    assert ask("GET", told.headers["Location"]).json["tasks"][0]["title"] == "a"
    told = ask("PUT", "/agents/lo%2Ecal", {})
    assert ask("GET", told.headers["Location"]).json["name"] == "lo.cal"
    assert ask("POST", "/tasks", {"title": "once", "idempotency_key": "k"}).headers["Location"]
    assert ask("POST", "/tasks", {"title": "once", "idempotency_key": "k"}).headers["Location"] is None  # it was there


def test_an_expensive_view_says_what_it_cost() -> None:
    answer = responses.of_value({"items": []})
    assert responses.with_cost(answer, responses.COSTLY / 2) == answer
    assert (b"server-timing", b"cpu;dur=12.5") in responses.with_cost(answer, 0.0125).all_headers()


# --- conditions ---


@pytest.mark.parametrize("path", ["/tasks", "/agents", "/dags", "/settings"])
def test_a_view_that_has_not_changed_is_not_sent_again(ask: Asker, path: str) -> None:
    added(ask)
    first = ask("GET", path)
    again = ask("GET", path, If_None_Match=first.headers["ETag"])
    assert (again.status, again.raw, again.headers["ETag"]) == (304, b"", first.headers["ETag"])
    assert again.headers["Content-Length"] in (None, "0")
    either = ask("GET", path, If_None_Match=f'"other", W/{first.headers["ETag"]}')
    assert either.status == 304
    assert ask("GET", path, If_None_Match='"other"').status == 200
    assert ask("GET", path, If_None_Match="*").status == 304


def test_a_task_is_sent_again_when_it_has_changed(ask: Asker) -> None:
    task = added(ask)
    path = f"/tasks/{task['key']}"
    tag = ask("GET", path).headers["ETag"]
    receipt = ask("POST", f"{path}/claim", {"agent": "ann", "session": "s"}).json["receipt"]
    ask("POST", f"{path}/renew", {"receipt": receipt})
    held = ask("GET", path, If_None_Match=tag)
    assert held.status == 200
    # A renewal writes no event and raises no version, but what is shown has changed.
    ask("POST", f"{path}/renew", {"receipt": receipt, "lease": 900})
    renewed = ask("GET", path, If_None_Match=held.headers["ETag"])
    assert (renewed.status, renewed.json["version"]) == (200, held.json["version"])


def test_the_etag_of_a_task_guards_an_edit(ask: Asker) -> None:
    task = added(ask)
    path = f"/tasks/{task['key']}"
    tag = ask("GET", path).headers["ETag"]
    assert ask("PATCH", path, {"title": "one"}, If_Match=tag).status == 200
    refused = ask("PATCH", path, {"title": "two"}, If_Match=tag)
    assert (refused.status, refused.json["outcome"]) == (412, "VERSION_CONFLICT")
    assert ask("GET", path).json["title"] == "one"
    assert ask("PATCH", path, {"title": "three"}, If_Match="*").status == 200
    assert ask("PATCH", path, {"title": "four"}, If_Match="seventeen").status == 400


def test_a_condition_that_nothing_would_compare_is_refused(ask: Asker) -> None:
    told = ask("POST", "/tasks", {"title": "x"}, If_Match='"1"')
    assert (told.status, told.json["code"]) == (400, "INVALID_INPUT")


# --- compression ---


def test_long_answers_are_compressed_for_those_who_read_it(ask: Asker) -> None:
    for n in range(8):
        added(ask, f"number {n}", description="long " * 100)
    plain = ask("GET", "/tasks")
    packed = ask("GET", "/tasks", Accept_Encoding="br;q=1.0, gzip;q=0.8")
    assert (plain.headers["Content-Encoding"], packed.headers["Content-Encoding"]) == (None, "gzip")
    assert plain.headers["Vary"] == packed.headers["Vary"] == "accept-encoding"
    assert len(packed.raw) < len(plain.raw) / 3
    assert int(packed.headers["Content-Length"]) == len(packed.raw)
    assert json.loads(gzip.decompress(packed.raw)) == plain.json
    assert ask("GET", "/tasks", Accept_Encoding="gzip", If_None_Match=packed.headers["ETag"]).status == 304


@pytest.mark.parametrize("accepted", ["identity", "gzip;q=0", "gzip; q=0.000", "br", ""])
def test_others_get_it_as_it_is(ask: Asker, accepted: str) -> None:
    for n in range(8):
        added(ask, f"number {n}", description="long " * 100)
    assert ask("GET", "/tasks", Accept_Encoding=accepted).headers["Content-Encoding"] is None


def test_the_document_of_this_api_is_compressed_and_short_answers_are_not(ask: Asker) -> None:
    assert ask("GET", "/api/v1/me", Accept_Encoding="gzip").headers["Content-Encoding"] is None
    packed = ask("GET", "/openapi.json", Accept_Encoding="gzip")
    assert packed.headers["Content-Encoding"] == "gzip"
    assert json.loads(gzip.decompress(packed.raw))["openapi"] == "3.1.0"


# --- lists ---


def keys(told: Told) -> set[str]:
    assert told.status == 200, told.raw
    return {task["title"] for task in told.json["items"]}


def test_lists_take_the_usual_filters(ask: Asker) -> None:
    mark = "flt"
    added(ask, "low", tags=[mark, "slow"], priority=80)
    added(ask, "middle", tags=[mark, "slow", "odd"], priority=50)
    added(ask, "high", tags=[mark, "odd"], priority=10)
    assert keys(ask("GET", f"/tasks?tag={mark}&tag=slow")) == {"low", "middle"}
    assert keys(ask("GET", f"/tasks?tag={mark}&tag=slow&tag=odd")) == {"middle"}
    assert keys(ask("GET", f"/tasks?tag={mark}&priority_min=50")) == {"low", "middle"}
    assert keys(ask("GET", f"/tasks?tag={mark}&priority_max=50")) == {"middle", "high"}
    assert keys(ask("GET", f"/tasks?tag={mark}&priority_min=11&priority_max=79")) == {"middle"}
    assert keys(ask("GET", f"/tasks?tag={mark}&status=ready&state=claimed")) == {"low", "middle", "high"}
    assert keys(ask("GET", f"/tasks?tag={mark}&status=completed")) == set()
    ordered = ask("GET", f"/tasks?tag={mark}&sort=-priority").json["items"]
    assert [task["title"] for task in ordered] == ["low", "middle", "high"]
    assert ask("GET", "/tasks?sort=priority&order=key").status == 400
    assert ask("GET", "/tasks?status=nonsense").status == 400


@pytest.mark.parametrize("asked", ["fields=title,state", "fields=title&fields=state"])
def test_a_list_may_have_some_fields_only(ask: Asker, asked: str) -> None:
    added(ask, "short", tags=["few"], description="left out")
    (task,) = ask("GET", f"/tasks?tag=few&limit=1&{asked}").json["items"]
    assert set(task) == {"id", "key", "created_at", "title", "state"}
    assert ask("GET", "/tasks?fields=nonsense").status == 400


def test_fields_do_not_break_the_cursor(ask: Asker) -> None:
    for n in range(5):
        added(ask, f"page {n}", tags=["paged"], priority=10 * n)
    found: list[str] = []
    query = "/tasks?tag=paged&fields=title&sort=-priority&limit=2"
    page = ask("GET", query).json
    while page["next"]:
        found += [task["title"] for task in page["items"]]
        assert isinstance(page["next"], str)
        assert not page["next"].startswith("[")  # opaque
        page = ask("GET", f"{query}&after={page['next']}").json
    found += [task["title"] for task in page["items"]]
    assert found == [f"page {n}" for n in (4, 3, 2, 1, 0)]


def test_the_cursor_of_the_log_is_a_text_too(ask: Asker) -> None:
    page = ask("GET", "/events?last=false&limit=1").json
    assert isinstance(page["next"], str)
    assert ask("GET", f"/events?last=false&limit=1&after={page['next']}").status == 200


# --- agents and logs ---


def test_an_agent_has_its_health_and_tasks(ask: Asker) -> None:
    key = added(ask)["key"]
    ask("PUT", "/agents/una", {"managed": True, "heartbeat": 20})
    ask("POST", f"/tasks/{key}/claim", {"agent": "una", "session": "s-una"})
    ask("POST", "/agents/una/heartbeat", {"health": "ok", "memory_mb": 64, "metadata": {"rack": 7}})
    health = ask("GET", "/agents/una/health").json
    assert (health["health"], health["status"], health["memory_mb"]) == ("healthy", "active", 64)
    assert (health["task"], health["heartbeat"], health["metadata"]) == (key, 20.0, {"rack": 7})
    assert [task["key"] for task in ask("GET", "/agents/una/tasks").json["items"]] == [key]
    assert [one["name"] for one in ask("GET", "/agents?status=active&managed=true").json["items"]] == ["una"]
    assert ask("GET", "/agents?status=offline").json["items"] == []
    assert ask("GET", "/agents?status=well").status == 400
    for path in ("", "/health", "/tasks"):
        assert ask("GET", f"/agents/nobody{path}").status == 404


def test_a_task_has_its_log_with_levels_traces_and_stack_traces(ask: Asker) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    created = ask(
        "POST", "/tasks", {"title": "traced", "max_attempts": 2}, traceparent=f"00-{trace}-00f067aa0ba902b7-01"
    )
    key = created.json["task"]["key"]
    receipt = ask("POST", f"/tasks/{key}/claim", {"agent": "tia", "session": "s-tia"}).json["receipt"]
    failed = {"receipt": receipt, "message": "broken", "trace": "Traceback:\n  at line 3\nValueError: x"}
    ask("POST", f"/tasks/{key}/fail", failed)
    events = ask("GET", f"/tasks/{key}/logs").json["items"]
    assert events[0]["kind"] == "task.created"
    assert {event["trace_id"] for event in events} == {trace}
    assert ask("GET", f"/tasks/{key}").json["trace_id"] == trace
    assert len({event["request_trace_id"] for event in events if "request_trace_id" in event}) > 1
    above = ask("GET", f"/tasks/{key}/logs?level=warning").json["items"]
    assert {event["level"] for event in above} == {"warning"}
    assert [event["stack_trace"] for event in above if event["kind"] == "task.failed"] == [failed["trace"]]
    assert ask("GET", f"/tasks/{key}/logs?level=info").json["items"] == events
    assert ask("GET", f"/tasks/{key}/logs?level=critical").json["items"] == []
    assert ask("GET", f"/events?task={key}&level=warning").json["items"] == above
    assert ask("GET", "/events?level=loud").status == 400
    assert ask("GET", "/tasks/A-999/logs").status == 404


def test_progress_may_bring_a_checkpoint(ask: Asker) -> None:
    key = added(ask)["key"]
    receipt = ask("POST", f"/tasks/{key}/claim", {"agent": "cia", "session": "s-cia"}).json["receipt"]
    told = ask("POST", f"/tasks/{key}/progress", {"receipt": receipt, "percent": 30, "checkpoint": {"next": "tests"}})
    assert told.json["outcome"] == "OK"
    seen = ask("GET", f"/tasks/{key}").json
    assert (seen["percent"], seen["checkpoint"]["data"]) == (30, {"next": "tests"})
