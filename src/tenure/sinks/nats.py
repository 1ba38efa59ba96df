"""NATS JetStream: `nats://user:password@host:4222,host2:4222/?prefix=&replicas=`, `tls://` with certificates verified.

Three streams, `TENURE_CMD`, `TENURE_EVT` and `TENURE_DLQ`, or `PREFIX_CMD` … They are created when missing and never
changed: `differences` names what another has set. A repeat within the duplicate window is not stored twice.

A page is in flight together on one connection, so the server stores it in order. The library's own reconnecting is off:
it would send what it has buffered after a gap. A connection that fails ends the page, and the next one gets a new one.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.api import RetentionPolicy, StreamConfig, StreamInfo
from nats.js.client import JetStreamContext
from nats.js.errors import APIError, NotFoundError

from tenure.core import limits
from tenure.sinks import names
from tenure.sinks.broker_urls import Address, parse
from tenure.sinks.event_loop import EventLoop
from tenure.sinks.port import Message, SinkUnavailable, error_line

DUPLICATES = limits.NATS_DUPLICATES
AGES = {names.COMMANDS: limits.COMMANDS_KEPT, names.EVENTS: limits.EVENTS_KEPT, names.DEAD_LETTERS: 0}
OPTIONS = ("replicas", "credentials")
CONNECTING = 5.0  # seconds, to one host
CLOSING = 1.0
ASKING = 5.0  # seconds, for one answer about a stream
NO_RESPONDERS = "503"
IN_USE = 10058  # the error code of a stream that another has just created
T = TypeVar("T")
FAILURES = (NatsError, OSError, asyncio.TimeoutError)


class PublishAnswer(msgspec.Struct):
    """What JetStream answers to a message."""

    seq: int = 0
    error: dict[str, Any] | None = None


_answer = msgspec.json.Decoder(PublishAnswer).decode


class NatsConnection:
    """One connection, used from the loop's thread, and the streams of one prefix."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.client: Client | None = None
        self._js: JetStreamContext | None = None
        self.created: dict[str, str] = {}  # family → when its stream was created
        self.lost: asyncio.Future[None] | None = None
        self.subject_start = f"{address.prefix}." if address.prefix else ""
        self.replicas = address.number("replicas", 1)

    def stream_of(self, family: str) -> str:
        return f"{(self.address.prefix or 'tenure').upper()}_{family.upper()}"

    def wanted(self, family: str) -> StreamConfig:
        return StreamConfig(
            name=self.stream_of(family),
            subjects=[f"{self.subject_start}{family}.>"],
            retention=RetentionPolicy.LIMITS,
            max_age=AGES[family],
            duplicate_window=DUPLICATES,
            num_replicas=self.replicas,
        )

    async def open(self, until: float) -> tuple[Client, JetStreamContext, asyncio.Future[None]]:
        """The client, with its streams there, and a future that ends with the connection."""
        if self.client is None or not self.client.is_connected or self._js is None or self.lost is None:
            await self.close()
            self.client = await self._connected(until)
            self._js = self.client.jetstream(timeout=ASKING)
            self.created = {}
        assert self.lost is not None
        if not self.created:
            self.created = {family: _created(await self._stream(family)) for family in names.FAMILIES}
        return self.client, self._js, self.lost

    async def _connected(self, until: float) -> Client:
        why: Exception | None = None
        for host in self.address.hosts:
            lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            options: dict[str, Any] = {"user": self.address.user, "password": self.address.password}
            if "credentials" in self.address.options:
                options["user_credentials"] = self.address.options["credentials"]
            left = max(0.1, min(CONNECTING, until - time.monotonic()))
            errors, client = Errors(), _EncryptedClient() if self.address.is_encrypted else Client()
            try:
                if self.address.is_encrypted:
                    options["tls"] = ssl.create_default_context(cafile=self.address.ca)
                connecting = client.connect(
                f"{self.address.scheme}://{host}", allow_reconnect=False, error_cb=errors.report, name="tenure",
                closed_cb=_ender(lost), disconnected_cb=_ender(lost), **options,
            )  # fmt: skip
                await asyncio.wait_for(connecting, left)
            except FAILURES as error:
                why = error
                await _close(client)
            else:
                errors.is_connecting = False
                self.lost = lost
                return client
        raise SinkUnavailable(f"{self.address.shown}: {error_line(why)}")

    async def _stream(self, family: str) -> StreamInfo:
        assert self._js is not None
        name = self.stream_of(family)
        try:
            return await self._js.stream_info(name)
        except NotFoundError:
            pass
        try:
            return await self._js.add_stream(self.wanted(family))
        except APIError as error:
            if error.err_code != IN_USE:
                raise
        return await self._js.stream_info(name)

    async def differences(self, until: float) -> list[str]:
        _, js, _ = await self.open(until)
        found = []
        for family in names.FAMILIES:
            wanted, there = self.wanted(family), (await js.stream_info(self.stream_of(family))).config
            for part in ("subjects", "retention", "max_age", "duplicate_window", "num_replicas"):
                ours, theirs = getattr(wanted, part), getattr(there, part)
                if ours != theirs:
                    shown = [value.value if isinstance(value, RetentionPolicy) else value for value in (theirs, ours)]
                    found.append(f"stream {wanted.name}: {part} is {shown[0]}, not {shown[1]}")
        return found

    def forget(self) -> None:
        """The streams may be gone: look again before the next use."""
        self.created = {}

    async def close(self) -> None:
        client, self.client, self._js, self.lost = self.client, None, None, None
        if client is not None:
            await _close(client)


