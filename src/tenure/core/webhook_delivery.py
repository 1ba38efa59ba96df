"""Webhooks: which events one gets, when a delivery is tried again, when its endpoint is down or disabled. Pure.

A delivery that fails is tried again 5 s, 30 s, 2 min, 10 min and 1 h later, then every 6 h for 3 days. Meanwhile it is
parked in its own row: later deliveries of the same task wait behind it, and the reading of the log goes on.

An endpoint without any success for ten minutes, or with more than a thousand parked deliveries, is *down*: nothing more
is read for it, and one delivery at a time is tried, at the times that a delivery of the first failure would have. With
the first success everything parked is due. An endpoint that has answered nothing else for the whole schedule is
disabled; so is one that answers 410. Nothing parked is lost by that: a person resumes it, and everything is due again.

A single delivery that a healthy endpoint refuses for the whole schedule is given up (`failed`), and the deliveries
behind it go on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import accumulate
from typing import Any, NamedTuple

from tenure.core import inputs, limits, triggers
from tenure.core.errors import InvalidInput, TooLarge
from tenure.core.events import KINDS, Event
from tenure.core.messaging_records import Delivery, Webhook
from tenure.core.records import replace
from tenure.core.target_urls import Target, checked_url

STATUS_CHANGED = "task.status_changed"
SECRET_PATH = "secret"  # noqa: S105 where its secret and the one before are sealed
PARKED, DELIVERED, FAILED = STATES = ("parked", "delivered", "failed")

SECOND = inputs.SECOND
DELAYS = (5, 30, 120, 600, 3600, *[6 * 3600] * 12)  # seconds: the last twelve make three days
TRIES_AT = tuple(seconds * SECOND for seconds in accumulate(DELAYS))  # counted from the first failure
FIRST = TRIES_AT[0]
GIVES_UP = TRIES_AT[-1]
DOWN_AFTER = limits.WEBHOOK_DOWN
MOST_PARKED = limits.WEBHOOK_PARKED
MOST = limits.WEBHOOKS
MOST_KINDS = limits.WEBHOOK_KINDS
LOG_KEPT = limits.WEBHOOK_LOG
IN_FLIGHT = limits.SENDS
LONGEST_WAIT = limits.WEBHOOK_RETRY_AFTER
LONGEST_ERROR = limits.TRIGGER_ERROR
GONE = "the receiver answered 410 Gone"
UNREACHABLE = "no delivery succeeded for three days"

_SECONDS = re.compile(r"[0-9]{1,9}")


# --- which events -------------------------------------------------------------------------------------------


def owner_of(webhook: str) -> str:
    """The owner text under which its secrets are sealed."""
    return f"webhook:{webhook}"


def check_url(url: str, *, allow_http: bool = False) -> Target:
    """The URL of a webhook, as far as its text shows. `allow_http`: the deployment's owner allows it."""
    return checked_url(url, allow_http=allow_http)


def check_kinds(kinds: Sequence[str]) -> tuple[str, ...]:
    """Kinds of events, patterns that match some, or `task.status_changed`."""
    if not kinds:
        raise InvalidInput("a webhook must name at least one kind of event", f"as in task.*, or {STATUS_CHANGED}")
    if len(kinds) > MOST_KINDS:
        raise TooLarge(
            f"a webhook may name at most {MOST_KINDS} kinds (got {len(kinds)})", "use patterns, as in task.*"
        )
    for pattern in kinds:
        if pattern != STATUS_CHANGED and (len(pattern) > 100 or not any(fnmatchcase(kind, pattern) for kind in KINDS)):
            known = (*KINDS, STATUS_CHANGED)
            raise InvalidInput(
                f"kind {pattern[:60]!r} matches no kind of event{inputs.suggestion(pattern, known)}",
                f"use a kind such as task.completed, a pattern such as task.*, or {STATUS_CHANGED}",
            )
    return tuple(dict.fromkeys(kinds))


