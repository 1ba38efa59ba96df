"""A sink in memory, with faults on request: for tests of a relay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from tenure.sinks.port import Message, SinkUnavailable


class MemorySink:
    """Keeps what it is sent. `acknowledges` limits how many of one call; `fails` makes it unavailable."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.name = "first"  # its identity
        self.acknowledges: int | None = None
        self.fails = False
        self.calls = 0
        self.closed = 0
        self.on_send: Callable[[], None] = lambda: None

    def send(self, messages: Sequence[Message], timeout: float) -> int:
        self.calls += 1
        self.on_send()
        if self.fails:
            raise SinkUnavailable("the sink is down")
        taken = messages if self.acknowledges is None else messages[: self.acknowledges]
        self.sent += taken
        return len(taken)

    def identity(self) -> str:
        if self.fails:
            raise SinkUnavailable("the sink is down")
        return self.name

    def lag(self) -> int | None:
        return None

    def close(self) -> None:
        self.closed += 1

    # --- what tests ask ---

    def names(self, family: str = "") -> list[str]:
        return [message.name for message in self.sent if message.name.startswith(family)]

    def bodies(self, family: str = "") -> list[dict[str, Any]]:
        return [msgspec.json.decode(message.body) for message in self.sent if message.name.startswith(family)]
