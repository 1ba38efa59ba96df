"""One transaction: what it writes is kept here until its end, which is one call of the script."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from types import TracebackType
from typing import Any, Self

from tenure.core import limits
from tenure.core.errors import Bug, Conflict, InvalidInput, TenureError
from tenure.core.events import Event
from tenure.core.records import KINDS, Row, Task
from tenure.stores.port import Asked, Change
from tenure.stores.sql.server_errors import BAD_VALUES, Lost, bad_value, servers_clock, unknown
from tenure.stores.valkey import keys as names
from tenure.stores.valkey.commit import NEVER, SCRIPT, SHA, Seen, Writes
from tenure.stores.valkey.errors import changed, translated
from tenure.stores.valkey.event_log import EventLog
from tenure.stores.valkey.rows import INDEXES, Entry, encoded, entry, unique_values
from tenure.stores.valkey.session import newer, next_version, version_field
from tenure.stores.valkey.turns import LASTS

WAIT = round(limits.VALKEY_REPLICA_WAIT * 1000)  # milliseconds


class ValkeyTransaction(EventLog):
    """Implements the port. After a failed save or append it cannot commit, whatever the caller catches."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._taken: dict[tuple[str, bytes], str | None] = {}  # project and unique value → the id that has it
        self._absent: dict[tuple[bytes, bytes], None] = {}  # fields of hashes that the commit must not find
        self._new_epoch: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_good = kind is None and self._failed is None
        is_freed = False
        try:
            if is_good and self._write and self._has_changes():
                is_freed = self._commit()
            elif is_good and self._write and self._is_long():
                self._answer(lambda: self._ask(()))  # the caller relies on what it has read until here
        finally:
            self._ended = True
            self._release(freed=is_freed)
        if kind is None and self._failed is not None:
            raise self._failed
        if kind is None:
            self._store.tears.end()

    # --- writing ---

    def save(self, changes: Sequence[Change], *, last: bool = False) -> None:
        self._must_write()
        self._attempt(lambda: self._save(changes, last=last))

    def append(self, events: Sequence[Event]) -> None:
        self._must_write()
        self._attempt(lambda: self._append(events))

    def drop_events(self, project: str, tasks: Collection[str]) -> None:
        self._must_write()
        self._attempt(lambda: self._drop(project, tasks))

    def clear_log(self) -> None:
        raise InvalidInput(
            f"{self._store.url} still has rows that the tenant left there, and this kind of store cannot replace them",
            "name another store",
        )

    def set_epoch(self, epoch: str) -> None:
        """The commit of every other writer that has read the former epoch is refused."""
        self._must_write()
        self._answer(self._begin)
        self._new_epoch = self._epoch = epoch

    def accept_clock(self) -> int:
        raise servers_clock(self._store.url)

    def lock(self, name: str, projects: Collection[str]) -> None:
        """Before the first query: whose turn it takes. `log` needs nothing: sequences are in the order of commits."""
        if self._write and not self._has_begun:
            self._to_hold.update(dict.fromkeys(projects))
        elif self._write:
            self._answer(lambda: self._enter(projects))

    def expect(self, queries: Sequence[Asked]) -> None:
        """Does nothing: answers come with versions, and one that was not used would still have to hold."""

    def _must_write(self) -> None:
        if not self._write:
            raise Bug("a read transaction cannot write")

    def _attempt(self, write: Callable[[], None]) -> None:
        """All of it, or the transaction fails."""
        try:
            self._answer(write)
        except TenureError as error:
            self._failed = error
            raise

    def _save(self, changes: Sequence[Change], *, last: bool) -> None:
        self._learn_rows(changes, last=last)
        for change in changes:
            self._apply(change.before, change.after)

    def _learn_rows(self, changes: Sequence[Change], *, last: bool) -> None:
        """The stored rows and unique values that these changes are compared with.

        With `last` new rows and their values are taken for absent: the commit finds out.
        """
        rows: dict[type[Row], dict[tuple[str, str], None]] = {}
        values: dict[str, dict[bytes, None]] = {}
        freed: set[tuple[str, bytes]] = set()  # by an earlier change of this save
        for before, after in ((change.before, change.after) for change in changes):
            row = after or before
            if row is None:
                raise Bug("a change has neither a row before nor one after")
            key, stored = (row.project, row.id), self._stored.setdefault(type(row), {})
            if key in stored or key in rows.get(type(row), ()):
                pass
            elif last and before is None:
                stored[key] = None
                self._absent[self._keys.rows(KINDS[type(row)].table, row.project), row.id.encode()] = None
            else:
                rows.setdefault(type(row), {})[key] = None
            for value in _values(after) - _values(before):
                if (row.project, value) not in self._taken and (row.project, value) not in freed:
                    values.setdefault(row.project, {})[value] = None
            freed |= {(row.project, value) for value in _values(before)}
        self._enter(row.project for change in changes for row in (change.before, change.after) if row is not None)
        for kind, keys in rows.items():
            self._load_stored(kind, keys)
        if last:
            self._absent.update({(self._keys.unique(p), value): None for p, some in values.items() for value in some})
        elif values:
            self._learn_values(values)

    def _learn_values(self, values: dict[str, dict[bytes, None]]) -> None:
        """Who has these unique values, by project."""
        answers = self._ask(values, *(("HMGET", self._keys.unique(project), *some) for project, some in values.items()))
        for (project, some), ids in zip(values.items(), answers, strict=True):
            for value, id in zip(some, ids, strict=True):
                self._taken[project, value] = None if id is None else id.decode()

    def _apply(self, before: Row | None, after: Row | None) -> None:
        row: Any = after or before
        kind, key = type(row), (row.project, row.id)
        if before is not None and (before.project, before.id) != key:
            raise Bug(f"{before.id}: a change cannot give a row another id or project")
        mine = self._mine.setdefault(kind, {})
        if (mine[key] if key in mine else self._stored[kind][key]) != before:
            raise Conflict(f"{KINDS[kind].table} {row.id} is not as it was loaded")
        if before is not None:
            for value in unique_values(before):
                self._taken[row.project, value] = None
        if after is not None:
            for value in unique_values(after):
                if self._taken.get((row.project, value)) is not None:
                    raise Conflict(f"{KINDS[kind].table} {row.id}: {value!r} is taken")
                self._taken[row.project, value] = row.id
        mine[key] = after

    # --- the commit ---

    def _is_long(self) -> bool:
        """Whether its turn may have been another's meanwhile."""
        return self._has_begun and self._store.monotonic() - self._started > LASTS / 1000

    def _has_changes(self) -> bool:
        return bool(self._mine or self._events or self._new_epoch is not None or any(self._dropped.values()))

    def _commit(self) -> bool:
        """Whether the turn was given back with it. Raises Conflict where something that was read has changed."""
        try:
            keys, arguments = self._call()
        except BAD_VALUES as error:
            raise bad_value(error) from error
        self._store.register(self._tenant)
        reply = self._run(keys, arguments)
        if reply == b"moved":
            self._store.look_where_it_is()
            if not self._store.is_copy:  # it has only started again, with everything that was acknowledged
                reply = self._run(keys, [self._store.server.place, *arguments[1:]])
        self._check_reply(reply)
        return True

    def _run(self, keys: list[bytes], arguments: list[Any]) -> bytes:
        """The script's reply."""
        store, connection = self._store, self._connection
        assert connection is not None
        given = (len(keys), *keys, *arguments)
        wait = [("WAIT", store.replicas, WAIT)] if store.replicas else []
        try:
            done, *copies = connection.ask([("EVALSHA", SHA, *given), *wait])
            if type(done).__name__ == "NoScriptError":
                done, *copies = connection.ask([("EVAL", SCRIPT, *given), *wait])
        except Lost as error:
            raise unknown(f"the connection was lost at the commit ({error})", store.url) from error
        if isinstance(done, Exception):
            raise translated(done, store.url) from done
        if done == b"done" and copies and (isinstance(copies[0], Exception) or copies[0] < store.replicas):
            raise unknown(f"{store.replicas} replicas must have the commit, and {copies[0]} have it", store.url)
        reply: bytes = done
        return reply

    def _check_reply(self, reply: bytes) -> None:
        """Raises an error for an answer of the script other than that it is done; then nothing was written."""
        store = self._store
        if reply == b"done":
            return
        if reply == b"form":
            (form,) = store.connections.ask(("HGET", self._keys.meta, "form"))
            raise newer(store.url, int(form or 0))
        if reply == b"taken":
            raise Conflict("a row that should be new exists already, or a unique value is taken")
        if reply == b"late":
            raise Conflict("the transaction took so long that its time is out of date")
        raise changed()

    def _call(self) -> tuple[list[bytes], list[Any]]:
        """The arguments of the script."""
        writes = Writes(self._keys)
        writes.absent = [*self._absent, *self._unwritten_versions()]
        written: dict[str, int] = {}  # project → the time of its last new event
        for kind, rows in self._mine.items():
            for key, after in rows.items():
                before = self._stored[kind][key]
                if before is None and after is None:
                    continue
                written.setdefault(key[0], NEVER)
                self._write_row(writes, kind, key, before, after)
        for project, events in self._dropped.items():
            if events:
                written.setdefault(project, NEVER)
                self._write_drops(writes, project, events)
        for event in self._events:
            written[event.project] = max(written.get(event.project, NEVER), event.time)
        if self._new_epoch is not None:  # see `settled_here`
            writes.put(self._keys.meta, b"settled", self._store.server.place.encode())
        for project, last in written.items():
            writes.versions[version_field(project)] = next_version(self._seen[project], last)
        versions = {version_field(project): version for project, version in self._seen.items()}
        if self._commits is not None:
            versions[b"*"] = b"" if self._commits == b"0" else self._commits
        seen = Seen(
            place=self._store.server.place,
            began=self._began,
            epoch=self._stored_epoch,
            sequence=self._sequence if self._has_returned_own else None,
            versions=versions,
        )
        turn = self._turn
        last = max((event.time for event in self._events), default=NEVER)
        return writes.call(
            seen, self._epoch, last, self._events, turn.token if turn else b"", turn.held if turn else []
        )

    def _write_row(
        self, writes: Writes, kind: type[Row], key: tuple[str, str], before: Row | None, after: Row | None
    ) -> None:
        project, id = key
        hash = self._keys.rows(KINDS[kind].table, project)
        writes.put(hash, id.encode(), None if after is None else encoded(after))
        for field in INDEXES.get(kind, ()):
            was, will = (None if row is None else entry(self._keys, row, field) for row in (before, after))
            if was != will:
                writes.enter(was, there=False)
                writes.enter(will, there=True)
        values = self._keys.unique(project)
        for value in _values(before) ^ _values(after):
            holder = self._taken[project, value]
            writes.put(values, value, None if holder is None else holder.encode())
        if kind is Task:
            self._write_places(writes, project, before, after)

    def _write_places(self, writes: Writes, project: str, before: Any, after: Any) -> None:
        """A task's entries in its lane and among the due ones."""
        keys = self._keys
        was, will = (
            None if row is None or row.lane is None else Entry(keys.lane(project, row.lane), names.place_of(row))
            for row in (before, after)
        )
        if was != will:
            for row, place, there in ((before, was, False), (after, will, True)):
                if place is not None:
                    writes.enter(place, there=there)
                    writes.lanes[place.key] = Entry(keys.lanes(project), row.lane.encode())
        was, will = (
            None
            if row is None or row.due_at is None
            else Entry(keys.due(project), names.number(row.due_at) + row.id.encode())
            for row in (before, after)
        )
        if was != will:
            writes.enter(was, there=False)
            writes.enter(will, there=True)

    def _write_drops(self, writes: Writes, project: str, events: dict[int, Event]) -> None:
        for log in (self._keys.log, self._keys.log_of(project)):
            writes.dropped.setdefault(log, []).extend(events)
        for sequence, event in events.items():
            assert event.task is not None, "only events of tasks are dropped"
            version = f"-{sequence}" if event.version is None else str(event.version)
            writes.put(self._keys.log_of_task(project, event.task), version.encode(), None)


def _values(row: Row | None) -> set[bytes]:
    return set() if row is None else set(unique_values(row))
