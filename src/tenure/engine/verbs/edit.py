"""Editing tasks."""

from __future__ import annotations

from typing import Any

import msgspec

from tenure.core import claims, commands, inputs, lifecycle, moves, priority
from tenure.core.errors import InvalidInput
from tenure.core.outcomes import Outcome
from tenure.core.records import Brief, Task, replace
from tenure.engine.checks import evidence
from tenure.engine.reads import task_view
from tenure.engine.runtime.effects import spread
from tenure.engine.runtime.rows import brief_of, current, current_claim, task_named
from tenure.engine.runtime.unit_of_work import Handlers, UnitOfWork
from tenure.engine.verbs.brief import described

_IN_TASK = ("type", "tags", "priority", "boost", "deadline", "not_before", "max_attempts")
PACKED = ("description", "spec")


def edit(work: UnitOfWork, cmd: commands.Edit) -> Outcome:
    changes = inputs.check_changes(cmd.changes)
    inputs.check_deadline(changes.get("deadline"), work.now)
    task = task_named(work, cmd.project, cmd.task)
    if cmd.version is not None and cmd.version != task.version:
        message = f"{task.key} is at version {task.version}, not {cmd.version}"
        hint = "read it again, then edit"
        return Outcome(outcome="VERSION_CONFLICT", version=task.version, state=task.state, message=message, hint=hint)
    guarded = [name for name in changes if not inputs.EDITABLE[name]]
    if "metadata" in changes and claims.is_held(task) and _changes_secrets(work, task, changes["metadata"]):
        guarded.append("metadata")  # its holder has the secrets of before, and what it writes is searched for those
    rows: list[Any] = []
    closing = [name for name in changes if name in inputs.OF_THE_RESULT]
    if closing and _waits_for_verdict(work, task):
        from tenure.engine.checks.validation_verbs import withdraw  # few edited tasks have one

        if not cmd.supersede:
            return Outcome(
                outcome="DENIED_STATE",
                state=task.state,
                current_generation=task.generation,
                message=f"{task.key}: its result waits to be judged or landed; {', '.join(closing)} cannot change now",
                hint="wait until it is over, or supersede it: the result is kept but does not count",
            )
        task, rows = withdraw(work, task)
    elif claims.is_held(task) and guarded:
        if not cmd.supersede:
            return Outcome(
                outcome="DENIED_STATE",
                state=task.state,
                holder=task.agent,
                current_generation=task.generation,
                message=f"{task.key} is held by agent {task.agent}; {', '.join(guarded)} cannot change now",
                hint="edit it when it is free, or supersede the claim",
            )
        task, over = claims.ended(task, current_claim(work, task), lifecycle.SUPERSEDED_BY, work.now)
        rows.append(over)
    elif task.state in lifecycle.FINISHED and guarded:
        return Outcome(
            outcome="DENIED_STATE",
            state=task.state,
            message=f"{task.key} is {lifecycle.spoken(task.state)}; {', '.join(guarded)} can no longer change",
        )
    edited, brief, old = apply_changes(work, task, changes)
    details = {"changes": list(changes), "before": old, "by": work.principal.name}
    work.record("task.edited", brief, *rows, task=edited, details=details)
    spread(work)
    if "constraints" in changes and edited.capped:
        from tenure.engine.budgets.task_caps import go_on  # few tasks have a cost cap

        go_on(work, edited)
    now_is = current(work, edited)
    return Outcome(
        outcome="UPDATED",
        state=now_is.state,
        version=now_is.version,
        command_id=work.command_id,
        changed=tuple(changes),
        message=f"{now_is.key}: {', '.join(changes)} changed",
    )


def _changes_secrets(work: UnitOfWork, task: Task, metadata: Any) -> bool:
    from tenure.core.task_secrets import same_secrets  # few edits; keeps startup fast

    return not same_secrets(metadata, brief_of(work, task).metadata)


def _waits_for_verdict(work: UnitOfWork, task: Task) -> bool:
    if not task.checked or lifecycle.VALIDATING not in (task.state, task.state_before):
        return False
    from tenure.engine.checks.validation_reads import row_of_task

    return task.state not in lifecycle.FINISHED and row_of_task(work, task) is not None


