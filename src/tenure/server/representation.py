"""How a response is sent: not at all if the client has it (ETag, If-None-Match), compressed if the client can read it.

An ETag is a digest of the body; that of a task has its version first, so that an edit may send it back in If-Match.
Compression changes no meaning, so both headers are compared without the mark of a weak tag.
"""

from __future__ import annotations

import asyncio
import re
import zlib
from hashlib import blake2b

from tenure.server.requests import Request
from tenure.server.responses import JSON, PROBLEM, Response

SMALL = 1400  # bytes: one packet, with its headers; compression would save no time
LARGE = 1 << 18  # bytes; more than this would keep the event loop busy for milliseconds
LEVEL = 1  # half the size of the best at a tenth of its time
NOT_MODIFIED = 304
COMPRESSED = (JSON, PROBLEM, b"text/")
_TAG = re.compile(r'(?:W/)?"([^"]*)"')
_VARY = (b"vary", b"accept-encoding")


def tagged(answer: Response, version: int | None = None) -> Response:
    """The response with the ETag of its body."""
    digest = blake2b(answer.body, digest_size=8).hexdigest()
    tag = f'"{digest}"' if version is None else f'"{version}-{digest}"'
    return answer._replace(headers=(*answer.headers, (b"etag", tag.encode())))


async def represented(request: Request, answer: Response) -> Response:
    """The response as this client gets it."""
    if request.scope["method"] in ("GET", "HEAD") and answer.status == 200 and _has(request, answer):
        kept = tuple(pair for pair in answer.headers if pair[0] == b"etag")
        return Response(NOT_MODIFIED, b"", b"", kept)
    if len(answer.body) < SMALL or not answer.type.startswith(COMPRESSED):
        return answer
    if not _reads_gzip(request.header(b"accept-encoding") or ""):
        return answer._replace(headers=(*answer.headers, _VARY))
    body = await asyncio.to_thread(_gzip, answer.body) if len(answer.body) > LARGE else _gzip(answer.body)
    headers = [(name, b"W/" + value if name == b"etag" else value) for name, value in answer.headers]
    return answer._replace(body=body, headers=(*headers, _VARY, (b"content-encoding", b"gzip")))


def _has(request: Request, answer: Response) -> bool:
    wanted = request.header(b"if-none-match")
    tag = next((value.decode() for name, value in answer.headers if name == b"etag"), None)
    if wanted is None or tag is None:
        return False
    return wanted.strip() == "*" or tag.strip('"') in _TAG.findall(wanted)


def _reads_gzip(accepted: str) -> bool:
    """Whether `Accept-Encoding` names gzip, and not with the weight zero."""
    for part in accepted.lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() in ("gzip", "*"):
            return re.fullmatch(r"q=0(\.0*)?", weight.replace(" ", "")) is None
    return False


def _gzip(body: bytes) -> bytes:
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()
