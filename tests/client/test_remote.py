"""Over a server: what is sent again, what is given up and how, and what is never sent at all."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tenure.client import AsyncClient, Client
from tenure.client.caller import StoreOnly
from tenure.client.transports.http_messages import error_of
from tenure.client.wire import cursor_text
from tenure.core import errors
from tenure.core.commands import ClaimNext
from tenure.core.errors import (  # fmt: skip
    Cycle,
    InvalidInput,
    NotAllowed,
    NotFound,
    NotSignedIn,
    OutcomeUnknown,
    Overloaded,
    SchemaMismatch,
    StoreUnavailable,
    TenureError,
)
from tests.client.stub import CUT, Stub, Time, problem, reply, stubbed
from tests.servers.processes import free_port

OK = reply(200, {"outcome": "OK", "message": "done"})
PAGE = reply(200, {"items": [], "next": None})


def client_of(stub: Stub, time: Time | None = None, **more: Any) -> Client:
    time = time or Time()
    return Client(stub.url, "shop", monotonic=time.monotonic, pause=time.pause, **more)


def test_requests_go_over_one_connection() -> None:
    with stubbed(OK) as stub, client_of(stub) as client:
        for _ in range(5):
            assert client.note("A-001", "x").ok
        assert (stub.connections, len(stub.requests)) == (1, 5)


def test_who_speaks_is_in_the_headers() -> None:
    with stubbed(OK) as stub, client_of(stub, agent="ann", session="s-1", user="Jürgen", role="agent") as client:
        client.note("A-001", "x")
        said = [stub.headers(f"tenure-{name}") for name in ("agent", "session", "user", "role")]
        assert said == [["ann"], ["s-1"], ["J%C3%BCrgen"], ["agent"]]


def test_the_key_is_the_one_given_or_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENURE_KEY", "from-env")
    with stubbed(OK) as stub, client_of(stub) as one, client_of(stub, key="given") as two:
        one.note("A-001", "x")
        two.note("A-001", "x")
        assert stub.headers("authorization") == ["Bearer from-env", "Bearer given"]


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_key_never_crosses_a_network_in_the_clear(kind: Callable[..., Any]) -> None:
    for url in ("http://tenure.example.com", "http://127.example.com"):
        with pytest.raises(InvalidInput, match="plain HTTP") as refused:
            kind(url, key="secret-key")
        assert "secret-key" not in refused.value.message
    for url in ("http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1"):
        Client(url, key="secret-key").close()


@pytest.mark.parametrize("url", ["http://", "http://host:port", "https://ann:secret@host", "http://host/?x=1"])
def test_what_is_no_servers_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        Client(url)


# --- sent again ---------------------------------------------------------------------------------------------


def test_a_lost_answer_is_asked_for_again_with_the_same_request_id() -> None:
    time = Time()
    with stubbed(CUT, CUT, OK) as stub, client_of(stub, time) as client:
        assert client.add("One").ok
        ids = stub.headers("idempotency-key")
        assert len(ids) == 3
        assert len(set(ids)) == 1
        assert ids[0]
        assert 0 < sum(time.pauses) < 1


def test_the_callers_own_request_id_is_the_one_that_is_sent() -> None:
    with stubbed(OK) as stub, client_of(stub) as client:
        client.add("One", request_id="mine")
        client.add("One")
        client.add("One")
        assert stub.headers("idempotency-key")[0] == "mine"
        assert len(set(stub.headers("idempotency-key"))) == 3
        with pytest.raises(InvalidInput, match="printable"):
            client.add("One", request_id="new\nline")


def test_a_connection_that_the_server_closed_meanwhile_is_replaced_at_once() -> None:
    time = Time()
    with stubbed(OK) as stub, client_of(stub, time) as client:
        client.note("A-001", "x")
        stub.hang_up()
        assert client.note("A-001", "x").ok
        assert (stub.connections, time.pauses) == (2, [])


def test_a_servers_wish_to_wait_is_granted() -> None:
    time = Time()
    busy = problem(503, "OVERLOADED", "Retry-After: 3")
    with stubbed(busy, problem(429, "RATE_LIMITED", "Retry-After: 2"), OK) as stub, client_of(stub, time) as client:
        assert client.note("A-001", "x").ok
        assert time.pauses == [3.0, 2.0]


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_proxys_error_is_not_the_last_word(status: int) -> None:
    with stubbed(reply(status, b"<h1>Oops</h1>", type="text/html"), OK) as stub, client_of(stub) as client:
        assert client.note("A-001", "x").ok
        assert len(set(stub.headers("idempotency-key"))) == 1


# --- given up -----------------------------------------------------------------------------------------------


def test_nobody_there_is_definite_and_said_in_time() -> None:
    time = Time()
    client = Client(f"http://127.0.0.1:{free_port()}", "shop", monotonic=time.monotonic, pause=time.pause)
    with pytest.raises(StoreUnavailable) as away:
        client.note("A-001", "x")
    assert away.value.definite
    assert 5 < sum(time.pauses) <= 10
    assert len(time.pauses) < 20


def test_a_write_whose_answers_are_all_lost_is_unknown_and_a_look_is_not() -> None:
    with stubbed(CUT) as stub, client_of(stub) as client:
        with pytest.raises(OutcomeUnknown) as unknown:
            client.note("A-001", "x")
        assert not unknown.value.definite
        assert stub.headers("idempotency-key")[0] in (unknown.value.hint or "")
        with pytest.raises(StoreUnavailable) as away:
            client.tasks()
        assert away.value.definite


def test_once_lost_stays_unknown_although_the_server_is_definite_later() -> None:
    with stubbed(CUT, problem(503, "OVERLOADED", "Retry-After: 4")) as stub, client_of(stub) as client:
        with pytest.raises(OutcomeUnknown):
            client.note("A-001", "x")
        with pytest.raises(Overloaded):
            client.note("A-001", "x")


def test_what_time_does_not_mend_is_not_tried_again() -> None:
    with stubbed(problem(503, "SCHEMA_MISMATCH")) as stub, client_of(stub) as client:
        with pytest.raises(SchemaMismatch):
            client.note("A-001", "x")
        assert len(stub.requests) == 1


def test_a_name_that_nobody_knows_is_said_at_once() -> None:
    time = Time()
    client = Client("http://nowhere.invalid", monotonic=time.monotonic, pause=time.pause)
    with pytest.raises(StoreUnavailable, match=r"nowhere\.invalid"):
        client.tasks()
    assert time.pauses == []


# --- errors -------------------------------------------------------------------------------------------------


def kinds(kind: type[TenureError] = TenureError) -> list[type[TenureError]]:
    ours = [sub for sub in kind.__subclasses__() if sub.__module__ == errors.__name__]
    return [kind, *(found for sub in ours for found in kinds(sub))]


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.__name__)
def test_every_error_comes_back_as_what_it_was(kind: type[TenureError]) -> None:
    told = {"code": kind.code, "detail": "what", "hint": "how", "definite": kind.definite}
    error = error_of(told)
    assert (type(error), error.code, error.message, error.hint, error.definite) == (
        kind, kind.code, "what", "how", kind.definite,
    )  # fmt: skip


def test_an_error_of_a_newer_server_keeps_its_code() -> None:
    error = error_of({"code": "NEWER", "detail": "x", "definite": False})
    assert (type(error), error.code, error.definite) == (TenureError, "NEWER", False)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (problem(400, "CYCLE"), Cycle),
        (problem(401, "NOT_SIGNED_IN"), NotSignedIn),
        (problem(403, "NOT_ALLOWED"), NotAllowed),
        (problem(404, "NOT_FOUND"), NotFound),
        (reply(200, b"<html>hello", type="text/html"), InvalidInput),
        (reply(404, {"detail": "Not Found"}), InvalidInput),
        (reply(200, {}), InvalidInput),
        (reply(200, [1]), InvalidInput),
        (reply(308, b"", "Location: https://elsewhere"), InvalidInput),
    ],
)
def test_what_a_server_says_is_raised(said: bytes, kind: type[TenureError]) -> None:
    with stubbed(said) as stub, client_of(stub) as client:
        with pytest.raises(kind) as raised:
            client.show("A-001")
        assert type(raised.value) is kind
        assert len(stub.requests) == 1


def test_a_refusal_is_an_outcome_whatever_its_status() -> None:
    refused = {"outcome": "STALE_GENERATION", "message": "no", "lease_until": "2026-03-01T12:04:10.000000Z"}
    with stubbed(reply(409, refused)) as stub, client_of(stub) as client:
        outcome = client.note("A-001", "x")
        assert (outcome.outcome, outcome.lease_until) == ("STALE_GENERATION", 1772366650000000)


def test_bad_input_is_refused_before_anything_is_sent() -> None:
    with stubbed(OK) as stub, client_of(stub) as client:
        for bad in (
            lambda: client.submit("A-001@1:nonsense", 1),
            lambda: client.submit("A-001@1:7YT6BG388TRMYFBQR8RATSXVK58X8S5V", float("nan")),
            lambda: client.progress("A-001@1:7YT6BG388TRMYFBQR8RATSXVK58X8S5V", "much"),  # type: ignore[arg-type]
            lambda: client.show(""),
        ):
            with pytest.raises(InvalidInput):
                bad()
        assert stub.requests == []


# --- odds and ends ------------------------------------------------------------------------------------------


def test_only_what_differs_from_the_defaults_is_sent() -> None:
    with stubbed(OK) as stub, client_of(stub) as client:
        client.add("One", tags=("a",))
        client.note("a/b ?#%", "x")
        assert stub.requests[0][1] == b'{"task":{"title":"One","tags":["a"]}}'
        assert stub.requests[1][0].startswith("POST /api/v1/projects/shop/tasks/a%2Fb%20%3F%23%25/note HTTP/1.1\r\n")


def test_long_lists_are_fetched_page_by_page() -> None:
    row = {"id": "task_1", "created_at": "2026-03-01T12:04:10.000000Z"}
    cursor = cursor_text((1772366650000000, "task_1"))
    first = reply(200, {"items": [row] * 500, "next": cursor})
    last = reply(200, {"items": [row] * 20, "next": None, "more": False})
    with stubbed(first, last, first, first) as stub, client_of(stub) as client:
        whole = client.tasks(limit=700)
        assert (len(whole), whole.more, whole.next) == (520, False, None)
        cut = client.tasks(limit=1000)
        assert (len(cut), cut.more, cut.next) == (1000, True, (1772366650000000, "task_1"))
        asked = [head.partition(" HTTP")[0].partition("?")[2] for head, _ in stub.requests]
        assert asked == ["limit=500", f"after={cursor}&limit=200", "limit=500", f"after={cursor}&limit=500"]


def test_many_names_are_asked_for_in_several_requests() -> None:
    with stubbed(reply(200, {"items": [{}], "next": None})) as stub, client_of(stub) as client:
        assert len(client.states(f"A-{n:03d}" for n in range(250))) == 3
        assert client.states([]) == []
        assert len(stub.requests) == 3


def test_a_claim_waits_in_pieces_and_stops_when_nobody_wants_it() -> None:
    time = Time()
    none = reply(200, {"outcome": "NO_TASK", "claims": []})

    def monotonic() -> float:
        time.now += 5
        return time.now

    with stubbed(none) as stub, Client(stub.url, "shop", monotonic=monotonic, pause=time.pause) as client:
        assert client.claim(wait=70).outcome == "NO_TASK"
        asked = [head.partition("?wait=")[2].partition(" ")[0] for head, _ in stub.requests]
        assert asked[0] == "30"
        assert len(asked) > 2
        assert len(set(stub.headers("idempotency-key"))) == 1
        command = ClaimNext(project="shop", agent="me", session="s")
        assert client.claim_or_wait(command, 70, is_wanted=lambda: False).outcome == "NO_TASK"


def test_what_only_a_store_can_do_says_what_to_do_instead() -> None:
    client = Client("http://127.0.0.1:1")
    for deed in (client.verify, client.sweep, client.archive_finished, client.could_archive):
        with pytest.raises(StoreOnly) as refused:
            deed()
        assert refused.value.code == "STORE_ONLY"
        assert refused.value.hint
    with pytest.raises(StoreOnly):
        client.backup("x")
    with pytest.raises(StoreOnly):
        client.new_epoch("x")


def test_a_forked_child_makes_connections_of_its_own() -> None:
    with stubbed(OK) as stub, client_of(stub) as client:
        client.note("A-001", "x")
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if client.note("A-001", "child").ok else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        assert client.note("A-001", "parent").ok
        assert stub.connections == 2


def test_a_closed_client_asks_nothing_more() -> None:
    with stubbed(OK) as stub, client_of(stub) as client:
        client.note("A-001", "x")
        client.close()
        with pytest.raises(StoreUnavailable, match="closed"):
            client.note("A-001", "x")
        assert len(stub.requests) == 1


def test_the_trace_of_the_environment_goes_along(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    monkeypatch.setenv("TRACEPARENT", trace)
    with stubbed(OK) as stub, client_of(stub) as client:
        client.note("A-001", "x")
        assert stub.headers("traceparent") == [trace]


def test_a_command_to_a_server_loads_neither_the_engine_nor_a_store() -> None:
    with stubbed(OK) as stub:
        script = f"""
