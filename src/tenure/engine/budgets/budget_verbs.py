"""Setting and removing budgets, and moving money from one to another.

The tenant's budget counts in every project, so setting it writes to all of them: a claim then learns from its project's
row that it needs the lock of the store's rows. See `UnitOfWork.need_locks`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenure.core import budgets, commands, ids, inputs, lifecycle, limits, roles
from tenure.core.budgets import AGENT, DAG, PERIODS, TASK, TENANT, TOKENS, USD, budget_id, place, split_scope
from tenure.core.errors import InvalidInput, LimitReached, NotFound
from tenure.core.filters import Prefix, Present
from tenure.core.lifecycle import PauseCause
from tenure.core.outcomes import Outcome
from tenure.core.records import Budget, Dag, Project, Task, replace
from tenure.engine.budgets import task_caps, unaffordable
from tenure.engine.budgets.budget_guard import counts_in, keep, kept_rows
from tenure.engine.budgets.budget_reads import view
from tenure.engine.runtime.rows import brief_of, check_agent_name, current_claim, project_of, task_named
from tenure.engine.runtime.unit_of_work import Handlers, Refused, UnitOfWork

MOST_PROJECTS = limits.BUDGET_PROJECTS
MOST_RESUMED = limits.RESUMED
ONCE = "once"


def set_budget(work: UnitOfWork, cmd: commands.SetBudget) -> Outcome:
    scope, name = named(work, cmd.project, cmd.scope)
    before = _row(work, cmd.project, budget_id(scope, name))
    row = _requested(work, cmd, scope, name, before)
    if row == before:
        return Outcome(outcome="UNCHANGED", budget=view(work, row))
    if row.scope in (TASK, DAG) and _is_archived(work, row):
        raise _archived(work, row)
    if before is None or row.default_estimate != before.default_estimate:
        row = replace(row, priced_at=work.now)
    if before is None:
        row = _begun(work, cmd.project, row)
        _mark(work, cmd.project, row)
    elif (row.period, row.zone) != (before.period, before.zone):
        row = budgets.begun(row, work.now)
    details: dict[str, Any] = {"budget": row.id, "currency": row.currency, "allocated": row.allocated}
    if before is None or row.since != before.since:
        details["earlier"] = row.earlier  # of which the log has no other trace: see `past/past_budgets.py`
    work.record("budget.set", row, project=row.project, details=details)
    row = keep(work, row)
    text = budgets.amount_text(row.currency, row.allocated) + (f" a {row.period}" if row.period else "")
    code = "UPDATED" if before else "CREATED"
    return _changed(work, row, f"budget {row.id}: {text}", outcome=code, budget=view(work, row))


def _is_archived(work: UnitOfWork, row: Budget) -> bool:
    """Whether every task that the budget of a task or a dag would count is archived: usage there is summed up."""
    name = row.id.partition(":")[2]
    dag = work.get(Dag, row.project, name) if row.scope == DAG else None
    if dag is None:
        return work.require(Task, row.project, row.task or ids.lone_task(name)).archived_at is not None
    left = {"project": row.project, "dag": name, "archived_at": Present(False)}
    return dag.total > 0 and not work.find(Task, left, limit=1)


def _archived(work: UnitOfWork, row: Budget) -> Refused:
    name = row.id if row.task is None else work.require(Task, row.project, row.task).key
    message = f"{name} is archived: nothing more is spent there, so it gets no budget"
    return Refused(Outcome(outcome="DENIED_STATE", message=message, hint="set a budget for the tasks that are open"))


def _changed(work: UnitOfWork, row: Budget, message: str, **more: Any) -> Outcome:
    """The answer, after tasks that the budget had paused are resumed."""
    for name in _projects(work) if row.scope == TENANT else [row.project]:
        unaffordable.found_again(work, name)
    again = resumed(work, row.project, row.id) or None
    return Outcome(command_id=work.command_id, changed=again, message=message, **more)


def remove_budget(work: UnitOfWork, cmd: commands.RemoveBudget) -> Outcome:
    row = existing(work, cmd.project, cmd.scope)
    if row.task is not None and row.currency == USD and _has_max_cost(work, row):
        raise InvalidInput(f"budget {row.id}: it is the task's max_cost_usd", "edit the task's constraints instead")
    drop(work, row)
    return _changed(work, row, f"budget {row.id} is removed", outcome="UPDATED")


def _has_max_cost(work: UnitOfWork, row: Budget) -> bool:
    task = work.get(Task, row.project, row.task or "")
    return task is not None and task_caps.cap_of(brief_of(work, task)) is not None


def drop(work: UnitOfWork, row: Budget) -> None:
    """Remove a budget; live claims no longer reserve anything in it."""
    where: dict[str, Any] = {"state": lifecycle.HELD} | ({"project": row.project} if row.project else {})
    for task in work.find(Task, where):
        claim = current_claim(work, task) if task.funded else None
        if claim is not None and row.id in (claim.funds or {}):
            work.put(replace(claim, funds={id: n for id, n in (claim.funds or {}).items() if id != row.id}))
    work.record("budget.removed", project=row.project, removed=[row], details={"budget": row.id})
    if row.scope in (DAG, AGENT) and work.find(
        Budget, {"project": row.project, "id": Prefix(f"{row.scope}:")}, limit=1
    ):
        return
    for name in _projects(work) if row.scope == TENANT else [row.project]:
        project = project_of(work, name)
        if row.scope in project.funded:
            work.put(replace(project, funded=tuple(s for s in project.funded if s != row.scope)))


def move_budget(work: UnitOfWork, cmd: commands.MoveBudget) -> Outcome:
    """Both rows change in this transaction, or neither."""
    source, target = (existing(work, cmd.project, scope) for scope in (cmd.source, cmd.target))
    if source.id == target.id:
        raise InvalidInput(f"budget {source.id}: source and target must differ")
    if target.scope in (TASK, DAG) and _is_archived(work, target):
        raise _archived(work, target)
    if source.currency != target.currency:
        raise InvalidInput(f"budget {source.id} is in {source.currency}, {target.id} in {target.currency}")
    budgets.check_same_period(source, target)
    amount = budgets.parse_amount(cmd.amount, source.currency, "amount")
    if amount < 1:
        raise InvalidInput(f"amount must be greater than zero (got {cmd.amount[:40]})")
    rest = budgets.headroom(source, work.now)
    if amount > rest:
        has, wanted = (budgets.amount_text(source.currency, n) for n in (rest, amount))
        message = f"budget {source.id} has {has} available, less than {wanted}"
        hint = f"move {has} at most, or wait until claims return what they do not use"
        return Outcome(outcome="DENIED_BUDGET", budget=view(work, source), message=message, hint=hint)
    moved = []
    for row, change in ((source, -amount), (target, amount)):
        after = replace(row, allocated=row.allocated + change)
        details = {"budget": row.id, "from": source.id, "to": target.id, "amount": amount}
        work.record("budget.moved", after, project=row.project, details=details)
        moved.append(keep(work, after))
    message = f"{budgets.amount_text(source.currency, amount)} moved from {source.id} to {target.id}"
    return _changed(work, target, message, outcome="UPDATED", budget=view(work, moved[1]))


# --- which budget -------------------------------------------------------------------------------------------


def named(work: UnitOfWork, project: str, text: str) -> tuple[str, str]:
    """Scope and name of a possible budget; a task by its id."""
    scope, name = split_scope(text)
    if scope == TASK:
        name = task_named(work, project, name).id
    elif scope == AGENT:
        check_agent_name(work, project, name)
    elif scope == DAG and not _has_dag(work, project, name):
        raise NotFound(f"no dag {name[:80]!r} in project {project}")
    elif scope == TENANT:
        roles.check_all_projects(work.principal, "the tenant's budget")
        work.need_locks("", *_projects(work), lasting=False)
    return scope, name


def _has_dag(work: UnitOfWork, project: str, dag: str) -> bool:
    if work.get(Dag, project, dag) is not None:
        return True
    task = ids.lone_task(dag)
    return work.get(Task, project, task) is not None if task else False


def existing(work: UnitOfWork, project: str, text: str) -> Budget:
    scope, name = named(work, project, text)
    row = _row(work, project, budget_id(scope, name))
    if row is None:
        raise NotFound(f"no budget {text[:80]!r} in project {project}", "`budget list` lists the budgets")
    return row


def _row(work: UnitOfWork, project: str, id: str) -> Budget | None:
    return next(iter(kept_rows(work, project, (id,))), None)


def _projects(work: UnitOfWork) -> list[str]:
    names = sorted(p.id for p in work.find(Project, {}))
    if len(names) > MOST_PROJECTS:
        raise LimitReached(f"a tenant's budget covers at most {MOST_PROJECTS} projects (got {len(names)})")
    return names


# --- input -----------------------------------------------------------------------------------------


def _requested(work: UnitOfWork, cmd: commands.SetBudget, scope: str, name: str, before: Budget | None) -> Budget:
    """The requested row; raises on invalid input."""
    if cmd.usd is not None and cmd.tokens is not None:
        raise InvalidInput("a budget needs an amount in usd or in tokens, and not both")
    currency = USD if cmd.usd is not None else TOKENS if cmd.tokens is not None else ""
    if not currency and before is not None:
        currency = before.currency
    if not currency:
        raise InvalidInput(f"budget {cmd.scope[:80]}: does not exist yet", "give an amount in usd or tokens")
    if before is not None and currency != before.currency:
        raise InvalidInput(
            f"budget {before.id} is in {before.currency}; its counts cannot be converted to {currency}",
            "remove it first, then set it again",
        )
    changes: dict[str, Any] = {}
    amount = cmd.usd if cmd.usd is not None else None if cmd.tokens is None else str(cmd.tokens)
    if amount is not None:
        changes["allocated"] = budgets.parse_amount(amount, currency, currency)
    if cmd.default_estimate is not None:
        changes["default_estimate"] = budgets.parse_amount(cmd.default_estimate, currency, "default_estimate")
        if changes["default_estimate"] < 1:
            raise InvalidInput("default_estimate must be greater than zero (got 0)")
    changes |= _time(cmd, before)
    if cmd.throttle is not None:
        changes["throttle"] = cmd.throttle
        if not cmd.throttle:
            changes["next_claim_at"] = None
    if before is not None:
        return replace(before, **changes)
    project, id = place(cmd.project, budget_id(scope, name))
    usual = budgets.default_estimate(currency, changes["allocated"])
    return Budget(
        project=project,
        id=id,
        scope=scope,
        currency=currency,
        task=name if scope == TASK else None,
        created_at=work.now,
        created_by=work.principal.name,
        **{"default_estimate": usual, **changes},
    )


def _time(cmd: commands.SetBudget, before: Budget | None) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if cmd.period is not None:
        inputs.check_choice(cmd.period, (*PERIODS, ONCE), "period")
        changes["period"] = None if cmd.period == ONCE else cmd.period
    if cmd.zone is not None:
        from tenure.core.schedules import check_schedule

        check_schedule(PERIODS["day"], cmd.zone)
        changes["zone"] = cmd.zone
    for field in ("begins_at", "ends_at"):
        at = inputs.check_instant(getattr(cmd, field), field)
        if at is not None:
            changes[field] = at
    after = {name: changes.get(name, getattr(before, name, None)) for name in ("period", "begins_at", "ends_at")}
    if after["period"] is not None and (after["begins_at"], after["ends_at"]) != (None, None):
        raise InvalidInput("a budget has either a repeating period or begin and end", "leave out one of them")
    if after["begins_at"] is not None and after["ends_at"] is not None and after["ends_at"] <= after["begins_at"]:
        raise InvalidInput("the budget's end must be after its begin")
    return changes


# --- effects ------------------------------------------------------------------------------------------------


def _begun(work: UnitOfWork, project: str, row: Budget) -> Budget:
    """A new budget counts from now on; a task's budget starts with what the task has cost so far."""
    row = budgets.begun(row, work.now)
    if row.scope == TASK:
        return task_caps.counted(work, row, task_named(work, project, row.task or ""))
    return replace(row, earlier=_spent_before(work, project, row))


