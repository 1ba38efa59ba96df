"""Effects that no command asks for: of time on due rows (settle), and of a task's move on others (spread).

Settle first. Leases expire, retries fall due, offers and pauses end, deadlines pass, hung holders are aborted: all at a
time, without a command. No process has to run for that. Each row knows when something on it falls due next (`due_at`,
indexed), and each transaction settles the due rows of its projects before its first command, at the transaction's own
`now`. Queries do the same on rows that are never saved. The sweep (`duties/sweep.py`) runs this code too; it only makes
events prompt.

Restated rules. None. The rules are in `core/settle.py`: `settle` applies the earliest item that is due on one row,
`stamp` computes `due_at` at every write. This module only finds due rows, orders them, and applies the effects on other
rows.

Why it is safe.
- No answer depends on the sweep. A command at `now` sees the same rows whether the sweep ran a second ago or never: the
  item is applied at the instant at which it fell due (`work.instant`), and later times, such as a retry's delay, count
  from that instant.
- Items are applied in the order in which they fell due, across all rows of the project, one at a time. A row's second
  item may come after another row's first, and both may touch a third row. `_Queue` is therefore a heap that takes up
  what each item left due (`work.overdue`).
- The store still returns rows that this transaction has settled but not written. `_Queue.seen` skips them, and each
  page is larger by their number, so that a page full of them cannot hide the others.
- A batch is equal to its commands one by one: `settle_overdue` runs between two commands and settles what the first
  left due at the same `now`. Its events belong to no principal.
- More than PAGE due rows are settled in separate transactions before the batch, so that no transaction grows without
  bound. Each of them is complete in itself.
- A rule that fails on one row must not block a project. The error is confined to the row (`undo_to`) and reported by
  the sweep; the row stays due and all others are settled.
- Settling is idempotent: a settled row has a later `due_at`, or none. An assertion in `settle_once` holds every rule to
  that.

Which tests prove it.
- `tests/core/test_settle.py`: settled twice is settled once, for generated rows.
- `tests/stateful/test_model.py` plays histories with sweeps never, sometimes and after every turn, and one by one or in
  batches: the answers must be equal.
- `testing/engine/upkeep.py`: more than a page of due rows; a page of rows that cannot be settled.

What a new field must do. A field that holds a time at which something happens without a command goes into `due_at` of
`core/settle.py` and gets a branch in `settle` there. That branch must move or clear the field, so that the row is not
due again at once, and must return the event with the instant at which the item fell due.

Spread. What a move means for others: its dag's counts, its dependents, its reservations, its dead letter. Moves queue
up on the unit of work and are spread one after another, so a cascade through a long chain needs no deep stack. Each
effect reads the current rows and applies a difference, so their order does not matter.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from tenure.core import claims, graph, ids, lifecycle, moves, retry, settle
from tenure.core.events import Event
from tenure.core.land_request import LANDING
from tenure.core.lifecycle import COMPLETED, DEAD_LETTERED, HELD, PENDING, READY, RETRYING, VALIDATING, Cancelled
from tenure.core.records import Agent, Dag, DeadLetter, Edge, Project, Row, Task, replace
from tenure.engine.runtime.rows import brief_of, current, current_claim, lineage
from tenure.engine.runtime.unit_of_work import OUR_FAULTS, UnitOfWork

PAGE = 500  # rows per transaction; more are settled in separate transactions first


class Report:
    """What a sweep did: the number settled, the kinds of events, and rows that one of our rules could not settle."""

    def __init__(self) -> None:
        self.settled = 0
        self.events: Counter[str] = Counter()  # by kind of event
        self.failed: dict[str, str] = {}
        self.more = False

    def note(self, events: Iterable[Event]) -> None:
        self.events.update(event.kind for event in events)

    def add(self, other: Report) -> None:
        self.settled += other.settled
        self.events += other.events
        self.failed |= other.failed


def settle_due(work: UnitOfWork, projects: Iterable[str], report: Report, limit: int | None = None) -> None:
    """Settle everything due in these projects, or at most `limit` items (`report.more`: more are waiting).

    An error is confined to its row: the row stays as it is and the others are settled.
    """
    for project in projects:
        if not work.tx.is_due(project):
            continue
        queue = _Queue(work, project)
        for id in queue:
            if limit is not None and report.settled >= limit:
                report.more = True
                return
            settle_apart(work, project, id, report)
            queue.take_overdue(report)


class _Queue:
    """The due items of a project, in the order in which they fell due, across all rows.

    One item at a time: a row's second item may come after another row's first, and both may touch a third row.
    """

    def __init__(self, work: UnitOfWork, project: str) -> None:
        self.work, self.project = work, project
        self.heap: list[tuple[int, str]] = []
        self.seen: set[str] = set()

    def __iter__(self) -> Iterator[str]:
        while True:
            asked = PAGE + len(self.seen)  # the store still returns rows that this unit of work has settled
            page = self.work.tx.due(self.project, self.work.now, asked)
            for row in page:
                if row.id not in self.seen:
                    self._push(row)
            is_last = len(page) < asked
            until = self.work.now if is_last else page[-1].due_at or 0  # later items were not read yet
            while self.heap and self.heap[0][0] <= until:
                yield heapq.heappop(self.heap)[1]
            if is_last:
                return

    def take_overdue(self, report: Report) -> None:
        """Queue what the last item left due: more on its own row, or on the rows that it touched."""
        while self.work.overdue:
            project, id = self.work.overdue.pop()
            task = self.work.get(Task, project, id)
            if task is not None and id not in report.failed:
                self._push(task)

    def _push(self, task: Task) -> None:
        self.seen.add(task.id)
        if task.due_at is not None and task.due_at <= self.work.now:
            heapq.heappush(self.heap, (task.due_at, task.id))


def settle_overdue(work: UnitOfWork) -> None:
    """Settle what an earlier command of the batch left due at this `now`, as if the commands ran one by one."""
    if not work.overdue:
        return
    work.begin_command(None, None)  # settling is not the act of the previous command
    report = Report()
    heap: list[tuple[int, str, str]] = []
    while work.overdue or heap:
        while work.overdue:
            project, id = work.overdue.pop()
            task = work.get(Task, project, id)
            if task is not None and task.due_at is not None and task.due_at <= work.now and id not in report.failed:
                heapq.heappush(heap, (task.due_at, project, id))
        if heap:
            _, project, id = heapq.heappop(heap)
            settle_apart(work, project, id, report)


def settle_apart(work: UnitOfWork, project: str, id: str, report: Report) -> None:
    """Settle one item of one row, with all its effects on others."""
    bookmark = work.bookmark()
    try:
        task = work.get(Task, project, id)
        if task is not None and settle_once(work, task) is not None:
            spread(work)
            report.events.update(event.kind for event in work.events[bookmark[1] :])
        report.settled += 1
    except OUR_FAULTS as error:
        work.undo_to(bookmark)
        report.failed[id] = f"{type(error).__name__}: {error}"
    finally:
        work.instant = work.now


def settle_once(work: UnitOfWork, task: Task) -> Task | None:
    """The row after its earliest due item, with `work.instant` at that moment; None if nothing is due."""
    claim = brief = None
    if settle.needs_claim(task):
        claim, brief = current_claim(work, task), brief_of(work, task)
    due = settle.settle(task, claim, brief, work.epoch, work.now, work.random.fraction())
    if due is None:
        if task.due_at is not None and task.due_at <= work.now:  # its position in the order has changed
            ranked = work.put(task)
            assert ranked.due_at is None or ranked.due_at > work.now, f"{task.key} stays due at {ranked.due_at}"
        return None
    work.instant = due.at
    rows = [due.claim] if due.claim else []
    level = "warning" if due.claim or due.kind in ("task.warned", "task.deadline_missed") else "info"
    return work.record(due.kind, *rows, task=due.task, details=due.details, holder=task, level=level)


# --- moves --------------------------------------------------------------------------------------------------


def _may_reserve(task: Task) -> bool:
    """Whether the claim of the task, or its result that waits to be landed, may have reservations."""
    is_submitted = task.guarded and task.checked and VALIDATING in (task.state, task.state_before)
    return is_submitted or (task.reserved and task.state in HELD)


def spread(work: UnitOfWork) -> None:
    """Apply the effects of all moves so far. Every command ends with it."""
    counted: dict[tuple[str, str], None] = {}
    while work.moved:
        before, after = work.moved.popleft()
        if ids.has_dag_row(after):
            _count_in_dag(work, before, after)
            counted.setdefault((after.project, after.dag))
        if before is None or before.state == after.state:
            continue
        if after.state == COMPLETED and after.metered:
            from tenure.engine.models.estimates import learn  # most tasks report no cost

            learn(work, after)
        if after.state == DEAD_LETTERED:
            _write_dead_letter(work, before, after)
        elif after.state == RETRYING:
            _announce_retry(work, before, after)
        if after.dependents:
            _update_dependents(work, before, after)
        if _may_reserve(before) and after.state not in HELD:
            from tenure.engine.verbs.reserve import free_unless_needed  # few tasks reserve anything

            free_unless_needed(work, after)
        if before.agent is not None and before.state in HELD and after.state not in HELD:
            _let_agent_go(work, before)
        if before.funded and before.state in HELD and after.state not in HELD:
            from tenure.engine.budgets.budget_guard import release  # few projects have budgets; keeps startup fast

            release(work, after)
    for project, id in counted:  # after all moves are counted: one end may let another run
        dag = work.get(Dag, project, id)
        if dag is not None:
            announce_end(work, dag)


# --- dags ---------------------------------------------------------------------------------------------------


def _count_in_dag(work: UnitOfWork, before: Task | None, after: Task) -> None:
    left, entered = (graph.part(before) if before else None), graph.part(after)
    if left == entered:
        return
    dag = work.get(Dag, after.project, after.dag)
    if dag is not None:
        work.put(graph.counted(dag, left, entered))


def announce_end(work: UnitOfWork, dag: Dag) -> None:
    """Append the end of a dag once for each (dag, run, status); a dag that continues after its end begins a new run."""
    if dag.status == graph.OPEN:
        if dag.ended_at is not None:
            reopened_dag = replace(dag, run=dag.run + 1, ended_at=None)
            work.record("dag.reopened", reopened_dag, project=dag.project, details={"dag": dag.id, "run": dag.run + 1})
        return
    end = f"{dag.run}:{dag.status}"
    if end in dag.fired:
        return
    done = replace(dag, fired=(*dag.fired, end), ended_at=work.instant)
    level = "error" if dag.status == "failed" else "info"
    details = {"dag": dag.id, "title": dag.title, "run": dag.run}
    work.record(f"dag.{dag.status}", done, project=dag.project, level=level, details=details)


# --- dependents ---------------------------------------------------------------------------------------------


def _update_dependents(work: UnitOfWork, before: Task, after: Task) -> None:
    if {before.state, after.state}.isdisjoint(lifecycle.ENDED):
        return
    edges = work.find(Edge, {"project": after.project, "needs": after.id})
    dependents = work.get_many(Task, after.project, [e.task for e in edges])
    for edge in edges:
        dependent = dependents.get(edge.task)
        if dependent is None:
            continue
        dependent = current(work, dependent)
        change = graph.is_met(edge, before.state) - graph.is_met(edge, after.state)
        if change:
            dependent = unmet_changed(work, dependent, change, after)
        if graph.cascades(edge, after.state) and dependent.state not in lifecycle.FINISHED:
            cancel_task(work, dependent, cascade_of(after), f"{after.key} is {lifecycle.spoken(after.state)}")


def unmet_changed(work: UnitOfWork, task: Task, change: int, because: Task) -> Task:
    """Add or remove one unmet dependency; the task moves to the state that follows."""
    updated = replace(task, unmet=task.unmet + change)
    if task.state in (PENDING, READY):
        updated = moves.waiting(updated, work.instant)
    if updated.state != task.state:
        if updated.state == READY:
            return work.record("task.ready", task=updated, details={"after": because.key})
        return work.record("task.pending", task=updated, details={"waits_for": because.key})
    updated = work.put(updated)
    work.moved.append((task, updated))  # the count may change its part in the dag
    return updated


# --- cancelling ---------------------------------------------------------------------------------------------


def cascade_of(source: Task) -> Cancelled:
    """Why a dependent was cancelled; a retry of a dead letter finds the tasks it cancelled by this."""
    if source.state == lifecycle.DEAD_LETTERED:
        origin = dead_letter_id(source)
    else:
        origin = (source.cancelled and source.cancelled.origin) or source.id
    reason = f"{source.key} is {lifecycle.spoken(source.state)}"
    return Cancelled(cause=lifecycle.CASCADE, source=source.id, reason=reason, origin=origin)


def began_with(why: Cancelled | None, letter: str, near: Task) -> bool:
    """Whether a task was cancelled by the failure with this dead letter; `near` is between the two, or the first."""
    if why is None or why.cause not in (lifecycle.CASCADE, lifecycle.PARENT):
        return False
    return why.origin == letter if why.origin is not None else why.source == near.id


def descendants(work: UnitOfWork, task: Task) -> Iterator[Task]:
    """Subtasks at any depth, in their current state."""
    if task.children:
        for child in work.find(Task, {"project": task.project, "parent": task.id}):
            yield child
            yield from descendants(work, child)


def cancel_task(work: UnitOfWork, task: Task, why: Cancelled, message: str) -> Task:
    """Cancel, even while held; open subtasks are cancelled too, also those below a finished one."""
    kept = _cancel_one(work, task, why, message)
    for child in list(descendants(work, task)):
        if child.state not in lifecycle.FINISHED and not _is_landing(work, child):
            text = f"its parent {task.key} was cancelled"
            below = Cancelled(cause=lifecycle.PARENT, source=task.id, reason=text, origin=why.origin or task.id)
            _cancel_one(work, child, below, text)
    return kept


def _is_landing(work: UnitOfWork, task: Task) -> bool:
    """Whether its commit may be on the branch already: then it ends by its landing, as if a moment earlier."""
    if not task.checked or VALIDATING not in (task.state, task.state_before):
        return False
    from tenure.engine.checks.validation_reads import row_of_task

    row = row_of_task(work, task)
    return row is not None and row.phase == LANDING


def _cancel_one(work: UnitOfWork, task: Task, why: Cancelled, message: str) -> Task:
    ended, rows = task, resolved(work, task, "cancel", message)
    if claims.is_held(task):
        ended, over = claims.ended(task, current_claim(work, task), lifecycle.CANCELLED_BY, work.instant)
        rows.append(over)
    why = replace(why, by=why.by or work.principal.name)
    details = {"cause": why.cause, "reason": why.reason, "before": {"state": task.state, "reason": task.reason}}
    if why.source:
        details["source"] = why.source
    cancelled = moves.cancelled(ended, why)
    return work.record("task.cancelled", *rows, task=cancelled, message=message, details=details)


# --- dead letters, retries ----------------------------------------------------------------------------------


def dead_letter_id(task: Task) -> str:
    return f"{task.id}#{task.run}"


def _write_dead_letter(work: UnitOfWork, before: Task, task: Task) -> None:
    from tenure.core import dead_letters  # few commands make one; keeps startup fast

    if work.get(DeadLetter, task.project, dead_letter_id(task)) is not None:
        return  # undone and dead again: the record of this run exists
    tried = [c for c in lineage(work, task) if c.run == task.run]
    error, policy = dead_letters.last_error(task, tried), brief_of(work, task).retry
    letter = DeadLetter(
        project=task.project,
        id=dead_letter_id(task),
        task=task.id,
        run=task.run,
        dag=task.dag,
        error_class=error.error_class,
        error=error.message,
        history=retry.failure_history(tried),
        poison_pill=retry.is_poison(policy, task.failures),
        dead_lettered_at=task.dead_lettered_at or work.instant,
    )
    details: dict[str, Any] = {
        "error_class": letter.error_class,
        "error": letter.error,
        "attempts": task.attempts,
        "poison_pill": letter.poison_pill,
        "state_before": before.state,
    }
    last = tried[-1] if tried else None
    dead = replace(current(work, task), last_error=error)
    message = dead_letters.why(dead, policy)
    work.record("task.dead_lettered", letter, task=dead, level="error", message=message, details=details, holder=last)


def resolved(work: UnitOfWork, task: Task, resolution: str, note: str) -> list[Row]:
    """The dead letter's record with a person's decision, for the event that applies it."""
    letter = work.get(DeadLetter, task.project, dead_letter_id(task))
    if task.state != DEAD_LETTERED or letter is None:
        return []
    return [replace(letter, resolution=resolution, note=note, reviewed_by=work.principal.name, reviewed_at=work.now)]


def reopened(work: UnitOfWork, task: Task) -> list[Row]:
    """The dead letter's record, waiting for a decision again."""
    letter = work.get(DeadLetter, task.project, dead_letter_id(task))
    return [] if letter is None else [replace(letter, resolution=None, note=None, reviewed_by=None, reviewed_at=None)]