import sys, tenure
with tenure.Client({stub.url!r}, "shop") as client:
    assert client.note("A-001", "x").ok
print([m for m in ("tenure.engine", "tenure.stores", "apsw", "asyncio", "httpx2") if m in sys.modules])
"""
        run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert run.stdout == "[]\n"


# --- awaited ------------------------------------------------------------------------------------------------


def test_an_async_client_sends_again_and_gives_up_just_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def lost_and_found() -> None:
        with stubbed(CUT, problem(503, "STORE_UNAVAILABLE"), OK) as stub:
            async with AsyncClient(stub.url, "shop", key="k") as client:
                assert (await client.note("A-001", "x")).ok
            assert len(set(stub.headers("idempotency-key"))) == 1
            assert set(stub.headers("authorization")) == {"Bearer k"}
        monkeypatch.setattr("tenure.client.transports.http.PATIENCE", 0.3)
        with stubbed(CUT) as stub:
            async with AsyncClient(stub.url, "shop") as client:
                with pytest.raises(OutcomeUnknown):
                    await client.note("A-001", "x")
                with pytest.raises(StoreUnavailable):
                    await client.tasks()
        async with AsyncClient(f"http://127.0.0.1:{free_port()}") as client:
            with pytest.raises(StoreUnavailable, match=r"cannot be reached.*; it was tried for 0\.3 s") as refused:
                await client.note("A-001", "x")
            assert "call it again: nothing was done" in (refused.value.hint or "")
        async with AsyncClient("http://nowhere.invalid") as client:
            with pytest.raises(StoreUnavailable):
                await client.tasks()

    asyncio.run(lost_and_found())
