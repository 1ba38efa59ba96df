"""Streams of Redis or Valkey: `redis+stream://user:password@host:6379/0?prefix=`, `rediss+stream://` with
certificates verified.

`tenure:evt` has all events, `tenure:dlq` dead letters, `tenure:cmd:task.execute`, `tenure:cmd:agent.TYPE` and
`tenure:cmd:agent.instance.ID` commands; with a prefix `tenure:PREFIX:evt` … Each is capped: its oldest entries go.

A script appends a page and keeps the last ids beside each stream, so that a repeat is not appended twice. It goes by
the id and not by the sequence: a store that was restored counts on from an earlier one, with new events.

Acknowledged messages are as durable as the server's settings make them: `differences` reports where they are not.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, pairwise
from typing import Any, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tenure.core import limits
from tenure.core.errors import InvalidInput
from tenure.core.team import INSTANCE
from tenure.sinks import names
from tenure.sinks.broker_urls import Address, parse
from tenure.sinks.port import Message, SinkUnavailable, error_line

OPTIONS = ("length",)
PORT = 6379
ASKING = 5.0  # seconds
AT_ONCE = 200  # messages that one run of the script appends; other clients wait so long
IDS_KEPT = limits.REDIS_IDS
COMMANDS_WAITING = limits.BROKER_COMMANDS
LETTERS_WAITING = limits.LETTERS_WAITING
EVENTS_WAITING = limits.EVENTS_WAITING
MAILBOX_IDLE = limits.MAILBOX_IDLE
T = TypeVar("T")

# KEYS: stream and its ids, in turn. ARGV: how many ids to keep; then six for each message: the number of its stream,
# the longest length of it, whether it is from the log, message id, name, body. What no event caused is an announcement:
# it has the id of the command before it, and is appended although that one was. An id counts once it is in the stream:
# ZADD comes last.
_APPEND = """
local last = {}
for at = 2, #ARGV, 6 do
  local number = tonumber(ARGV[at])
  local stream, sent, id = KEYS[2 * number - 1], KEYS[2 * number], ARGV[at + 3]
  if ARGV[at + 2] == '0' or not redis.call('ZSCORE', sent, id) then
    redis.call('XADD', stream, 'MAXLEN', '~', ARGV[at + 1], '*', 'id', id, 'name', ARGV[at + 4], 'body', ARGV[at + 5])
    if not last[sent] then
      local newest = redis.call('ZREVRANGE', sent, 0, 0, 'WITHSCORES')
      last[sent] = tonumber(newest[2] or '0')
    end
    last[sent] = last[sent] + 1
    redis.call('ZADD', sent, last[sent], id)
  end
end
for sent, _ in pairs(last) do
  redis.call('ZREMRANGEBYRANK', sent, 0, -(tonumber(ARGV[1]) + 1))