def apply_changes(
    work: UnitOfWork, task: Task, changes: dict[str, Any], *, is_placed: bool = False
) -> tuple[Task, Brief, dict[str, Any]]:
    """Both rows with the checked changes, and the old values as stored: large ones by reference.

    `is_placed`: secrets in them are sealed for this task already, and not for the command.
    """
    _check_attempts(task, changes)
    brief = brief_of(work, task)
    if "spec" in changes or "metadata" in changes:
        task, changes = _sealed(work, task, brief, changes, is_placed=is_placed)
    old = {name: getattr(brief, name) if name in PACKED else current_value(work, task, brief, name) for name in changes}
    in_task, in_brief = _by_row(work, task, changes)
    if "output" in changes:
        evidence.check_contracts(work, [changes["output"]])
    if "deadline" in changes:
        in_task["missed"] = False
    if any(name in inputs.CLOSES_WINDOW for name in changes):
        in_task["late_submit_open"] = False  # a result for the old text never completes the new one
    if "touches" in changes or "constraints" in changes:
        in_task["set_aside_for"] = None  # it may no longer overlap the claim it was set aside for
    before, brief = brief, replace(brief, **in_brief)
    if "constraints" in changes and (task.capped or "max_cost_usd" in brief.constraints):
        from tenure.engine.budgets.task_caps import follow  # few edits change the cap

        follow(work, task, before, brief)
    task, brief = described(replace(task, **in_task), before, brief)
    task = inputs.constrained(task, brief)
    if task.state in (lifecycle.READY, lifecycle.PENDING):
        task = moves.waiting(task, work.now)
    return task, brief, old


def _by_row(work: UnitOfWork, task: Task, changes: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The changes of the task's row and of its brief, as these keep them."""
    in_task: dict[str, Any] = {}
    in_brief: dict[str, Any] = {}
    for name, value in changes.items():
        if name == "priority":
            in_task[name] = priority.parse_priority(value)
        elif name == "boost":
            if value is not None:
                in_task[name] = priority.parse_boost(value)
        elif name in _IN_TASK:
            in_task[name] = value
        else:
            in_brief[name] = task_view.packed(work, task.project, value) if name in PACKED else value
    return in_task, in_brief


def _sealed(
    work: UnitOfWork, task: Task, brief: Brief, changes: dict[str, Any], *, is_placed: bool
) -> tuple[Task, dict[str, Any]]:
    """The changes with their secrets sealed for the task; and the task, which shows whether it has any afterwards."""
    from tenure.engine.secrets.sealed_rows import has_sealed, sealed_for  # few edits; keeps startup fast

    old = {name: current_value(work, task, brief, name) for name in ("spec", "metadata")}
    wanted = {name: changes.get(name, value) for name, value in old.items()}
    if is_placed:
        return replace(task, sealed=has_sealed(*wanted.values())), changes
    spec, metadata, is_sealed = sealed_for(work, task, wanted["spec"], wanted["metadata"], old)
    placed = {"spec": spec, "metadata": metadata}
    return replace(task, sealed=is_sealed), {name: placed.get(name, value) for name, value in changes.items()}


def _check_attempts(task: Task, changes: dict[str, Any]) -> None:
    """max_attempts may not drop below the attempts used, nor leave none to a task that waits for its next."""
    wanted, fewest = changes.get("max_attempts"), claims.fewest_attempts(task)
    if wanted is not None and wanted < fewest:
        waits = "" if fewest == task.attempts else " and waits for the next"
        raise InvalidInput(
            f"max_attempts must be at least {fewest}: {task.key} is {lifecycle.spoken(task.state)},"
            f" has used {task.attempts}{waits} (got {wanted})",
            "cancel the task if it should not be retried",
        )


def current_value(work: UnitOfWork, task: Task, brief: Brief, name: str) -> Any:
    """A field's value in the form that `edit` takes."""
    if name == "boost":
        return task.boost / 100
    if name in _IN_TASK:
        return getattr(task, name)
    value = getattr(brief, name)
    if name in PACKED:
        value = task_view.unpacked(work, task.project, value)
    return msgspec.to_builtins(value)


HANDLERS: Handlers = {commands.Edit: edit}
