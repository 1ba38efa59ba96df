"""Notices to people: which events are one, and how many messages a channel gets. Pure; the time is an argument.

The first notice of a kind goes out at once. What comes within the next 60 s goes into one message. A channel
gets at most 20 messages of a kind in any hour; then notices are counted, and go out as one digest as soon as the hour
allows. So five hundred dead letters in a minute make two messages.

A channel's state is small, and may be kept in a row or in the memory of the process that leads: a new leader may send
one message more, and loses at most what waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from tenure.core import lifecycle, limits, validation
from tenure.core.event_text import event_text
from tenure.core.events import Event
from tenure.core.records import replace
from tenure.core.safe_text import one_line

SECOND = 1_000_000
WINDOW = limits.NOTICE_WINDOW
HOUR = 3600 * SECOND
MOST_AN_HOUR = limits.NOTICES_AN_HOUR
MOST_NAMED = limits.NOTICES_NAMED
LONGEST_TEXT = limits.NOTICE_TEXT
UNAVAILABLE_FOR = limits.NOTICE_STORE_UNAVAILABLE

DEAD_LETTER, BUDGET_PAUSE, REVIEW = "dead letter", "budget pause", "review wanted"
AGENT_DIED, AGENTS_STALE = "agent died", "most agents stale"
STORE_UNAVAILABLE, SINK_BEHIND, WEBHOOK_DISABLED = "store unavailable", "sink behind", "webhook disabled"
# kind → what a message of several is about.
KINDS: dict[str, str] = {
    DEAD_LETTER: "tasks are dead letters and wait for a person",
    BUDGET_PAUSE: "tasks are paused by a budget",
    REVIEW: "tasks wait for a person's review or answer",
    AGENT_DIED: "agents died while they held a task",
    AGENTS_STALE: "times most agents gave no sign of life",
    STORE_UNAVAILABLE: "times the store was unavailable",
    SINK_BEHIND: "sinks were cut off: they are too far behind",
    WEBHOOK_DISABLED: "webhooks were disabled",
}


EVENTS = frozenset(
    {
        "task.dead_lettered", "task.question", "task.validating", "task.paused", "task.process_gone", "sink.behind",
        "webhook.disabled",
    }
)  # fmt: skip  # kinds that may be a notice


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    at: int
    text: str  # one line
    project: str = ""
    task: str | None = None  # its key


# --- which events ---------------------------------------------------------------------------------------


def notice_of(event: Event) -> Notice | None:
    """The notice that an event is, if any."""
    kind = kind_of(event)
    if kind is None:
        return None
    text = one_line(event_text(event))[:LONGEST_TEXT]
    return Notice(kind=kind, at=event.time, text=text, project=event.project, task=event.key)


def kind_of(event: Event) -> str | None:
    """The kind of notice that an event is, if any. Only EVENTS are one."""
    match event.kind:
        case "task.dead_lettered":
            return DEAD_LETTER
        case "task.question":
            return REVIEW
        case "task.validating":
            return REVIEW if event.details.get("validator") == validation.REVIEW else None
        case "task.paused":
            found = _pauses(event)
            if lifecycle.BUDGET in found or "budget" in event.details:
                return BUDGET_PAUSE
            return REVIEW if lifecycle.REVIEW in found else None
        case "task.process_gone":
            return AGENT_DIED
        case "sink.behind":
            return SINK_BEHIND
        case "webhook.disabled":
            return WEBHOOK_DISABLED
    return None


def _pauses(event: Event) -> set[str]:
    """The causes of the pause that the event wrote."""
    found: set[str] = set()
    for table, _, fields in event.patch:
        if table == "task" and fields is not None:
            found |= {str(cause.get("cause")) for cause in fields.get("pauses") or () if isinstance(cause, Mapping)}
    return found


def agents_stale(stale: int, living: int, was_sent: bool, now: int, project: str) -> Notice | None:
    """Where more than half of a project's agents are stale, and at least two; once, until `was_sent` is False again."""
    if was_sent or stale < 2 or stale * 2 <= living:
        return None
    text = f"{stale} of {living} agents of {project} give no sign of life"
    return Notice(kind=AGENTS_STALE, at=now, text=text, project=project)


