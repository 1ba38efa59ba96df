"""The sealer: seals the committed log of a project, a page after another.

Anyone may run it: the leader does, and the audit's verbs and `db archive` before they read. A page is read with the log
cursor in one transaction, and its seals are saved in another, if the last seal is still the one before them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from tenure.core import archive, limits
from tenure.core.log_seals import document_leaf, joint, leaf, leaves_in, sealed
from tenure.core.records import STORE, Archived, Project, Seal
from tenure.engine.runtime.effects import Report
from tenure.engine.runtime.rows import row_pages
from tenure.engine.runtime.unit_of_work import UnitOfWork

if TYPE_CHECKING:
    from tenure.core.events import Event
    from tenure.engine.runtime.engine import Engine
    from tenure.stores.port import Transaction

IN_SEAL = limits.SEAL_EVENTS
SEALS_AT_ONCE = 5  # written in one transaction
AFTER = limits.SEAL_AFTER
DOCUMENTS_A_PAGE = 100
MOST_UNSEALED = limits.UNSEALED_COUNTED

# Where the log of a project was sealed when this process last read it: so that a duty does not read a seal each second.
_sealed_to: WeakKeyDictionary[Engine, dict[str, int]] = WeakKeyDictionary()

Leaf = tuple[int, bytes]  # with its sequence


def is_audited(rows: Sequence[Project], project: str) -> bool:
    return any(row.audited_at and project in (STORE, row.id) for row in rows)


def last_seal(tx: Transaction | UnitOfWork, project: str) -> Seal | None:
    found = tx.find(Seal, {"project": project}, order="-id", limit=1)
    return found[0] if found else None


def sealed_to(work: UnitOfWork, project: str) -> int | None:
    """The sequence up to which the log is sealed; None where the project is not audited."""
    row = work.get(Project, project, project)
    if row is None or not row.audited_at:
        return None
    last = last_seal(work, project)
    return 0 if last is None else last.last


def unsealed(work: UnitOfWork, project: str, sealed_to: int) -> int:
    """How many events are younger than the last seal."""
    return len(work.tx.events({"project": project}, after=sealed_to, limit=MOST_UNSEALED))


# --- a duty of the leader -----------------------------------------------------------------------------------


def projects_to_seal(engine: Engine, now: int) -> list[str]:
    """Audited projects with 1,000 events to seal, or one that is 10 s old."""
    rows = engine.read(lambda tx: tx.find(Project, {}))
    names = [name for name in (STORE, *(row.id for row in rows)) if is_audited(rows, name)]
    if not names:
        return []
    known, end = _sealed_to.setdefault(engine, {}), engine.mark()

    def ask(tx: Transaction) -> list[str]:
        found = []
        for name in names:
            place = known.get(name)
            if place is None:
                seal = last_seal(tx, name)
                place = known[name] = 0 if seal is None else seal.last
            first = tx.events({"project": name}, after=place, limit=1) if end > place else []
            if first and (first[0].time <= now - AFTER or end - place >= IN_SEAL):
                found.append(name)
        return found

    return engine.read(ask)


def seal_project(engine: Engine, project: str) -> Report:
    seal_all(engine, project)
    return Report()


def seal_all(engine: Engine, project: str) -> int:
    """Seal everything that was committed when it began, and often more; the number of new leaves."""
    rows = engine.read(lambda tx: tx.find(Project, {}))
    if not is_audited(rows, project):
        return 0
    count = _seal_archive(engine, project)
    while True:
        before, events = next_page(engine, project)
        parts = [events[n : n + IN_SEAL] for n in range(0, len(events), IN_SEAL)]
        leaves = [[(event.sequence, leaf(event)) for event in part] for part in parts]
        if not leaves or _add(engine, project, before, leaves, of_log=True):
            count += len(events)
            if len(events) < IN_SEAL * SEALS_AT_ONCE:
                return count


def next_page(engine: Engine, project: str) -> tuple[Seal | None, list[Event]]:
    """The last seal and the events after it, no further than the first place where one may still appear."""

    def ask(tx: Transaction) -> tuple[Seal | None, list[Event]]:
        before = last_seal(tx, project)
        after = 0 if before is None else before.last
        return before, tx.events({"project": project}, after=after, limit=IN_SEAL * SEALS_AT_ONCE)

    return engine.read(ask, follows=True)


def _add(engine: Engine, project: str, before: Seal | None, parts: Sequence[Sequence[Leaf]], *, of_log: bool) -> bool:
    """Add a seal for each part after `before`; False where another process has sealed meanwhile."""

    def decide(work: UnitOfWork) -> bool:
        last = last_seal(work, project)
        if last != before:
            return False
        for part in parts:
            last = work.put(sealed(project, last, [h for _, h in part], [s for s, _ in part], work.now, of_log=of_log))
        if last is not None:
            _sealed_to.setdefault(engine, {})[project] = last.last
        return True

    return engine.transact((project,), decide, settled=False)


# --- documents that were archived before the audit began -----------------------------------------------------


def _seal_archive(engine: Engine, project: str) -> int:
    """Seal the documents that are in the archive, before the first seal of the log: later ones have sealed events."""
    count = 0
    while True:
        before = engine.read(lambda tx: last_seal(tx, project))
        if before is not None and before.last:
            return count
        leaves = engine.read(lambda tx: _archived_leaves(tx, project))
        parts = [leaves[n : n + IN_SEAL] for n in range(0, len(leaves), IN_SEAL)]
        for start in range(0, len(parts), SEALS_AT_ONCE):
            if not _add(engine, project, before, parts[start : start + SEALS_AT_ONCE], of_log=False):
                break  # another process seals too: the rest is computed again
            before = engine.read(lambda tx: last_seal(tx, project))
        else:
            return count + len(leaves)


def _archived_leaves(tx: Transaction, project: str) -> list[Leaf]:
    """Of documents, each followed by its events; those that a sealer before has sealed are left out."""
    pages = row_pages(tx, Seal, {"project": project}, DOCUMENTS_A_PAGE)
    known = {one for page in pages for seal in page for one in leaves_in(seal.leaves)}
    return [pair for pair in _leaves_of(tx, project) if pair[1] not in known]


def _leaves_of(tx: Transaction, project: str) -> Iterator[Leaf]:
    for page in row_pages(tx, Archived, {"project": project}, DOCUMENTS_A_PAGE):
        for row in page:
            if not row.out:
                yield 0, document_leaf(row)
            yield from ((event.sequence, leaf(event)) for event in archive.events_in(row))


# --- copies -------------------------------------------------------------------------------------------------


def join_copy(work: UnitOfWork, project: str, last: int) -> None:
    """Begin the chain of a copy with the head of its source. `last`: where the source's seals end in this log."""
    before = last_seal(work, project)
    if before is not None:
        work.put(joint(project, before, last, work.now))