def messages_for(webhook: Webhook, event: Event, values: Mapping[str, Any]) -> tuple[str, ...]:
    """The kinds of the messages that the webhook gets for the event: its own, `task.status_changed`, both or none.

    `values` are what a trigger's filter reads.
    """
    if not webhook.enabled or event.sequence <= webhook.since or event.project != webhook.project:
        return ()
    found = [event.kind] if any(_is_meant(event.kind, pattern) for pattern in webhook.kinds) else []
    if STATUS_CHANGED in webhook.kinds and changes_status(event):
        found.append(STATUS_CHANGED)
    return tuple(found) if found and triggers.fits(webhook.filter, values) else ()


def _is_meant(kind: str, pattern: str) -> bool:
    return pattern != STATUS_CHANGED and fnmatchcase(kind, pattern)


def changes_status(event: Event) -> bool:
    return event.task is not None and event.new_state is not None and event.new_state != event.previous_state


def message_id(event: Event, kind: str) -> str:
    """One event may become two messages: a receiver that drops repeats must see two ids."""
    return f"{event.id}-status" if kind == STATUS_CHANGED else event.id


def new_delivery(webhook: Webhook, event: Event, kind: str, body: bytes, now: int) -> Delivery:
    message = message_id(event, kind)
    return Delivery(
        project=webhook.project, id=f"{webhook.id}:{message}", webhook=webhook.id, message=message, event=event.id,
        sequence=event.sequence, task=event.task, kind=kind, at=now, body=body,
    )  # fmt: skip


# --- reading and trying ---------------------------------------------------------------------------------


def is_reading(webhook: Webhook, now: int) -> bool:
    """Whether events are read for it: its endpoint is not down, and may not have gone down since the last try."""
    return webhook.enabled and webhook.down_since is None and not _goes_down(webhook, now)


def readings(webhooks: Iterable[Webhook], shared: int, now: int) -> dict[int, list[Webhook]]:
    """Where to read on → the webhooks that read from there. `shared` is the sequence of those that are not behind.

    Who has caught up reads with the others again: one reading of the log serves all webhooks of a tenant.
    """
    found: dict[int, list[Webhook]] = {}
    for webhook in webhooks:
        if is_reading(webhook, now):
            found.setdefault(shared if webhook.sequence is None else webhook.sequence, []).append(webhook)
    return found


def holds_back(webhook: Webhook, now: int) -> bool:
    """Whether events are kept for it: not for one that was paused or down for longer than a sink may lag."""
    since = webhook.disabled_at if not webhook.enabled else webhook.down_since
    return since is None or now - since < limits.RELAY_LAG


def moved(webhook: Webhook, read: int, shared: int, now: int) -> Webhook:
    """The webhook after the log was read for it up to `read`; one that stopped keeps its own place.

    `shared` is where the others stand after this step. With their place before it, a webhook that catches up in this
    step would join them too early, and miss the events between.
    """
    stays = read >= shared and is_reading(webhook, now)
    return replace(webhook, sequence=None if stays else read)


Lanes = list[list[Delivery]]


def lanes(webhook: Webhook, deliveries: Iterable[Delivery], now: int) -> Lanes:
    """What may be tried now: in each lane the deliveries of one task, in order; a lane ends at its first failure.

    `deliveries`: every parked one, and new ones. A delivery without a task has its own lane.
    """
    if not webhook.enabled or (webhook.wait_until is not None and now < webhook.wait_until):
        return []
    by_task: dict[str, list[Delivery]] = {}
    for delivery in sorted(deliveries, key=lambda one: (one.sequence, one.id)):
        if delivery.state == PARKED:
            by_task.setdefault(delivery.task or f"-{delivery.id}", []).append(delivery)
    if webhook.down_since is not None and webhook.failing_since is not None:
        return _probe(webhook, by_task.values(), now)
    return [lane for lane in by_task.values() if _is_due(webhook, lane[0], now)]


def _probe(webhook: Webhook, found: Iterable[list[Delivery]], now: int) -> Lanes:
    """While the endpoint is down: one delivery, the one that was not tried for longest."""
    heads = [lane[0] for lane in found]
    if not heads or now < probe_at(webhook):
        return []
    return [[min(heads, key=lambda one: (one.tried_at or 0, one.sequence, one.id))]]


def probe_at(webhook: Webhook) -> int:
    """When an endpoint that is down is tried next."""
    began, last = webhook.failing_since or 0, webhook.failure_at or 0
    return next((began + after for after in TRIES_AT if began + after >= last + FIRST), last + DELAYS[-1] * SECOND)


