"""Facts about tasks that an event does not contain: type, since when ready, first claim of the run.

A task created while this server leads is known from its own events, and a task that this server granted from the
outcome of its first claim; both are cached for a while. All others are read from the store, for a page of events at a
time. Reading every row cost 20 µs of CPU time per event.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from tenure.core import limits
from tenure.core.claims import claim_id
from tenure.core.events import Event
from tenure.core.records import Claim, Task
from tenure.stores.port import Transaction

MOST = limits.METRIC_TASKS
SECOND = 1_000_000
OF_TASKS = frozenset({"task.claimed", "task.completed", "task.failed", "task.dead_lettered"})
DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(Task)}  # events omit default values
RowKey = tuple[str, str]  # project and id
T = TypeVar("T")


class EventFacts(NamedTuple):
    """Facts that an event does not contain; times in seconds, None if unknown."""

    type: str | None = None
    waited: float | None = None  # of a claim: since the task was ready
    held: float | None = None  # of a claim that ended: since it was granted
    worked: float | None = None  # of a completion: since the first claim of the run
    lived: float | None = None  # of a completion: since the task was created


NO_FACTS = EventFacts()


class _TaskFacts:
    __slots__ = ("began", "created_at", "ready_at", "type")

    def __init__(self, type: str, created_at: int, ready_at: int | None) -> None:
        self.type, self.created_at, self.ready_at = type, created_at, ready_at
        self.began: int | None = None  # the first claim of the run


class MissingRows(NamedTuple):
    """Rows to be read: tasks, those of them that took several generations, and claims."""

    tasks: list[RowKey]
    again: list[RowKey]
    claims: list[RowKey]


class TaskCache:
    """For one thread, which passes events in the order of the log."""

    def __init__(self) -> None:
        self._tasks: OrderedDict[RowKey, _TaskFacts] = OrderedDict()
        self._shown: OrderedDict[RowKey, Mapping[str, Any]] = OrderedDict()  # until the claim's event arrives
        self._rows: dict[RowKey, Task] = {}
        self._claims: dict[RowKey, Claim] = {}
        self._lineages: dict[RowKey, list[Claim]] = {}

    def missing(self, page: Sequence[Event]) -> MissingRows | None:
        """The rows that `facts_of` needs for these events and that are not cached; None if all are."""
        announced: set[RowKey] = set()  # created or first claimed earlier in this page
        tasks: set[RowKey] = set()
        again: set[RowKey] = set()
        claims: set[RowKey] = set()
        for event in page:
            key = key_of(event)
            if event.kind == "task.created" or self._is_shown(event, key):
                announced.add(key)
            elif event.kind in OF_TASKS and key not in self._tasks and key not in announced:
                tasks.add(key)
                if event.kind == "task.completed" and (event.generation or 1) > 1:
                    again.add(key)
            if "duration_ms" not in event.details and ending_of(event) is not None:
                claims.add((event.project, _claim_of(event)))
        return MissingRows(sorted(tasks), sorted(again), sorted(claims)) if tasks or claims else None

    def learn_rows(self, tx: Transaction, missing: MissingRows) -> None:
        self._rows = {(row.project, row.id): row for row in (tx.load(Task, missing.tasks) if missing.tasks else ())}
        self._claims = {
            (row.project, row.id): row for row in (tx.load(Claim, missing.claims) if missing.claims else ())
        }
        self._lineages = _lineages(tx, missing.again)

    def forget_rows(self) -> None:
        self._rows, self._claims, self._lineages = {}, {}, {}

    def forget(self) -> None:
        """Events were missed, so cached facts may be wrong."""
        self._tasks.clear()
        self._shown.clear()

    def show(self, project: str, task: Mapping[str, Any]) -> None:
        """Cache a task from the outcome of its first claim."""
        key = (project, task["id"])
        if task["generation"] == 1 and key not in self._tasks:
            _keep(self._shown, key, task)

    def _is_shown(self, event: Event, key: RowKey) -> bool:
        """Whether this is the event of the claim whose outcome is cached."""
        shown = self._shown.get(key) if event.kind == "task.claimed" else None
        return shown is not None and shown["version"] == event.version

    def facts_of(self, event: Event) -> EventFacts:
        """The facts about this event's task; the event then updates the cache."""
        key = key_of(event)
        if self._is_shown(event, key):
            task = self._shown.pop(key)
            begun = _TaskFacts(task["type"], task["created_at"], task.get("ready_at"))
            begun.began = event.time
            _keep(self._tasks, key, begun)
            return self._by_memory(event, begun)
        known = self._tasks.get(key)
        if known is not None:
            facts = self._by_memory(event, known)
        elif event.kind in OF_TASKS:
            facts = self._by_rows(event)
        else:
            facts = EventFacts(held=self._held(event)) if ending_of(event) is not None else NO_FACTS
        self._learn(event, key, known)
        return facts

    def _by_memory(self, event: Event, known: _TaskFacts) -> EventFacts:
        if event.kind == "task.claimed":
            return EventFacts(known.type, waited=_seconds(known.ready_at, event.time))
        held = self._held(event)
        if event.kind != "task.completed":
            return EventFacts(known.type, held=held)
        return EventFacts(
            known.type,
            held=held,
            worked=_seconds(known.began, event.time),
            lived=_seconds(known.created_at, event.time),
        )

    def _by_rows(self, event: Event) -> EventFacts:
        task = self._rows.get(key_of(event))
        type = None if task is None else task.type
        if event.kind == "task.claimed":
            ready_at = None if task is None else task.ready_at
            is_known = ready_at is not None and ready_at <= event.time  # else it has been ready again since
            return EventFacts(type, waited=_seconds(ready_at, event.time) if is_known else None)
        held = self._held(event)
        if event.kind != "task.completed":
            return EventFacts(type, held=held)
        began = _first_claim(event, self._lineages.get(key_of(event), ()))
        return EventFacts(
            type,
            held=held,
            worked=held if (event.generation or 1) == 1 else _seconds(began, event.time),
            lived=_seconds(None if task is None else task.created_at, event.time),
        )

    def _held(self, event: Event) -> float | None:
        """Seconds that the claim was held that this event ended."""
        duration = event.details.get("duration_ms")
        if isinstance(duration, int):
            return duration / 1000
        claim = self._claims.get((event.project, _claim_of(event)))
        return None if claim is None else _seconds(claim.acquired_at, claim.released_at)

    def _learn(self, event: Event, key: RowKey, known: _TaskFacts | None) -> None:
        for table, _, changed in event.patch:
            if table == "task" and changed:
                break
        else:
            return
        if event.kind == "task.created":
            known = _TaskFacts(changed.get("type", DEFAULTS["type"]), event.time, changed.get("ready_at"))
            _keep(self._tasks, key, known)
        elif known is not None:
            _follow(known, event, changed)


