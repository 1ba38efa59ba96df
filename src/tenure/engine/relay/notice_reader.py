"""Sends notices to people: reads the log for events that are one, and looks for what no event reports.

The place in the log moves only past notices that were sent, and `sent_at` of the row is when a message last went out.
So a new leader neither loses a notice that waits nor begins the minute of a kind again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from tenure.core import notices, team
from tenure.core.errors import StoreError
from tenure.core.filters import Present
from tenure.core.notices import Channel, Notice, Summary
from tenure.core.records import Agent, Project, Sink
from tenure.engine.duties.election import LeaderEngine
from tenure.engine.relay.reader import Reader
from tenure.engine.runtime.engine import Engine
from tenure.sinks.port import SinkUnavailable
from tenure.stores.port import Transaction

NAME = "notices"
STALE_EVERY = 30.0  # seconds between two looks at the agents
HELD_BACK = notices.HOUR  # a notice that cannot be sent for longer does not hold the place back any more


class Sends(Protocol):
    def send(self, summary: Summary) -> None: ...


class Target(NamedTuple):
    channel: Sends
    kinds: frozenset[str] = frozenset()  # none: all


class _Waiting(NamedTuple):
    before: int  # the sequence before the first notice that waits
    at: int


class NoticeReader(Reader):
    def __init__(
        self,
        engine: Engine,
        targets: Mapping[str, Target],
        leading: Callable[[], LeaderEngine | None],
        monotonic: Callable[[], float],
        *,
        failed: Callable[[str], object] = lambda _: None,
    ) -> None:
        super().__init__(engine, NAME, ", ".join(targets), notices.EVENTS, leading, failed=failed)
        self._targets, self._monotonic = targets, monotonic
        self._states: dict[str, Channel] = {name: {} for name in targets}
        self._waiting: dict[tuple[str, str], _Waiting] = {}  # channel and kind
        self._place: int | None = None  # of the row, as this process wrote it
        self._read = 0  # how far this process has read
        self._stale: set[str] = set()  # projects that people know of
        self._stale_at = 0.0
        self._now = (0, 0.0)  # the store's time when it last answered, and the monotonic time then
        self._led = False  # as of then
        self._away_since: int | None = None
        self._away_sent = False

    # --- a step ---

    def read(self, led: LeaderEngine) -> bool:
        page = self.page(led, after=self._read if self._place is not None else 0)
        if page.row.sequence != self._place:  # the first page, a new leader's, or one after a rewind
            self._begin(page.row, page.now)
            page = self.page(led, after=self._read)
        self._answered(page.now, is_leading=True)
        if page.row.paused_at is not None:
            return False
        for event, _ in page.events:
            notice = notices.notice_of(event)
            if notice is not None:
                self._add(notice, event.sequence - 1)
        self._read = page.end
        for notice in self._stale_agents(page.now):
            self._add(notice)
        sent, error = self._send(page.now)
        place = self._settled(page.now)
        if place != page.row.sequence or sent or (error is not None) != (page.row.error is not None):
            moved = self.move(led, page.row, place, sent=sent, error=error)
            self._place = place if moved else None
        return page.is_full

    def _begin(self, row: Sink, now: int) -> None:
        self._place = self._read = row.sequence
        self._waiting.clear()
        is_recent = row.sent_at is not None and row.sent_at > now - notices.WINDOW
        start = {kind: notices.Pending(sent=(row.sent_at or 0,)) for kind in notices.KINDS} if is_recent else {}
        self._states = {name: dict(start) for name in self._targets}

    def _add(self, notice: Notice, before: int | None = None) -> None:
        for name, target in self._targets.items():
            if target.kinds and notice.kind not in target.kinds:
                continue
            self._states[name] = notices.added(self._states[name], [notice])
            if before is not None:
                self._waiting.setdefault((name, notice.kind), _Waiting(before, notice.at))

    def _send(self, now: int) -> tuple[int, str | None]:
        """How many messages went out, and the last error."""
        sent, problem = 0, None
        for name, target in self._targets.items():
            state, summaries = notices.taken(self._states[name], now)
            for summary in summaries:
                if self.leading() is None:
                    state = notices.put_back(state, summary)
                    continue
                try:
                    target.channel.send(summary)
                    sent += 1
                    self._waiting.pop((name, summary.kind), None)
                except SinkUnavailable as error:
                    problem = f"{name}: {error.message}"[:500]
                    self.failed(error)
                    state = notices.put_back(state, summary)
            self._states[name] = state
        return sent, problem

    def _settled(self, now: int) -> int:
        """The place before the oldest notice that still waits."""
        return min((w.before for w in self._waiting.values() if w.at > now - HELD_BACK), default=self._read)

    # --- what no event reports ---

    def _stale_agents(self, now: int) -> Sequence[Notice]:
        if self._monotonic() < self._stale_at:
            return ()
        self._stale_at = self._monotonic() + STALE_EVERY
        found = []
        for project, living in self.engine.read(_living).items():
            stale = sum(team.is_stale(agent, now) for agent in living)
            known = project in self._stale
            notice = notices.agents_stale(stale, len(living), known, now, project)
            if notice is not None:
                found.append(notice)
                self._stale.add(project)
            elif known and stale * 2 <= len(living):
                self._stale.discard(project)
        return found

    def _answered(self, now: int, *, is_leading: bool) -> None:
        self._now, self._led = (now, self._monotonic()), is_leading
        self._away_since, self._away_sent = None, False

    def idle(self) -> None:
        """Only the process that led when the store became unavailable sends this notice."""
        if not self._led:
            return
        self._answered(self.engine.read(lambda tx: tx.now), is_leading=False)

    def failed(self, error: Exception) -> None:
        if isinstance(error, StoreError):
            self._is_away()
        super().failed(error)

    def _is_away(self) -> None:
        then, at = self._now
        now = then + round((self._monotonic() - at) * 1e6)
        if not self._led:
            return
        self._away_since = self._away_since or now
        notice = notices.store_unavailable(self._away_since, self._away_sent, now)
        if notice is None:
            return
        _, (summary,) = notices.taken(notices.added({}, [notice]), now)
        for target in self._targets.values():
            with suppress(SinkUnavailable):  # tried again while the store is unavailable
                if not target.kinds or notice.kind in target.kinds:
                    target.channel.send(summary)
                    self._away_sent = True


def _living(tx: Transaction) -> dict[str, list[Agent]]:
    """The agents of each project that have not left and should give signs of life."""
    found = {project.id: {"project": project.id, "left_at": Present(False)} for project in tx.find(Project, {})}
    return {name: [a for a in tx.find(Agent, where) if team.is_expected(a)] for name, where in found.items()}
