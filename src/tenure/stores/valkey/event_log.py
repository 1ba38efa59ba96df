"""The log: a stream for each project, and one of the tenant that maps each sequence to its project.

A commit appends with the next sequences, and commits are one after the other. So sequences are in the order of commits,
and a cursor skips nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tenure.core.errors import Conflict
from tenure.core.events import Event
from tenure.core.filters import Where, matches
from tenure.core.records import replace
from tenure.stores.plain_finding import check
from tenure.stores.port import EVENT_UNIQUE
from tenure.stores.valkey.finding import Finding
from tenure.stores.valkey.rows import decoded_event

if TYPE_CHECKING:
    from tenure.stores.valkey.store import Valkey

PAGE = 500  # events that are read at once, at least


class EventLog(Finding):
    def __init__(self, store: Valkey, tenant: str, write: bool) -> None:
        super().__init__(store, tenant, write)
        self._events: list[Event] = []  # appended here; their sequences hold if nobody else appends meanwhile
        self._has_returned_own = False
        self._appended = 0
        self._dropped: dict[str, dict[int, Event]] = {}  # project → sequence → event
        self._versions: dict[tuple[str, str, int], bool] = {}  # project, task, version → whether there is an event
        self._assumed: dict[tuple[str, str, int], None] = {}  # of these: the commit finds out that there was none

    def _append(self, events: Sequence[Event]) -> None:
        self._enter(event.project for event in events)
        for event in events:
            if EVENT_UNIQUE.value_of(event) is not None:
                version: Any = (event.project, event.task, event.version)
                if self._versions.get(version):
                    raise Conflict(f"{event.id}: version {event.version} of task {event.task} has its event already")
                if version not in self._versions:
                    self._assumed[version] = None
                self._versions[version] = True
            self._appended += 1
            self._events.append(replace(event, sequence=self._sequence + self._appended))

    def _unwritten_versions(self) -> Iterator[tuple[bytes, bytes]]:
        """Fields of hashes that the commit must not find: the versions of events that are new here."""
        for project, task, version in self._assumed:
            yield self._keys.log_of_task(project, task), str(version).encode()

    def events(self, where: Where, *, after: int = 0, limit: int = 1000, last: bool = False) -> list[Event]:
        check(Event, where)
        return self._answer(lambda: self._read_events(where, after, limit, last))

    def _read_events(self, where: Where, after: int, limit: int, last: bool) -> list[Event]:
        if limit <= 0:
            return []
        mine = [event for event in self._events if event.sequence > after and _fits(event, where)]
        self._has_returned_own |= bool(mine)
        stored: list[Event] = []
        if not last or len(mine) < limit:
            for event in self._stored_events(where, after, limit, last):
                if event.sequence not in self._dropped.get(event.project, ()) and _fits(event, where):
                    stored.append(event)
                    if len(stored) == limit:
                        break
        if last:
            return [*reversed(stored), *mine][-limit:]
        return [*stored, *mine][:limit]

    def _stored_events(self, where: Where, after: int, limit: int, last: bool) -> Iterator[Event]:
        """Those in the store with a sequence above `after`, among them each that matches; falling with `last`."""
        project, task = where.get("project"), where.get("task")
        if isinstance(project, str) and isinstance(task, str):
            (found,) = self._ask((project,), ("HVALS", self._keys.log_of_task(project, task)))
            sequences = sorted((n for text in found if (n := int(text)) > after), reverse=last)
            yield from self._by_sequence([(n, project) for n in sequences], all_between=False)
            return
        size = max(limit, 1) if where.keys() <= {"project"} else max(limit, PAGE)
        low, high = f"0-{after + 1}", "+"
        while True:
            ends = (high, low) if last else (low, high)
            verb = "XREVRANGE" if last else "XRANGE"
            if isinstance(project, str):
                (entries,) = self._ask((project,), (verb, self._keys.log_of(project), *ends, "COUNT", size))
                for id, fields in entries:
                    yield decoded_event(_sequence(id), fields[1], self._store.url)
            else:
                (entries,) = self._ask((), (verb, self._keys.log, *ends, "COUNT", size), everywhere=True)
                places = [(_sequence(id), fields[1].decode()) for id, fields in entries]
                yield from self._by_sequence(places, all_between=True)
            if len(entries) < size:
                return
            edge = _sequence(entries[-1][0])
            low, high = (low, f"0-{edge - 1}") if last else (f"0-{edge + 1}", high)

    def _by_sequence(self, places: Sequence[tuple[int, str]], *, all_between: bool) -> Iterator[Event]:
        """The events of these sequences and projects, in this order; `all_between`: no other lies between them."""
        if not places:
            return
        runs = [(project, sequence, sequence) for sequence, project in places]
        if all_between:
            ends: dict[str, tuple[int, int]] = {}
            for sequence, project in places:
                low, high = ends.get(project, (sequence, sequence))
                ends[project] = min(low, sequence), max(high, sequence)
            runs = [(project, low, high) for project, (low, high) in ends.items()]
        answers = self._ask(
            {project for project, *_ in runs},
            *(("XRANGE", self._keys.log_of(project), f"0-{low}", f"0-{high}") for project, low, high in runs),
        )
        found = {_sequence(id): fields for entries in answers for id, fields in entries}
        for sequence, _ in places:
            if sequence in found:
                yield decoded_event(sequence, found[sequence][1], self._store.url)

    def _drop(self, project: str, tasks: Collection[str]) -> None:
        wanted = set(tasks)
        if not wanted:
            return
        last = self._read_events({"project": project}, 0, 1, True)
        keep = last[0].sequence if last else 0
        gone = [e for e in self._events if e.project == project and e.task in wanted and e.sequence != keep]
        self._events = [event for event in self._events if event not in gone]
        dropped = self._dropped.setdefault(project, {})
        for event in self._logged(project, wanted):
            if event.sequence != keep and event.sequence not in dropped:
                dropped[event.sequence] = event
                gone.append(event)
        for event in gone:
            if event.task is not None and event.version is not None:
                self._versions[project, event.task, event.version] = False

    def _logged(self, project: str, tasks: Collection[str]) -> list[Event]:
        """The stored events of these tasks."""
        answers = self._ask((project,), *(("HVALS", self._keys.log_of_task(project, task)) for task in tasks))
        places = sorted((int(text), project) for found in answers for text in found)
        return list(self._by_sequence(places, all_between=False))


def _sequence(id: bytes) -> int:
    return int(id.partition(b"-")[2])


def _fits(event: Event, where: Where) -> bool:
    fits: Any = matches
    return bool(fits(event, where))
