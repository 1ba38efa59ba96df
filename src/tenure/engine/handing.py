"""What is handed out with a task: its view, its inputs, its last checkpoint; and large values kept apart."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec

from tenure.core import lifecycle
from tenure.core.bodies import REF, is_reference
from tenure.core.errors import Ambiguous
from tenure.core.graph import is_met
from tenure.core.priority import tier_of
from tenure.core.records import Body, Brief, Checkpoint, Edge, LastError, Result, Task, replace
from tenure.engine.naming import find_task
from tenure.engine.work import Work

if TYPE_CHECKING:
    from tenure.core import views as v

INLINE = 4 * 1024  # a larger value is a row of its own, named by its hash
MOST_INPUTS = 256 * 1024


def packed(work: Work, project: str, value: Any) -> Any:
    """The value as a row may keep it: itself, or a reference to a body where it is large or looks like one."""
    encoded = msgspec.json.encode(value)
    if len(encoded) <= INLINE and not is_reference(value):
        return value
    import hashlib  # a fifth of what a bare start costs, and seldom needed

    name = hashlib.sha256(encoded).hexdigest()
    kept = work.get(Body, project, name)
    if kept is None:
        work.put(Body(project=project, id=name, content=encoded))
    else:
        work.put(replace(kept, uses=kept.uses + 1))
    return {REF: name}


def unpacked(work: Work, project: str, value: Any) -> Any:
    if is_reference(value):
        body = work.get(Body, project, str(value[REF]))
        return msgspec.json.decode(body.content) if body else None
    return value


SHOWN = (
    "id", "key", "ref", "track", "type", "state", "dag", "parent", "run", "generation", "attempts", "max_attempts",
    "priority", "tags", "agent", "session", "claimed_at", "lease_until", "percent", "step", "reason", "answers",
    "retry_at",
    "deadline", "not_before", "offer_to", "offer_until", "work_product", "unmet", "created_by", "created_at",
    "updated_at", "ready_at", "started_at", "completed_at", "failed_at", "dead_lettered_at", "archived_at", "version",
)  # fmt: skip


_shown_of = attrgetter(*SHOWN)


_wanted_of = attrgetter("title", "description", "spec", "metadata", "constraints", "output", "touches")


def task_view(work: Work, task: Task, brief: Brief) -> v.TaskView:
    """The task as people and programs see it: both rows in one, unset fields left out."""
    title, description, spec, *others = _wanted_of(brief)
    if brief.description:
        description = unpacked(work, task.project, description)
    if brief.spec:
        spec = unpacked(work, task.project, spec)
    return view_of(_shown_of(task), (title, description, spec, *others), task.last_error)


def view_of(shown: Iterable[Any], wanted: Iterable[Any], last_error: LastError | None) -> v.TaskView:
    """The same from values: those of SHOWN; and title, description, spec and so on, in the brief's order of them."""
    title, description, spec, *others = wanted
    view: Any = {"title": title}
    view |= {name: value for name, value in zip(SHOWN, shown, strict=True) if value is not None and value != ()}
    view["tier"] = tier_of(view["priority"])
    if description:
        view["description"] = description
    if spec:
        view["spec"] = spec
    for name, value in zip(("metadata", "constraints", "output", "touches"), others, strict=True):
        if value:
            view[name] = value
    if last_error is not None:
        view["last_error"] = msgspec.structs.asdict(last_error)
    return view  # type: ignore[no-any-return]


def dependencies(work: Work, task: Task) -> list[tuple[Edge, Task]]:
    if not task.waits_on:
        return []
    edges = work.find(Edge, {"project": task.project, "task": task.id})
    tasks = work.get_many(Task, task.project, [e.needs for e in edges])
    return [(e, tasks[e.needs]) for e in edges if e.needs in tasks]


def waits_for(work: Work, task: Task) -> tuple[str, ...]:
    """Keys of the dependencies that hold the task back."""
    return tuple(sorted(t.key for e, t in dependencies(work, task) if not is_met(e, t.state)))


def accepted_result(work: Work, task: Task) -> Result | None:
    where = {"project": task.project, "task": task.id, "run": task.run, "accepted": True}
    found = work.find(Result, where, limit=1)
    return found[0] if found else None


def inputs_of(work: Work, task: Task, brief: Brief) -> dict[str, Any]:
    """Outputs, and failures, of what the task depended on and refers to; beyond 256 KB by reference only."""
    wanted = {t.id: t for _, t in dependencies(work, task)}
    spec = unpacked(work, task.project, brief.spec)
    for ref in spec.get("context_refs", ()):
        if ref.startswith("task:") and ref.endswith(":output"):
            try:
                named = find_task(work, task.project, ref[len("task:") : -len(":output")])
            except Ambiguous:
                continue  # as one that is unknown: no reason to keep everybody from the claim
            if named is not None:
                wanted[named.id] = named
    handed: dict[str, Any] = {}
    size = 0
    for source in sorted(wanted.values(), key=lambda t: t.key):
        entry: dict[str, Any] = {"state": source.state}
        if source.state == lifecycle.COMPLETED:
            result = accepted_result(work, source)
            if result is not None:
                entry |= {"summary": result.summary, "work_product": result.work_product}
                size += result.size
                if size <= MOST_INPUTS:
                    entry["data"] = unpacked(work, task.project, result.data)
                else:
                    entry["data_ref"] = result.id
        elif source.last_error is not None:
            entry["error"] = msgspec.structs.asdict(source.last_error)
        handed[source.key] = entry
    return handed


def handed_checkpoint(work: Work, task: Task) -> v.CheckpointView | None:
    """The checkpoint that a new holder is given."""
    if task.generation <= 1 and not task.answerable:
        return None  # nobody before this claim could have left one
    return checkpoint_of(work, task)


def checkpoint_of(work: Work, task: Task) -> v.CheckpointView | None:
    """The last checkpoint, be it the present holder's own."""
    kept = work.get(Checkpoint, task.project, task.id)
    if kept is None:
        return None
    return {
        "data": unpacked(work, task.project, kept.data), "generation": kept.generation, "agent": kept.agent,
        "at": kept.at
    }  # fmt: skip
