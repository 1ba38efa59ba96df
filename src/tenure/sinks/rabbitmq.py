"""RabbitMQ: `amqp://user:password@host:5672,host2:5672/vhost?prefix=`, `amqps://` with certificates verified.

Topic exchanges `tenure.cmd`, `tenure.evt`, `tenure.dlq`, or `PREFIX.tenure.cmd` …; a routing key is the message's name
without its family, so that an observer of all events binds `#` to `tenure.evt`. Commands and dead letters have quorum
queues, created when missing and never changed: `differences` names what another has set.

The broker does not know repeats: a message that is sent again is delivered again, with the same id. A command queue
drops its oldest message when it is full and forgets one after ten minutes: ready tasks are announced again.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import quote

import aiormq
from aiormq import spec
from aiormq.abc import AbstractChannel, AbstractConnection
from aiormq.exceptions import AMQPError, ChannelPreconditionFailed, DeliveryError, PublishError

from tenure.core import limits
from tenure.core.errors import InvalidInput
from tenure.core.team import INSTANCE
from tenure.sinks import names
from tenure.sinks.broker_urls import Address, parse
from tenure.sinks.event_loop import EventLoop
from tenure.sinks.port import Message, SinkUnavailable, error_line

COMMANDS_WAITING = limits.BROKER_COMMANDS
COMMAND_LIFETIME = limits.COMMAND_LIFETIME
LETTERS_WAITING = limits.LETTERS_WAITING
MAILBOX_IDLE = limits.MAILBOX_IDLE
CONNECTING = 5.0  # seconds, to one host
CLOSING = 1.0
ASKING = 10.0
PERSISTENT = 2
IN_A_ROW = 10  # identities that are read at once: two that were created at the same time become one
T = TypeVar("T")
FAILURES = (AMQPError, OSError, asyncio.TimeoutError, asyncio.InvalidStateError, RuntimeError)

logging.getLogger("aiormq").setLevel(logging.CRITICAL)  # every failure is reported to the caller


class RabbitConnection:
    """One connection with one confirming channel, used from the loop's thread, and the names of one prefix."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._connection: AbstractConnection | None = None
        self.channel: AbstractChannel | None = None
        self.declared: set[str] = set()  # queues that are there as long as the connection is
        self.differing: list[str] = []
        self.start = f"{address.prefix}.tenure" if address.prefix else "tenure"

    def exchange(self, family: str) -> str:
        return f"{self.start}.{family}"

    def queue_of(self, name: str) -> str | None:
        """The queue that a message of this name goes to; events have none of ours."""
        if names.family_of(name) == names.EVENTS:
            return None
        # The library refuses `~` in the name of a queue; routing keys have it.
        return f"{self.start}.{names.queue_of(name)}".replace("~", ":")

    async def open(self, until: float) -> AbstractChannel:
        if self._connection is None or self._connection.is_closed or self.channel is None or self.channel.is_closed:
            await self.close()
            self._connection = await self._connected(until)
            self.channel = await self._connection.channel(publisher_confirms=True)
            for family in names.FAMILIES:
                await self._declare_exchange(self.exchange(family))
            for name in (names.EXECUTE, f"{names.DEAD_LETTERS}.task"):
                await self.declare_for(name)
        return self.channel

    async def _connected(self, until: float) -> AbstractConnection:
        why: BaseException | None = None
        address = self.address
        login = f"{quote(address.user or 'guest', safe='')}:{quote(address.password or 'guest', safe='')}"
        options = f"?cafile={quote(address.ca)}" if address.ca is not None else ""
        for host in address.hosts:
            url = f"{address.scheme}://{login}@{host}/{quote(address.path, safe='') or '%2F'}{options}"
            try:
                left = max(0.1, min(CONNECTING, until - time.monotonic()))
                return await asyncio.wait_for(_connect(url), left)
            except FAILURES as error:
                why = error
        raise SinkUnavailable(f"{address.shown}: {error_text(why)}")

    async def scratch(self) -> AbstractChannel:
        """A channel for a declaration: one that differs closes it."""
        assert self._connection is not None
        return await self._connection.channel(publisher_confirms=False)

    async def _declare_exchange(self, name: str) -> None:
        channel = await self.scratch()
        try:
            await channel.exchange_declare(name, exchange_type="topic", durable=True)
        except ChannelPreconditionFailed as error:
            self.differing.append(f"exchange {name}: {error_text(error)}")
        finally:
            await _close(channel)

    async def declare_for(self, name: str) -> str | None:
        """The queue for messages of this name, created and bound when missing."""
        queue = self.queue_of(name)
        if queue is None or queue in self.declared:
            return queue
        family = names.family_of(name)
        arguments: dict[str, Any] = {"x-max-length": LETTERS_WAITING}
        if family == names.COMMANDS:
            arguments = {"x-max-length": COMMANDS_WAITING, "x-message-ttl": COMMAND_LIFETIME * 1000}
        if f".agent.{INSTANCE}." in queue:
            arguments["x-expires"] = MAILBOX_IDLE * 1000
        await self.declare(queue, arguments)
        key = names.queue_of(name).removeprefix(family).removeprefix(".")
        channel = await self.scratch()
        try:
            await channel.queue_bind(queue, self.exchange(family), f"{key}.#" if key else "#")
        finally:
            await _close(channel)
        self.declared.add(queue)
        return queue

    async def declare(self, queue: str, arguments: dict[str, Any]) -> None:
        channel = await self.scratch()
        try:
            wanted = {"x-queue-type": "quorum", "x-overflow": "drop-head", **arguments}
            await channel.queue_declare(queue, durable=True, arguments=wanted)
        except ChannelPreconditionFailed as error:
            self.differing.append(f"queue {queue}: {error_text(error)}")
        finally:
            await _close(channel)

    async def close(self) -> None:
        connection, self._connection, self.channel = self._connection, None, None
        self.declared.clear()
        self.differing.clear()
        if connection is not None and not connection.is_closed:
            with suppress(*FAILURES):
                await asyncio.wait_for(connection.close(), CLOSING)


