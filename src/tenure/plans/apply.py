"""Applies a plan to a project: tracks and tasks in one transaction, or nothing.

Applied again, a plan changes tasks that nobody has claimed yet and reports the others; the engine does that. A relative
time (`deadline: 3d`) counts from the creation of its task: applied again, it stays the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tenure.client import Client
from tenure.core.commands import NewTask
from tenure.core.errors import InvalidInput
from tenure.core.outcomes import Outcome
from tenure.core.records import replace
from tenure.plans.check import own_plans
from tenure.plans.files import PlanFile, name_for


def apply(
    client: Client, plan: PlanFile, *, name: str | None = None, prune: bool = False, dry_run: bool = False
) -> Outcome:
    """Create or update the plan's tasks. `missing`, `left` and `changed` of the outcome report the differences.

    A plan without a name gets its file's. A refused plan leaves no track and no task; a dry run answers in the same way
    and stores nothing.
    """
    named = name or plan.name or name_for(plan.path)
    if named is None:
        raise InvalidInput("the plan has no name, so it could not be recognised later", "add `name:` to it")
    tasks = settled(plan, lambda: own_plans(client, named))
    return client.plan(
        tasks, title=plan.title, name=named, prune=prune, tracks=plan.tracks, dry_run=dry_run, on_end=plan.on_end,
        budget=plan.budget,
    )  # fmt: skip


def settled(plan: PlanFile, stored: Callable[[], Iterable[Mapping[str, Any]]]) -> list[NewTask]:
    """The tasks; a relative time of a task that exists already is the stored one, in `stored`: groups of tasks."""
    if not any(plan.relative):
        return list(plan.tasks)
    made = {str(task["name"]): task for group in stored() for task in group["tasks"]}
    settled = []
    for task, relative in zip(plan.tasks, plan.relative, strict=True):
        there: Any = made.get(task.name or task.key or "") if relative else None
        settled.append(replace(task, **{field: there["fields"][field] for field in relative}) if there else task)
    return settled
