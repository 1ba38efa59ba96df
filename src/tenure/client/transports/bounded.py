"""Answers of servers are bounded in bytes and in time: no bomb, endless stream or trickle keeps a client."""

from __future__ import annotations

import io
import socket
import time
from http.client import HTTPResponse, IncompleteRead
from typing import TYPE_CHECKING, Any

from tenure.client.transports.http_messages import Trouble
from tenure.client.transports.server_address import Failed
from tenure.core import limits
from tenure.core.errors import AnswerRefused, close_all

if TYPE_CHECKING:
    from collections.abc import Mapping
    from email.message import Message

    Headers = Mapping[str, Any] | Message[str, str]

PIECE = 1 << 16
LARGEST = limits.ANSWER_BYTES
LONGEST = limits.ANSWER_SECONDS
SLOWEST = limits.DOWNLOAD_RATE


class Unbounded(Exception):
    """The answer is larger or lasts longer than one may; `str` says which."""

    def failed(self, url: str) -> Failed:
        """For the caller; another try would meet the same."""
        return Failed(Trouble(self.refused(url), True), may_pass=False)

    def refused(self, url: str) -> AnswerRefused:
        return AnswerRefused(f"{url}: the answer {self}", "check the URL, and any proxy; ask for less, as with `limit`")


class Size:
    """Counts the bytes of an answer."""

    def __init__(self, headers: Headers) -> None:
        """Raises Unbounded where the headers already say too much; none of our servers packs what nobody asked for."""
        if (headers.get("Content-Encoding") or "identity").lower() != "identity":
            raise Unbounded(f"is encoded as {str(headers.get('Content-Encoding'))[:40]!r}, which was not asked for")
        self._size = 0
        length = headers.get("Content-Length") or ""
        self.add(int(length) if length.isdecimal() and len(length) < 20 else 0)
        self._size = 0

    def add(self, size: int) -> None:
        self._size += size
        if self._size > LARGEST:
            raise Unbounded(f"has more than {LARGEST >> 20} MiB")


def longest(wait: float) -> float:
    """Seconds of an answer in all, to a request that may wait for so many."""
    return wait + LONGEST


def too_long(seconds: float) -> Unbounded:
    return Unbounded(f"did not end within {seconds:g} s")


class BoundedResponse(HTTPResponse):
    """An answer that ends in time: each wait of the socket is a part of the whole."""

    def __init__(self, sock: socket.socket, *given: Any, seconds: float, **named: Any) -> None:
        self._raw = _Timed(sock, seconds)
        super().__init__(self._raw, *given, **named)  # type: ignore[arg-type]  # it makes a file of it, nothing else

    def allow(self, seconds: float) -> None:
        """It may go on for so long from now on."""
        self._raw.allow(seconds)

    def whole(self) -> bytes:
        size, parts = Size(self.headers), []
        while part := self.read(PIECE):
            size.add(len(part))
            parts.append(part)
        if self.length:  # a read of so many bytes says nothing of an answer that was cut off
            raise IncompleteRead(b"".join(parts), self.length)
        return b"".join(parts)


class _Timed(io.RawIOBase):
    """Reads a socket until a time."""

    def __init__(self, sock: socket.socket, seconds: float) -> None:
        self._sock, self._each = sock, sock.gettimeout()
        self._raw = sock.makefile("rb", buffering=0)
        self.allow(seconds)

    def allow(self, seconds: float) -> None:
        self._seconds, self._until = seconds, time.monotonic() + seconds

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int | None:
        left = self._until - time.monotonic()
        if left <= 0:
            raise too_long(self._seconds)
        self._sock.settimeout(left if self._each is None else min(left, self._each))
        try:
            return self._raw.readinto(into)
        except TimeoutError:
            if time.monotonic() >= self._until:
                raise too_long(self._seconds) from None
            raise

    def close(self) -> None:
        close_all(self._raw.close, super().close)
