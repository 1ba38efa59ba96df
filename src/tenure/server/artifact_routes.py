"""`/api/v1/projects/{project}/tasks/{task}/artifacts/{name}`: upload and download of an artifact, in pieces.

Neither direction keeps more than a few pieces in memory or blocks the event loop: disk and bucket have their own
threads, so queries do not wait for them. An artifact was written by an agent and may contain anything: browsers get it
as a download and never render it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from tenure.artifacts.port import PIECE, Artifacts, Kept, Writing
from tenure.client.routes import ARTIFACT, PREFIX
from tenure.client.transports.http_messages import header_safe, header_text
from tenure.client.wire import plain
from tenure.core import limits
from tenure.core.artifacts import check_type, checked_name
from tenure.core.commands import PutArtifact
from tenure.core.errors import InvalidInput, Overloaded, TenureError, TooLarge
from tenure.core.outcomes import Outcome
from tenure.core.roles import check_kind
from tenure.engine import Engine
from tenure.engine.artifacts import artifact_verbs
from tenure.server import responses
from tenure.server.app import Endpoint
from tenure.server.requests import Request, check_task
from tenure.server.responses import Response, StreamedResponse
from tenure.server.service import Service, ThreadPool

THREADS = 4
ANYTHING = "application/octet-stream"
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


def routes(service: Service) -> Iterator[Endpoint]:
    """The endpoints for `App.add`."""
    artifacts = ArtifactEndpoints(service)
    service.parts.append(artifacts)
    yield Endpoint("PUT", PREFIX + ARTIFACT, artifacts.put, takes_rest=True)
    yield Endpoint("GET", PREFIX + ARTIFACT, artifacts.get, takes_rest=True)


class ArtifactEndpoints:
    def __init__(self, service: Service) -> None:
        self._metrics = service.metrics
        self._threads = ThreadPool(THREADS, "artifact")
        self._open = 0

    def start(self) -> None: ...

    def stop(self) -> None:
        self._threads.close()

    @staticmethod
    def _place(engine: Engine, project: str) -> Artifacts:
        if engine.context.artifacts is None:
            raise InvalidInput("this server has no storage for artifacts", "set `artifacts` in its configuration")
        return engine.context.artifacts(project)

    def _check_capacity(self) -> None:
        if self._open >= limits.TRANSFERS:
            raise Overloaded(f"{self._open} artifact transfers are open already", "send it again in a moment")

    # --- upload ---

    async def put(self, request: Request) -> Response:
        check_kind(request.principal, PutArtifact)
        asked = _asked(request)
        ready = await self._threads.run(
            artifact_verbs.ready,
            request.service.engine,
            asked.project,
            asked.receipt,
            asked.name,
            request.principal,
            asked.word,
        )
        if isinstance(ready, Outcome):
            return responses.of_outcome(ready)
        self._check_capacity()
        self._open += 1
        try:
            kept = await self._kept(request, asked, ready.largest)
        finally:
            self._open -= 1
        command = PutArtifact(
            project=asked.project, receipt=asked.receipt, name=asked.name, type=asked.type, word=asked.word,
            digest=kept.digest, size=kept.size, since=ready.since, trace_id=request.trace.id,
        )  # fmt: skip
        outcome = await request.service.do(command, request.principal)
        if not outcome.ok:
            engine = request.service.engine
            await self._threads.run(artifact_verbs.left, engine, asked.project, kept.digest, kept.size)
        return responses.of_outcome(outcome)

    async def _kept(self, request: Request, asked: _Asked, largest: int) -> Kept:
        """Store the bytes. If the client disconnects, nothing is kept."""
        run = self._threads.run
        place = await run(self._place, request.service.engine, asked.project)
        writing: Writing = await run(_begin_writing, place, largest)
        try:
            async for piece in _joined(_parts(request, largest)):
                await run(writing.write, piece)
            return await run(writing.keep, asked.digest)
        finally:
            await run(writing.__exit__, None, None, None)

    # --- download ---

    async def get(self, request: Request) -> Response | StreamedResponse:
        fields = request.fields
        view: Any = await self._threads.run(
            artifact_verbs.found,
            request.service.engine,
            fields["project"],
            fields["task"],
            fields["name"],
            _generation(request),
            request.principal,
        )
        etag = f'"{view["digest"]}"'
        if request.header(b"if-none-match") == etag:
            return Response(304, b"", headers=((b"etag", etag.encode()),))
        part = _part(request.header(b"range"), view["size"])
        if part is None:
            size = (b"content-range", b"bytes */%d" % view["size"])
            refusal = responses.of_error(
                InvalidInput(f"the range is outside of {view['size']} bytes", "request another range, or all")
            )
            return refusal._replace(status=416, headers=(size,))
        self._check_capacity()
        pieces = await self._threads.run(self._read, request.service.engine, fields["project"], view["digest"], part)
        return StreamedResponse(self._stream(pieces), 206 if part.is_asked else 200, _headers(view, part), "artifacts")

    def _read(self, engine: Engine, project: str, digest: str, part: _Part) -> Iterator[bytes]:
        return self._place(engine, project).read(digest, start=part.start, end=part.end)

    async def _stream(self, pieces: Iterator[bytes]) -> AsyncGenerator[bytes, None]:
        self._open += 1
        try:
            while (piece := await self._threads.run(next, pieces, None)) is not None:
                yield piece
        except TenureError as error:
            # The response has begun: it ends before its Content-Length, so the client sees the failure.
            self._metrics.store_failed(error)
            raise
        finally:
            self._open -= 1


# --- request headers ------------------------------------------------------------------------------------


class _Asked(NamedTuple):
    project: str
    name: str
    receipt: str
    type: str
    digest: str | None
    word: str | None


def _asked(request: Request) -> _Asked:
    receipt = request.header(b"tenure-receipt")
    if not receipt:
        raise InvalidInput("the header Tenure-Receipt is missing", "send the receipt of the claim")
    receipt = header_text(receipt)
    check_task(request.fields["task"], receipt)
    type = check_type(request.header(b"content-type") or ANYTHING)
    digest = _digest(request.header(b"content-digest"))
    word = request.header(b"tenure-runner")
    return _Asked(request.fields["project"], checked_name(request.fields["name"]), receipt, type, digest, word)


def _digest(header: str | None) -> str | None:
    """The SHA-256 of a `Content-Digest` (RFC 9530); other algorithms are ignored."""
    for part in (header or "").split(","):
        algorithm, _, value = part.strip().partition("=")
        if algorithm.lower() == "sha-256":
            try:
                digest = base64.b64decode(value.strip(":"), validate=True)
            except (binascii.Error, ValueError):
                digest = b""
            if len(digest) != 32 or not (value.startswith(":") and value.endswith(":") and len(value) > 2):
                raise InvalidInput(f"Content-Digest must be sha-256=:BASE64: (got {value[:80]!r})")
            return digest.hex()
    return None


async def _parts(request: Request, largest: int) -> AsyncIterator[bytes]:
    """The body, at most `largest` bytes, also without a Content-Length."""
    try:
        async for part in request.parts(largest):
            yield part
    except TooLarge as error:
        raise TooLarge(error.message, "an admin can raise the project's limit max_result_size") from None


async def _joined(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Larger pieces, so that each is worth a switch to a thread."""
    waiting: list[bytes] = []
    size = 0
    async for part in parts:
        waiting.append(part)
        size += len(part)
        if size >= PIECE:
            yield b"".join(waiting)
            waiting, size = [], 0
    if size:
        yield b"".join(waiting)


