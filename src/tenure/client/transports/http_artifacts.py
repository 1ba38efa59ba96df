"""Artifacts over HTTP: each on its own connection, in pieces.

A sender first asks whether it may (`Expect: 100-continue`), so that a refused one has sent nothing.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from tenure.client.contents import PIECE
from tenure.client.routes import ARTIFACT, PREFIX
from tenure.client.transports.bounded import LONGEST, SLOWEST, BoundedResponse, Unbounded
from tenure.client.transports.http import TO_ANSWER, Connections, answered, is_readable
from tenure.client.transports.http_messages import (
    FOUND,
    Reply,
    Request,
    header_safe,
    header_text,
    identity_headers,
    not_tenure,
    path_part,
    view_of,
)
from tenure.client.transports.server_address import STRANGE, Failed, lost, strange
from tenure.client.wire import from_plain
from tenure.core.artifacts import checked_name
from tenure.core.commands import Principal
from tenure.core.errors import InvalidInput, StoreUnavailable, close_all
from tenure.core.ids import parse_receipt

if TYPE_CHECKING:
    from tenure.artifacts.port import Checking
    from tenure.client.contents import Source, Upload, Wanted

TO_CONTINUE = 2.0  # some proxies never answer "continue"


def upload_request(upload: Upload, principal: Principal) -> Request:
    source = upload.source
    headers = {
        **identity_headers(principal),
        "Tenure-Receipt": header_safe(upload.receipt),
        "Content-Type": upload.type,
        "Content-Length": str(source.size),
        "Content-Digest": f"sha-256=:{base64.b64encode(bytes.fromhex(source.digest)).decode()}:",
    }
    if upload.word is not None:
        headers["Tenure-Runner"] = header_safe(upload.word)
    path = _artifact_path(upload.project, parse_receipt(upload.receipt).name, upload.name)
    return Request("PUT", path, headers, is_read=False, source=source)


def download_request(wanted: Wanted, principal: Principal) -> Request:
    path = _artifact_path(wanted.project, wanted.task, wanted.name)
    if wanted.generation is not None:
        path += "?" + urlencode({"generation": wanted.generation})
    headers = identity_headers(principal)
    if wanted.start or wanted.end is not None:
        if wanted.start < 0 or (wanted.end is not None and wanted.end <= wanted.start):
            raise InvalidInput(f"end must be after start (got start {wanted.start}, end {wanted.end})")
        headers["Range"] = f"bytes={wanted.start}-{'' if wanted.end is None else wanted.end - 1}"
    return Request("GET", path, headers, is_download=True)


def _artifact_path(project: str, task: str, name: str) -> str:
    if not project or not task:
        raise InvalidInput("project and task must not be empty")
    filled = ARTIFACT.replace("{project}", path_part(project)).replace("{task}", path_part(task))
    return PREFIX + filled.replace("{name}", quote(checked_name(name), safe="/"))


def artifact_of(reply: Reply, url: str) -> dict[str, Any]:
    """The view of the artifact that a reply carries."""
    if reply.status not in FOUND:
        view_of(reply, url)  # raises the error that it reports
    try:
        view: Any = from_plain(msgspec.json.decode(header_text(reply.headers.get("Tenure-Artifact") or "")))
        if isinstance(view["digest"], str) and isinstance(view["size"], int):
            return dict(view)
    except (ValueError, TypeError, LookupError, RecursionError):
        pass
    raise not_tenure(reply, url)


class Stream(NamedTuple):
    """A download whose bytes are still to be read."""

    connection: HTTPConnection
    response: BoundedResponse

    def close(self) -> None:
        close_all(self.response.close, self.connection.close)


def transfer(connections: Connections, request: Request) -> Reply:
    """Send an upload, or begin a download: its reply has a Stream."""
    connection = connections.connect()
    is_open = False
    response: BoundedResponse | None = None
    try:
        assert connection.sock is not None
        connection.sock.settimeout(TO_ANSWER)
        path = connections.address.path + request.path
        if request.source is not None:
            response = _upload(connection, request, path, request.source)
        else:
            connection.request(request.method, path, headers=request.headers)
            response = answered(connection)
            is_open = response.status in FOUND
        if is_open:
            return Reply(response.status, b"", response.headers, Stream(connection, response))
        return Reply(response.status, response.whole(), response.headers)
    except Unbounded as error:
        raise error.failed(connections.address.url) from None
    except (OSError, HTTPException) as error:
        raise Failed(lost(connections.address.url, error)) from error
    except STRANGE as error:
        raise Failed(strange(connections.address.url, error), may_pass=False) from error
    finally:
        if not is_open:
            close_all(connection.close, *(() if response is None else (response.close,)))


def pieces_of(url: str, stream: Stream, checking: Checking) -> Iterator[bytes]:
    """The bytes of a download; the last piece only after all were checked."""
    try:
        stream.response.allow(LONGEST + checking.left / SLOWEST)
        while piece := stream.response.read(PIECE):
            if before := checking.take(piece):
                yield before
        if last := checking.finish():
            yield last
    except Unbounded as error:
        raise error.refused(url) from None
    except (OSError, HTTPException, *STRANGE) as error:
        raise StoreUnavailable(lost(url, error).error.message, "get it again") from error
    finally:
        stream.close()


def _upload(connection: HTTPConnection, request: Request, path: str, source: Source) -> BoundedResponse:
    connection.putrequest(request.method, path)
    for name, value in {**request.headers, "Expect": "100-continue"}.items():
        connection.putheader(name, value)
    connection.endheaders()
    assert connection.sock is not None
    response = BoundedResponse(connection.sock, method=request.method, seconds=LONGEST + source.size / SLOWEST)
    if _may_send(connection, response):
        try:
            for piece in source.pieces():
                connection.send(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused meanwhile: the reply, if there is one, has the reason
    response.begin()
    return response


def _may_send(connection: HTTPConnection, response: BoundedResponse) -> bool:
    assert connection.sock is not None
    if not is_readable(connection.sock, TO_CONTINUE):
        return True
    if not response.fp.peek(12).split(b" ", 1)[-1].startswith(b"100"):
        return False
    while response.fp.readline() not in (b"\r\n", b"\n", b""):
        pass
    return True
