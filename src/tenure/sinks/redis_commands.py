"""The channel `coordinator:commands` of Redis or Valkey: commands of programs outside, for the leader alone.

The channel is `tenure:TENANT:coordinator:commands`, with the prefix of the sink's URL `tenure:PREFIX:TENANT:…`. Answers
are published on `…:coordinator:answers`. A channel keeps nothing: a message that comes while nobody leads is lost, and
the sender sees that it gets no answer.
"""

from __future__ import annotations

import msgspec
import redis

from tenure.core import limits
from tenure.core.errors import close_all
from tenure.sinks.port import SinkUnavailable, error_line
from tenure.sinks.redis_streams import Streams

MOST = limits.CHANNEL_COMMANDS
ANSWERING = 5.0  # seconds
_encode = msgspec.json.Encoder().encode


class RedisCommandChannel:
    """Used by one thread. It connects when it is first asked, and again after it was lost."""

    def __init__(self, url: str, tenant: str) -> None:
        """`url`: as of the sink."""
        self._streams = Streams(url)
        self._start = f"{self._streams.start}:{tenant}:coordinator"
        self._subscription: redis.client.PubSub | None = None

    def receive(self, timeout: float) -> list[bytes]:
        """The messages that come within `timeout` seconds; it returns with the first. Raises SinkUnavailable."""
        try:
            return self._received(timeout)
        except (redis.RedisError, OSError) as error:
            self.close()
            raise SinkUnavailable(f"{self._streams.address.shown}: {error_line(error)}") from None

    def _received(self, timeout: float) -> list[bytes]:
        if self._subscription is None:
            self._subscription = self._streams.client(ANSWERING).pubsub(  # type: ignore[no-untyped-call]  # the library has no types here
                ignore_subscribe_messages=True
            )
            self._subscription.subscribe(f"{self._start}:commands")
        found: list[bytes] = []
        while len(found) < MOST:
            message = self._subscription.get_message(timeout=0.0 if found else timeout)
            if message is None:
                break
            found.append(message["data"])
        return found

    def answer(self, answer: object) -> None:
        """Publish it to the listeners. Raises SinkUnavailable."""
        self._streams.asked(lambda client: client.publish(f"{self._start}:answers", _encode(answer)), ANSWERING)

    def close(self) -> None:
        subscription, self._subscription = self._subscription, None
        first = () if subscription is None else (subscription.close,)
        close_all(*first, self._streams.close)
