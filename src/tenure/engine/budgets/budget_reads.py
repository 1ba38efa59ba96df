"""Queries of budgets, brought up to `now`. They write nothing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from tenure.core import budgets, inputs, lifecycle, limits
from tenure.core import queries as q
from tenure.core.budgets import AGENT, DAG, PROJECT, SCOPES, TASK, TENANT, budget_id
from tenure.core.errors import NotFound
from tenure.core.filters import Prefix, Present
from tenure.core.records import Brief, Budget, Project, Task, Usage
from tenure.engine.budgets.budget_guard import amount, kept_rows, reason, recommendation, rows_of, used
from tenure.engine.models.estimates import estimate_of
from tenure.engine.runtime.effects import descendants
from tenure.engine.runtime.rows import fields_of, pages_by, project_of, task_named
from tenure.engine.runtime.unit_of_work import Reads, UnitOfWork

if TYPE_CHECKING:
    from tenure.core import views as v

MOST_LISTED = limits.LISTED
MOST_ESTIMATED = limits.ESTIMATED
PAGE = 500
ORDER = (TENANT, PROJECT, AGENT, DAG)  # of a list
WAITING = (lifecycle.CREATED, lifecycle.PENDING, lifecycle.READY, lifecycle.RETRYING, lifecycle.PAUSED)


def view(work: UnitOfWork, budget: Budget) -> v.BudgetView:
    answer: Any = {
        **_amounts(budget),
        **fields_of(budget, "id scope currency period zone begins_at ends_at since until throttle next_claim_at"),
        **fields_of(budget, "created_at created_by"),
        "percent": budgets.percent(budget),
        "default_estimate": amount(budget, budget.default_estimate),
        "alerts": alerts_of(budget),
    }
    doubtful = _doubtful(work, budget)
    if doubtful:
        answer["doubtful"] = amount(budget, doubtful)
    task = work.get(Task, budget.project, budget.task) if budget.task is not None else None
    return answer | ({"task": task.key} if task is not None else {})  # type: ignore[no-any-return]


def _amounts(budget: Budget) -> dict[str, Any]:
    amounts = {name: amount(budget, getattr(budget, name)) for name in ("allocated", "consumed", "reserved")}
    return amounts | {"remaining": amount(budget, budgets.left(budget))}


def _doubtful(work: UnitOfWork, budget: Budget) -> int:
    """Costs reported in its scope that no budget counts before a person has confirmed them."""
    if budget.currency != budgets.USD:
        return 0
    here: dict[str, Any] = {} if budget.scope == TENANT else {"project": budget.project}
    rows = work.find(Usage, {**here, "doubtful": Present()})
    name = budget.id.partition(":")[2]
    if rows and budget.scope == AGENT:
        rows = [row for row in rows if row.agent == name]
    elif rows and budget.scope in (DAG, TASK):
        tasks = work.get_many(Task, budget.project, [row.task for row in rows])
        if budget.scope == DAG:
            rows = [row for row in rows if row.task in tasks and tasks[row.task].dag == name]
        else:
            below = {name, *(task.id for task in descendants(work, work.require(Task, budget.project, name)))}
            rows = [row for row in rows if row.task in below and not (row.late and row.task == name)]
    return sum(row.doubtful or 0 for row in rows)


def alerts_of(budget: Budget) -> list[v.AlertView]:
    return [
        {
            "budget": budget.id,
            "level": int(level),
            "percent": budgets.percent(budget),
            "since": since,
            "message": f"budget {budget.id}: {used(budget)}",
        }
        for level, since in sorted(budget.alerts.items(), key=lambda alert: -int(alert[0]))
    ]


def read_all(
    work: UnitOfWork, project: str, *, scope: str | None = None, after: str | None = None, limit: int = 100
) -> list[v.BudgetView]:
    """By id, the tenant's and the project's first."""
    if scope is not None:
        inputs.check_choice(scope, SCOPES, "scope")
    return [view(work, row) for row in rows(work, project, scope, after, limit)]


def rows(
    work: UnitOfWork, project: str, scope: str | None = None, after: str | None = None, limit: int = MOST_LISTED
) -> list[Budget]:
    """Budgets of tasks are many, and left out unless requested."""
    settings = project_of(work, project)
    wanted = [scope] if scope is not None else [s for s in ORDER if s in settings.funded]
    passed = None if after is None else after.partition(":")[0]
    if passed in wanted:
        wanted = wanted[wanted.index(passed) :]
    found: list[Budget] = []
    for kind in wanted:
        if kind == TENANT and work.principal.projects:
            continue
        if kind in (TENANT, PROJECT):
            found += kept_rows(work, project, (kind,)) if kind != passed else []
            continue
        place = (after, after) if after is not None and kind == passed else None
        here = {"project": project, "id": Prefix(f"{kind}:")}
        some = work.find(Budget, here, after=place, limit=max(1, limit - len(found)))
        found += kept_rows(work, project, [row.id for row in some])
    return found[:limit]


def seen(work: UnitOfWork, project: str, scope: str) -> v.BudgetInFull:
    budget = _named(work, project, scope)
    burn = [{"at": hour * budgets.HOUR, "spent": amount(budget, spent)} for hour, spent in budget.burn]
    return {**view(work, budget), "burn": burn}  # type: ignore[typeddict-item]


def alerts(work: UnitOfWork, project: str) -> list[v.AlertView]:
    """All budgets except those of finished tasks."""
    found = [alert for row in rows(work, project) for alert in alerts_of(row)]
    of_tasks = {"project": project, "id": Prefix(f"{TASK}:")}
    for row in chain.from_iterable(pages_by(work, Budget, of_tasks, "id", PAGE)):
        task = work.get(Task, project, row.task or "") if row.alerts else None
        if task is not None and task.state not in lifecycle.FINISHED:
            found += alerts_of(row)
    return sorted(found, key=lambda alert: (-alert["level"], -alert["percent"], alert["budget"]))


def _named(work: UnitOfWork, project: str, text: str) -> Budget:
    scope, name = budgets.split_scope(text)
    if scope == TASK:
        name = task_named(work, project, name).id
    found = kept_rows(work, project, (budget_id(scope, name),))
    if not found or (scope == TENANT and work.principal.projects):
        raise NotFound(f"no budget {text[:80]!r} in project {project}", "`budget list` lists the budgets")
    return found[0]


# --- projection ---------------------------------------------------------------------------------------------


def projection(work: UnitOfWork, project: str, *, scope: str = PROJECT) -> v.ProjectionView:
    budget = _named(work, project, scope)
    led = budgets.projected(budget, work.now)
    answer: Any = {
        "budget": budget.id,
        "currency": budget.currency,
        **_amounts(budget),
        "day": _window(budget, led.day),
        "week": _window(budget, led.week),
        "last_day": amount(budget, led.day.per_day),
        "last_week": amount(budget, led.week.per_day),
        "days_left": None if led.days_left is None else round(led.days_left, 4),
        **fields_of(led, "exhausted_at decided advice"),
        "open_tasks": _open_tasks(work, project, budget),
    }
    return answer  # type: ignore[no-any-return]


def _window(budget: Budget, window: budgets.Window) -> v.WindowView:
    return {"spent": amount(budget, window.spent), "seconds": window.length / inputs.SECOND}


def _open_tasks(work: UnitOfWork, project: str, budget: Budget) -> v.ShortfallView | None:
    """Tasks waiting to be claimed; held tasks have reserved already. The claiming agent is not known."""
    if budget.scope == AGENT:
        return None
    count = total = counted = 0
    for page in _waiting(work, project, budget):
        count += len(page)
        if counted + len(page) > MOST_ESTIMATED:
            total += len(page) * budget.default_estimate
            continue
        counted += len(page)
        briefs = work.get_many(Brief, page[0].project, [task.id for task in page])
        total += sum(_likely(work, budget, task, briefs[task.id]) for task in page)
    left = max(0, budgets.left(budget))
    return {
        "tasks": count,
        "estimate": amount(budget, total),
        "remaining": amount(budget, left),
        "shortfall": amount(budget, max(0, total - left)),
        "counted": counted,
    }


def _waiting(work: UnitOfWork, project: str, budget: Budget) -> Iterator[list[Task]]:
    if budget.scope == TASK:
        task = work.get(Task, project, budget.task or "")
        if task is not None:
            open_ = [t for t in (task, *descendants(work, task)) if t.state in WAITING]
            yield from ([open_] if open_ else [])
        return
    names = [p.id for p in work.find(Project, {})] if budget.scope == TENANT else [project]
    for name in names:
        for state in WAITING:
            where = {"project": name, "state": state}
            if budget.scope == DAG:
                where["dag"] = budget.id.partition(":")[2]
            last: tuple[str, str] | None = None
            while page := work.find(Task, where, after=last, limit=PAGE):
                yield page
                last = (page[-1].id, page[-1].id)
                if len(page) < PAGE:
                    break


def _likely(work: UnitOfWork, budget: Budget, task: Task, brief: Brief) -> int:
    from tenure.engine.budgets.task_caps import cap_of

    estimate = estimate_of(work, task, brief)
    if budget.currency == budgets.TOKENS:
        return estimate.tokens or budget.default_estimate
    return cap_of(brief) or estimate.cost or budget.default_estimate


def headroom(work: UnitOfWork, project: str, agent: str, task: str | None = None) -> v.HeadroomView:
    """A check before starting a process that will claim: no money, no process."""
    from tenure.engine.budgets.unaffordable import closed

    settings = project_of(work, project)
    scopes = [scope for scope in (TENANT, PROJECT, AGENT) if scope in settings.funded]
    if task is None:
        found = kept_rows(work, project, [budget_id(scope, agent) for scope in scopes])
    else:
        found = rows_of(work, settings, task_named(work, project, task), agent)
    short = closed(work, settings, agent)
    seen = [row for row in found if row.scope != TENANT or not work.principal.projects]
    left = {row.id: amount(row, budgets.headroom(row, work.now)) for row in seen}
    answer: v.HeadroomView = {
        "ok": short is None,
        "budgets": [{"budget": row.id, "currency": row.currency, "headroom": left[row.id]} for row in seen],
    }
    if short is not None:
        answer |= {"reason": reason(work, short), "recommendation": recommendation(work, short)}
        if short.retry_at is not None:
            answer |= {"retry_at": short.retry_at, "retry_in": work.seconds_to(short.retry_at) or 0.0}
    return answer


READS: Reads = {
    q.Budgets: read_all,
    q.ShowBudget: seen,
    q.Alerts: alerts,
    q.ShowProjection: projection,
    q.Headroom: headroom,
}