def _is_due(webhook: Webhook, delivery: Delivery, now: int) -> bool:
    return delivery.next_at is None or delivery.next_at <= now or _is_before_return(webhook, delivery)


def _is_before_return(webhook: Webhook, delivery: Delivery) -> bool:
    """Whether it was last tried before the endpoint came back: its schedule starts again."""
    return webhook.up_at is not None and (delivery.tried_at or delivery.at) < webhook.up_at


def is_cautious(webhook: Webhook) -> bool:
    """After a failure one delivery goes first, alone: many at once would all wait for the same timeout."""
    return webhook.failing_since is not None


# --- what an answer means -----------------------------------------------------------------------------------


class Tried(NamedTuple):
    """What came of one try."""

    status: int | None = None  # None: no answer
    error: str | None = None  # why, without any secret
    retry_after: int | None = None  # microseconds
    duration: int = 0

    @property
    def is_delivered(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def is_gone(self) -> bool:
        return self.status == 410

    @property
    def is_throttled(self) -> bool:
        """The receiver asks for a later delivery; that does not count against it."""
        return self.status in (429, 503) and self.retry_after is not None


def retry_after(text: str | None, now: int) -> int | None:
    """The microseconds that a `Retry-After` header asks for: seconds or a date; None where it is neither."""
    if text is None:
        return None
    if _SECONDS.fullmatch(text.strip()):
        wanted = int(text) * SECOND
    else:
        from email.utils import parsedate_to_datetime  # costs 20 ms: few receivers send a date

        try:
            wanted = round(parsedate_to_datetime(text).timestamp()) * SECOND - now
        except (ValueError, OverflowError, OSError):
            return None
    return min(max(wanted, SECOND), LONGEST_WAIT)


class Round(NamedTuple):
    """The rows after a round of tries, and what has happened to the endpoint."""

    webhook: Webhook
    deliveries: list[Delivery]
    disabled: str | None = None  # it was disabled now, for this reason
    is_down: bool = False  # it went down now
    is_back: bool = False  # it was down, and answers again


def on_stored(
    tried: Iterable[tuple[Delivery, Tried | None]], stored: Mapping[str, Delivery]
) -> list[tuple[Delivery, Tried | None]]:
    """The tries on the rows as the transaction reads them, for `after_round`.

    While a round was under way its deliveries may have been parked. A row that is done already is tried once more: the
    webhook is replayed, or another leader sent it too.
    """
    return [(_current(delivery, stored.get(delivery.id)), result) for delivery, result in tried]


def _current(delivery: Delivery, row: Delivery | None) -> Delivery:
    if row is None or row.state == PARKED:
        return row or delivery
    return replace(delivery, state=PARKED, parked_at=None)


def after_round(webhook: Webhook, tried: Sequence[tuple[Delivery, Tried | None]], now: int) -> Round:
    """`tried`: in the order in which the answers came; None for a delivery that was not tried.

    An untried delivery is due five seconds later.
    """
    before = webhook
    for _, result in tried:
        webhook = webhook if result is None else _answered(webhook, result, now)
    why = _why_disabled(webhook, [result for _, result in tried], now)
    after = [_after_try(before, delivery, result, now, gives_up=why is None) for delivery, result in tried]
    were_parked = sum(delivery.parked_at is not None for delivery, _ in tried)
    states = [delivery.state for delivery in after]
    webhook = replace(
        webhook,
        parked=webhook.parked + states.count(PARKED) - were_parked,
        delivered=webhook.delivered + states.count(DELIVERED),
        failed=webhook.failed + states.count(FAILED),
    )
    if why is not None:
        webhook = replace(webhook, enabled=False, disabled_for=why, disabled_at=now)
    goes_down = _goes_down(webhook, now)
    is_down, is_back = goes_down and webhook.down_since is None, not goes_down and webhook.down_since is not None
    if is_down or is_back:
        webhook = replace(webhook, down_since=now if is_down else None)
    return Round(webhook, after, why, is_down, is_back)


def _answered(webhook: Webhook, result: Tried, now: int) -> Webhook:
    if result.is_delivered:
        up_at = now if webhook.down_since is not None and webhook.failing_since is not None else webhook.up_at
        return replace(
            webhook, failing_since=None, up_at=up_at, wait_until=None, success_at=now, status=result.status, error=None,
        )  # fmt: skip
    return replace(
        webhook,
        tries=webhook.tries + 1,
        failing_since=now if webhook.failing_since is None else webhook.failing_since,
        failure_at=now,
        wait_until=now + (result.retry_after or 0) if result.is_throttled else webhook.wait_until,
        status=result.status,
        error=error_of(result),
    )


def error_of(result: Tried) -> str:
    """Why a try failed, in one sentence."""
    if result.error is not None:
        return result.error[:LONGEST_ERROR]
    hint = "; redirects are not followed" if 300 <= (result.status or 0) < 400 else ""
    return f"the receiver answered {result.status}{hint}"


def _why_disabled(webhook: Webhook, results: Sequence[Tried | None], now: int) -> str | None:
    if any(result is not None and result.is_gone for result in results):
        return GONE
    is_over = webhook.failing_since is not None and now - webhook.failing_since >= GIVES_UP
    return UNREACHABLE if is_over else None


def _goes_down(webhook: Webhook, now: int) -> bool:
    if webhook.parked > MOST_PARKED:
        return True
    return webhook.failing_since is not None and now - webhook.failing_since >= DOWN_AFTER


def _after_try(webhook: Webhook, delivery: Delivery, result: Tried | None, now: int, *, gives_up: bool) -> Delivery:
    parked_at = now if delivery.parked_at is None else delivery.parked_at
    if result is None:
        return replace(delivery, parked_at=parked_at, next_at=now + FIRST)
    done = replace(delivery, tries=delivery.tries + 1, tried_at=now, status=result.status, duration=result.duration)
    if result.is_delivered:
        return replace(done, state=DELIVERED, next_at=None, error=None, body=b"")
    starts_again = delivery.first_at is None or _is_before_return(webhook, delivery)
    first_at = now if starts_again or delivery.first_at is None else delivery.first_at
    done = replace(done, parked_at=parked_at, first_at=first_at, error=error_of(result))
    if gives_up and now - first_at >= GIVES_UP:
        return replace(done, state=FAILED, next_at=None)
    if result.is_throttled:
        return replace(done, next_at=now + (result.retry_after or 0))
    return replace(done, next_at=next_try(first_at, now))


def next_try(first_at: int, now: int) -> int:
    """When a delivery that failed now is tried again; the schedule counts from its first failure."""
    return next((first_at + after for after in TRIES_AT if first_at + after >= now + FIRST), now + FIRST)


def surplus(log: Iterable[Delivery]) -> list[Delivery]:
    """The lines of one webhook's delivery log that are dropped: all but the newest; nothing that is parked."""
    done = sorted((one for one in log if one.state != PARKED), key=lambda one: (one.tried_at or one.at, one.id))
    return done[:-LOG_KEPT]


# --- what people do -----------------------------------------------------------------------------------------


def paused(webhook: Webhook, why: str, now: int, place: int | None = None) -> Webhook:
    """`place`: where the others stand in the log: a resume reads on from there. None: it misses what came meanwhile."""
    sequence = place if webhook.sequence is None else webhook.sequence
    return replace(webhook, enabled=False, disabled_for=why, disabled_at=now, sequence=sequence, changed_at=now)


def resumed(webhook: Webhook, now: int) -> Webhook:
    """Enabled again; every parked delivery is due at once, with its whole schedule before it."""
    return replace(
        webhook, enabled=True, disabled_for=None, disabled_at=None, failing_since=None, down_since=None,
        wait_until=None, up_at=now, changed_at=now,
    )  # fmt: skip


def replayed(webhook: Webhook, delivery: Delivery, body: bytes, now: int) -> tuple[Webhook, Delivery]:
    """A delivery that is sent once more, with the same message id; `body` from the log where the row has none."""
    if delivery.state == PARKED:
        return webhook, replace(delivery, next_at=None)
    again = replace(
        delivery, state=PARKED, parked_at=now, first_at=None, tried_at=None, next_at=None, body=delivery.body or body,
    )  # fmt: skip
    return replace(webhook, parked=webhook.parked + 1), again
