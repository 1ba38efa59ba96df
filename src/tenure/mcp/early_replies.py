"""Replies to a client's first requests, before the `mcp` package is loaded.

The package takes half a second to load, and some clients wait no longer than a second for their tools. Its replies to
`initialize` and `tools/list` are always the same, so they are recorded with the package itself (`./x docs`) and shipped
in `data/mcp_replies.json`. While the package loads, a thread answers these two requests from there. Every other line
waits. The package then gets all lines but the answered `tools/list`: also `initialize`, whose second reply is dropped,
so that it knows the client. With another version of the package than the recorded one nothing is answered early.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from tenure.core.decoders import check_json
from tenure.core.errors import InvalidInput

RECORDED = Path(__file__).parents[1] / "data" / "mcp_replies.json"
CHUNK = 1 << 16
STDIN, STDOUT = 0, 1
Put = Callable[[bytes | None], bool]  # takes a line; None: the end. False: nobody wants more


class Recorded(msgspec.Struct, frozen=True):
    library: str  # the version of the `mcp` package
    replies: dict[str, dict[str, Any]]  # version of the protocol → method → result


class _Client(msgspec.Struct, frozen=True):
    name: str
    version: str


class _Hello(msgspec.Struct, frozen=True, rename="camel"):
    protocol_version: str
    capabilities: dict[str, dict[str, Any]]
    client_info: _Client


class _Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    jsonrpc: str
    id: int | str
    method: str
    params: dict[str, Any] = {}


def recorded() -> Recorded | None:
    """The recorded replies, if they are of the installed package."""
    found = msgspec.json.decode(RECORDED.read_bytes(), type=Recorded)
    return found if _is_installed(found.library) else None


def _is_installed(version: str) -> bool:
    from importlib.util import find_spec

    spec = find_spec("mcp")
    if spec is None or spec.origin is None:
        return False
    return Path(spec.origin).parents[1].joinpath(f"mcp-{version}.dist-info").is_dir()


class EarlyInput:
    """Standard input from the start on, read by a thread; `hand_over` passes its lines on."""

    def __init__(self, known: Recorded | None) -> None:
        self.greeted: int | str | None = None  # the id of the `initialize` that was answered here
        self._known = known.replies if known is not None else {}
        self._version: str | None = None
        self._kept: list[bytes | None] = []
        self._put: Put | None = None
        self._mutex = threading.Lock()
        self._wire = os.dup(STDIN)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, STDIN)  # a child process, such as git, must not read our input
        os.close(nothing)
        # A daemon without the lock of a buffered reader: it may still be reading when the process ends.
        threading.Thread(target=self._read, name="stdin", daemon=True).start()

    def hand_over(self, put: Put) -> None:
        """Pass on the lines so far, and each that comes."""
        with self._mutex:
            self._put = put
            for line in self._kept:
                put(line)
            self._kept.clear()

    def _read(self) -> None:
        rest = b""
        while chunk := self._chunk():
            *lines, rest = (rest + chunk).split(b"\n")
            if not all(self._take(line) for line in lines):
                return
        if rest:
            self._take(rest)
        self._take(None)

    def _chunk(self) -> bytes:
        try:
            return os.read(self._wire, CHUNK)
        except OSError:  # the terminal is gone
            return b""

    def _take(self, line: bytes | None) -> bool:
        with self._mutex:
            if self._put is not None:
                return self._put(line)
            if line is None or not self._is_answered(line):
                self._kept.append(line)
            return True

    def _is_answered(self, line: bytes) -> bool:
        """Answer the line, if its reply is recorded; False where the package must get it too."""
        try:
            check_json(line, "the message")
            asked = msgspec.json.decode(line, type=_Request)
            if asked.jsonrpc != "2.0":
                return False
            if asked.method == "initialize" and not self._kept and self._version is None:
                hello = msgspec.convert(asked.params, _Hello)
                if hello.protocol_version in self._known:
                    self._version, self.greeted = hello.protocol_version, asked.id
                    self._reply(asked)
                return False
        except (InvalidInput, msgspec.MsgspecError, RecursionError):
            return False  # the package refuses it
        if asked.method != "tools/list" or not asked.params.keys() <= {"_meta"} or self._version is None:
            return False
        self._reply(asked)
        return True

    def _reply(self, asked: _Request) -> None:
        result = self._known[str(self._version)][asked.method]
        left = memoryview(msgspec.json.encode({"jsonrpc": "2.0", "id": asked.id, "result": result}) + b"\n")
        try:
            while left:
                left = left[os.write(STDOUT, left) :]
        except OSError:
            pass  # the client is gone: the end of the input follows
