"""Rows of sinks, webhooks and their deliveries, and of the keys that seal secrets."""

from __future__ import annotations

from typing import Any

from tenure.core import limits
from tenure.core.task_records import Row


class Sink(Row, frozen=True, kw_only=True):
    """A reader of the log of all projects; its project is "", its id its name.

    It holds the archive back, so that no event is dropped before it was sent, until it is more than `max_lag` behind:
    then it is cut off, with an event. A sink that returns after that gets `sink.gap` first.
    """

    sequence: int  # every event up to it is sent, or is not for this sink
    url: str = ""  # without its password
    projects: tuple[str, ...] = ()  # it reads; none: all of them
    max_lag: int = limits.RELAY_LAG
    identity: str | None = None  # of the sink when it was last sent to: another one has forgotten everything
    paused_at: int | None = None
    paused_by: str | None = None
    cut_off_at: int | None = None
    sent: int = 0  # messages
    sent_at: int | None = None
    error: str | None = None  # of the last attempt; None once one succeeded
    error_at: int | None = None
    created_at: int

    def reads(self, project: str) -> bool:
        return not self.projects or not project or project in self.projects

    def holds_back(self, project: str) -> bool:
        """Whether events of the project must be kept for it."""
        return self.cut_off_at is None and self.reads(project)


class Webhook(Row, frozen=True, kw_only=True):
    """A receiver of events; its id is its name. Secrets are sealed at the path `secret` of its owner text."""

    url: str
    kinds: tuple[str, ...]  # of events, patterns of them, or `task.status_changed`
    filter: dict[str, Any]  # as a trigger has it
    enabled: bool = True
    disabled_for: str | None = None  # why it is not enabled
    disabled_at: int | None = None
    secret: bytes = b""  # sealed
    previous: bytes = b""  # the secret before the last rotation, sealed
    previous_until: int | None = None
    request_id: str | None = None  # that created the secret
    request_hash: str | None = None

    since: int = 0  # only events after this sequence are for it
    sequence: int | None = None  # where its own reading stands, while it is behind the others; None: it reads with them

    parked: int = 0  # deliveries that wait
    delivered: int = 0
    failed: int = 0  # deliveries that were given up
    tries: int = 0  # without success, in all
    failing_since: int | None = None  # the first failure after the last success
    down_since: int | None = None  # nothing more is read for it
    up_at: int | None = None  # when it last came back: deliveries that were tried before are due at once
    wait_until: int | None = None  # the receiver's own `Retry-After`
    success_at: int | None = None
    failure_at: int | None = None
    status: int | None = None  # of the last answer
    error: str | None = None  # of the last try, None where it succeeded

    created_by: str = "human:"
    created_at: int
    changed_at: int


class Delivery(Row, frozen=True, kw_only=True):
    """One message for one webhook: waiting, or a line of the delivery log. Its id is `WEBHOOK:MESSAGE_ID`."""

    webhook: str
    message: str  # the message id, the same in every try
    event: str  # the event's id
    sequence: int
    task: str | None = None  # the messages of one task are delivered in order
    kind: str  # of the event, or `task.status_changed`
    state: str = "parked"  # parked, delivered, failed
    at: int  # when it was read from the log
    parked_at: int | None = None  # None: it was never parked
    tries: int = 0
    first_at: int | None = None  # the first failure that its schedule counts from
    tried_at: int | None = None
    next_at: int | None = None  # None: at once, or once the task's deliveries before it are done
    status: int | None = None
    error: str | None = None
    duration: int | None = None  # of the last try
    body: bytes = b""  # until it is delivered: every try sends these bytes


class DataKey(Row, frozen=True, kw_only=True):
    """A key that seals the secrets of one project, wrapped by the master key; without that one it is useless.

    The row with the id `digest` is the project's digest key; it is never retired.
    """

    wrapped: bytes
    created_at: int
    retired_at: int | None = None  # since then it only opens: a newer key seals
