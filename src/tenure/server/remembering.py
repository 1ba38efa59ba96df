"""What an event does not say itself: a task's type, since when it was ready, when it was first claimed.

A task that was made while this server led is known from its own events, and one that it handed out itself from the
answer to its first claim; both are remembered for a while. All others are read from the store, a page of events at a
time. Reading every row cost 20 µs of processor an event.
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
from tenure.server.metrics import NOTHING, About, ending_of
from tenure.stores.port import Transaction

MOST = limits.METRIC_TASKS
SECOND = 1_000_000
OF_TASKS = frozenset({"task.claimed", "task.completed", "task.failed", "task.dead_lettered"})
DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(Task)}  # such values are left out of events
Place = tuple[str, str]  # project and id
T = TypeVar("T")


class _Known:
    __slots__ = ("began", "created_at", "ready_at", "type")

    def __init__(self, type: str, created_at: int, ready_at: int | None) -> None:
        self.type, self.created_at, self.ready_at = type, created_at, ready_at
        self.began: int | None = None  # the first claim of the run


class Missing(NamedTuple):
    """Rows to be read: tasks, those of them that took several generations, and claims."""

    tasks: list[Place]
    again: list[Place]
    claims: list[Place]


class Remembered:
    """For one thread, which hands in the events in the order of the log."""

    def __init__(self) -> None:
        self._tasks: OrderedDict[Place, _Known] = OrderedDict()
        self._shown: OrderedDict[Place, Mapping[str, Any]] = OrderedDict()  # until the claim's event is heard
        self._rows: dict[Place, Task] = {}
        self._claims: dict[Place, Claim] = {}
        self._lineages: dict[Place, list[Claim]] = {}

    def missing(self, page: Sequence[Event]) -> Missing | None:
        """What `about` will want to know of these events and is not remembered; None where nothing is missing."""
        told: set[Place] = set()  # by the page itself, before it is asked for
        tasks: set[Place] = set()
        again: set[Place] = set()
        claims: set[Place] = set()
        for event in page:
            place = place_of(event)
            if event.kind == "task.created" or self._is_shown(event, place):
                told.add(place)
            elif event.kind in OF_TASKS and place not in self._tasks and place not in told:
                tasks.add(place)
                if event.kind == "task.completed" and (event.generation or 1) > 1:
                    again.add(place)
            if "duration_ms" not in event.details and ending_of(event) is not None:
                claims.add((event.project, _claim_of(event)))
        return Missing(sorted(tasks), sorted(again), sorted(claims)) if tasks or claims else None

    def learn_rows(self, tx: Transaction, missing: Missing) -> None:
        self._rows = {(row.project, row.id): row for row in (tx.load(Task, missing.tasks) if missing.tasks else ())}
        self._claims = {
            (row.project, row.id): row for row in (tx.load(Claim, missing.claims) if missing.claims else ())
        }
        self._lineages = _lineages(tx, missing.again)

    def forget_rows(self) -> None:
        self._rows, self._claims, self._lineages = {}, {}, {}

    def forget(self) -> None:
        """Something was not heard, so that what is remembered may be wrong."""
        self._tasks.clear()
        self._shown.clear()

    def show(self, project: str, task: Mapping[str, Any]) -> None:
        """A task as its claim was told of it; it says all that is asked of a first claim."""
        place = (project, task["id"])
        if task["generation"] == 1 and place not in self._tasks:
            _keep(self._shown, place, task)

    def _is_shown(self, event: Event, place: Place) -> bool:
        """Whether it is this event after which the task was as it was shown."""
        shown = self._shown.get(place) if event.kind == "task.claimed" else None
        return shown is not None and shown["version"] == event.version

    def about(self, event: Event) -> About:
        """What is known of this event, which is then part of what is known."""
        place = place_of(event)
        if self._is_shown(event, place):
            task = self._shown.pop(place)
            _keep(self._tasks, place, _Known(task["type"], task["created_at"], task.get("ready_at")))
        known = self._tasks.get(place)
        if known is not None:
            told = self._by_memory(event, known)
        elif event.kind in OF_TASKS:
            told = self._by_rows(event)
        else:
            told = About(held=self._held(event)) if ending_of(event) is not None else NOTHING
        self._learn(event, place, known)
        return told

    def _by_memory(self, event: Event, known: _Known) -> About:
        if event.kind == "task.claimed":
            return About(known.type, waited=_seconds(known.ready_at, event.time))
        held = self._held(event)
        if event.kind != "task.completed":
            return About(known.type, held=held)
        return About(
            known.type, held=held, worked=_seconds(known.began, event.time),
            lived=_seconds(known.created_at, event.time),
        )  # fmt: skip

    def _by_rows(self, event: Event) -> About:
        task = self._rows.get(place_of(event))
        type = None if task is None else task.type
        if event.kind == "task.claimed":
            ready_at = None if task is None else task.ready_at
            is_known = ready_at is not None and ready_at <= event.time  # else it has been ready again since
            return About(type, waited=_seconds(ready_at, event.time) if is_known else None)
        held = self._held(event)
        if event.kind != "task.completed":
            return About(type, held=held)
        began = _first_claim(event, self._lineages.get(place_of(event), ()))
        return About(
            type, held=held, worked=held if (event.generation or 1) == 1 else _seconds(began, event.time),
            lived=_seconds(None if task is None else task.created_at, event.time),
        )  # fmt: skip

    def _held(self, event: Event) -> float | None:
        """How long the claim was held that this event ended."""
        duration = event.details.get("duration_ms")
        if isinstance(duration, int):
            return duration / 1000
        claim = self._claims.get((event.project, _claim_of(event)))
        return None if claim is None else _seconds(claim.acquired_at, claim.released_at)

    def _learn(self, event: Event, place: Place, known: _Known | None) -> None:
        changed = next((fields for table, _, fields in event.patch if table == "task" and fields), None)
        if changed is None:
            return
        if event.kind == "task.created":
            known = _Known(changed.get("type", DEFAULTS["type"]), event.time, changed.get("ready_at"))
            _keep(self._tasks, place, known)
        elif known is not None:
            _follow(known, event, changed)


def _keep(kept: OrderedDict[Place, T], place: Place, value: T) -> None:
    kept[place] = value
    if len(kept) > MOST:
        kept.popitem(last=False)


def _follow(known: _Known, event: Event, changed: dict[str, Any]) -> None:
    known.type = changed.get("type", known.type)
    known.ready_at = changed.get("ready_at", known.ready_at)
    if "run" in changed:
        known.began = None
    if event.kind == "task.claimed" and known.began is None:
        known.began = event.time


def _lineages(tx: Transaction, wanted: Iterable[Place]) -> dict[Place, list[Claim]]:
    ids: dict[str, list[str]] = {}
    for project, id in sorted(wanted):
        ids.setdefault(project, []).append(id)
    lineages: dict[Place, list[Claim]] = {}
    for project, tasks in ids.items():
        for claim in tx.find(Claim, {"project": project, "task": tuple(tasks)}, order="generation"):
            lineages.setdefault((project, claim.task), []).append(claim)
    return lineages


def _first_claim(event: Event, lineage: Iterable[Claim]) -> int | None:
    """When the run began in which this generation completed."""
    lineage = list(lineage)
    run = next((claim.run for claim in lineage if claim.generation == event.generation), None)
    return min((claim.acquired_at for claim in lineage if claim.run == run), default=None)


def place_of(event: Event) -> Place:
    return event.project, event.task or ""


def _claim_of(event: Event) -> str:
    return claim_id(event.task or "", event.generation or 0)


def _seconds(start: int | None, end: int | None) -> float | None:
    return None if start is None or end is None else (end - start) / SECOND
