"""Verify: every invariant of the engine that rows can show, checked on all rows.

Each function yields sentences about faults; none means that the invariant holds. For `doctor --verify` and the
end of every test history; it reads whole tables, in pages, and keeps them in a temporary file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from tenure.core import claims, graph, lifecycle, models, schedules, settle, validation
from tenure.core.doubts import counted
from tenure.core.errors import Cycle, TenureError
from tenure.core.events import Event
from tenure.core.records import (
    KINDS,
    Archived,
    Claim,
    Cursor,
    Dag,
    DeadLetter,
    Edge,
    Landing,
    LikeTasks,
    Model,
    Project,
    Reservation,
    Result,
    Row,
    Schedule,
    Task,
    Trigger,
    Usage,
    Validation,
)
from tenure.engine.archive.totals import ARCHIVED
from tenure.engine.budgets.unaffordable import MARK
from tenure.engine.duties.sweep import projects
from tenure.engine.runtime.effects import dead_letter_id
from tenure.engine.runtime.rows import ROWS_A_PAGE, event_pages, row_pages
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.sources.triggers import READER, last_sequence
from tenure.engine.verify.archived_rows import archived_rows, large_values
from tenure.engine.verify.artifact_rows import artifact_rows
from tenure.engine.verify.budget_sums import budget_rows
from tenure.engine.verify.replay import Tables, differences, replay
from tenure.engine.verify.spill import Spill, Spilled
from tenure.stores.port import WRITERS, Asked

if TYPE_CHECKING:
    from tenure.engine.runtime.engine import Engine
    from tenure.stores.port import Transaction

EVENTS_A_PAGE = 1_000


def verify(engine: Engine, *, with_replay: bool = True) -> list[str]:
    """The faults of the whole store; empty when every invariant holds."""
    return engine.read_settled(projects(engine), partial(_faults, engine, with_replay))


def _faults(engine: Engine, with_replay: bool, work: UnitOfWork) -> list[str]:
    """The stored rows are compared with the log; then, brought up to `now`, they are judged."""
    with Spill() as spill:
        tables = _stored(work.tx, spill)
        rows: Tables = tables  # type: ignore[assignment]  # rows of a kind under their kind
        in_log = _replayed(engine, work.tx, rows, spill) if with_replay else []
        for kind, key, row in work.changed_rows():
            tables[kind].pop(key, None)
            if row is not None:
                tables[kind][key] = row
        found = [*_results(rows), *_claims(rows), *_limbo(rows, work), *_graph(rows), *_dags(rows), *_letters(rows)]
        found += [*_holds(rows), *_of_claims(rows), *_models_and_sizes(rows), *archived_rows(rows), *large_values(rows)]
        found += [*artifact_rows(rows), *_validations(rows), *_sources(rows, work), *budget_rows(rows)]
        return found + in_log


def _stored(tx: Transaction, spill: Spill) -> dict[type[Row], Spilled[tuple[str, str], Row]]:
    """All rows, read in pages. They are read many times, and kept in a file meanwhile."""
    tables: dict[type[Row], Spilled[tuple[str, str], Row]] = {kind: Spilled(spill, kind) for kind in KINDS}
    tx.expect([Asked("count", (kind, {}, "project")) for kind in KINDS])
    for kind, table in tables.items():
        for project in tx.count(kind, {}, "project"):
            for page in row_pages(tx, kind, {"project": project}, ROWS_A_PAGE):
                table.update({(row.project, row.id): row for row in page})
    return tables


def _results(rows: Tables) -> Iterator[str]:
    """One accepted result per task and run, and a completed task has it."""
    accepted = Counter((r.project, r.task, r.run) for r in rows[Result].values() if r.accepted)
    for (_, id, run), count in accepted.items():
        if count > 1:
            yield f"{id}: {count} accepted results in run {run}"
    for task in rows[Task].values():
        if task.state == lifecycle.COMPLETED and not accepted[task.project, task.id, task.run]:
            yield f"{task.key}: completed without an accepted result in run {task.run}"


def _claims(rows: Tables) -> Iterator[str]:
    """Generations without gaps, one nonce each, and one live claim exactly while the task is held."""
    by_task: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for key, claim in rows[Claim].items():
        by_task.setdefault((claim.project, claim.task), []).append(key)
    for task in rows[Task].values():
        found = (rows[Claim][key] for key in by_task.get((task.project, task.id), ()))
        mine = sorted(found, key=lambda c: c.generation)
        if [c.generation for c in mine] != list(range(1, task.generation + 1)):
            yield f"{task.key}: generation {task.generation}, but claims {[c.generation for c in mine]}"
        if len({c.nonce for c in mine}) != len(mine):
            yield f"{task.key}: two generations share a nonce"
        live = [c.generation for c in mine if c.state == "active"]
        if live != ([task.generation] if claims.is_held(task) else []):
            yield f"{task.key} is {task.state}, but its live claims are {live}"
        if not 0 <= task.given_back <= lifecycle.MOST_GIVEN_BACK or task.attempts < 0:
            yield f"{task.key}: attempts {task.attempts}, given back {task.given_back}"
        if task.attempts > task.max_attempts and task.state not in lifecycle.ENDED:  # 0.1 let some run past it
            yield f"{task.key}: {task.attempts} attempts, max_attempts is {task.max_attempts}"
        # A claim that continues its own session's lost one is the same attempt.
        counted = sum((not c.continues) - (not c.counted) for c in mine if c.run == task.run)
        if task.attempts != counted:
            yield f"{task.key}: attempts {task.attempts}, claims of run {task.run} say {counted}"


def _limbo(rows: Tables, work: UnitOfWork) -> Iterator[str]:
    """Every open task has a next step: a dependency, a lane entry, a lease, a due time, or a person."""
    for task in rows[Task].values():
        stamped = settle.stamp(task, work.now)
        if (stamped.lane, stamped.band) != (task.lane, task.band):
            yield f"{task.key}: is in lane {task.lane}, belongs in {stamped.lane}"
        if task.state in lifecycle.HELD and (task.lease_until is None or task.due_at is None):
            yield f"{task.key}: held without a lease"
        if task.state == lifecycle.PENDING and task.unmet == 0 and task.due_at is None:
            yield f"{task.key}: pending, but waits for nothing"
        if task.state == lifecycle.RETRYING and task.retry_at is None:
            yield f"{task.key}: retrying without a time"
        if task.state == lifecycle.PAUSED and not task.pauses:
            yield f"{task.key}: paused without a cause"
        if (task.state == lifecycle.CANCELLED) != (task.cancelled is not None):
            yield f"{task.key} is {task.state}, and its cancellation says {task.cancelled}"
        if task.due_at is not None and task.due_at <= work.now:
            yield f"{task.key}: due at {task.due_at}, not settled at {work.now}"
        is_waiting = task.state == lifecycle.READY and task.lane is None and task.offer_to is None
        if is_waiting and not (task.set_aside_for or "").startswith(MARK):  # else a budget: see `budget_sums.py`
            holder = rows[Task].get((task.project, task.set_aside_for or ""))
            if holder is None or not _is_reserving(rows, holder):
                yield f"{task.key}: set aside for a task without a holder"


def _graph(rows: Tables) -> Iterator[str]:
    """Counts of edges are right, nothing is claimable too early, and the graph is acyclic."""
    states = {(a.project, a.id): a.state for a in rows[Archived].values()} | {
        (t.project, t.id): t.state for t in rows[Task].values()
    }
    unmet: Counter[tuple[str, str]] = Counter()
    waits: Counter[tuple[str, str]] = Counter()
    dependents: Counter[tuple[str, str]] = Counter()
    needs: dict[str, list[str]] = {}
    for edge in rows[Edge].values():
        state = states.get((edge.project, edge.needs))
        if state is None:
            yield f"{edge.id}: waits for a task that does not exist"
            continue
        unmet[edge.project, edge.task] += not graph.is_met(edge, state)
        waits[edge.project, edge.task] += 1
        dependents[edge.project, edge.needs] += 1
        needs.setdefault(edge.task, []).append(edge.needs)
    keys: dict[str, str] = {}
    for task in rows[Task].values():
        key = (task.project, task.id)
        keys[task.id] = task.key
        counted = (task.unmet, task.waits_on, task.dependents)
        if counted != (unmet[key], waits[key], dependents[key]):
            yield f"{task.key}: counts {counted}, edges say {(unmet[key], waits[key], dependents[key])}"
        if task.state == lifecycle.READY and task.unmet:
            yield f"{task.key}: ready before its dependencies are met"
    try:
        order = graph.check_acyclic(needs, keys)
    except Cycle as error:
        yield error.message
        return
    heights = graph.heights(order, needs)
    for task in rows[Task].values():
        if task.height != heights.get(task.id, 0):
            yield f"{task.key}: the longest path below is {heights.get(task.id, 0)}, not {task.height}"


def _dags(rows: Tables) -> Iterator[str]:
    parts: dict[tuple[str, str], Counter[str]] = {}
    for task in rows[Task].values():
        parts.setdefault((task.project, task.dag), Counter())[graph.part(task)] += 1
    for row in rows[Archived].values():
        if row.dag is not None and not row.out:
            parts.setdefault((row.project, row.dag), Counter())[row.state] += 1
    for dag in rows[Dag].values():
        mine = parts.get((dag.project, dag.id), Counter())
        counts = {p: getattr(dag, p) for p in ("live", "blocked", "completed", "cancelled", "dead")}
        if counts != {p: mine[p] for p in counts} or dag.total != mine.total() or dag.status != graph.status(dag):
            yield f"{dag.id}: counts {counts} of {dag.total} ({dag.status}), tasks say {dict(mine)}"


def _letters(rows: Tables) -> Iterator[str]:
    for task in rows[Task].values():
        letter = rows[DeadLetter].get((task.project, dead_letter_id(task)))
        if task.state == lifecycle.DEAD_LETTERED and letter is None:
            yield f"{task.key}: a dead letter without its record"


def _is_reserving(rows: Tables, task: Task) -> bool:
    waits = rows[Validation].get((task.project, claims.claim_id(task.id, task.generation)))
    return claims.is_held(task) or validation.is_reserving(waits, task)


def _holds(rows: Tables) -> Iterator[str]:
    """A reservation of a claim lives as long as that claim, and until its result is landed or refused."""
    for held in rows[Reservation].values():
        if held.task is None:
            continue
        task = rows[Task].get((held.project, held.task))
        if task is None or not _is_reserving(rows, task) or task.generation != held.generation:
            yield f"{held.id}: {held.pattern} is reserved for {held.task}, whose claim has ended"


def _of_claims(rows: Tables) -> Iterator[str]:
    """Bookings and records under a claim belong to that claim, and only a live one names its process."""
    booked: Iterable[Usage | Landing] = (*rows[Usage].values(), *rows[Landing].values())
    for row in booked:
        if row.task == ARCHIVED:
            continue
        claim = rows[Claim].get((row.project, claims.claim_id(row.task, row.generation)))
        if claim is None or claim.agent != row.agent:
            yield f"{row.id}: belongs to a claim that does not exist"
        if isinstance(row, Usage) and min(row.fresh, row.cached, row.written, row.output, row.cost or 0) < 0:
            yield f"{row.id}: has negative usage"
        if isinstance(row, Usage) and min(row.doubtful or 0, row.confirmed, row.rejected, counted(row)) < 0:
            yield f"{row.id}: more of its cost is doubtful than it has"
    for claim in rows[Claim].values():
        if claim.process is not None and claim.state != "active":
            yield f"{claim.id}: has ended, but still names its process"


def _models_and_sizes(rows: Tables) -> Iterator[str]:
    """What a project's row repeats, to save claims a query, agrees with the other rows."""
    for project in rows[Project].values():
        troubled = [m for m in rows[Model].values() if m.project == project.id]
        if sorted(m.id for m in troubled) != list(project.limited):
            yield f"project {project.id}: models in trouble are {[m.id for m in troubled]}, not {list(project.limited)}"
        likes = [r for r in rows[LikeTasks].values() if r.project == project.id]
        typical = {r.id: known for r in likes if (known := models.typical_of(r)) is not None}
        if typical != {id: tuple(known) for id, known in project.typical.items()}:
            yield f"project {project.id}: its typical usage does not follow from its tasks"
        for row in likes:
            if len({f.task for f in row.finished}) != len(row.finished) or len(row.finished) > models.KEPT:
                yield f"{row.id}: {len(row.finished)} finished tasks, some of them twice or too many"