def store_unavailable(since: int | None, was_sent: bool, now: int) -> Notice | None:
    """Where no write has succeeded for five minutes; `since` is the first failure after the last success."""
    if was_sent or since is None or now - since < UNAVAILABLE_FOR:
        return None
    minutes = (now - since) // (60 * SECOND)
    return Notice(kind=STORE_UNAVAILABLE, at=now, text=f"the store has been unavailable for {minutes} minutes")


# --- how many messages --------------------------------------------------------------------------------------


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """The notices of one kind for one channel."""

    sent: tuple[int, ...] = ()  # when messages went out, within the last hour
    count: int = 0  # notices that wait
    first: tuple[Notice, ...] = ()  # the first of them
    since: int | None = None  # when the oldest of them came


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """One message to a channel."""

    kind: str
    count: int
    first: tuple[Notice, ...]
    since: int
    is_digest: bool = False  # it waited for the hour

    @property
    def title(self) -> str:
        """One line: the notice, or how many there are."""
        if self.count == 1:
            return f"{self.kind}: {self.first[0].text}"
        return f"{self.count} {KINDS.get(self.kind, self.kind)}"

    @property
    def lines(self) -> list[str]:
        """The notices, as far as they are shown."""
        shown = [f"{one.project}: {one.text}" if one.project else one.text for one in self.first]
        left = self.count - len(shown)
        return [*shown, f"and {left} more"] if left else shown


Channel = dict[str, Pending]  # kind → its notices


def added(channel: Channel, notices: Iterable[Notice]) -> Channel:
    """The channel with notices that have come."""
    after = dict(channel)
    for notice in notices:
        kind = after.get(notice.kind, Pending())
        after[notice.kind] = replace(
            kind,
            count=kind.count + 1,
            first=kind.first if len(kind.first) >= MOST_NAMED else (*kind.first, notice),
            since=notice.at if kind.since is None else min(kind.since, notice.at),
        )
    return after


def due_at(channel: Channel) -> int | None:
    """When the next message may go out; None where no notice waits."""
    return min((at for kind in channel.values() if (at := _due_at(kind)) is not None), default=None)


def _due_at(kind: Pending) -> int | None:
    if kind.since is None:
        return None
    if not kind.sent:
        return kind.since
    after_last = kind.sent[-1] + WINDOW
    full = kind.sent[-MOST_AN_HOUR] + HOUR if len(kind.sent) >= MOST_AN_HOUR else 0
    return max(kind.since, after_last, full)


def taken(channel: Channel, now: int) -> tuple[Channel, list[Summary]]:
    """The messages that go out now, and the channel without them. One that cannot be sent is `put_back`."""
    after, summaries = dict(channel), []
    for name, kind in channel.items():
        at = _due_at(kind)
        if at is None or at > now or kind.since is None:
            continue
        is_digest = len(kind.sent) >= MOST_AN_HOUR and at > kind.sent[-1] + WINDOW
        summaries.append(Summary(kind=name, count=kind.count, first=kind.first, since=kind.since, is_digest=is_digest))
        sent = tuple(one for one in (*kind.sent, now) if one > now - HOUR)
        after[name] = Pending(sent=sent)
    return after, summaries


def put_back(channel: Channel, summary: Summary) -> Channel:
    """The channel after a message could not be sent: its notices wait again, and that message counts."""
    kind = channel.get(summary.kind, Pending())
    merged = replace(
        kind,
        count=kind.count + summary.count,
        first=(*summary.first, *kind.first)[:MOST_NAMED],
        since=summary.since if kind.since is None else min(kind.since, summary.since),
    )
    return channel | {summary.kind: merged}


def to_plain(channel: Channel) -> dict[str, Any]:
    """As a row keeps it."""
    return {name: msgspec.to_builtins(kind) for name, kind in channel.items()}


def from_plain(stored: Mapping[str, Any]) -> Channel:
    return {name: msgspec.convert(kind, Pending) for name, kind in stored.items()}
