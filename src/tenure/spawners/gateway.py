"""Agents on another machine: a client of `tenure gateway`, or of any program that answers the same requests."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from tenure.core import limits
from tenure.core.instants import format_instant
from tenure.core.signatures import standard_headers
from tenure.core.target_urls import Target, checked_url
from tenure.spawners.gateway_wire import AGENTS, FIND, SPAWN, STATES, STATUS, is_session, session_of, spawn_body
from tenure.spawners.port import Spawned, SpawnFailed, SpawnRequest, SpawnUnknown, State

SECONDS = limits.SPAWN_SECONDS
LARGEST_ANSWER = limits.SEND_ANSWER


class _Answer(NamedTuple):
    status: int
    body: bytes


class _NotSent(Exception):
    """No connection: the gateway has not seen the request."""


class _NoAnswer(Exception):
    """The request may have arrived."""


class GatewaySpawner:
    """One connection for each request: they are few, and a gateway may be restarted between any two."""

    def __init__(
        self, url: str, key: bytes, *, authorities: str | None = None, now: Callable[[], float] = time.time
    ) -> None:
        """`key` signs; `authorities` is a file of CAs in place of the system's. Raises InvalidInput for the URL."""
        self._target = checked_url(url.rstrip("/"), allow_http=True)
        self._base = self._target.path.rstrip("/")
        self._key, self._authorities, self._now = key, authorities, now

    def spawn(self, request: SpawnRequest, timeout: float) -> Spawned:
        offer_until = format_instant(round((self._now() + request.offer_seconds) * 1e6))
        body = spawn_body(request, offer_until)
        try:
            answer = self._ask("POST", SPAWN, request.spawn, body, timeout, {"Idempotency-Key": request.spawn})
        except _NotSent as error:
            raise SpawnFailed(str(error)) from None
        except _NoAnswer as error:
            raise SpawnUnknown(str(error)) from None
        if 400 <= answer.status < 500:
            raise SpawnFailed(f"the gateway {self._target.shown} refused the spawn ({answer.status}): {_why(answer)}")
        session = session_of(answer.body) if 200 <= answer.status < 300 else None
        if session is None:
            raise SpawnUnknown(f"the gateway {self._target.shown} answered {answer.status} without a session")
        return Spawned(handle=session, session=session)

    def home(self) -> str:
        return self._target.shown

    def find(self, spawns: Sequence[str]) -> Mapping[str, Spawned | None]:
        if not spawns:
            return {}
        body = msgspec.json.encode({"action": "find", "spawns": list(spawns)})
        try:
            answer = self._ask("POST", FIND, self._id("find"), body, SECONDS)
            sessions = msgspec.json.decode(answer.body)["spawns"] if answer.status == 200 else {}
        except (_NotSent, _NoAnswer, msgspec.DecodeError, RecursionError, KeyError, TypeError):
            return {}
        found: dict[str, Spawned | None] = {}
        for spawn in spawns if isinstance(sessions, dict) else ():
            session = sessions.get(spawn, False)
            if session is None:
                found[spawn] = None
            elif is_session(session):
                found[spawn] = Spawned(handle=session, session=session)
        return found

    def status(self, handles: Sequence[str]) -> Mapping[str, State]:
        found: dict[str, State] = dict.fromkeys(handles, "unknown")
        if not handles:
            return found
        body = msgspec.json.encode({"action": "status", "sessions": list(handles)})
        try:
            answer = self._ask("POST", STATUS, self._id("status"), body, SECONDS)
            states = msgspec.json.decode(answer.body)["sessions"] if answer.status == 200 else {}
        except (_NotSent, _NoAnswer, msgspec.DecodeError, RecursionError, KeyError, TypeError):
            return found
        for handle in handles:
            state = states.get(handle) if isinstance(states, dict) else None
            if state in STATES:
                found[handle] = "ended" if state == "lost" else state
        return found

    def end(self, handle: str, graceful: bool) -> None:
        body = msgspec.json.encode({"action": "delete", "session": handle, "graceful": graceful})
        try:
            answer = self._ask("DELETE", AGENTS + quote(handle, safe=""), self._id("delete"), body, SECONDS)
        except (_NotSent, _NoAnswer) as error:
            raise SpawnUnknown(str(error)) from None
        if answer.status not in (200, 202, 204, 404):  # 404: it has no such child, so nothing runs
            raise SpawnUnknown(f"the gateway {self._target.shown} answered {answer.status}: {_why(answer)}")

    def close(self) -> None:
        """No connection is kept."""

    # --- requests ---

    def _id(self, what: str) -> str:
        return f"{what}-{round(self._now() * 1e6)}"

    def _ask(
        self, method: str, path: str, id: str, body: bytes, seconds: float, more: Mapping[str, str] | None = None
    ) -> _Answer:
        """One exchange, bounded as a whole: name, connection, TLS, request and answer."""
        headers = {"Content-Type": "application/json", "User-Agent": "tenure", **(more or {})}
        headers |= standard_headers((self._key,), id, body, round(self._now() * 1e6))
        exchange = _Exchange(self._target, self._authorities, seconds)
        thread = threading.Thread(
            target=exchange.run, args=(method, self._base + path, headers, body), name="tenure-gateway", daemon=True
        )
        thread.start()
        thread.join(seconds)
        return exchange.result(seconds)


class _Exchange:
    """One request in a thread: a name server or a gateway that stalls keeps nobody else waiting."""

    def __init__(self, target: Target, authorities: str | None, seconds: float) -> None:
        self._target, self._authorities, self._seconds = target, authorities, seconds
        self._mutex = threading.Lock()
        self._connection: HTTPConnection | None = None
        self._is_sent = self._is_over = False
        self._answer: _Answer | None = None
        self._error = ""

    def run(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> None:
        try:
            connection = self._connected()
            with self._mutex:
                if self._is_over:
                    connection.close()
                    return
                self._connection, self._is_sent = connection, True
            connection.request(method, path, body, dict(headers))
            response = connection.getresponse()
            answer = _Answer(response.status, response.read(LARGEST_ANSWER))
            with self._mutex:
                self._answer = answer
        except (OSError, HTTPException, ValueError) as error:
            self._error = getattr(error, "strerror", None) or type(error).__name__
        finally:
            if self._connection is not None:
                self._connection.close()

    def _connected(self) -> HTTPConnection:
        host, port = self._target.host, self._target.port
        if self._target.scheme == "https":
            import ssl

            context = ssl.create_default_context(cafile=self._authorities)
            secure = HTTPSConnection(host, port, timeout=self._seconds, context=context)
            secure.connect()
            return secure
        plain = HTTPConnection(host, port, timeout=self._seconds)
        plain.connect()
        return plain

    def result(self, seconds: float) -> _Answer:
        with self._mutex:
            self._is_over = True
            answer, is_sent, connection = self._answer, self._is_sent, self._connection
        if answer is not None:
            return answer
        if connection is not None and connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)  # the thread ends
        why = self._error or f"no answer within {seconds:g} s"
        if not is_sent:
            raise _NotSent(f"cannot reach the gateway {self._target.shown}: {why}")
        raise _NoAnswer(f"the gateway {self._target.shown} gave no answer: {why}")


def _why(answer: _Answer) -> str:
    """The message in an answer, as far as it has one."""
    try:
        body = msgspec.json.decode(answer.body)
        text = body["error"]["message"]
    except (msgspec.DecodeError, RecursionError, KeyError, TypeError):
        return "no reason given"
    return str(text)[:300]
