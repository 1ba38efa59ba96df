"""A broker as the source of a worker's tasks: messages become claims, and the answer to a claim settles its messages.

The claim is the gate: a message may come twice, late, or for a task that another holds.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from tenure.core import limits
from tenure.core.error_texts import described
from tenure.core.errors import InvalidInput, TenureError
from tenure.core.instants import parse_instant
from tenure.core.outcomes import CODES
from tenure.sinks import names
from tenure.sinks.open_sink import open_source
from tenure.sinks.port import Received, SinkUnavailable, Source
from tenure.sinks.subscriptions import Subscription

if TYPE_CHECKING:
    from tenure.core.outcomes import Outcome

log = logging.getLogger("tenure.worker")

T = TypeVar("T")

FETCH = 1.0  # seconds of one wait for a message: a worker that stops is noticed after it
GLIMPSE = 0.05  # seconds to look for messages where the store may have more tasks
NEXT, TASK = TAKES = ("next", "task")
ACKNOWLEDGE, DEFER, GIVE_BACK = "acknowledge", "defer", "give back"

# What becomes of a message after the answer to its claim. Deferred: this worker, or the task, may be free for it soon.
_DEFERRED = frozenset(
    {
        "DENIED_NOT_READY", "DENIED_CAPABILITY", "DENIED_BUDGET", "DENIED_LIMIT", "DENIED_CONFLICT", "DENIED_OFFERED",
        "DENIED_TRACK", "DENIED_RUNNER",
    }
)  # fmt: skip
_GIVEN_BACK = frozenset({"DENIED_AGENT", "DENIED_SPAWN"})  # this worker ends: another one may claim
ANSWERS = {code: DEFER if code in _DEFERRED else GIVE_BACK if code in _GIVEN_BACK else ACKNOWLEDGE for code in CODES}


class AgentCommand(NamedTuple):
    """A command to an agent or a type of agent, as a broker carries it."""

    id: str  # of the message in the store
    action: str
    sender: str
    text: str
    expires_at: str | None
    received: Received
    is_to_type: bool


class ClaimRequest(NamedTuple):
    """What to claim, and the messages that asked for it. None: the last claim found a task, and more may wait."""

    messages: tuple[Received, ...]
    task: str | None = None  # None: as many tasks as there are messages, the best ones

    @property
    def causes(self) -> tuple[str, ...]:
        return tuple(message.id for message in self.messages if message.id)


def check_take(take: str) -> str:
    if take not in TAKES:
        raise InvalidInput(f"take must be next or task (got {take[:40]!r})")
    return take


def _asked(ask: Callable[[], T]) -> T:
    """What the broker answers. Whatever its library raises is SinkUnavailable: the worker tries again."""
    try:
        return ask()
    except TenureError:
        raise
    except Exception as error:
        raise SinkUnavailable(f"the source failed: {described(error, limits.WORKER_ERROR)}") from error


class MessageSource:
    """Used by the worker's claimer alone, except for `acknowledge`."""

    def __init__(
        self, url: str, subscription: Subscription, project: str, take: str, opened: Callable[..., Source] = open_source
    ) -> None:
        self._url, self._subscription, self._project, self._take = url, subscription, project, take
        self._source = opened(url, subscription)
        self._requests: deque[ClaimRequest] = deque()
        self._may_have_more = False
        self.commands: deque[AgentCommand] = deque()

    def next_request(self, free: int, timeout: float = FETCH) -> ClaimRequest | None:
        """The next claim to make; None where nothing asks for one. Raises SinkUnavailable.

        A message is a wake-up, and a broker that was wiped has few: after a claim that found a task another one is made
        without a message, until there is none left.
        """
        if not self._requests:
            self._sort(_asked(lambda: self._source.fetch(free, GLIMPSE if self._may_have_more else timeout)))
        if self._requests:
            return self._requests.popleft()
        return ClaimRequest(()) if self._may_have_more else None

    def settle(self, request: ClaimRequest, outcome: Outcome) -> None:
        """The claim was answered: acknowledge its messages, or have them delivered again."""
        self._may_have_more = self._take == NEXT and bool(outcome.receipt or outcome.claims)
        answer = ANSWERS[outcome.outcome]
        for received in request.messages:
            if answer == ACKNOWLEDGE:
                self.acknowledge(received)
            elif answer == DEFER:
                self.defer(received, outcome.message)

    def acknowledge(self, received: Received) -> None:
        """A message whose connection was lost comes again, and then finds its task held or done."""
        try:
            _asked(lambda: self._source.acknowledge(received))
        except SinkUnavailable as error:
            log.info("%s was not acknowledged: %s", received.id, error.message)

    def defer(self, received: Received, why: str) -> None:
        """Deliver it again later, to any worker of the pool; after five times the announcing sweep does that."""
        if received.tries >= limits.DEFERRALS:
            self.acknowledge(received)
            return
        log.info("%s comes again in %d s: %s", received.id, limits.DEFERRED_FOR, why)
        with suppress(SinkUnavailable):  # it comes again in any case
            _asked(lambda: self._source.reject(received, limits.DEFERRED_FOR))

    def close(self) -> None:
        """Messages that were not acknowledged go to another worker."""
        with suppress(SinkUnavailable):
            _asked(self._source.close)

    def _sort(self, fetched: Sequence[Received]) -> None:
        wake_ups = []
        for received in fetched:
            payload = self._payload(received)
            if payload is None:
                continue
            if received.name != names.EXECUTE:
                self._take_command(received, payload)
            elif self._take == TASK:
                self._requests.append(ClaimRequest((received,), str(payload.get("task_id"))))
            else:
                wake_ups.append(received)
        if wake_ups:
            self._requests.append(ClaimRequest(tuple(wake_ups)))

    def _payload(self, received: Received) -> dict[str, Any] | None:
        """The payload of a message for this project; all others are settled here."""
        try:
            envelope = msgspec.json.decode(received.body, type=dict[str, Any])
            payload = envelope["payload"]
            if not isinstance(payload, dict):
                raise TypeError("its payload is not an object")
            if payload.get("expires_at") is not None:
                parse_instant(payload["expires_at"])
        except (msgspec.MsgspecError, KeyError, TypeError, ValueError, RecursionError) as error:
            log.warning("a message %s named %s is not an envelope of tenure: %s", received.id, received.name, error)
            self.acknowledge(received)
            return None
        if envelope.get("project") != self._project:
            self.defer(received, f"it is for the project {envelope.get('project')}")
            return None
        return payload

    def _take_command(self, received: Received, payload: dict[str, Any]) -> None:
        action, id = payload.get("action"), payload.get("message")
        if action is None or id is None:  # mail for people and models: its row in the store is what they read
            self.acknowledge(received)
            return
        is_to_type = f".{names.INSTANCE}." not in received.name
        self.commands.append(
            AgentCommand(
                str(id), str(action), str(payload.get("from")), str(payload.get("text")), payload.get("expires_at"),
                received, is_to_type,
            )
        )  # fmt: skip
