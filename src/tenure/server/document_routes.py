"""`/openapi.json` and `/docs`: what the API says of itself, for whoever asks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import msgspec

from tenure.server.answers import Answer
from tenure.server.app import Place
from tenure.server.requests import Request

# Nothing of a page may come from elsewhere, and it runs nothing.
POLICY = (b"content-security-policy", b"default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'")


def routes() -> Iterator[Place]:
    """What `App.add` takes. It tells no more than the source does, so nobody has to be signed in."""
    yield Place("GET", "/openapi.json", _openapi, True)
    yield Place("GET", "/docs", _docs, True)
    yield Place("GET", "/docs/style.css", _style, True)


# Made when first asked for: a server that nobody asks starts without.


async def _openapi(request: Request) -> Answer:
    return Answer(200, _document())


async def _docs(request: Request) -> Answer:
    from tenure.server.docs_page import html

    return Answer(200, html(), b"text/html; charset=utf-8", (POLICY,))


async def _style(request: Request) -> Answer:
    from tenure.server.docs_page import style

    return Answer(200, style(), b"text/css; charset=utf-8")


@cache
def _document() -> bytes:
    from tenure.server.openapi import document

    return msgspec.json.encode(document())
