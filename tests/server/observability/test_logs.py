"""The log: one JSON object a line, of everything that is told, and never a secret."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure.client.caller import SystemRandom
from tenure.core import keys
from tenure.core.commands import Principal
from tenure.core.errors import InvalidInput, StoreUnavailable
from tenure.core.ids import Receipt
from tenure.engine import Engine
from tenure.server.app import App
from tenure.server.logs import LEVELS, ServerLog
from tenure.server.requests import Request
from tenure.server.service import Service
from tests.server.test_coordinator import Failing

AGENT = Principal(role="agent", agent="ann", session="s-1", address="10.1.2.3")
RECEIPT = str(Receipt("B-003", 7, "0011aabb", bytes(range(16))))
KEY = keys.spelled("local", keys.new_id(b"12345678"), keys.new_secret(b"0123456789abcdef0123456789abcdef"))
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJtaWEifQ.c2lnbmF0dXJl"


class Written:
    """A log whose lines are read back."""

    def __init__(self, level: str = "info", *, is_terminal: bool = False) -> None:
        self.stream = io.BytesIO()
        self.log = ServerLog(level, stream=self.stream, is_terminal=is_terminal, clock=lambda: 1_700_000_000.5)

    @property
    def text(self) -> str:
        return self.stream.getvalue().decode()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]


@pytest.fixture
def written() -> Written:
    return Written()


def test_a_request_is_one_line_that_says_who_asked_for_what_and_what_came_of_it(written: Written) -> None:
    written.log.request("POST", "/api/v1/projects/{project}/claims", 200, 0.0123456789, principal=AGENT, trace_id="ab")
    assert written.lines == [
        {
            "time": "2023-11-14T22:13:20.500Z", "level": "info", "event": "request", "method": "POST",
            "route": "/api/v1/projects/{project}/claims", "status": 200, "seconds": 0.012346, "trace_id": "ab",
            "principal": "agent:ann", "role": "agent", "address": "10.1.2.3",
        }
    ]  # fmt: skip


def test_what_machines_ask_for_all_day_is_told_only_where_it_goes_wrong(written: Written) -> None:
    written.log.request("GET", "/health", 200, 0.1)
    written.log.request("GET", "/", 200, 0.1)  # a file of the dashboard
    written.log.request("GET", "/metrics", 200, 0.1)
    written.log.request("GET", "/metrics", 401, 0.1)
    written.log.request("GET", "/ready", 503, 0.1)
    assert [(line["route"], line["level"]) for line in written.lines] == [("/metrics", "info"), ("/ready", "error")]


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_leaves_out_what_is_below_it(level: str) -> None:
    written = Written(level)
    for name in LEVELS:
        getattr(written.log, name)("x")
    assert [line["level"] for line in written.lines] == list(LEVELS)[list(LEVELS).index(level) :]


def test_a_level_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match="one of debug, info, warning, error"):
        ServerLog("loud", stream=io.BytesIO())


# --- secrets ------------------------------------------------------------------------------------------------

SECRETS = {"receipt": RECEIPT.partition(":")[2], "key": KEY[-52:], "jwt": "c2lnbmF0dXJl", "password": "hunter2"}
TEXTS = [
    f"the receipt is {RECEIPT}",
    f"/api/v1/projects/p/tasks/{RECEIPT}/submit",
    f"/api/v1/projects/p/tasks/{RECEIPT.replace('@', '%40').replace(':', '%3A')}",
    f"Authorization: Bearer {KEY}",
    f"{KEY} is not a key",
    f"bearer%20{JWT}",
    f"GET /mcp?access_token={JWT}&x=1",
    f"cannot reach postgresql://tenure:{SECRETS['password']}@db/work",
    f"cannot reach postgresql://db/work?password={SECRETS['password']}",
    f"Basic {SECRETS['password']}",
    f"?key={KEY}",
]


@pytest.mark.parametrize("is_terminal", [False, True])
@pytest.mark.parametrize("text", TEXTS)
def test_no_secret_is_written_wherever_it_stands(text: str, is_terminal: bool) -> None:
    written = Written(is_terminal=is_terminal)
    written.log.info(text)
    written.log.info("x", path=text, deep={"list": [{"of": (text,)}]}, **{text: 1})
    written.log.request("GET", "no route", 404, 0.1, path=text, principal=Principal(role="agent", agent=text))
    try:
        raise ValueError(text)
    except ValueError as error:
        written.log.error("broken", exc_info=error)
    assert written.text.count("\n") >= 4
    assert [name for name, secret in SECRETS.items() if secret in written.text] == []


def test_fields_with_a_secrets_name_are_left_out(written: Written) -> None:
    secret = {"receipt": 1, "nonce": b"n", "Authorization": "x", "token": "t", "password": "p", "cookie": "c"}
    written.log.info("x", headers=secret, **secret)
    (line,) = written.lines
    assert line == {"time": line["time"], "level": "info", "event": "x", "headers": {}}


def test_what_is_no_secret_stays_as_it_is(written: Written) -> None:
    told = {
        "key": "B-003-implement-repositories", "task": "task_01HF7YB5Q00000018000000001", "ref": "B-003", "n": 3,
        "trace_id": "0af7651916cd43dd8448eb211c80319c", "address": "fe80::1", "text": "ask mia@example.com, bears: 2",
        "share": 0.5, "url": "http://127.0.0.1:7420/", "ok": True,
    }  # fmt: skip
    written.log.info("x", **told)
    assert written.lines[0].items() >= told.items()


def test_long_deep_and_odd_values_are_written_all_the_same(written: Written) -> None:
    nest: list[Any] = []
    nest.append(nest)
    written.log.info("x", text="a" * 100_000, nest=nest, odd=object, bytes=b"\xff", missing=None)
    (line,) = written.lines
    assert len(written.text) < 10_000
    assert line["bytes"] == "…"
    assert "missing" not in line


def test_no_text_from_outside_moves_a_persons_cursor() -> None:
    written = Written(is_terminal=True)
    written.log.request("GET", "no route", 404, 0.1, path="/\x1b]0;owned\x07\r\n2023 [error] forged")
    assert "owned" in written.text
    assert not {"\x07", "\r", "\x1b]"} & set(written.text)
    written.log.warning("said\x1b[2J by a library\n2023 [error] forged")
    assert "\x1b[2J" not in written.text
    assert written.text.count("\n") == 2


# --- where it goes ------------------------------------------------------------------------------------------


@pytest.fixture
def taken_over(written: Written) -> Iterator[Written]:
    written.log.take_over()
    yield written
    written.log.close()


def test_what_libraries_log_goes_the_same_way(taken_over: Written) -> None:
    logging.getLogger("uvicorn.error").info("Started server process [%d]", 7)
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    logging.getLogger("asyncio").error("%s", f"Task failed with {RECEIPT}")
    logging.getLogger("asyncio").info("chatter")
    told = [(line["logger"], line["level"], line["event"]) for line in taken_over.lines]
    assert told == [
        ("uvicorn.error", "warning", "Invalid HTTP request received."),
        ("asyncio", "error", "Task failed with B-003@7:…"),
    ]


def test_closing_gives_libraries_their_loggers_back(written: Written) -> None:
    loggers = [logging.getLogger(name) for name in ("", "uvicorn", "uvicorn.error")]
    before = [(logger.handlers, logger.level, logger.propagate) for logger in loggers]
    written.log.take_over()
    written.log.close()
    assert [(logger.handlers, logger.level, logger.propagate) for logger in loggers] == before


def test_a_file_is_appended_to_and_opened_anew_when_it_was_moved_away(tmp_path: Path) -> None:
    path = tmp_path / "tenure.log"
    path.write_text("before\n")
    log = ServerLog(path=str(path))
    log.info("one")
    path.rename(tmp_path / "tenure.log.1")
    log.info("two")
    log.close()
    assert (tmp_path / "tenure.log.1").read_text().count("\n") == 2
    assert json.loads(path.read_text())["event"] == "two"
    assert path.stat().st_mode & 0o777 == 0o600


class Full(io.BytesIO):
    def write(self, _: object) -> int:
        raise OSError(28, "No space left on device")


def test_a_log_that_cannot_be_written_fails_nothing() -> None:
    log = ServerLog(stream=Full())
    log.info("x")
    log.info("y")
    assert log.sink.lost == 2


# --- a request that failed ------------------------------------------------------------------------------------


async def test_a_failed_request_has_code_and_request_id_and_the_reason_where_the_server_failed_it(
    written: Written,
) -> None:
    async def owner(_: Request) -> Principal:
        return Principal()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}"}

    async def send(_: Any) -> None:
        pass

    store = Failing()
    service = Service(Engine(store, SystemRandom()))
    app = App(service, owner, written.log)
    scope = {
        "type": "http", "method": "GET", "path": "/api/v1/projects/hunter2/tasks/A-001", "scheme": "http",
        "query_string": b"", "headers": [(b"host", b"localhost"), (b"idempotency-key", b"k-1")],
    }  # fmt: skip
    await app(scope, receive, send)
    store.reads = StoreUnavailable("db.internal: no space left on device")
    await app(scope, receive, send)
    refused, failed = written.lines
    assert (refused["status"], refused["code"], refused["request_id"]) == (404, "NOT_FOUND", "k-1")
    assert "hunter2" not in str(refused)  # it quotes what was sent
    assert (failed["status"], failed["code"], failed["level"]) == (503, "STORE_UNAVAILABLE", "error")
    assert failed["why"] == "db.internal: no space left on device"
    service.shut()
