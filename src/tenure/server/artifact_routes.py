"""`/api/v1/projects/{project}/tasks/{task}/artifacts/{name}`: an artifact's bytes come in and go out, in pieces.

Neither direction has more than a few pieces in memory, nor holds the event loop: disk and bucket are asked in threads
of their own, so that looks do not wait behind them. What is handed out was written by an agent and may be anything: it
is for saving, never for showing.
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
from tenure.client.ways.asking import header_safe, unsafe
from tenure.client.wire import plain
from tenure.core import limits
from tenure.core.artifact_names import checked_name
from tenure.core.artifacts import check_type
from tenure.core.commands import PutArtifact
from tenure.core.errors import InvalidInput, Overloaded, TenureError, TooLarge
from tenure.core.outcomes import Outcome
from tenure.core.roles import check_kind
from tenure.engine.artifacts import artifact_verbs
from tenure.server import answers
from tenure.server.answers import Answer
from tenure.server.app import Place, Streamed
from tenure.server.bodies import check_task
from tenure.server.requests import Request
from tenure.server.service import Pool, Service

THREADS = 4
MOST_AT_ONCE = limits.TRANSFERS
ANYTHING = "application/octet-stream"
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


def routes(service: Service) -> Iterator[Place]:
    """What `App.add` takes."""
    desk = Desk(service)
    service.beside.append(desk)
    yield Place("PUT", PREFIX + ARTIFACT, desk.put, takes_rest=True)
    yield Place("GET", PREFIX + ARTIFACT, desk.get, takes_rest=True)


class Desk:
    def __init__(self, service: Service) -> None:
        self._service, self._engine = service, service.engine
        self._threads = Pool(THREADS, "artifact")
        self._open = 0

    def start(self) -> None: ...

    def stop(self) -> None:
        self._threads.close()

    def _place(self, project: str) -> Artifacts:
        if self._engine.places is None:
            raise InvalidInput("this server has no place for artifacts", "set `artifacts` where it runs")
        return self._engine.places(project)

    def _refuse_crowd(self) -> None:
        if self._open >= MOST_AT_ONCE:
            raise Overloaded(f"{self._open} artifacts come in or go out already", "send it again in a moment")

    # --- coming in ---

    async def put(self, request: Request) -> Answer:
        check_kind(request.principal, PutArtifact)
        asked = _asked(request)
        ready = await self._threads.run(
            artifact_verbs.ready, self._engine, asked.project, asked.receipt, asked.name, request.principal
        )
        if isinstance(ready, Outcome):
            return answers.of_outcome(ready)
        self._refuse_crowd()
        self._open += 1
        try:
            kept = await self._kept(request, asked, ready.largest)
        finally:
            self._open -= 1
        command = PutArtifact(
            project=asked.project, receipt=asked.receipt, name=asked.name, type=asked.type, digest=kept.digest,
            size=kept.size, since=ready.since, trace_id=request.trace.id,
        )  # fmt: skip
        outcome = await self._service.do(command, request.principal)
        if not outcome.ok:
            await self._threads.run(artifact_verbs.left, self._engine, asked.project, kept.digest, kept.size)
        return answers.of_outcome(outcome)

    async def _kept(self, request: Request, asked: _Asked, largest: int) -> Kept:
        """The bytes in their place. Whoever hangs up on the way leaves nothing there."""
        run = self._threads.run
        place = await run(self._place, asked.project)
        writing: Writing = await run(_begun, place, largest)
        try:
            async for piece in _gathered(_parts(request, largest)):
                await run(writing.write, piece)
            return await run(writing.keep, asked.digest)
        finally:
            await run(writing.__exit__, None, None, None)

    # --- going out ---

    async def get(self, request: Request) -> Answer | Streamed:
        fields = request.fields
        view: Any = await self._threads.run(
            artifact_verbs.found, self._engine, fields["project"], fields["task"], fields["name"], _generation(request),
            request.principal,
        )  # fmt: skip
        etag = f'"{view["digest"]}"'
        if request.header(b"if-none-match") == etag:
            return Answer(304, b"", headers=((b"etag", etag.encode()),))
        part = _part(request.header(b"range"), view["size"])
        if part is None:
            size = (b"content-range", b"bytes */%d" % view["size"])
            told = answers.of_error(InvalidInput(f"no such bytes in {view['size']}", "ask for others, or for all"))
            return told._replace(status=416, headers=(size,))
        self._refuse_crowd()
        pieces = await self._threads.run(self._read, fields["project"], view["digest"], part)
        return Streamed(self._pour(pieces), 206 if part.is_asked else 200, _headers(view, part), "artifacts")

    def _read(self, project: str, digest: str, part: _Part) -> Iterator[bytes]:
        return self._place(project).read(digest, start=part.start, end=part.end)

    async def _pour(self, pieces: Iterator[bytes]) -> AsyncGenerator[bytes, None]:
        self._open += 1
        try:
            while (piece := await self._threads.run(next, pieces, None)) is not None:
                yield piece
        except TenureError as error:
            # The answer has begun: cut off before its last piece it is shorter than it said, and nobody has all of it.
            self._service.eyes.store_failed(error)
            raise
        finally:
            self._open -= 1


# --- what a request says ------------------------------------------------------------------------------------


class _Asked(NamedTuple):
    project: str
    name: str
    receipt: str
    type: str
    digest: str | None


def _asked(request: Request) -> _Asked:
    receipt = request.header(b"tenure-receipt")
    if not receipt:
        raise InvalidInput("Tenure-Receipt: is missing", "send the receipt that the claim gave")
    receipt = unsafe(receipt)
    check_task(request.fields["task"], receipt)
    type = check_type(request.header(b"content-type") or ANYTHING)
    digest = _digest(request.header(b"content-digest"))
    return _Asked(request.fields["project"], checked_name(request.fields["name"]), receipt, type, digest)


def _digest(header: str | None) -> str | None:
    """The SHA-256 of a `Content-Digest` (RFC 9530); other algorithms are left to those who know them."""
    for said in (header or "").split(","):
        algorithm, _, value = said.strip().partition("=")
        if algorithm.lower() == "sha-256":
            try:
                digest = base64.b64decode(value.strip(":"), validate=True)
            except (binascii.Error, ValueError):
                digest = b""
            if len(digest) != 32 or not (value.startswith(":") and value.endswith(":") and len(value) > 2):
                raise InvalidInput(f"Content-Digest {value[:80]!r}: as in sha-256=:BASE64:")
            return digest.hex()
    return None


async def _parts(request: Request, largest: int) -> AsyncIterator[bytes]:
    """The body; it may come without a length, and is measured then."""
    try:
        async for part in request.parts(largest):
            yield part
    except TooLarge as error:
        raise TooLarge(error.message, "an admin can raise the project's limit max_result_size") from None


async def _gathered(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Pieces worth a thread's while."""
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


def _begun(place: Artifacts, largest: int) -> Writing:
    return place.begin(largest=largest).__enter__()


def _generation(request: Request) -> int | None:
    text = request.parameter("generation")
    if text is not None and not (text.isdecimal() and len(text) < 10):
        raise InvalidInput(f"generation {text[:40]!r}: a number")
    return None if text is None else int(text)


class _Part(NamedTuple):
    start: int
    end: int
    is_asked: bool


def _part(header: str | None, size: int) -> _Part | None:
    """What of it is asked for; None where there is nothing of that. Several parts at once are answered with all."""
    match = _RANGE.fullmatch(header.strip()) if header is not None else None
    if match is None or match.groups() == ("", ""):
        return _Part(0, size, False)
    first, last = match.groups()
    if not first:  # the last so many bytes
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), min(size, int(last) + 1) if last else size
    return _Part(start, end, True) if start < end else None


def _headers(view: dict[str, Any], part: _Part) -> answers.Headers:
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
