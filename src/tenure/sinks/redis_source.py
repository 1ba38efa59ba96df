"""Commands from streams of Redis or Valkey: one consumer group for each pool.

The server has no timer: a message that was not acknowledged is claimed by another worker of the pool after
its time (XAUTOCLAIM). Rejecting one sets its idle time, so that it is claimed when the delay is over.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

import redis

from tenure.sinks import names
from tenure.sinks.port import Received, SinkUnavailable
from tenure.sinks.redis_streams import Streams
from tenure.sinks.subscriptions import ACKNOWLEDGE_WITHIN, Subscription

SLACK = 5.0  # seconds that the server may take beyond the time that it was asked to wait
CLAIM_EVERY = 1.0  # seconds between two looks for messages whose time is over
T = TypeVar("T")


class RedisHandle(NamedTuple):
    stream: str
    entry: str


class RedisSource:
    def __init__(self, url: str, subscription: Subscription) -> None:
        self._streams = Streams(url)
        self._subscription = subscription.checked()
        self._group = subscription.pool
        self._name = f"worker-{uuid.uuid4().hex}"
        self._reads = [self._streams.stream_of(f"{queue}.{names.VERSION}") for queue in subscription.queues]
        self._has_groups = False
        self._claim_at = 0.0
        self._held: set[RedisHandle] = set()

    def fetch(self, most: int, timeout: float) -> list[Received]:
        until = time.monotonic() + timeout
        while True:
            found = self._asked(partial(self._claimed, most=most))
            left = until - time.monotonic()
            if found or left <= 0:
                return found
            wait = min(left, CLAIM_EVERY)
            found = self._asked(partial(self._read, most=most, wait=wait))
            if found:
                return found

    def acknowledge(self, received: Received) -> None:
        handle: RedisHandle = received.handle
        self._held.discard(handle)
        self._asked(lambda client: client.xack(handle.stream, self._group, handle.entry))

    def reject(self, received: Received, delay: float) -> None:
        """At most for as long as an unacknowledged message waits anyway."""
        self._held.discard(received.handle)
        self._set_idle(received.handle, max(0.0, ACKNOWLEDGE_WITHIN - delay))

    def keep(self, received: Received) -> None:
        self._set_idle(received.handle, 0.0)

    def close(self) -> None:
        """Return unacknowledged messages, so that they need not wait for their time to be over."""
        try:
            if self._has_groups:
                with suppress(SinkUnavailable):  # it is down: their time will be over
                    for handle in self._held:
                        self._set_idle(handle, ACKNOWLEDGE_WITHIN)
                    self._asked(self._leave)
        finally:
            self._held.clear()
            self._streams.close()

    def _leave(self, client: redis.Redis) -> None:
        """Remove our name from the groups where nothing waits under it; with a message it would be lost."""
        for stream in self._reads:
            consumers: Any = client.xinfo_consumers(stream, self._group)
            if any(_text(one["name"]) == self._name and not one["pending"] for one in consumers):
                client.xgroup_delconsumer(stream, self._group, self._name)

    def _set_idle(self, handle: RedisHandle, idle: float) -> None:
        def claim(client: redis.Redis) -> Any:
            return client.xclaim(
                handle.stream, self._group, self._name, 0, [handle.entry], idle=int(idle * 1000), justid=True
            )

        self._asked(claim)

    def _asked(self, ask: Callable[[redis.Redis], T]) -> T:
        """Groups are created when missing: a server that was wiped has none."""

        def with_groups(client: redis.Redis) -> T:
            if not self._has_groups:
                self._create(client)
            try:
                return ask(client)
            except redis.ResponseError as error:
                if not str(error).startswith("NOGROUP"):
                    raise
            self._create(client)
            return ask(client)

        return self._streams.asked(with_groups, SLACK + CLAIM_EVERY)

    def _create(self, client: redis.Redis) -> None:
        for stream in self._reads:
            try:
                client.xgroup_create(stream, self._group, "0", mkstream=True)
            except redis.ResponseError as error:
                if not str(error).startswith("BUSYGROUP"):
                    raise
        self._has_groups = True

    def _read(self, client: redis.Redis, most: int, wait: float) -> list[Received]:
        asked: dict[Any, Any] = dict.fromkeys(self._reads, ">")
        answer: Any = client.xreadgroup(self._group, self._name, asked, count=most, block=max(1, int(wait * 1000)))
        parts = answer.items() if isinstance(answer, dict) else answer or ()
        return [
            self._received(stream, entry, fields, 1)
            for stream, entries in parts
            for entry, fields in _flat(entries)
            if fields
        ]

    def _claimed(self, client: redis.Redis, most: int) -> list[Received]:
        """Messages whose time is over."""
        if time.monotonic() < self._claim_at:
            return []
        found: list[Received] = []
        idle = int(ACKNOWLEDGE_WITHIN * 1000)
        for stream in self._reads:
            if len(found) >= most:
                return found
            answer: Any = client.xautoclaim(stream, self._group, self._name, idle, count=most - len(found))
            for entry, fields in answer[1]:
                if not fields:
                    continue  # the stream's cap has removed it
                waiting: Any = client.xpending_range(stream, self._group, entry, entry, 1)
                tries = waiting[0]["times_delivered"] if waiting else 2
                found.append(self._received(stream, entry, fields, tries))
        if not found:
            self._claim_at = time.monotonic() + CLAIM_EVERY / 2
        return found

    def _received(self, stream: bytes | str, entry: bytes | str, fields: dict[bytes, bytes], tries: int) -> Received:
        handle = RedisHandle(_text(stream), _text(entry))
        self._held.add(handle)
        return Received(
            id=_text(fields[b"id"]), name=_text(fields[b"name"]), body=fields[b"body"], tries=tries, handle=handle
        )


def _flat(entries: Any) -> list[tuple[Any, Any]]:
    """Entries as the protocol's versions 2 and 3 have them: a list, or a list of lists."""
    if entries and isinstance(entries[0], list) and entries[0] and isinstance(entries[0][0], tuple | list):
        return [entry for part in entries for entry in part]
    return list(entries)


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