def _spent_before(work: UnitOfWork, project: str, row: Budget) -> int:
    where: dict[str, Any] = {} if row.scope == TENANT else {"project": project}
    if row.scope == AGENT:
        where["agent"] = row.id.partition(":")[2]
    elif row.scope == DAG:
        where["task"] = tuple(
            task.id for task in work.find(Task, {"project": project, "dag": row.id.partition(":")[2]})
        )
    return task_caps.total(work, row.currency, where)


def _mark(work: UnitOfWork, project: str, row: Budget) -> None:
    """Make claims check the budget."""
    if row.scope == TASK:
        task_caps.mark(work, task_named(work, project, row.task or ""))
        return
    for name in _projects(work) if row.scope == TENANT else [project]:
        kept = project_of(work, name)
        if row.scope not in kept.funded:
            work.put(replace(kept, funded=(*kept.funded, row.scope)))


def joined(work: UnitOfWork, project: Project) -> Project:
    """Add a project that is new here; the tenant's budget, if any, counts in it."""
    work.need_locks("", lasting=False)
    row = _row(work, project.id, TENANT)
    funded = tuple(scope for scope in project.funded if scope != TENANT)
    if row is None:
        return replace(project, funded=funded)
    before = task_caps.total(work, row.currency, {"project": project.id})
    if before:  # it comes from another store: its cost was spent before
        work.put(replace(row, earlier=row.earlier + before))
    return replace(project, funded=(TENANT, *funded))