def _begin_writing(place: Artifacts, largest: int) -> Writing:
    return place.begin(largest=largest).__enter__()


def _generation(request: Request) -> int | None:
    text = request.parameter("generation")
    if text is not None and not (text.isdecimal() and len(text) < 10):
        raise InvalidInput(f"generation must be a number (got {text[:40]!r})")
    return None if text is None else int(text)


class _Part(NamedTuple):
    start: int
    end: int
    is_asked: bool


def _part(header: str | None, size: int) -> _Part | None:
    """The requested range; None if it is outside of the artifact. Several ranges in one request get the whole."""
    match = _RANGE.fullmatch(header.strip()) if header is not None else None
    if match is None or match.groups() == ("", ""):
        return _Part(0, size, False)
    first, last = match.groups()
    if not first:  # a suffix: the last N bytes
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), min(size, int(last) + 1) if last else size
    return _Part(start, end, True) if start < end else None


def _headers(view: dict[str, Any], part: _Part) -> responses.Headers:
    name = view["name"].rpartition("/")[2]
    digest = base64.b64encode(bytes.fromhex(view["digest"]))
    headers = [
        (b"content-type", view["type"].encode()),
        (b"content-length", b"%d" % (part.end - part.start)),
        (b"content-disposition", f"attachment; filename*=UTF-8''{quote(name, safe='')}".encode()),
        (b"content-security-policy", b"sandbox; default-src 'none'"),
        (b"x-content-type-options", b"nosniff"),
        (b"cache-control", b"private, no-cache"),
        (b"accept-ranges", b"bytes"),
        (b"etag", b'"%s"' % view["digest"].encode()),
        (b"repr-digest", b"sha-256=:%s:" % digest),
        (b"tenure-artifact", header_safe(msgspec.json.encode(plain(view)).decode()).encode()),
    ]
    if part.is_asked:
        headers.append((b"content-range", b"bytes %d-%d/%d" % (part.start, part.end - 1, view["size"])))
    return tuple(headers)
