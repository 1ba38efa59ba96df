"""Serves the dashboard's files: read once, cached by content, with a strict content security policy.

The path of the files contains a hash of them all, so browsers may cache them forever. The page itself is requested each
time, with 304 if it has not changed. All paths of the dashboard get the same page; its router chooses the view.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from tenure.server.requests import Receive, Scope, Send

Headers = list[tuple[bytes, bytes]]

TYPES = {
    "css": b"text/css; charset=utf-8",
    "html": b"text/html; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "md": b"text/plain; charset=utf-8",
    "svg": b"image/svg+xml",
    "txt": b"text/plain; charset=utf-8",
}
# Only our scripts and styles, and nothing from other hosts: injected markup could not run, load or send anything.
POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
GUARDS: Headers = [
    (b"content-security-policy", POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
]
FOR_EVER = b"public, max-age=31536000, immutable"
ASK_AGAIN = b"no-cache"
PAGES = ("/", "/projects", "/members", "/tenants")  # outside of a project
SMALL = 500  # bytes, below which compression saves nothing
# Loaded when a chart or a graph is first drawn, or before all others.
LATER = ("vendor/uplot.js", "vendor/dagre.js", "js/theme-early.js")


class File(NamedTuple):
    type: bytes
    content: bytes
    packed: bytes | None  # with gzip, if that is smaller
    tag: bytes


class Dashboard:
    """An ASGI application for the pages and `/static/…`; 404 for other paths."""

    def __init__(self) -> None:
        found = dict(_walk(files(__package__) / "static"))
        page = found.pop("index.html").decode()
        self.version = _digest(*(name.encode() + b"\0" + content for name, content in sorted(found.items())))[:16]
        self._prefix = f"/static/{self.version}/"
        self._files = {name: _file(name, content) for name, content in found.items()}
        self._page = _file("index.html", self._filled(page, found).encode())

    def _filled(self, page: str, found: dict[str, bytes]) -> str:
        """The page with the URLs of its files. It names all modules, so that the browser loads them in parallel."""
        modules = sorted(name for name in found if name.endswith(".js") and name not in LATER)
        links = "\n  ".join(f'<link rel="modulepreload" href="{self._prefix}{name}">' for name in modules)
        return page.replace("{preloads}", links).replace("{static}", self._prefix.rstrip("/"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        status, headers, body = self._answer(scope["method"], scope["path"], dict(scope["headers"]))
        await send({"type": "http.response.start", "status": status, "headers": [*headers, *GUARDS]})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    def _answer(self, method: str, path: str, asked: dict[bytes, bytes]) -> tuple[int, Headers, bytes]:
        file, kept = self._found(path)
        if file is None:
            return _plainly(404, b"Not found.\n")
        if method not in ("GET", "HEAD"):
            status, headers, body = _plainly(405, b"Only GET and HEAD are allowed.\n")
            return status, [*headers, (b"allow", b"GET, HEAD")], body
        headers = [(b"etag", file.tag), (b"cache-control", kept), (b"vary", b"accept-encoding")]
        if file.tag in asked.get(b"if-none-match", b""):
            return 304, headers, b""
        body = file.content
        if file.packed is not None and b"gzip" in asked.get(b"accept-encoding", b""):
            body = file.packed
            headers.append((b"content-encoding", b"gzip"))
        return 200, [(b"content-type", file.type), (b"content-length", b"%d" % len(body)), *headers], body

    def _found(self, path: str) -> tuple[File | None, bytes]:
        """Names are looked up in a table, never joined to a folder: no path can escape it."""
        if path.startswith(self._prefix):
            return self._files.get(path[len(self._prefix) :]), FOR_EVER
        # The same page for every tenant: whether there is one of that name, only its requests show.
        if path in PAGES or path.startswith("/projects/") or (path.startswith("/t/") and path.count("/") == 2):
            return self._page, ASK_AGAIN
        return None, ASK_AGAIN


def _plainly(status: int, text: bytes) -> tuple[int, Headers, bytes]:
    return status, [(b"content-type", TYPES["txt"]), (b"content-length", b"%d" % len(text))], text


@cache
def _file(name: str, content: bytes) -> File:
    packed = gzip.compress(content, mtime=0) if len(content) > SMALL else content
    tag = b'"%s"' % _digest(content)[:20].encode()
    return File(TYPES[name.rpartition(".")[2]], content, packed if len(packed) < len(content) else None, tag)


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _walk(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry.read_bytes()