def resumed(work: UnitOfWork, project: str, id: str, *, but: str | None = None) -> tuple[str, ...]:
    """Resume tasks that the budget paused and that it covers again, or that it no longer limits; return their keys.

    `but` is a task that stays as it is: the caller handles it.
    """
    row = work.get(Budget, project, id)
    if row is not None and budgets.is_over(row):
        return ()
    from tenure.engine.verbs.operator_verbs import lift

    def lifts(task: Task) -> Callable[[PauseCause], bool]:
        return lambda pause: pause.cause == lifecycle.BUDGET and _is_meant(work, task, pause, id)

    where: dict[str, Any] = {"state": lifecycle.PAUSED} | ({"project": project} if project else {})
    paused = [task for task in work.find(Task, where) if task.id != but and any(map(lifts(task), task.pauses))]
    for task in paused[:MOST_RESUMED]:
        lift(work, task, lifts(task), "task.resumed", f"budget {id} has money left")
    return tuple(sorted(task.key for task in paused[:MOST_RESUMED]))


def _is_meant(work: UnitOfWork, task: Task, pause: PauseCause, id: str) -> bool:
    """A holder that reports `budget_exceeded` names no budget: any that its task counts in may be meant."""
    if pause.source is not None:
        return pause.source == id
    return id in counts_in(work, project_of(work, task.project), task, (pause.by or "").removeprefix("agent:"))


HANDLERS: Handlers = {
    commands.SetBudget: set_budget,
    commands.RemoveBudget: remove_budget,
    commands.MoveBudget: move_budget,
}