def _validations(rows: Tables) -> Iterator[str]:
    """A task that is validating has one open, and each verdict is of the claim it names."""
    waiting = set()
    for row in rows[Validation].values():
        task, claim = rows[Task].get((row.project, row.task)), rows[Claim].get((row.project, row.id))
        result = rows[Result].get((row.project, row.result))
        if task is None or claim is None or result is None:
            yield f"{row.id}: a validation without its task, claim or result"
            continue
        if row.id != claims.claim_id(row.task, row.claimed) or result.generation != row.claimed:
            yield f"{row.id}: a validation of generation {row.claimed} for the result of {result.generation}"
        if validation.is_open(row, task) and _is_waiting(task):
            waiting.add((row.project, row.task))
        elif row.state == validation.OPEN:
            yield f"{row.id}: waits for a verdict or its landing, but {task.key} is {task.state}"
        if (row.state == validation.PASSED) != (result.accepted and result.reason == "ACCEPTED"):
            yield f"{row.id}: is {row.state}, but its result is {result.reason}"
        # Of a landing that may have happened nobody gives up.
        if row.tries > row.generation or (row.land is None and row.tries > validation.MOST_TRIES):
            yield f"{row.id}: {row.tries} tries, {row.generation} takers"
    for task in rows[Task].values():
        if task.state == lifecycle.VALIDATING and (task.project, task.id) not in waiting:
            yield f"{task.key}: validating, but has no open validation"