class _EncryptedClient(Client):
    """Encrypts the connection before it signs in, or ends it.

    The library does so only where the server asks for it, in a line that is not encrypted: an attacker in between could
    change that line, and get the password.
    """

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        if initial_connection:
            if not (info.get("tls_required") or info.get("tls_available")):
                raise NatsError("it does not offer TLS; nothing was sent")
            info["tls_required"] = True
        await super()._process_info(info, initial_connection)


class NatsSink:
    def __init__(self, url: str) -> None:
        self._address = parse(url, OPTIONS)
        self._connection = NatsConnection(self._address)
        self._loop = EventLoop(self._address.shown)
        self._page: Page | None = None
        self._inbox = ""
        self._client: Client | None = None  # that the inbox belongs to
        self._number = 0

    def send(self, messages: Sequence[Message], timeout: float) -> int:
        return self._loop.run(self._send(messages, time.monotonic() + timeout), timeout) if messages else 0

    def identity(self) -> str:
        return self._loop.run(self._asked(self._identity), ASKING)

    def lag(self) -> int | None:
        return self._loop.run(self._asked(self._lag), ASKING)

    def differences(self) -> list[str]:
        """What the streams have set otherwise than we would: a sentence each. They are never changed."""
        return self._loop.run(self._asked(self._connection.differences), ASKING)

    def close(self) -> None:
        self._loop.close(self._connection.close())

    # --- on the loop's thread ---

    async def _asked(self, ask: Callable[[float], Awaitable[T]]) -> T:
        try:
            return await asyncio.wait_for(ask(time.monotonic() + ASKING), ASKING)
        except FAILURES as error:
            await self._connection.close()
            raise SinkUnavailable(f"{self._address.shown}: {error_line(error)}") from None

    async def _identity(self, until: float) -> str:
        self._connection.forget()
        await self._connection.open(until)
        return " ".join(self._connection.created[family] for family in names.FAMILIES)

    async def _lag(self, until: float) -> int:
        _, js, _ = await self._connection.open(until)
        found = [await js.consumers_info(self._connection.stream_of(family)) for family in names.FAMILIES]
        return max(((c.num_pending or 0) + (c.num_ack_pending or 0) for every in found for c in every), default=0)

    async def _send(self, messages: Sequence[Message], until: float) -> int:
        page = Page(len(messages))
        for is_last in (False, True):
            try:
                await asyncio.wait_for(self._publish(messages, page, until), max(0.0, until - time.monotonic()))
            except FAILURES as error:
                page.why = page.why or error_line(error)
                await self._connection.close()  # messages in flight must not arrive after those of the next page
            finally:
                self._page = None
            if page.done:
                return page.done
            if not page.is_without_stream or is_last:
                break
            self._connection.forget()  # a server that was wiped has lost its streams
            page = Page(len(messages))
        raise SinkUnavailable(f"{self._address.shown}: {page.why or 'no acknowledgement in time'}")

    async def _publish(self, messages: Sequence[Message], page: Page, until: float) -> None:
        client, _, lost = await self._connection.open(until)
        if client is not self._client:
            self._inbox, self._client = client.new_inbox(), client
            await client.subscribe(f"{self._inbox}.*", cb=self._answered)
        self._number += 1
        self._page, page.token = page, f"{self._inbox}.{self._number}-"
        start, before = self._connection.subject_start, ""
        for index, message in enumerate(messages):
            headers = {"Nats-Msg-Id": message.id}
            if self._connection.replicas > 1 and names.family_of(message.name) == names.EVENTS:
                # A new leader of the stream may lack the first events of the page and yet take the rest. So each names
                # the one before it, and is refused where that is not the last. Commands repeat, and need no order.
                if before:
                    headers["Nats-Expected-Last-Msg-Id"] = before
                before = message.id
            await client.publish(f"{start}{message.name}", message.body, f"{page.token}{index}", headers)
        await asyncio.wait((page.finished, lost), return_when=asyncio.FIRST_COMPLETED)
        if not page.finished.done():
            raise OSError("the connection was lost")

    async def _answered(self, message: Msg) -> None:
        page = self._page
        if page is None or not message.subject.startswith(page.token):
            return  # of a page that is over
        index = int(message.subject[len(page.token) :])
        if not message.data:
            status = (message.headers or {}).get("Status")
            page.refused("no stream takes this subject", is_without_stream=status == NO_RESPONDERS)
            return
        answer = _answer(message.data)
        if answer.error is not None:
            page.refused(str(answer.error.get("description", answer.error)))
        else:
            page.acknowledged(index)


class Page:
    """Which messages of a page are acknowledged, from the first on."""

    def __init__(self, size: int) -> None:
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.token = ""
        self.done = 0
        self.why = ""
        self.is_without_stream = False
        self._size = self._open = size
        self._early: set[int] = set()

    def acknowledged(self, index: int) -> None:
        if index == self.done:
            self.done += 1
            while self._early and self.done in self._early:
                self._early.remove(self.done)
                self.done += 1
        else:
            self._early.add(index)
        self._answered()

    def refused(self, why: str, *, is_without_stream: bool = False) -> None:
        self.why = self.why or why
        self.is_without_stream = self.is_without_stream or is_without_stream
        self._answered()

    def _answered(self) -> None:
        self._open -= 1
        if self._open == 0 and not self.finished.done():
            self.finished.set_result(None)


async def _close(client: Client) -> None:
    with suppress(*FAILURES):
        await asyncio.wait_for(client.close(), CLOSING)


def _created(info: StreamInfo) -> str:
    return info.created.isoformat() if info.created is not None else ""


def _ender(lost: asyncio.Future[None]) -> Any:
    async def end() -> None:
        if not lost.done():
            lost.set_result(None)

    return end


class Errors:
    """What the library reports aside. To a host that refuses it would connect for ever, unless the report raises."""

    is_connecting = True

    async def report(self, error: Exception) -> None:
        if self.is_connecting:
            raise error
