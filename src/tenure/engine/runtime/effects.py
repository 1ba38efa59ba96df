"""What a task's move means for others: its dag's counts, its dependents, its reservations, its dead letter.

Moves queue up on the unit of work and are spread one after another, so a cascade through a long chain needs no deep
stack. Each effect reads the current rows and applies a difference, so their order does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tenure.core import causes, claims, graph, lifecycle, moves, retry
from tenure.core.causes import Cancelled
from tenure.core.lifecycle import COMPLETED, DEAD_LETTERED, HELD, PENDING, READY, RETRYING
from tenure.core.records import Agent, Brief, Claim, Dag, DeadLetter, Edge, Reservation, Row, Task, replace
from tenure.engine.runtime.unit_of_work import UnitOfWork


def spread(work: UnitOfWork) -> None:
    """Apply the effects of all moves so far. Every command ends with it."""
    counted: dict[tuple[str, str], None] = {}
    while work.moved:
        before, after = work.moved.popleft()
        if graph.has_dag_row(after):
            _count_in_dag(work, before, after)
            counted.setdefault((after.project, after.dag))
        if before is None or before.state == after.state:
            continue
        if after.state == COMPLETED and after.metered:
            from tenure.engine.models.estimates import learn  # most tasks report no cost

            learn(work, after)
        if after.state == DEAD_LETTERED:
            _write_dead_letter(work, after)
        elif after.state == RETRYING:
            _announce_retry(work, after)
        if after.dependents:
            _update_dependents(work, before, after)
        if before.reserved and before.state in HELD and after.state not in HELD:
            free_reservations(work, after)
        if before.agent is not None and before.state in HELD and after.state not in HELD:
            _let_agent_go(work, before)
        if before.funded and before.state in HELD and after.state not in HELD:
            from tenure.engine.budgets.budget_guard import release  # few projects have budgets; keeps startup fast

            release(work, after)
    for project, id in counted:  # after all moves are counted: one end may let another run
        dag = work.get(Dag, project, id)
        if dag is not None:
            announce_end(work, dag)


def current(work: UnitOfWork, task: Task) -> Task:
    """The task as this unit of work currently has it."""
    return work.get(Task, task.project, task.id) or task


def current_claim(work: UnitOfWork, task: Task) -> Claim:
    """The claim of the task's current generation; every task that was ever claimed has one."""
    claim = work.get(Claim, task.project, claims.claim_id(task.id, task.generation))
    assert claim is not None, f"{task.key} has no claim of generation {task.generation}"
    return claim


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
    if dag.status == "open":
        if dag.ended_at is not None:
            reopened_dag = replace(dag, run=dag.run + 1, ended_at=None)
            work.record("dag.reopened", reopened_dag, project=dag.project, details={"dag": dag.id, "run": dag.run + 1})
        return
    end = f"{dag.run}:{dag.status}"
    if end in dag.fired:
        return
    done = replace(dag, fired=(*dag.fired, end), ended_at=work.instant)
    work.record(
        f"dag.{dag.status}", done, project=dag.project, details={"dag": dag.id, "title": dag.title, "run": dag.run}
    )


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
            cancel_task(work, dependent, cascade_of(after), f"{after.key} is {after.state}")


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
    """Why a dependent was cancelled; a retry of the source finds the tasks it cancelled by this."""
    return Cancelled(cause=causes.CASCADE, source=source.id, reason=f"{source.key} is {source.state}")


def was_cancelled_by(task: Task, cause: str, source: Task) -> bool:
    why = task.cancelled
    return why is not None and (why.cause, why.source) == (cause, source.id)


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
        if child.state not in lifecycle.FINISHED:
            text = f"its parent {task.key} was cancelled"
            _cancel_one(work, child, Cancelled(cause=causes.PARENT, source=task.id, reason=text), text)
    return kept


def _cancel_one(work: UnitOfWork, task: Task, why: Cancelled, message: str) -> Task:
    ended, rows = task, resolved(work, task, "cancel", message)
    if claims.is_held(task):
        ended, over = claims.ended(task, current_claim(work, task), lifecycle.CANCELLED_BY, work.instant)
        rows.append(over)
    why = replace(why, by=why.by or work.principal.name)
    return work.record(
        "task.cancelled", *rows, task=moves.cancelled(ended, why), message=message, agent=task.agent,
        session=task.session,
        details={
            "cause": why.cause, "reason": why.reason, "before": {"state": task.state, "reason": task.reason},
            **({"source": why.source} if why.source else {}),
        },
    )  # fmt: skip


