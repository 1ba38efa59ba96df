"""Bytes of artifacts over HTTP: the requests that carry them, and sending and receiving them piece by piece.

Each goes over a connection of its own, which is closed behind it. A sender first asks whether it may (`Expect:
100-continue`), so that who is refused has sent nothing.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from tenure.artifacts.port import Checking
from tenure.client.contents import PIECE, Putting, Wanted
from tenure.client.routes import ARTIFACT, PREFIX
from tenure.client.ways.asking import Request, header_safe, said_by, unsafe
from tenure.client.ways.connections import TO_ANSWER, Connections, Failed, is_readable, seconds
from tenure.client.ways.hearing import Reply
from tenure.client.wire import unspelled
from tenure.core.artifact_names import checked_name
from tenure.core.commands import Principal
from tenure.core.errors import InvalidInput, StoreUnavailable
from tenure.core.receipts import parse_receipt

TO_CONTINUE = 2.0  # seconds: some proxies never say "continue"
FOUND = (200, 206)


def of_put(asked: Putting, principal: Principal) -> Request:
    headers = {
        **said_by(principal),
        "Tenure-Receipt": header_safe(asked.receipt),
        "Content-Type": asked.type,
        "Content-Length": str(asked.source.size),
        "Content-Digest": f"sha-256=:{base64.b64encode(bytes.fromhex(asked.source.digest)).decode()}:",
    }
    path = _path(asked.project, parse_receipt(asked.receipt).name, asked.name)
    return Request("PUT", path, headers, is_look=False)


def of_get(asked: Wanted, principal: Principal) -> Request:
    path = _path(asked.project, asked.task, asked.name)
    if asked.generation is not None:
        path += "?" + urlencode({"generation": asked.generation})
    headers = said_by(principal)
    if asked.start or asked.end is not None:
        if asked.start < 0 or (asked.end is not None and asked.end <= asked.start):
            raise InvalidInput(f"no bytes from {asked.start} to {asked.end}")
        headers["Range"] = f"bytes={asked.start}-{'' if asked.end is None else asked.end - 1}"
    return Request("GET", path, headers)


def _path(project: str, task: str, name: str) -> str:
    if not project or not task:
        raise InvalidInput("project and task: neither may be empty")
    filled = ARTIFACT.replace("{project}", quote(project, safe="")).replace("{task}", quote(task, safe=""))
    return PREFIX + filled.replace("{name}", quote(checked_name(name), safe="/"))


def view_in(header: str | None) -> dict[str, Any]:
    """What an answer's headers say of the artifact that it carries."""
    try:
        view: dict[str, Any] = unspelled(msgspec.json.decode(unsafe(header or "")))
        return view
    except msgspec.DecodeError:
        raise InvalidInput("this does not answer as a tenure server does", "look what the url should be") from None


def checking(view: dict[str, Any], asked: Wanted) -> Checking:
    """What holds the last piece back until all of them were right."""
    end = view["size"] if asked.end is None else min(asked.end, view["size"])
    return Checking(view["digest"], view["size"], asked.start, end)


# --- for threads --------------------------------------------------------------------------------------------


def upload(connections: Connections, request: Request, asked: Putting) -> Reply:
    """Send it; raises Failed where no reply came."""
    connection = connections.made()
    try:
        assert connection.sock is not None
        connection.sock.settimeout(TO_ANSWER)
        connection.putrequest(request.method, connections.below(request.path))
        for name, value in {**request.headers, "Expect": "100-continue"}.items():
            connection.putheader(name, value)
        connection.endheaders()
        response = connection.response_class(connection.sock, method=request.method)
        if _may_go_on(connection, response):
            _send(connection, asked)
        response.begin()
        return _reply(response, response.read())
    except (OSError, HTTPException) as error:
        raise Failed(connections.lost(error)) from error
    finally:
        connection.close()


def _may_go_on(connection: HTTPConnection, response: HTTPResponse) -> bool:
    assert connection.sock is not None
    if not is_readable(connection.sock, TO_CONTINUE):
        return True
    if not response.fp.peek(12).split(b" ", 1)[-1].startswith(b"100"):
        return False
    while response.fp.readline() not in (b"\r\n", b"\n", b""):
        pass
    return True


def _send(connection: HTTPConnection, asked: Putting) -> None:
    try:
        for piece in asked.source.pieces():
            connection.send(piece)
    except (BrokenPipeError, ConnectionResetError):
        pass  # refused on the way: the reply, if there is one, says why


class Download:
    """One artifact on its way here. Its reply is there after `begin`; where that is no refusal, its pieces follow."""

    def __init__(self, connections: Connections, request: Request) -> None:
        self._connections, self._request = connections, request
        self._connection: HTTPConnection | None = None
        self._response: HTTPResponse | None = None

    def begin(self) -> Reply:
        self.close()
        connection = self._connection = self._connections.made()
        try:
            assert connection.sock is not None
            connection.sock.settimeout(TO_ANSWER)
            path = self._connections.below(self._request.path)
            connection.request(self._request.method, path, headers=self._request.headers)
            response = self._response = connection.getresponse()
            if response.status in FOUND:
                return _reply(response, b"")
            reply = _reply(response, response.read())
        except (OSError, HTTPException) as error:
            self.close()
            raise Failed(self._connections.lost(error)) from error
        self.close()
        return reply

    @property
    def about(self) -> str | None:
        """What the reply says of the artifact."""
        return self._response.headers.get("Tenure-Artifact") if self._response is not None else None

    def pieces(self, checking: Checking) -> Iterator[bytes]:
        assert self._response is not None
        try:
            while piece := self._response.read(PIECE):
                if before := checking.take(piece):
                    yield before
            if last := checking.finish():
                yield last
        except (OSError, HTTPException) as error:
            raise StoreUnavailable(self._connections.lost(error).error.message, "get it again") from error
        finally:
            self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


def _reply(response: HTTPResponse, body: bytes) -> Reply:
    headers = response.headers
    return Reply(
        response.status, body, headers.get("Content-Type", ""), seconds(headers.get("Retry-After")),
        headers.get("Location", ""),
    )  # fmt: skip
