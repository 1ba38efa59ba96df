"""Commands from RabbitMQ: the queues of a worker, with a prefetch of as many messages as it does tasks at a time.

All who read a queue share it: there are no separate pools. The broker cannot delay a message that is given
back, so a rejected one waits in a queue beside its own, `….delayed`, whose messages go back when their time is over.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple, TypeVar

from aiormq import spec
from aiormq.abc import AbstractChannel, DeliveredMessage

from tenure.sinks import names
from tenure.sinks.event_loop import EventLoop
from tenure.sinks.port import Received, SinkUnavailable
from tenure.sinks.rabbitmq import COMMANDS_WAITING, FAILURES, PERSISTENT, RabbitConnection, error_text, parse_rabbitmq
from tenure.sinks.subscriptions import Subscription

ASKING = 10.0  # seconds
TRIES = "x-tenure-tries"  # header: how often a message was rejected
NAME = "x-tenure-name"  # header: its name, which a delayed message would lose with its routing key
T = TypeVar("T")


class RabbitHandle(NamedTuple):
    channel: AbstractChannel
    tag: int
    queue: str
    rejections: int


class RabbitSource:
    def __init__(self, url: str, subscription: Subscription) -> None:
        self._address = parse_rabbitmq(url)
        self._subscription = subscription.checked()
        self._connection = RabbitConnection(self._address)
        self._loop = EventLoop(self._address.shown)
        self._channel: AbstractChannel | None = None  # that we consume on
        self._arrived: asyncio.Queue[Received | None] = asyncio.Queue()

    def fetch(self, most: int, timeout: float) -> list[Received]:
        return self._loop.run(self._reported(self._fetch(most, timeout)), timeout + ASKING)

    def acknowledge(self, received: Received) -> None:
        self._loop.run(self._reported(self._acknowledge(received)), ASKING)

    def reject(self, received: Received, delay: float) -> None:
        self._loop.run(self._reported(self._reject(received, delay)), ASKING)

    def keep(self, received: Received) -> None:
        """Nothing to do: a message is ours as long as the connection is."""

    def close(self) -> None:
        self._loop.close(self._connection.close())

    # --- on the loop's thread ---

    async def _reported(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except FAILURES as error:
            await self._connection.close()
            raise SinkUnavailable(f"{self._address.shown}: {error_text(error)}") from None

    async def _fetch(self, most: int, timeout: float) -> list[Received]:  # noqa: ASYNC109 - of the port
        until = time.monotonic() + timeout
        await self._open(until + ASKING)
        found: list[Received] = []
        while len(found) < most:
            if self._arrived.empty():
                left = until - time.monotonic()
                if found or left <= 0:
                    break
                try:
                    got = await asyncio.wait_for(self._arrived.get(), left)
                except TimeoutError:
                    break
            else:
                got = self._arrived.get_nowait()
            if got is None:
                raise OSError("the connection was lost")
            found.append(got)
        return found

    async def _open(self, until: float) -> AbstractChannel:
        channel = await self._connection.open(until)
        if channel is not self._channel:
            arrived: asyncio.Queue[Received | None] = asyncio.Queue()
            self._arrived, self._channel = arrived, channel
            await channel.basic_qos(prefetch_count=max(1, self._subscription.size))
            channel.closing.add_done_callback(lambda _: arrived.put_nowait(None))
            for wanted in self._subscription.queues:
                queue = await self._connection.declare_for(f"{wanted}.{names.VERSION}")
                assert queue is not None
                await self._connection.declare(f"{queue}.delayed", self._delayed(queue))
                await channel.basic_consume(queue, self._receiver(queue, channel, arrived))
            cancelled = getattr(channel, "on_consumer_cancel_callbacks", None)  # its queue was deleted
            if cancelled is not None:
                cancelled.add(lambda _: arrived.put_nowait(None))
        return channel

    def _delayed(self, queue: str) -> dict[str, str | int]:
        back = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue}
        return {"x-max-length": COMMANDS_WAITING, **back}

    def _receiver(
        self, queue: str, channel: AbstractChannel, arrived: asyncio.Queue[Received | None]
    ) -> Callable[[DeliveredMessage], Coroutine[Any, Any, None]]:
        async def receive(message: DeliveredMessage) -> None:
            headers = message.header.properties.headers or {}
            rejections = headers.get(TRIES, 0)
            rejections = rejections if isinstance(rejections, int) else 0
            returned = headers.get("x-delivery-count", 0)
            name = str(headers.get(NAME) or f"{names.COMMANDS}.{message.routing_key}")
            received = Received(
                id=message.header.properties.message_id or "",
                name=name,
                body=bytes(message.body),
                tries=1 + rejections + (returned if isinstance(returned, int) else 0),
                handle=RabbitHandle(channel, message.delivery_tag or 0, queue, rejections),
            )
            arrived.put_nowait(received)

        return receive

    async def _acknowledge(self, received: Received) -> None:
        handle: RabbitHandle = received.handle
        self._check(handle)
        await handle.channel.basic_ack(handle.tag)

    async def _reject(self, received: Received, delay: float) -> None:
        """Put it into the queue of delayed messages, and only then remove it from the other."""
        handle: RabbitHandle = received.handle
        self._check(handle)
        await handle.channel.basic_publish(
            received.body,
            routing_key=f"{handle.queue}.delayed",
            properties=spec.Basic.Properties(
                message_id=received.id, delivery_mode=PERSISTENT, content_type="application/json",
                expiration=str(int(delay * 1000)), headers={TRIES: handle.rejections + 1, NAME: received.name},
            ),
            mandatory=True,
        )  # fmt: skip
        await handle.channel.basic_ack(handle.tag)

    def _check(self, handle: RabbitHandle) -> None:
        if handle.channel is not self._connection.channel:
            raise SinkUnavailable(f"{self._address.shown}: the connection of this message was lost; it comes again")