class RabbitSink:
    def __init__(self, url: str) -> None:
        self._address = parse_rabbitmq(url)
        self._connection = RabbitConnection(self._address)
        self._loop = EventLoop(self._address.shown)
        self._identity: tuple[AbstractChannel, str] | None = None  # of the connection that it was read on

    def send(self, messages: Sequence[Message], timeout: float) -> int:
        return self._loop.run(self._send(messages, time.monotonic() + timeout), timeout) if messages else 0

    def identity(self) -> str:
        return self._loop.run(self._asked(self._read_identity), ASKING)

    def lag(self) -> int | None:
        return self._loop.run(self._asked(self._lag), ASKING)

    def differences(self) -> list[str]:
        """What exchanges and queues have set otherwise than we would. They are never changed."""
        return self._loop.run(self._asked(self._differences), ASKING)

    def close(self) -> None:
        self._loop.close(self._connection.close())

    # --- on the loop's thread ---

    async def _asked(self, ask: Callable[[float], Awaitable[T]]) -> T:
        try:
            return await asyncio.wait_for(ask(time.monotonic() + ASKING), ASKING)
        except FAILURES as error:
            await self._connection.close()
            raise SinkUnavailable(f"{self._address.shown}: {error_text(error)}") from None

    async def _send(self, messages: Sequence[Message], until: float) -> int:
        publishing: list[asyncio.Task[Any]] = []
        why: BaseException | None = None
        try:
            left = max(0.0, until - time.monotonic())
            async with asyncio.timeout(left):
                channel = await self._connection.open(until)
                for name in {message.name for message in messages}:
                    await self._connection.declare_for(name)
                publishing = [asyncio.ensure_future(self._publish(channel, message)) for message in messages]
                await asyncio.gather(*publishing, return_exceptions=True)
        except FAILURES as error:
            why = error
        done = 0
        for task in publishing:
            if not task.done() or task.cancelled() or task.exception() is not None:
                break
            done += 1
        if done < len(messages):
            why = await self._after_failure(publishing, why)
        if not done:
            raise SinkUnavailable(f"{self._address.shown}: {error_text(why) if why else 'no confirmation in time'}")
        return done

    async def _after_failure(
        self, publishing: Sequence[asyncio.Task[Any]], why: BaseException | None
    ) -> BaseException | None:
        """Drop the connection, so that nothing in flight arrives after what comes next. Returns the first cause."""
        await self._connection.close()
        for task in publishing:
            task.cancel()
        outcomes = await asyncio.gather(*publishing, return_exceptions=True)
        causes = [one for one in outcomes if isinstance(one, BaseException)]
        causes = [one for one in causes if not isinstance(one, asyncio.CancelledError)]
        return next(
            (one for one in causes if isinstance(one, PublishError | DeliveryError)), why or next(iter(causes), None)
        )

    def _publish(self, channel: AbstractChannel, message: Message) -> Awaitable[Any]:
        family, _, key = message.name.partition(".")
        publish: Any = channel.basic_publish  # `wait` is not in the declared contract
        published: Awaitable[Any] = publish(
            message.body,
            exchange=self._connection.exchange(family),
            routing_key=key,
            properties=spec.Basic.Properties(
                message_id=message.id, delivery_mode=PERSISTENT, content_type="application/json"
            ),
            mandatory=family != names.EVENTS,
            wait=False,  # for the socket: the confirmation says more
        )
        return published

    async def _read_identity(self, until: float) -> str:
        """A text in a separate queue, which a broker that has lost everything no longer has."""
        channel = await self._connection.open(until)
        if self._identity is not None and self._identity[0] is channel:
            return self._identity[1]
        queue = f"{self._connection.start}.identity"
        await self._connection.declare(queue, {})
        found = [message async for message in _taken(channel, queue)]
        identity = min((bytes(message.body).decode() for message in found), default=uuid.uuid4().hex)
        # It is put again and acknowledged: a message that is only returned is dropped after some deliveries.
        properties = spec.Basic.Properties(delivery_mode=PERSISTENT)
        await channel.basic_publish(identity.encode(), routing_key=queue, properties=properties, mandatory=True)
        for message in found:
            await channel.basic_ack(message.delivery_tag or 0)
        self._identity = channel, identity
        return identity

    async def _lag(self, until: float) -> int:
        await self._connection.open(until)
        queue = await self._connection.declare_for(names.EXECUTE)
        channel = await self._connection.scratch()
        try:
            return (await channel.queue_declare(queue or "", passive=True)).message_count or 0
        finally:
            await _close(channel)

    async def _differences(self, until: float) -> list[str]:
        await self._connection.close()
        await self._connection.open(until)
        return list(self._connection.differing)


def parse_rabbitmq(url: str) -> Address:
    address = parse(url, ())
    if "," in address.path:
        raise InvalidInput(f"{address.shown}: hosts come before the first slash")
    return address


async def _connect(url: str) -> AbstractConnection:
    return await aiormq.connect(url)


async def _taken(channel: AbstractChannel, queue: str) -> Any:
    """The messages of the queue. Another may hold them for a moment, so an empty queue is looked at again."""
    found = 0
    for attempt in range(IN_A_ROW):
        got = await channel.basic_get(queue)
        if got.delivery_tag is None:
            if found:
                return
            await asyncio.sleep(0.02 * attempt)
            continue
        found += 1
        yield got


async def _close(channel: AbstractChannel) -> None:
    with suppress(*FAILURES):
        await channel.close()


def error_text(error: BaseException | None) -> str:
    is_undelivered = isinstance(error, PublishError)
    return "no queue takes a command; its queue was deleted" if is_undelivered else error_line(error)