def _announce_retry(work: UnitOfWork, before: Task, task: Task) -> None:
    now_is = current(work, task)
    if now_is.state != RETRYING or now_is.retry_at is None:
        return
    error = now_is.last_error
    details = {
        "retry_at": now_is.retry_at,
        "backoff_ms": (now_is.retry_at - work.instant) // 1000,
        "attempt": now_is.attempts,
        "error_class": error.error_class if error else "lease_expired",
        "state_before": before.state,
    }
    work.record("task.retry_scheduled", task=now_is, details=details)


# --- agents -------------------------------------------------------------------------------------------------


def _let_agent_go(work: UnitOfWork, held: Task) -> None:
    """A claim has ended: note it on a routed track, and end a terminated agent together with its last claim.

    Settling handles only agents that it has read; the sweep reports the others, and no answer depends on that.
    """
    if _routes(work, held.project):
        from tenure.engine.verbs.track_router import idle  # few projects route

        idle(work, held)
    is_settling = work.instant != work.now
    agent = (work.peek if is_settling else work.get)(Agent, held.project, held.agent or "")
    if agent is not None and agent.terminated_at is not None:
        end_agent(work, agent)


def end_agent(work: UnitOfWork, agent: Agent) -> Agent:
    """A terminated agent without claims is gone; reported once."""
    if agent.terminated_at is None or agent.left_at is not None:
        return agent
    if work.find(Task, {"project": agent.project, "agent": agent.id}, limit=1):
        return agent
    gone = replace(agent, left_at=work.now)
    work.record("agent.terminated", gone, project=agent.project, agent=agent.id, message=agent.terminated_for or "")
    free_places(work, agent, "it was terminated")
    return gone


def free_places(work: UnitOfWork, agent: Agent, why: str) -> None:
    """The agent is gone: its tracks and its leadership are free for others."""
    from tenure.engine.verbs.lead import lost_by  # few commands end an agent

    lost_by(work, agent, why)
    if _routes(work, agent.project):
        from tenure.engine.verbs.track_router import left  # few projects route

        left(work, agent)


def _routes(work: UnitOfWork, project: str) -> bool:
    settings = work.get(Project, project, project)
    return settings is not None and settings.router