def _is_waiting(task: Task) -> bool:
    """Paused and cancelled tasks return to their former state."""
    if task.state == lifecycle.PAUSED:
        return task.state_before == lifecycle.VALIDATING
    return task.state in (lifecycle.VALIDATING, lifecycle.CANCELLED)


def _sources(rows: Tables, work: UnitOfWork) -> Iterator[str]:
    """Ticks follow the rule, and the log is read for every trigger."""
    for schedule in rows[Schedule].values():
        yield from _ticks(schedule)
    for trigger in rows[Trigger].values():
        # A copy of the project may have lost it: then the trigger is paused.
        if (trigger.signature is not None) != bool(trigger.secret) and trigger.enabled:
            yield f"trigger {trigger.id}: signed by {trigger.signature}, {len(trigger.secret)} bytes of secret"
        if trigger.signature is None and (trigger.project, READER) not in rows[Cursor]:
            yield f"trigger {trigger.id}: no cursor reads the log for it"
    for dag in rows[Dag].values():
        if dag.on_end and (dag.project, READER) not in rows[Cursor]:
            yield f"{dag.id}: has end templates, but no cursor reads the log for them"
    for cursor in rows[Cursor].values():
        if cursor.sequence > last_sequence(work, cursor.project):
            yield f"cursor {cursor.id} of {cursor.project}: stands at {cursor.sequence}, beyond the end of the log"