end
return 1
"""


class Streams:
    """A connection and the names of one prefix."""

    def __init__(self, url: str) -> None:
        self.address = parse_redis(url)
        self.start = f"tenure:{self.address.prefix}" if self.address.prefix else "tenure"
        self._client: redis.Redis | None = None
        self._timeout = 0.0

    def stream_of(self, name: str) -> str:
        family, _, rest = names.queue_of(name).partition(".")
        return f"{self.start}:{family}:{rest}" if rest else f"{self.start}:{family}"

    def client(self, timeout: float) -> redis.Redis:
        """A client that waits no longer than `timeout` for one answer."""
        if self._client is None or self._timeout != timeout:
            self.close()
            ((host, port),) = self.address.places
            options: dict[str, Any] = {}
            if self.address.is_encrypted:
                options = {"ssl": True, "ssl_ca_certs": self.address.ca, "ssl_check_hostname": True}
            self._client = redis.Redis(
                host=host, port=port or PORT,
                db=int(self.address.path or 0), username=self.address.user, password=self.address.password,
                socket_timeout=timeout, socket_connect_timeout=min(timeout, ASKING), client_name="tenure",
                retry=Retry(NoBackoff(), 0),  # the relay tries again, and knows how often
                **options,
            )  # fmt: skip
            self._timeout = timeout
        return self._client

    def asked(self, ask: Callable[[redis.Redis], T], timeout: float = ASKING) -> T:
        try:
            return ask(self.client(timeout))
        except (redis.RedisError, OSError) as error:
            self.close()
            raise SinkUnavailable(f"{self.address.shown}: {error_line(error)}") from None

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()


class RedisSink:
    def __init__(self, url: str) -> None:
        self._streams = Streams(url)
        self._lengths = {
            names.EVENTS: self._streams.address.number("length", EVENTS_WAITING),
            names.COMMANDS: COMMANDS_WAITING,
            names.DEAD_LETTERS: LETTERS_WAITING,
        }

    def send(self, messages: Sequence[Message], timeout: float) -> int:
        until = time.monotonic() + timeout
        ends = [*range(0, len(messages), AT_ONCE), len(messages)]
        done = 0
        for start, end in pairwise(ends):
            if done and time.monotonic() > until:
                break
            try:
                self._streams.asked(partial(self._append, messages=messages[start:end]), timeout)
            except SinkUnavailable:
                if not done:
                    raise
                break
            done = end
        return done

    def _append(self, client: redis.Redis, messages: Sequence[Message]) -> None:
        streams: dict[str, int] = {}
        arguments: list[str | int | bytes] = [IDS_KEPT]
        for message in messages:
            number = streams.setdefault(self._streams.stream_of(message.name), len(streams) + 1)
            length = self._lengths[names.family_of(message.name)]
            is_of_log = 1 if message.sequence else 0
            arguments += (number, length, is_of_log, message.id, message.name, message.body)
        keys = list(chain.from_iterable((stream, f"{stream}:sent") for stream in streams))
        client.register_script(_APPEND)(keys=keys, args=arguments)
        for stream in streams:
            if f":agent.{INSTANCE}." in stream:
                for key in (stream, f"{stream}:sent"):
                    client.expire(key, MAILBOX_IDLE)

    def rewound(self) -> None:
        """The relay was rewound: what it sends again is meant to be appended again."""
        self._streams.asked(self._forget_ids)

    def _forget_ids(self, client: redis.Redis) -> None:
        for key in client.scan_iter(match=f"{self._streams.start}:*:sent", count=1000):
            client.delete(key)

    def identity(self) -> str:
        return self._streams.asked(self._identity)

    def _identity(self, client: redis.Redis) -> str:
        """A random text, and without a log on disk the server's run: a restart may have lost the last messages."""
        key = f"{self._streams.start}:identity"
        with client.pipeline(transaction=False) as together:
            together.set(key, uuid.uuid4().hex, nx=True)
            together.get(key)
            together.info("persistence")
            together.info("server")
            _, token, persistence, server = together.execute()
        text = token.decode() if isinstance(token, bytes) else str(token)
        return text if persistence.get("aof_enabled") else f"{text} {server.get('run_id')}"

    def lag(self) -> int | None:
        return self._streams.asked(self._lag)

    def _lag(self, client: redis.Redis) -> int:
        most = 0
        for name in (names.EXECUTE, names.EVENTS, names.DEAD_LETTERS):
            stream = self._streams.stream_of(name)
            groups: list[dict[str, Any]] = client.xinfo_groups(stream) if client.exists(stream) else []
            most = max([most, *(int(group.get("lag") or 0) + int(group["pending"]) for group in groups)])
        return most

    def differences(self) -> list[str]:
        """Settings of the server with which it may forget what it has acknowledged."""
        return self._streams.asked(self._differences)

    def _differences(self, client: redis.Redis) -> list[str]:
        persistence, memory = client.info("persistence"), client.info("memory")
        assert isinstance(persistence, dict)
        assert isinstance(memory, dict)
        found = []
        if not persistence.get("aof_enabled"):
            found.append("appendonly is no: a restart loses the messages since the last snapshot")
        policy = memory.get("maxmemory_policy", "noeviction")
        if memory.get("maxmemory") and policy != "noeviction":
            found.append(f"maxmemory-policy is {policy}, not noeviction: the server may delete a stream")
        return found

    def close(self) -> None:
        self._streams.close()


def parse_redis(url: str) -> Address:
    address = parse(url, OPTIONS)
    if address.path and not address.path.isdigit():
        raise InvalidInput(
            f"{address.shown}: the path {address.path[:40]!r} must be the number of a database, as in /0"
        )
    if len(address.hosts) > 1:
        raise InvalidInput(f"{address.shown}: give one host; a cluster is not supported")
    return address
