"""What a person does with a task: pause, resume, cancel, retry, reset, adopt, archive, assign, recover, note."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenure.core import claims, commands, graph, inputs, lifecycle, limits, moves, settle
from tenure.core.errors import NotFound
from tenure.core.instants import lasting
from tenure.core.lifecycle import (
    CANCELLED,
    COMPLETED,
    DEAD_LETTERED,
    FINISHED,
    PAUSED,
    READY,
    RETRYING,
    Cancelled,
    Ending,
    PauseCause,
)
from tenure.core.outcomes import Outcome
from tenure.core.records import Claim, Edge, Result, Row, Task, replace
from tenure.engine.runtime.effects import (
    began_with,
    cancel_task,
    dead_letter_id,
    descendants,
    reopened,
    resolved,
    spread,
)
from tenure.engine.runtime.rows import brief_of, current, current_claim, is_known_agent, project_of, task_named
from tenure.engine.runtime.unit_of_work import Handlers, Refused, UnitOfWork
from tenure.engine.verbs.agents import unknown_agent
from tenure.engine.verbs.edit import apply_changes
from tenure.engine.verbs.lead import check_led

MOST_ANSWERS = limits.ANSWERS_KEPT


def named(work: UnitOfWork, cmd: commands.Command) -> Task:
    return task_named(work, cmd.project, cmd.task)  # type: ignore[attr-defined]  # every command here names a task


def denied(task: Task, verb: str) -> Outcome:
    message = f"{task.key} is {lifecycle.spoken(task.state)}; {verb} is not possible in that state"
    return Outcome(outcome="DENIED_STATE", state=task.state, current_generation=task.generation, message=message)


def unchanged(task: Task) -> Outcome:
    return Outcome(outcome="UNCHANGED", state=task.state, version=task.version)


def updated(work: UnitOfWork, task: Task, **more: Any) -> Outcome:
    task = current(work, task)
    more |= {"message": f"{task.key} is {lifecycle.spoken(task.state)}", "command_id": work.command_id}
    return Outcome(outcome="UPDATED", state=task.state, version=task.version, **more)


def end_held(
    work: UnitOfWork, task: Task, ending: Ending, kind: str, message: str = "", pause: PauseCause | None = None
) -> Task:
    """End the live claim on a person's decision; the holder's next command is refused."""
    free, over = claims.ended(task, current_claim(work, task), ending, work.now)
    if pause is not None:
        free = moves.paused(free, pause)
    details = {"cause": pause.cause} if pause is not None else None
    kept = work.record(kind, over, task=free, message=message, details=details)
    spread(work)
    return current(work, kept)


# --- pause, resume ------------------------------------------------------------------------------------------


def pause(work: UnitOfWork, cmd: commands.Pause) -> Outcome:
    """Add one pause cause; other causes stay."""
    inputs.check_text(cmd.reason, "reason", 1000)
    task = named(work, cmd)
    if task.state in (lifecycle.CREATED, *lifecycle.ENDED):
        return denied(task, "pause")
    is_held = claims.is_held(task)
    cause = lifecycle.DRAIN if is_held and cmd.drain else lifecycle.PERSON
    if any(one.cause == cause for one in task.pauses) and (task.state == PAUSED or cause == lifecycle.DRAIN):
        return unchanged(task)
    reason = cmd.reason or f"paused by {work.principal.name}"
    new = PauseCause(cause=cause, reason=reason, at=work.now, by=work.principal.name)
    if cause == lifecycle.DRAIN:
        draining = replace(task, wanted="pause", pauses=lifecycle.with_pause(task.pauses, new))
        work.record("task.drain_requested", task=draining, message=reason)
    elif is_held:
        task = end_held(work, task, lifecycle.PAUSED_BY, "task.paused", reason, new)
    else:
        work.record("task.paused", task=moves.paused(task, new), message=reason, details={"cause": cause})
        spread(work)
    return updated(work, task)


def resume(work: UnitOfWork, cmd: commands.Resume) -> Outcome:
    """Lift pauses made by people, and a review if nothing else remains. A drain is cancelled while its holder works."""
    task = named(work, cmd)
    if task.state != PAUSED and not task.pauses:
        return denied(task, "resume")
    found = {one.cause for one in task.pauses}
    over = found & {*lifecycle.RESUMABLE, *((lifecycle.BUDGET,) if cmd.budget else ())}
    if not over and found == {lifecycle.REVIEW}:
        over = found
    if not over:
        return replace(unchanged(task), **_remaining(task))
    kept = lift(work, task, lambda one: one.cause in over, "task.resumed", "")
    return replace(updated(work, kept), **_remaining(kept))


def _remaining(task: Task) -> dict[str, Any]:
    """What still pauses the task, for the answer of a verb that lifted another cause."""
    if task.state != PAUSED:
        return {}
    ways = dict.fromkeys(lifecycle.REMEDIES[one.cause] for one in task.pauses)
    return {
        "message": f"{task.key} is still paused: {task.reason}",
        "hint": "; ".join(ways) or None,
        "pauses": tuple(lifecycle.cause_view(one) for one in task.pauses),
    }


def answer(work: UnitOfWork, cmd: commands.Answer) -> Outcome:
    inputs.check_text(cmd.text, "answer", required=True)
    task = named(work, cmd)
    asked = next((one for one in task.pauses if one.cause == lifecycle.QUESTION), None)
    if task.state != PAUSED or asked is None:
        return replace(
            denied(task, "answer"), message=f"{task.key} is {lifecycle.spoken(task.state)} and has no open question"
        )
    entry = {"question": asked.reason, "answer": cmd.text, "by": work.principal.name, "at": work.now}
    task = replace(task, answers=(*task.answers[-MOST_ANSWERS + 1 :], entry))
    kept = lift(work, task, lambda one: one.cause == lifecycle.QUESTION, "task.answered", cmd.text)
    return replace(updated(work, kept), **_remaining(kept))


def lift(work: UnitOfWork, task: Task, is_over: Callable[[PauseCause], bool], kind: str, message: str) -> Task:
    """Remove these causes; the event names them and the ones that remain."""
    free = moves.lifted(task, is_over, work.now)
    rows = _gone_on(work, task) if task.state == PAUSED and free.state == lifecycle.VALIDATING else []
    if kind == "task.resumed" and free.state == task.state:
        kind = "task.pause_lifted"
    details: dict[str, Any] = {"lifted": [one.cause for one in task.pauses if is_over(one)]}
    if free.pauses:
        details["left"] = [one.cause for one in free.pauses]
    kept = work.record(kind, *rows, task=free, message=message, details=details)
    spread(work)
    return kept


def _gone_on(work: UnitOfWork, task: Task) -> list[Row]:
    """Restart the validation that the task waits for at its first attempt."""
    from tenure.core.validation import gone_on
    from tenure.engine.checks.validation_reads import row_of_task  # few tasks are validated

    row = row_of_task(work, task)
    assert row is not None, f"{task.key} has no validation to wait for"
    return [gone_on(row)]


# --- cancel, retry, reset, adopt, archive -------------------------------------------------------------------


def cancel(work: UnitOfWork, cmd: commands.Cancel) -> Outcome:
    inputs.check_text(cmd.reason, "reason", 1000)
    task = named(work, cmd)
    if task.state == CANCELLED:
        return unchanged(task)
    if task.state == COMPLETED:
        return denied(task, "cancel")
    _check_not_landing(work, task, "cancel")
    why = Cancelled(cause=lifecycle.PERSON, reason=cmd.reason or f"cancelled by {work.principal.name}")
    task = cancel_task(work, task, why, cmd.reason)
    spread(work)
    return updated(work, task)


def retry(work: UnitOfWork, cmd: commands.Retry) -> Outcome:
    """Start another run of a dead letter or a cancelled task; end the delay of one that waits for its retry.

    Tasks that the failure of a dead letter cancelled are restored with it. Those that a person's cancel took along are
    not: `undo` does that.
    """
    inputs.check_text(cmd.note, "note")
    task = named(work, cmd)
    if task.state not in (DEAD_LETTERED, CANCELLED, RETRYING):
        return denied(task, "retry")
    details: dict[str, object] = {"by": work.principal.name}
    rows: list[Row] = []
    if task.state == RETRYING:  # the same run: only its delay ends
        fresh = moves.waiting(task, work.now)
    else:
        fresh = moves.new_run(task, work.now)
        details |= {"run": fresh.run, "was": task.state, "before": _run_of(task, "dead_lettered_at")}
        rows = resolved(work, task, "modify_and_retry" if cmd.changes else "retry", cmd.note) + _unchecked(work, task)
    if cmd.changes:
        fresh, brief, before = apply_changes(work, fresh, inputs.check_changes(cmd.changes))
        rows.append(brief)
        details["changes"] = before
    kind = "task.retry_due" if task.state == RETRYING else "task.retried"
    work.record(kind, *rows, task=fresh, message=cmd.note, details=details)
    if task.state == DEAD_LETTERED:
        bring_back(work, task)
    spread(work)
    return updated(work, task)


def _run_of(task: Task, *names: str) -> dict[str, Any]:
    """What an undo needs to know about the run that ends here."""
    names = ("run", "attempts", "given_back", *names)
    return {name: getattr(task, name) for name in names} | {"failures": list(task.failures)}


def bring_back(work: UnitOfWork, source: Task) -> None:
    """Undo the cancellations that the dead letter's failure caused, directly or transitively."""
    letter, todo, seen = dead_letter_id(source), [source], {source.id}
    while todo:
        near = todo.pop()
        edges = work.find(Edge, {"project": near.project, "needs": near.id})
        found = [work.get(Task, near.project, e.task) for e in edges if graph.cascades(e, DEAD_LETTERED)]
        found += descendants(work, near) if near is not source else ()
        for task in found:
            if task is not None and task.id not in seen:
                seen.add(task.id)
                task = current(work, task)  # noqa: PLW2901 - the ones before may have changed it
                todo.append(uncancel(work, task) if began_with(task.cancelled, letter, near) else task)