def _ticks(row: Schedule) -> Iterator[str]:
    if row.enabled != (row.next_at is not None):
        yield f"schedule {row.id}: enabled is {row.enabled}, its next tick {row.next_at}"
    if row.next_at is None:
        return
    try:
        wanted = schedules.next_tick(row.cron, row.zone, row.next_at - 1)
    except TenureError as error:
        yield f"schedule {row.id}: {error.message}"
        return
    if wanted != row.next_at:
        yield f"schedule {row.id}: its next tick is {row.next_at}; {row.cron} in {row.zone} says {wanted}"


def _replayed(engine: Engine, tx: Transaction, stored: Tables, spill: Spill) -> list[str]:
    """(task, version) without gaps, and replaying the log gives the tables."""
    found: list[str] = []
    archived = [msgspec.structs.replace(row, document=b"") for row in stored[Archived].values()]
    # the log of a recalled task begins in the archive
    versions = Counter({row.id: row.events for row in archived if row.out})
    try:
        logged = _checked(_logged(tx), versions, found)
        if WRITERS not in engine.store.features:  # with several writers, sequences are not ordered by time
            logged = _in_time(logged, found)
        replayed = replay(logged, archived, Spilled(spill))
        found += [
            f"{t.key}: version {t.version}, {versions[t.id]} events"
            for t in stored[Task].values()
            if t.version != versions[t.id]
        ]
        return found + differences(replayed, stored)
    except (msgspec.ValidationError, KeyError) as error:
        return [*found, f"the log cannot be replayed: {error}"]


def _logged(tx: Transaction) -> Iterator[Event]:
    """One project after another: across projects a store may hold back what others have not finished writing."""
    for project in ["", *(p.id for p in tx.find(Project, {}))]:
        for page in event_pages(tx, {"project": project}, EVENTS_A_PAGE):
            yield from page


def _checked(events: Iterable[Event], versions: Counter[str], found: list[str]) -> Iterator[Event]:
    """The same events; faults go to `found`: gaps in versions, and terms that do not grow."""
    last: dict[tuple[str, object], int] = {}
    for event in events:
        if event.task is not None:
            versions[event.task] += 1
            if event.version != versions[event.task]:
                found.append(
                    f"{event.key}: event {event.sequence} has version {event.version}, not {versions[event.task]}"
                )
        if event.kind == "leader.elected":
            what, term = (event.project, event.details["for"]), event.details["term"]
            if term <= last.get(what, 0):
                found.append(f"event {event.sequence}: term {term} of {what[1]} after term {last[what]}")
            last[what] = term
        yield event


def _in_time(events: Iterable[Event], found: list[str]) -> Iterator[Event]:
    """In a project no event is earlier than the one before, except where a person corrected the clock."""
    last: dict[str, int] = {}
    for event in events:
        if event.time < last.get(event.project, 0) and event.kind != "clock.accepted":
            found.append(f"event {event.sequence} ({event.kind}) is earlier than the one before it")
        last[event.project] = event.time
        yield event
