"""The thread that delivers webhooks: one reading of the log for all of them, up to eight deliveries in flight each.

What a step reads from the log is either delivered or parked in a row when the step ends, and only then does the place
in the log move: a crash in between sends the same message ids again. A webhook that fails does not hold the others up:
while its tries take time in another thread, its new messages are parked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import NamedTuple

from tenure.core import webhook_delivery as rule
from tenure.core.errors import SecretsOff, SecretUnreadable, close_all, spelled
from tenure.core.events import Event
from tenure.core.records import STORE, Delivery, Project, Sink, Webhook, replace
from tenure.engine.duties.election import LeaderEngine
from tenure.engine.relay.leader_thread import LeaderThread
from tenure.engine.relay.page import PAGE
from tenure.engine.relay.webhook_verbs import READER, TEST, body_for, deliveries_of, keys_of
from tenure.engine.runtime.engine import Engine
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.sources.triggers import event_values, values_of
from tenure.sinks.webhook import Result, WebhookSender

AT_ONCE = 8  # webhooks that deliver at the same time
WAITED = 1.0  # seconds that a step waits for the rounds of the webhooks that read together


class _Work(NamedTuple):
    """One webhook in one step."""

    webhook: Webhook
    keys: tuple[bytes, ...]
    parked: Sequence[Delivery]
    new: Sequence[Delivery]
    read: int  # how far the log was read for it

    @property
    def key(self) -> tuple[str, str]:
        return self.webhook.project, self.webhook.id

    @property
    def is_waited_for(self) -> bool:
        """It reads with the others and does not fail: its round is short as a rule."""
        return self.webhook.sequence is None and self.webhook.failing_since is None


class _UnderWay(NamedTuple):
    """A round that a step did not wait for."""

    future: Future[list[Result]]
    reading: _Work | None = None  # its page, where the webhook's place moves with the round's end


def end_of(page: Sequence[Event], place: int, shared: int) -> int:
    """How far the log was read with a page after `place`; `shared` is the end of the others' page.

    A page that is not full has everything up to there, though its projects may have had no event for long.
    """
    end = page[-1].sequence if page else place
    return end if len(page) == PAGE else max(end, shared)


class WebhookRelay(LeaderThread):
    def __init__(
        self,
        engine: Engine,
        sender: WebhookSender,
        leading: Callable[[], LeaderEngine | None],
        *,
        failed: Callable[[str], None] = lambda _: None,
        closing: Callable[[], None] = lambda: None,
    ) -> None:
        """`failed` receives errors that concern no receiver: a missing master key, a bug. `closing`: of the sender."""
        super().__init__(engine, "relay-webhooks", leading)
        self._sender, self._report, self._closing = sender, failed, closing
        self._threads = ThreadPoolExecutor(AT_ONCE, "tenure-webhooks")
        self._under_way: dict[tuple[str, str], _UnderWay] = {}

    def is_busy(self) -> bool:
        return bool(self._under_way)

    def failed(self, error: Exception) -> None:
        self._report(spelled(error))

    def close(self) -> None:
        close_all(partial(self._threads.shutdown, wait=False, cancel_futures=True), self._closing)

    # --- a step ---

    def work(self, led: LeaderEngine) -> bool:
        """Read at most one page for each place in the log, and deliver."""
        place = self._place()
        if place is None:
            return False
        self._save_finished(led, place)
        works, read, more = self._read(place)
        self.is_waiting = any(one.parked or one.new for one in works)
        rounds = [(one, self._started(one)) for one in works]
        wait([future for one, future in rounds if future is not None and one.is_waited_for], WAITED)
        for one, future in rounds:
            if future is not None and one.webhook.failing_since is not None:
                self._under_way[one.key] = _UnderWay(future)
            elif future is not None and not (one.is_waited_for and future.done()):
                self._step_aside(led, one, future, place)
                continue
            is_over = future is not None and one.webhook.failing_since is None
            self._save(led, one, future.result() if future is not None and is_over else (), read)
        self._move(led, place, read)
        return more

    def _step_aside(self, led: LeaderEngine, one: _Work, future: Future[list[Result]], shared: int) -> None:
        """A round that takes long has its own place in the log, which moves when it is over: the others go on."""
        place = shared if one.webhook.sequence is None else one.webhook.sequence
        reading = one._replace(webhook=replace(one.webhook, sequence=place))
        self._under_way[one.key] = _UnderWay(future, reading)

        def decide(work: UnitOfWork) -> None:
            row = work.get(Webhook, *one.key)
            if row is not None and row.sequence is None:
                work.put(replace(row, sequence=place))

        if one.webhook.sequence is None:
            led.transact((one.webhook.project,), decide)

    def _place(self) -> int | None:
        rows = self.engine.read(lambda tx: tx.load(Sink, ((STORE, READER),)))
        return rows[0].sequence if rows and rows[0].paused_at is None else None

    def _read(self, shared: int) -> tuple[list[_Work], int, bool]:
        """What each webhook has to do; how far the shared reading came; whether there is more to read."""

        def ask(work: UnitOfWork) -> tuple[list[_Work], int, bool]:
            rows = [row for project in work.find(Project, {}) for row in work.find(Webhook, {"project": project.id})]
            enabled = [row for row in rows if row.enabled and not self._is_reading(row)]
            pages = {place: work.tx.events({}, after=place, limit=PAGE) for place in {shared}}
            read = pages[shared][-1].sequence if pages[shared] else shared
            works, more = [], False
            for place, readers in rule.readings(enabled, shared, work.now).items():
                if place not in pages:
                    projects = tuple({row.project for row in readers})
                    pages[place] = work.tx.events({"project": projects}, after=place, limit=PAGE)
                more |= len(pages[place]) == PAGE
                end = end_of(pages[place], place, read)
                works += [self._work(work, row, pages[place], end) for row in readers]
            idle = [row for row in enabled if not rule.is_reading(row, work.now)]
            works += [self._work(work, row, (), row.sequence or shared) for row in idle]
            return works, read, more or len(pages[shared]) == PAGE

        return self.engine.read_settled((), ask, follows=True)

    def _work(self, work: UnitOfWork, row: Webhook, page: Sequence[Event], read: int) -> _Work:
        new = [one for event in page if event.project == row.project for one in self._made(work, row, event)]
        parked = deliveries_of(work, row, state=rule.PARKED)
        known = {one.id for one in parked}
        try:
            keys = keys_of(work, row)
        except (SecretsOff, SecretUnreadable) as error:
            self._report(f"webhook {row.id}: {error.message}")
            keys = ()
        return _Work(row, keys, parked, [one for one in new if one.id not in known], read)

    def _made(self, work: UnitOfWork, row: Webhook, event: Event) -> list[Delivery]:
        if event.kind == TEST:
            kinds: tuple[str, ...] = (TEST,) if event.details.get("webhook") == row.id else ()
        else:
            values = values_of(work, event) if row.filter else {"event": event_values(event)}
            kinds = rule.messages_for(row, event, values)
        if not kinds:
            return []
        return [rule.new_delivery(row, event, kind, body_for(work, kind, event), work.now) for kind in kinds]

    def _started(self, one: _Work) -> Future[list[Result]] | None:
        """The tries of this step, in a thread; None where nothing may be tried now."""
        if one.key in self._under_way or not one.keys:
            return None
        # A try at an endpoint that fails may take the whole timeout: new messages wait in rows meanwhile.
        new = one.new if one.webhook.failing_since is None else ()
        lanes = rule.lanes(one.webhook, [*one.parked, *new], self._now())
        if not lanes:
            return None
        return self._threads.submit(
            self._sender.send_round,
            one.webhook.url,
            one.keys,
            lanes,
            is_cautious=rule.is_cautious(one.webhook),
            is_wanted=lambda: self.leading() is not None and not self._ended.is_set(),
        )

    def _now(self) -> int:
        return self.engine.read(lambda tx: tx.now)

    # --- stored rows ---

    def _is_reading(self, row: Webhook) -> bool:
        """Whether a page of it is under way; the next one is read after that."""
        found = self._under_way.get((row.project, row.id))
        return found is not None and found.reading is not None

    def _save_finished(self, led: LeaderEngine, place: int) -> None:
        for key, (future, reading) in list(self._under_way.items()):
            if not future.done():
                continue
            del self._under_way[key]
            if reading is None:
                self._keep(led, *key, future.result(), None)
            else:
                self._save(led, reading, future.result(), place)

    def _save(self, led: LeaderEngine, one: _Work, results: Sequence[Result], shared: int) -> None:
        tried = {delivery.id for delivery, _ in results}
        waiting: list[Result] = [(delivery, None) for delivery in one.new if delivery.id not in tried]
        self._keep(led, one.webhook.project, one.webhook.id, [*results, *waiting], (one, shared))

    def _keep(
        self,
        led: LeaderEngine,
        project: str,
        name: str,
        results: Sequence[Result],
        reading: tuple[_Work, int] | None,
    ) -> None:
        def decide(work: UnitOfWork) -> None:
            row = work.get(Webhook, project, name)
            if row is None:
                return  # removed meanwhile
            stored = work.get_many(Delivery, project, [delivery.id for delivery, _ in results])
            done = rule.after_round(row, rule.on_stored(results, stored), work.now)
            after = done.webhook
            if reading is not None and row.sequence == reading[0].webhook.sequence:  # else it was replayed meanwhile
                after = rule.moved(after, reading[0].read, reading[1], work.now)
            for delivery in done.deliveries:
                work.put(delivery)
            for old in rule.surplus(deliveries_of(work, row)):
                work.remove(old)
            if done.disabled is not None:
                details = {"webhook": name, "url": row.url, "why": done.disabled}
                work.record("webhook.disabled", after, project=project, level="error", details=details)
            elif after != row:
                work.put(after)

        if results or reading is not None:
            led.transact((project,), decide)

    def _move(self, led: LeaderEngine, place: int, read: int) -> None:
        if read == place:
            return

        def decide(work: UnitOfWork) -> None:
            row = work.get(Sink, STORE, READER)
            if row is not None and row.sequence == place:
                work.put(replace(row, sequence=read, sent_at=work.now))

        led.transact((), decide)