def uncancel(work: UnitOfWork, task: Task) -> Task:
    """Restore a cancelled task to its earlier state as far as possible: a held task becomes ready or pending."""
    back = moves.uncancelled(task, work.now, paused_from=_paused_from(work, task))
    rows = reopened(work, task) if back.state == DEAD_LETTERED else []
    kept = work.record("task.uncancelled", *rows, task=back)
    spread(work)
    return current(work, kept)


def _paused_from(work: UnitOfWork, task: Task) -> str | None:
    """The state of a task that was paused before its cancellation: validating, if its result waited."""
    if task.state_before != PAUSED or not task.checked:
        return None
    from tenure.engine.checks.validation_reads import row_of_task

    return None if row_of_task(work, task) is None else lifecycle.VALIDATING


def reset(work: UnitOfWork, cmd: commands.Reset) -> Outcome:
    task = named(work, cmd)
    if task.state != COMPLETED:
        return denied(task, "reset")
    left: list[str] = []
    _reset_one(work, task)
    todo = [task]
    seen = {task.id}
    while todo:
        source = todo.pop()
        for edge in work.find(Edge, {"project": source.project, "needs": source.id}):
            dependent = work.get(Task, source.project, edge.task)
            if dependent is None or dependent.id in seen:
                continue
            seen.add(dependent.id)
            if dependent.state == COMPLETED and cmd.cascade:
                _reset_one(work, dependent)
                todo.append(dependent)
            elif claims.is_held(dependent) and cmd.cascade:
                end_held(work, dependent, lifecycle.SUPERSEDED_BY, "task.recovered", f"{source.key} was reset")
            elif dependent.state == COMPLETED or claims.is_held(dependent):
                left.append(dependent.key)
    return updated(work, task, left=tuple(sorted(left)) or None)


