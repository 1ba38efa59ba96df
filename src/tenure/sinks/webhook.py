"""Webhooks: the request of a delivery, and a round of them with up to eight in flight.

The rules are in `core/webhook_delivery.py`; keys come opened, from the engine. Safe to share between threads: rounds of
several webhooks may run at the same time, so that one slow receiver delays no other.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from tenure.core.errors import InvalidInput
from tenure.core.events import Event
from tenure.core.instants import format_instant
from tenure.core.messaging_records import Delivery
from tenure.core.signatures import standard_headers
from tenure.core.webhook_delivery import IN_FLIGHT, STATUS_CHANGED, Lanes, Tried, message_id, retry_after
from tenure.sinks.http_sender import SECONDS, HttpSender, SendFailed
from tenure.sinks.port import Message

HEADERS = {"Content-Type": "application/json", "User-Agent": "tenure"}

Result = tuple[Delivery, Tried | None]


def body_of(kind: str, event: Event, message: Message) -> bytes:
    """The body: the envelope; for `task.status_changed` with the seven fields of that message beside it."""
    if kind != STATUS_CHANGED:
        return message.body
    envelope = msgspec.json.decode(message.body, type=dict[str, msgspec.Raw])
    changed = {
        "message_id": message_id(event, kind),
        "kind": f"evt.{STATUS_CHANGED}",
        "event": STATUS_CHANGED,
        "taskId": event.task,
        "previousStatus": event.previous_state,
        "newStatus": event.new_state,
        "workspaceId": msgspec.json.decode(envelope["tenant"]),
        "projectId": event.project,
        "timestamp": format_instant(event.time),
    }
    return msgspec.json.encode(envelope | changed)


class WebhookSender:
    def __init__(self, http: HttpSender, now: Callable[[], int], *, seconds: float = SECONDS) -> None:
        """`now`: microseconds; the receiver compares a delivery's timestamp with its own clock."""
        self._http, self._now, self._seconds = http, now, seconds

    def send(self, url: str, keys: Sequence[bytes], delivery: Delivery) -> Tried:
        """One try. Never raises for what a receiver or a name server does."""
        began = time.monotonic()
        now = self._now()
        headers = HEADERS | standard_headers(keys, delivery.message, delivery.body, now)
        try:
            answer = self._http.post(url, headers, delivery.body, self._seconds)
        except (SendFailed, InvalidInput) as error:  # a URL that was allowed when it was set may be refused now
            return Tried(error=str(error), duration=_since(began))
        return Tried(answer.status, None, retry_after(answer.retry_after, now), _since(began))

    def send_round(
        self,
        url: str,
        keys: Sequence[bytes],
        lanes: Lanes,
        *,
        is_cautious: bool = False,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> list[Result]:
        """Try the lanes, each in order up to its first failure, up to eight at the same time.

        The results come in the order of the answers, then the untried deliveries. The round ends early when as many
        deliveries in a row have failed as may be in flight, so that a receiver that hangs costs one timeout and not a
        thousand; where the first lane fails, if `is_cautious`: it goes alone; and where `is_wanted` is False, as for a
        relay that does not lead any more.
        """
        current = _Round(lanes, is_wanted)
        if is_cautious and not self._try_lane(current, url, keys):
            return current.results()
        count = min(IN_FLIGHT, len(lanes))
        with ThreadPoolExecutor(IN_FLIGHT, "tenure-webhook") as threads:
            for done in [threads.submit(self._try_lanes, current, url, keys) for _ in range(count)]:
                done.result()
        return current.results()

    def _try_lanes(self, current: _Round, url: str, keys: Sequence[bytes]) -> None:
        while self._try_lane(current, url, keys) is not None:
            pass

    def _try_lane(self, current: _Round, url: str, keys: Sequence[bytes]) -> bool | None:
        """Whether the next lane was delivered; None where there is none left to try."""
        lane = current.next_lane()
        if lane is None:
            return None
        for delivery in lane:
            if not current.goes_on():
                return False
            tried = self.send(url, keys, delivery)
            current.add(delivery, tried)
            if not tried.is_delivered:
                return False
        return True


class _Round:
    """The lanes of one round, and what came of them."""

    def __init__(self, lanes: Lanes, is_wanted: Callable[[], bool]) -> None:
        self._lanes, self._is_wanted = lanes, is_wanted
        self._left = deque(lanes)
        self._done: dict[str, Result] = {}
        self._failures = 0  # in a row
        self._mutex = threading.Lock()

    def next_lane(self) -> list[Delivery] | None:
        with self._mutex:
            return self._left.popleft() if self._left and self._failures < IN_FLIGHT else None

    def goes_on(self) -> bool:
        return self._failures < IN_FLIGHT and self._is_wanted()

    def add(self, delivery: Delivery, tried: Tried) -> None:
        with self._mutex:
            self._done[delivery.id] = (delivery, tried)
            self._failures = 0 if tried.is_delivered else self._failures + 1

    def results(self) -> list[Result]:
        untried = [(one, None) for lane in self._lanes for one in lane if one.id not in self._done]
        return [*self._done.values(), *untried]


def _since(began: float) -> int:
    return round((time.monotonic() - began) * 1_000_000)
