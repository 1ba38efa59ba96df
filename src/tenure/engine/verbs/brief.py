"""What a holder learns with its answers: what it should do, and that the description of its task has changed.

`directive` is the one source: of the answers of a holder's commands, of heartbeats, and of the news of an agent. While
`Task.unseen_since` is set, the holder has not seen the newest description: its signs of life return the directive
`changed` and the diff, and its result is not accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tenure.core import claims
from tenure.core.errors import InvalidInput
from tenure.core.outcomes import Outcome
from tenure.core.records import Agent, Brief, Project, Task, replace
from tenure.engine.reads import task_view
from tenure.engine.runtime.rows import brief_of, fields_of
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.verbs import agents

if TYPE_CHECKING:
    from tenure.core.views.team_views import DirectiveView

_HUNG = "no sign of progress past the estimated completion: report your progress, or your claim ends"
_PAUSE = "a person asks you to pause: stop, save a checkpoint and release it"
_STRONGEST = ("pause", "changed", "warn")  # where one answer is about several tasks


def directive(work: UnitOfWork, task: Task) -> dict[str, Any]:
    """For the answer to a holder: what it should do, in full, and the news of its task.

    That an operator has ended its agent goes before a warning, and behind what concerns the task itself. A task that
    hangs goes before a budget that is nearly used up.
    """
    wanted, text = task.wanted or "continue", {"warn": _HUNG, "pause": _PAUSE}.get(task.wanted or "")
    agent = work.get(Agent, task.project, task.agent) if task.agent else None
    if wanted != "pause" and agent is not None and agent.terminated_at is not None:
        wanted, text = agents.TERMINATED, f"{agents.ended_text(agent)}; finish this task and claim nothing more"
    if wanted == "continue" and (near := _nearly_used_up(work, task)):
        wanted, text = "warn", near
    return {"directive": wanted, "directive_text": text, **news(work, task)}


def _nearly_used_up(work: UnitOfWork, task: Task) -> str | None:
    project = work.get(Project, task.project, task.project)
    if project is None or not claims.is_held(task) or not (project.funded or task.capped):
        return None
    from tenure.engine.budgets.budget_guard import warning  # most projects have no budget; keeps startup fast

    return warning(work, project, task)


def directives(work: UnitOfWork, project: str, agent: str) -> list[DirectiveView]:
    """What the agent should do about each task that it holds; nothing about those with which it goes on."""
    found: list[DirectiveView] = []
    for task in work.find(Task, {"project": project, "agent": agent}):
        if claims.is_held(task):
            wanted = directive(work, task)
            if wanted["directive"] not in ("continue", agents.TERMINATED):
                found.append(
                    {"directive": wanted["directive"], "text": wanted["directive_text"] or "", "task": task.key}
                )
    return found


def strongest(found: Sequence[DirectiveView]) -> dict[str, Any]:
    """The one of them that an answer about the agent names, with every other of its kind."""
    for wanted in _STRONGEST:
        texts = [f"{one['task']}: {one['text']}" for one in found if one["directive"] == wanted]
        if texts:
            return {"directive": wanted, "directive_text": "; ".join(texts)}
    return {"directive": "continue"}


def news(work: UnitOfWork, task: Task) -> dict[str, Any]:
    """What has changed since the holder last read it, or None. A pause takes precedence."""
    if task.unseen_since is None or not claims.is_held(task):
        return {}
    fields: dict[str, Any] = {"brief": task.brief_number, "diff": difference(work, task)}
    if task.wanted != "pause":
        text = f"the description was changed: read the difference, then acknowledge with --seen {task.brief_number}"
        fields |= {"directive": "changed", "directive_text": text}
    return fields


def difference(work: UnitOfWork, task: Task) -> str:
    """A unified diff from the description that the holder read to the current one."""
    import difflib  # rarely needed; keeps startup fast

    brief = brief_of(work, task)
    old, new = (str(task_view.unpacked(work, task.project, text) or "") for text in (brief.seen, brief.description))
    names = (f"description {task.unseen_since}", f"description {task.brief_number}")
    return "\n".join(difflib.unified_diff(old.splitlines(), new.splitlines(), *names, lineterm=""))


def acknowledged(work: UnitOfWork, task: Task, seen: int | None) -> Task:
    """The task after its holder has acknowledged the description up to that number."""
    if seen is None:
        return task
    if not 1 <= seen <= task.brief_number:
        raise InvalidInput(
            f"seen must be from 1 to {task.brief_number}, the current description of {task.key} (got {seen})",
            "read the answer's `brief`",
        )
    if task.unseen_since is None or seen < task.brief_number:
        return task
    brief = replace(brief_of(work, task), seen=None)
    return work.record(
        "task.change_seen", brief, task=replace(task, unseen_since=None), details={"brief": task.brief_number}
    )


def unseen(work: UnitOfWork, task: Task) -> Outcome | None:
    """The refusal of a result made for an older description; the claim stays."""
    if task.unseen_since is None or not claims.is_held(task):
        return None
    number = task.brief_number
    message = f"{task.key}: its description has changed since you last read it; the current number is {number}"
    return Outcome(
        outcome="CHANGED",
        work_lost=False,
        current_generation=task.generation,
        **fields_of(task, "state generation lease_until"),
        **news(work, task),
        message=message,
        hint=f"read the diff, do what it asks for, then submit with --seen {number}",
    )


def described(task: Task, before: Brief, after: Brief) -> tuple[Task, Brief]:
    """Both rows with the new description's number, and what the holder has not seen of it."""
    if after.description == before.description:
        return task, after
    number = task.brief_number + 1
    if not claims.is_held(task):
        return replace(task, brief_number=number), replace(after, seen=None)
    if task.unseen_since is None:
        return replace(task, brief_number=number, unseen_since=task.brief_number), replace(
            after, seen=before.description
        )
    if after.description == after.seen:  # restored to what the holder has read
        return replace(task, brief_number=number, unseen_since=None), replace(after, seen=None)
    return replace(task, brief_number=number), after