def _reset_one(work: UnitOfWork, task: Task) -> None:
    before = _run_of(task, "work_product", "completed_at")
    work.record("task.reset", task=moves.new_run(task, work.now), details={"before": before})
    spread(work)


def adopt(work: UnitOfWork, cmd: commands.Adopt) -> Outcome:
    """A person accepts a kept result as the task's result."""
    inputs.check_text(cmd.note, "note")
    task = named(work, cmd)
    if claims.is_held(task) and cmd.supersede:
        task = end_held(work, task, lifecycle.SUPERSEDED_BY, "task.recovered", "a kept result is adopted")
    if task.state not in (lifecycle.PENDING, READY, RETRYING, PAUSED, DEAD_LETTERED):
        return denied(task, "adopt")
    _check_not_landing(work, task, "adopt")
    kept = _kept_result(work, task, cmd.result)
    claim = work.get(Claim, task.project, claims.claim_id(task.id, kept.generation))
    if task.checked and claim is not None:  # it takes the place of the verdict that the task asks for
        from tenure.engine.checks.validation_verbs import check_adopter

        check_adopter(work, task, claim)
    id = work.new_id("result")
    product = claims.work_product(task, kept.generation, id)
    own = replace(
        kept,
        id=id,
        run=task.run,
        accepted=True,
        reason="ADOPTED",
        work_product=product,
        work_lost=False,
        submitted_at=work.now,
        request_id=None,
    )
    rows = [own, *resolved(work, task, "adopt", cmd.note), *_unchecked(work, task)]
    if claim is not None:
        rows.append(replace(claim, result_accepted=True, work_product=product))
    done = moves.completed(task, work.now, product)
    details = {"result": own.id, "work_product": product}
    work.record("task.adopted", *rows, task=done, message=cmd.note, generation=kept.generation, details=details)
    spread(work)
    return updated(work, task, work_product=product, result=own.id)


def _check_not_landing(work: UnitOfWork, task: Task, verb: str) -> None:
    if task.checked:
        from tenure.engine.checks.validation_reads import row_of_task
        from tenure.engine.checks.validation_verbs import check_not_landing

        check_not_landing(task, row_of_task(work, task), verb)


