"""Commands from NATS JetStream: one durable pull consumer for each pool, and one for the mailbox of an agent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec
from nats.aio.msg import Msg
from nats.js.api import AckPolicy, ConsumerConfig
from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError

from tenure.sinks import names
from tenure.sinks.broker_urls import parse
from tenure.sinks.event_loop import EventLoop
from tenure.sinks.nats import FAILURES, OPTIONS, NatsConnection
from tenure.sinks.port import Received, SinkUnavailable, error_line
from tenure.sinks.subscriptions import ACKNOWLEDGE_WITHIN, Subscription

ASKING = 5.0  # seconds
SOON = 0.05  # seconds between two messages that are there already
PENDING_PER_SLOT = 4  # unacknowledged messages that a pool may hold, for each task at a time
EMPTY = ("404", "408")  # no message now; none within the time of the request
T = TypeVar("T")


class Consumer(NamedTuple):
    name: str
    subjects: str


class NatsSource:
    def __init__(self, url: str, subscription: Subscription) -> None:
        self._address = parse(url, OPTIONS)
        self._subscription = subscription.checked()
        self._connection = NatsConnection(self._address)
        self._loop = EventLoop(self._address.shown)
        self._consumers: list[Consumer] = []
        self._inbox = ""
        self._asked_until: dict[str, float] = {}  # consumer → when its open request ends
        self._arrived: asyncio.Queue[tuple[str, Msg]] = asyncio.Queue()
        self._held: dict[str, Msg] = {}  # by reply subject: received and not yet answered

    def fetch(self, most: int, timeout: float) -> list[Received]:
        return self._loop.run(self._reported(self._fetch(most, timeout)), timeout + ASKING)

    def acknowledge(self, received: Received) -> None:
        self._loop.run(self._reported(self._answered(received, received.handle.ack)), ASKING)

    def reject(self, received: Received, delay: float) -> None:
        self._loop.run(self._reported(self._answered(received, partial(received.handle.nak, delay or None))), ASKING)

    def keep(self, received: Received) -> None:
        self._loop.run(self._reported(self._answered(received, received.handle.in_progress, is_last=False)), ASKING)

    def close(self) -> None:
        self._loop.close(self._end())

    # --- on the loop's thread ---

    async def _reported(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except FAILURES as error:
            await self._connection.close()
            raise SinkUnavailable(f"{self._address.shown}: {error_line(error)}") from None

    async def _answered(
        self, received: Received, answer: Callable[[], Awaitable[None]], *, is_last: bool = True
    ) -> None:
        reply = received.handle.reply
        if reply not in self._held:
            raise SinkUnavailable(f"{self._address.shown}: the connection of this message was lost; it comes again")
        if is_last:
            del self._held[reply]
        await answer()

    async def _fetch(self, most: int, timeout: float) -> list[Received]:  # noqa: ASYNC109 - of the port
        until = time.monotonic() + timeout
        await self._open(until + ASKING)
        found = self._taken(most)
        if not found:
            found = await self._available(most)
        while not found and (left := until - time.monotonic()) > 0:
            for consumer in self._consumers:
                if self._asked_until.get(consumer.name, 0.0) <= time.monotonic():
                    self._asked_until[consumer.name] = time.monotonic() + left
                    await self._ask(consumer, batch=1, expires=int(left * 1e9))
            await self._wait(left)
            found = self._taken(most)
        return found

    async def _open(self, until: float) -> JetStreamContext:
        before = self._connection.client
        client, js, _ = await self._connection.open(until)
        if client is not before or not self._consumers:
            self._arrived, self._held, self._asked_until = asyncio.Queue(), {}, {}
            self._consumers = [await self._consumer(js, wanted) for wanted in self._wanted()]
            self._inbox = client.new_inbox()
            for consumer in self._consumers:
                await client.subscribe(f"{self._inbox}.{consumer.name}", cb=self._receiver(consumer.name))
        return js

    def _wanted(self) -> list[Consumer]:
        start, asked = self._connection.subject_start, self._subscription
        # One for each queue: a consumer keeps the filter that the first worker of its pool has given it.
        wanted = [
            Consumer(asked.pool if number == 0 else f"{asked.pool}-{queue.rpartition('.')[2]}", f"{start}{queue}.>")
            for number, queue in enumerate(asked.shared)
        ]
        if asked.mailbox is not None and asked.agent is not None:
            wanted.append(Consumer(f"agent-{names.safe(asked.agent)}", f"{start}{asked.mailbox}.>"))
        return wanted

    async def _consumer(self, js: JetStreamContext, wanted: Consumer) -> Consumer:
        stream = self._connection.stream_of(names.COMMANDS)
        try:
            await js.consumer_info(stream, wanted.name)
        except NotFoundError:
            config = ConsumerConfig(
                durable_name=wanted.name,
                ack_policy=AckPolicy.EXPLICIT,
                ack_wait=ACKNOWLEDGE_WITHIN,
                max_ack_pending=PENDING_PER_SLOT * max(1, self._subscription.size),
                filter_subject=wanted.subjects,
            )
            await js.add_consumer(stream, config)
        return wanted

    async def _ask(self, consumer: Consumer, **request: int | bool) -> None:
        stream = self._connection.stream_of(names.COMMANDS)
        client = self._connection.client
        assert client is not None
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer.name}"
        await client.publish(subject, msgspec.json.encode(request), f"{self._inbox}.{consumer.name}")

    async def _available(self, most: int) -> list[Received]:
        """Messages that wait: the server sends up to `most`, or reports that there are none."""
        for consumer in self._consumers:
            await self._ask(consumer, batch=most, no_wait=True)
        answered = 0
        found: list[Received] = []
        while answered < len(self._consumers) and len(found) < most:
            try:
                _, message = await asyncio.wait_for(self._arrived.get(), SOON if found else ASKING)
            except TimeoutError:
                if not found:
                    raise
                break  # the server has sent what there was
            if self._status(message) is None:
                found.append(self._received(message))
            else:
                answered += 1
        return found

    async def _wait(self, left: float) -> None:
        """Until something has arrived or the time is over; raises where the connection is lost."""
        client = self._connection.client
        until = time.monotonic() + left
        while self._arrived.empty() and (left := until - time.monotonic()) > 0:
            if client is None or not client.is_connected:
                raise OSError("the connection was lost")
            arriving = asyncio.ensure_future(self._arrived.get())
            waited: list[asyncio.Future[Any]] = [arriving]
            if self._connection.lost is not None:
                waited.append(self._connection.lost)
            done, _ = await asyncio.wait(waited, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if arriving in done:
                self._arrived.put_nowait(arriving.result())
            else:
                arriving.cancel()

    def _taken(self, most: int) -> list[Received]:
        found: list[Received] = []
        while len(found) < most and not self._arrived.empty():
            consumer, message = self._arrived.get_nowait()
            self._asked_until.pop(consumer, None)
            if self._status(message) is None:
                found.append(self._received(message))
        return found

    def _status(self, message: Msg) -> str | None:
        """The status of an answer without a message; raises where the consumer is gone."""
        if message.data or not message.headers or "Status" not in message.headers:
            return None
        status = str(message.headers["Status"])
        if status not in EMPTY and "deleted" in str(message.headers.get("Description", "")).lower():
            raise OSError("the consumer was deleted")
        if status == "503":
            raise OSError("the stream or its consumer is gone")
        return status

    def _received(self, message: Msg) -> Received:
        self._held[message.reply] = message
        return Received(
            id=(message.headers or {}).get("Nats-Msg-Id", ""),
            name=message.subject.removeprefix(self._connection.subject_start),
            body=message.data,
            tries=message.metadata.num_delivered or 1,
            handle=message,
        )

    def _receiver(self, consumer: str) -> Callable[[Msg], Awaitable[None]]:
        arrived = self._arrived

        async def receive(message: Msg) -> None:
            arrived.put_nowait((consumer, message))

        return receive

    async def _end(self) -> None:
        """Return unacknowledged messages, so that they need not wait for their time to be over."""
        while not self._arrived.empty():
            _, message = self._arrived.get_nowait()
            if message.reply and message.data:
                self._held[message.reply] = message
        client = self._connection.client
        if client is not None and client.is_connected:
            for message in self._held.values():
                await message.nak()
            await client.flush(1)
        await self._connection.close()