# --- dead letters, retries ----------------------------------------------------------------------------------


def lineage(work: UnitOfWork, task: Task) -> list[Claim]:
    """The claims of a task, oldest first."""
    return work.find(Claim, {"project": task.project, "task": task.id}, order="generation")


def dead_letter_id(task: Task) -> str:
    return f"{task.id}#{task.run}"


def _write_dead_letter(work: UnitOfWork, task: Task) -> None:
    if work.get(DeadLetter, task.project, dead_letter_id(task)) is not None:
        return  # undone and dead again: the record of this run exists
    tried = [c for c in lineage(work, task) if c.run == task.run]
    # not an older attempt's error: an expired lease leaves none
    error = task.last_error if task.last_error and task.last_error.generation == task.generation else None
    letter = DeadLetter(
        project=task.project,
        id=dead_letter_id(task),
        task=task.id,
        run=task.run,
        dag=task.dag,
        error_class=error.error_class if error else "lease_expired",
        error=error.message if error else "all attempts used without a result",
        history=retry.failure_history(tried),
        poison_pill=retry.is_poison(brief_of(work, task).retry, task.failures),
        dead_lettered_at=task.dead_lettered_at or work.instant,
    )
    details: dict[str, Any] = {
        "error_class": letter.error_class,
        "error": letter.error,
        "attempts": task.attempts,
        "poison_pill": letter.poison_pill,
    }
    last = tried[-1] if tried else None
    work.record(
        "task.dead_lettered", letter, task=current(work, task), level="error", details=details,
        agent=last.agent if last else None, session=last.session if last else None,
    )  # fmt: skip


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


def _announce_retry(work: UnitOfWork, task: Task) -> None:
    now_is = current(work, task)
    if now_is.state != RETRYING or now_is.retry_at is None:
        return
    error = now_is.last_error
    work.record(
        "task.retry_scheduled", task=now_is,
        details={
            "retry_at": now_is.retry_at, "backoff_ms": (now_is.retry_at - work.instant) // 1000,
            "attempt": now_is.attempts, "error_class": error.error_class if error else "lease_expired",
        },
    )  # fmt: skip


# --- agents -------------------------------------------------------------------------------------------------


def _let_agent_go(work: UnitOfWork, held: Task) -> None:
    """End a terminated agent together with its last claim.

    Settling handles only agents that it has read; the sweep reports the others, and no answer depends on that.
    """
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
    return gone


# --- reservations -------------------------------------------------------------------------------------------


def free_reservations(work: UnitOfWork, task: Task) -> None:
    """The claim is over: free its reservations, and put back the tasks set aside for it."""
    held = work.find(Reservation, {"project": task.project, "task": task.id})
    release_reservations(work, task.project, held)
    for waiting in work.find(Task, {"project": task.project, "set_aside_for": task.id}):
        work.put(replace(waiting, set_aside_for=None))


def living(work: UnitOfWork, rows: list[Reservation]) -> list[Reservation]:
    """Reservations except those of claims that are over. 0.1 left such rows behind; they block nobody."""
    return [row for row in rows if row.task is None or _is_claimed(work, row)]


def _is_claimed(work: UnitOfWork, row: Reservation) -> bool:
    task = work.get(Task, row.project, row.task or "")
    return task is not None and claims.is_held(task) and task.generation == row.generation


def drop_left_over(work: UnitOfWork, project: str) -> None:
    """Free the reservations of claims that are over."""
    rows = work.find(Reservation, {"project": project})
    alive = {row.id for row in living(work, rows)}
    release_reservations(work, project, [row for row in rows if row.id not in alive])


def release_reservations(work: UnitOfWork, project: str, held: list[Reservation]) -> None:
    if held:
        work.record(
            "reservation.released", project=project, removed=held, agent=held[0].agent, session=held[0].session,
            details={"patterns": [r.pattern for r in held]},
        )  # fmt: skip


def brief_of(work: UnitOfWork, task: Task) -> Brief:
    brief = work.get(Brief, task.project, task.id)
    assert brief is not None, task.id
    return brief