def _unchecked(work: UnitOfWork, task: Task) -> list[Row]:
    """Withdraw the verdict that the task waited for when it was paused or cancelled; it is no longer needed."""
    if not task.checked:
        return []
    from tenure.engine.checks.validation_reads import row_of_task
    from tenure.engine.checks.validation_verbs import closed

    row = row_of_task(work, task)
    return [] if row is None else closed(work, row)


def _kept_result(work: UnitOfWork, task: Task, id: str | None) -> Result:
    where = {"project": task.project, "task": task.id, "accepted": False}
    kept = work.find(Result, where, order="-submitted_at")
    chosen = next((r for r in kept if id is None or r.id == id), None)
    if chosen is None:
        raise NotFound(f"{task.key} has no kept result" + (f" {id[:80]!r}" if id else ""))
    return chosen


def archive(work: UnitOfWork, cmd: commands.Archive) -> Outcome:
    task = named(work, cmd)
    if task.archived_at is not None:
        return unchanged(task)
    if task.state not in FINISHED:
        return denied(task, "archive")
    work.record("task.archived", task=replace(task, archived_at=work.now))
    return updated(work, task)


# --- offers, reassignment -----------------------------------------------------------------------------------


def assign(work: UnitOfWork, cmd: commands.Assign) -> Outcome:
    check_led(work, cmd)
    task = named(work, cmd)
    seconds = inputs.micros(cmd.seconds, "seconds", low=1, high=86400)
    if task.state != READY:
        return denied(task, "assign")
    return _offered(work, task, cmd, seconds)


def _offered(work: UnitOfWork, task: Task, cmd: commands.Assign | commands.Reassign, until: int) -> Outcome:
    agent = cmd.agent
    if not is_known_agent(work, task.project, agent):
        raise unknown_agent(work, task.project, agent)
    project = project_of(work, task.project)
    if project.router:
        from tenure.engine.verbs.track_router import assign_for_offer  # few projects route

        assign_for_offer(work, task, agent)
    offered = replace(task, offer_to=agent, offer_until=work.now + until, offer_term=cmd.term)
    details: dict[str, Any] = {"agent": agent, "until": work.now + until}
    if cmd.term is not None:
        details["term"] = cmd.term
    work.record("task.offered", task=offered, details=details)
    message = f"{task.key} is offered to agent {agent} for {lasting(until / inputs.SECOND)}"
    return replace(updated(work, task, holder=agent, term=cmd.term), message=message)


def reassign(work: UnitOfWork, cmd: commands.Reassign) -> Outcome:
    """End the live claim, close a late submit, and offer the task to another agent."""
    check_led(work, cmd)
    task = named(work, cmd)
    seconds = inputs.micros(cmd.seconds, "seconds", low=1, high=86400)
    if claims.is_held(task):
        task = end_held(work, task, lifecycle.SUPERSEDED_BY, "task.reassigned", f"for agent {cmd.agent}")
    if task.state != READY:
        raise Refused(denied(task, "reassign"))  # the claim stays if the task cannot be offered
    return _offered(work, replace(task, late_submit_open=False), cmd, seconds)


def recover(work: UnitOfWork, cmd: commands.Recover) -> Outcome:
    check_led(work, cmd)
    inputs.check_text(cmd.reason, "reason", 1000)
    task = named(work, cmd)
    if not claims.is_held(task):
        return denied(task, "recover")
    return updated(work, end_held(work, task, lifecycle.SUPERSEDED_BY, "task.recovered", cmd.reason))


def abort(work: UnitOfWork, cmd: commands.Abort) -> Outcome:
    inputs.check_text(cmd.reason, "reason", 1000)
    task = named(work, cmd)
    if not claims.is_held(task):
        return denied(task, "abort")
    why = cmd.reason or f"aborted by {work.principal.name}"
    done = settle.aborted(task, current_claim(work, task), brief_of(work, task), work.now, work.random.fraction(), why)
    assert done.claim is not None
    work.record(done.kind, done.claim, task=done.task, message=why, details=done.details)
    spread(work)
    return updated(work, task)


def note(work: UnitOfWork, cmd: commands.Note) -> Outcome:
    inputs.check_text(cmd.text, "note", required=True)
    task = named(work, cmd)
    work.record("task.noted", task=task, message=cmd.text)
    return updated(work, task)


HANDLERS: Handlers = {
    commands.Pause: pause,
    commands.Resume: resume,
    commands.Answer: answer,
    commands.Cancel: cancel,
    commands.Retry: retry,
    commands.Reset: reset,
    commands.Adopt: adopt,
    commands.Archive: archive,
    commands.Assign: assign,
    commands.Reassign: reassign,
    commands.Recover: recover,
    commands.Abort: abort,
    commands.Note: note,
}
