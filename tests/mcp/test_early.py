"""A client's first requests are answered before the `mcp` package is loaded, with the package's own replies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenure.mcp.early_replies import RECORDED
from tests.mcp.conftest import command
from tests.mcp.test_stdio import HELLO, lines

LIST = {"id": 2, "method": "tools/list", "params": {"_meta": {"progressToken": 1}}}
PACKAGE = {"anyio", "mcp", "mcp_types", "pydantic"}
# A process that never loads the package: what it answers comes from the recorded replies alone.
SCRIPT = """
import sys, threading
from tenure.mcp.early_replies import EarlyInput, recorded
known = recorded()
assert known is not None
early = EarlyInput(known)
sys.stdin.close()
ended = threading.Event()
kept = []
import time
while True:
    with early._mutex:
        if early._kept and early._kept[-1] is None:
            break
    time.sleep(0.005)
early.hand_over(lambda line: kept.append(line) or True)
import json
loaded = sorted({name.partition(".")[0] for name in sys.modules})
print(json.dumps({"kept": [l and l.decode() for l in kept], "greeted": early.greeted, "loaded": loaded}))
"""


def early(*given: bytes) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The early replies to the lines, and what the package would get."""
    run = subprocess.run([sys.executable, "-c", SCRIPT], input=b"".join(given), capture_output=True, check=True)
    *replies, rest = map(json.loads, run.stdout.splitlines())
    return replies, rest


@pytest.mark.parametrize("protocol", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_the_first_requests_are_answered_without_the_package(protocol: str) -> None:
    recorded = json.loads(RECORDED.read_text())["replies"][protocol]
    hello = {**HELLO[0], "params": HELLO[0]["params"] | {"protocolVersion": protocol}}
    (welcome, tools), rest = early(lines(hello, HELLO[1], LIST, {"id": 3, "method": "ping"}))
    assert (welcome["id"], welcome["result"]) == ("hello", recorded["initialize"])
    assert (tools["id"], tools["result"]) == (2, recorded["tools/list"])
    # The package gets the handshake too, so that it knows its client, and everything else that was not answered.
    methods = [json.loads(line)["method"] for line in rest["kept"] if line]
    assert methods == ["initialize", "notifications/initialized", "ping"]
    assert (rest["greeted"], rest["kept"][-1]) == ("hello", None)
    assert not PACKAGE & set(rest["loaded"])


@pytest.mark.parametrize(
    "line",
    [
        lines({"id": 1, "method": "initialize", "params": HELLO[0]["params"] | {"protocolVersion": "1999-01-01"}}),
        lines({"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}),
        lines({"id": 1, "method": "initialize", "params": HELLO[0]["params"] | {"capabilities": {"roots": 1}}}),
        lines({**HELLO[0], "more": 1}),
        lines({"method": "initialize", "params": HELLO[0]["params"]}),
        lines({"id": 2, "method": "tools/list"}),  # no handshake
        lines(HELLO[1], HELLO[0]),
        b'{"jsonrpc":"2.0","id":1,"id":2,"method":"initialize"}\n',
        b"[" * 5000 + b"\n",
        b"nonsense\n",
    ],
)
def test_everything_else_is_left_to_the_package(line: bytes) -> None:
    replies, rest = early(line)
    assert (replies, rest["greeted"]) == ([], None)
    assert "".join(f"{kept}\n" for kept in rest["kept"] if kept).encode() == line


def test_a_second_page_of_tools_is_left_to_the_package() -> None:
    replies, rest = early(lines(*HELLO, {"id": 2, "method": "tools/list", "params": {"cursor": "x"}}))
    assert [reply["id"] for reply in replies] == ["hello"]
    assert '"cursor"' in rest["kept"][2]


def test_replies_of_another_version_of_the_package_are_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tenure.mcp import early_replies

    known = json.loads(RECORDED.read_text())
    (tmp_path / "other.json").write_text(json.dumps({**known, "library": "0.0.1"}))
    assert early_replies.recorded() is not None
    monkeypatch.setattr(early_replies, "RECORDED", tmp_path / "other.json")
    assert early_replies.recorded() is None


def test_a_request_that_was_answered_early_gets_one_reply(folder: Path, environ: dict[str, str]) -> None:
    server = subprocess.run(
        command("mcp"), input=lines(*HELLO, LIST, {"id": 3, "method": "tools/list"}, {"id": 4, "method": "ping"}),
        capture_output=True, check=True, cwd=folder, env=environ,
    )  # fmt: skip
    replies = [json.loads(line) for line in server.stdout.splitlines()]
    assert sorted(str(reply["id"]) for reply in replies) == ["2", "3", "4", "hello"]
    assert all("result" in reply for reply in replies)


def test_a_slow_client_gets_the_same_replies_from_the_package(folder: Path, raw: Callable[..., Any]) -> None:
    """It sends its first request after the package was loaded."""
    server = raw()
    os.write(server.stdin.fileno(), lines({"id": 0, "method": "ping"}))
    server.stdout.readline()
    os.write(server.stdin.fileno(), lines(HELLO[0]))
    recorded = json.loads(RECORDED.read_text())["replies"]["2025-06-18"]
    assert json.loads(server.stdout.readline())["result"] == recorded["initialize"]