def _keep(kept: OrderedDict[RowKey, T], key: RowKey, value: T) -> None:
    kept[key] = value
    if len(kept) > MOST:
        kept.popitem(last=False)


def _follow(known: _TaskFacts, event: Event, changed: dict[str, Any]) -> None:
    known.type = changed.get("type", known.type)
    known.ready_at = changed.get("ready_at", known.ready_at)
    if "run" in changed:
        known.began = None
    if event.kind == "task.claimed" and known.began is None:
        known.began = event.time


def _lineages(tx: Transaction, wanted: Iterable[RowKey]) -> dict[RowKey, list[Claim]]:
    ids: dict[str, list[str]] = {}
    for project, id in sorted(wanted):
        ids.setdefault(project, []).append(id)
    lineages: dict[RowKey, list[Claim]] = {}
    for project, tasks in ids.items():
        for claim in tx.find(Claim, {"project": project, "task": tuple(tasks)}, order="generation"):
            lineages.setdefault((project, claim.task), []).append(claim)
    return lineages


def _first_claim(event: Event, lineage: Iterable[Claim]) -> int | None:
    """When the run of this generation began."""
    lineage = list(lineage)
    run = next((claim.run for claim in lineage if claim.generation == event.generation), None)
    return min((claim.acquired_at for claim in lineage if claim.run == run), default=None)


def key_of(event: Event) -> RowKey:
    return event.project, event.task or ""


def _claim_of(event: Event) -> str:
    return claim_id(event.task or "", event.generation or 0)


def _seconds(start: int | None, end: int | None) -> float | None:
    return None if start is None or end is None else (end - start) / SECOND


def ending_of(event: Event) -> str | None:
    """The reason that a claim ended, if the event ended one."""
    if event.kind == "task.claimed":  # it began one
        return None
    for table, _, fields in event.patch:
        if table == "claim" and fields is not None and fields.get("released_at") is not None:
            return str(fields.get("reason"))
    return None
