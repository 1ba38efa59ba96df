"""The contract of a sink and of a source: what a relay sends to, and what a worker receives from.

A sink is synchronous, as the engine is, and used by one thread at a time. `tenure.testing.suites.sink` proves every
sentence below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from tenure.core.errors import TenureError

if TYPE_CHECKING:
    from tenure.core.notices import Summary


class SinkUnavailable(TenureError):
    """It cannot be reached, or did not acknowledge in time. What it has not acknowledged is sent again."""

    code = "SINK_UNAVAILABLE"


def error_line(error: BaseException | None) -> str:
    """A library's error on one line; its type alone where the text may have an address with a password."""
    text = " ".join(str(error).split())[:300] if error is not None else ""
    return type(error).__name__ if not text or "@" in text or "://" in text else text


class Message(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One message, encoded: every sink of a page sends the same bytes."""

    id: str  # the same on every redelivery
    name: str  # `evt.task.completed.v1`, `cmd.task.execute.v1`, `dlq.task.code.v1`; a sink adds its prefix
    body: bytes  # the envelope as JSON
    sequence: int = 0  # of the event it comes from; 0 for one that no event caused, as an announcement
    task: str | None = None  # messages of one task keep their order


class Sink(Protocol):
    """Where messages go."""

    def send(self, messages: Sequence[Message], timeout: float) -> int:
        """How many of them, from the first on, are durably acknowledged within `timeout` seconds.

        Raises SinkUnavailable where not even the first is. The rest may or may not have arrived: the caller sends
        them again, with the same ids.
        """

    def identity(self) -> str:
        """Names the state of the sink: another text than before means that it has forgotten what it was sent.

        Raises SinkUnavailable.
        """

    def lag(self) -> int | None:
        """Messages that its consumers have not yet acknowledged, where it knows."""

    def close(self) -> None:
        """Let go of connections. Nothing that was acknowledged is lost by not calling it."""


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """A message that a source has handed out; it comes again unless it is acknowledged."""

    id: str
    name: str
    body: bytes
    tries: int = 1  # how often it was delivered, where the broker counts
    handle: Any = None  # the broker's own


class Source(Protocol):
    """Where a worker's messages come from: one durable consumer, shared by the workers of a pool."""

    def fetch(self, most: int, timeout: float) -> list[Received]:
        """Up to `most` messages as soon as there is one; none after `timeout` seconds. Raises SinkUnavailable."""

    def acknowledge(self, received: Received) -> None:
        """It has done its work and does not come again."""

    def reject(self, received: Received, delay: float) -> None:
        """Have it delivered again, not before `delay` seconds have passed where the broker can delay."""

    def keep(self, received: Received) -> None:
        """It waits for a free slot: the broker must not deliver it to another meanwhile."""

    def close(self) -> None:
        """Close connections; unacknowledged messages go to another consumer."""


class NoticeChannel(Protocol):
    """Notices to people: a Slack-compatible webhook, mail, a command."""

    def send(self, summary: Summary) -> None:
        """Send one message; returns once the other side has taken it. Raises SinkUnavailable.

        The texts of a summary are data from agents and tasks: a channel shows them, and lets them do nothing.
        """

    def close(self) -> None: ...
