"""What a worker receives from a broker: commands to execute tasks, those to its type, and its own mail."""

from __future__ import annotations

import re
from typing import NamedTuple

from tenure.core import limits
from tenure.core.errors import InvalidInput
from tenure.sinks import names

ACKNOWLEDGE_WITHIN = limits.ACKNOWLEDGE_WITHIN
_POOL = re.compile(r"[A-Za-z0-9_-]{1,40}")


class Subscription(NamedTuple):
    pool: str  # its workers share what comes: each message goes to one of them
    size: int = 1  # tasks that this worker does at a time
    agent_type: str | None = None
    agent: str | None = None

    def checked(self) -> Subscription:
        if not _POOL.fullmatch(self.pool):
            raise InvalidInput(
                f"the pool {self.pool[:40]!r} is not valid", "A pool has up to 40 letters, digits, `_` and `-`."
            )
        return self

    @property
    def shared(self) -> list[str]:
        """The queues whose messages go to any worker of the pool."""
        of_type = [names.queue_of(names.agent_command_name(self.agent_type, "any"))] if self.agent_type else []
        return [names.queue_of(names.EXECUTE), *of_type]

    @property
    def mailbox(self) -> str | None:
        """The queue of this agent alone."""
        return names.queue_of(names.mailbox_name(self.agent)) if self.agent else None

    @property
    def queues(self) -> list[str]:
        return [*self.shared, *([self.mailbox] if self.mailbox else [])]
