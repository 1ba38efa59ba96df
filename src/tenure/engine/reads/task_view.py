"""What a claim returns with a task: its view, its inputs, its last checkpoint; and large values stored separately."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec

from tenure.core import lifecycle, limits
from tenure.core.errors import Ambiguous
from tenure.core.graph import is_met
from tenure.core.lifecycle import cause_view
from tenure.core.priority import tier_of
from tenure.core.records import Artifact, Body, Brief, Checkpoint, Edge, LastError, Result, Task, replace
from tenure.core.task_records import REF, is_reference
from tenure.engine.runtime.rows import fields_of, find_task
from tenure.engine.runtime.unit_of_work import UnitOfWork

if TYPE_CHECKING:
    from tenure.core import views as v

INLINE = limits.INLINE_BYTES
MOST_INPUTS = limits.INPUT_BYTES


def packed(work: UnitOfWork, project: str, value: Any, encoded: bytes | None = None) -> Any:
    """The value as stored in a row: itself, or a reference to a body where it is large or could be taken for one."""
    if encoded is None:
        encoded = msgspec.json.encode(value)
    if len(encoded) <= INLINE and not is_reference(value):
        return value
    import hashlib  # a fifth of the startup time, and rarely needed

    name = hashlib.sha256(encoded).hexdigest()
    kept = work.get(Body, project, name)
    if kept is None:
        work.put(Body(project=project, id=name, content=encoded))
    else:
        work.put(replace(kept, uses=kept.uses + 1))
    return {REF: name}


def unpacked(work: UnitOfWork, project: str, value: Any) -> Any:
    if is_reference(value):
        body = work.get(Body, project, str(value[REF]))
        return msgspec.json.decode(body.content) if body else None
    return value


SHOWN = (
    "id", "key", "ref", "track", "type", "state", "dag", "parent", "run", "generation", "attempts", "max_attempts",
    "priority", "tags", "agent", "session", "claimed_at", "lease_until", "percent", "step", "reason", "pauses",
    "cancelled", "answers", "retry_at", "deadline", "not_before", "offer_to", "offer_until", "offer_term",
    "work_product", "unmet", "created_by", "created_at",
    "updated_at", "ready_at", "started_at", "completed_at", "failed_at", "dead_lettered_at", "archived_at", "version",
)  # fmt: skip


OF_BRIEF = ("title", "description", "spec", "metadata", "constraints", "output", "touches")
FIELDS = (*SHOWN, "tier", *OF_BRIEF, "last_error", "expected_at")  # of a task's view
_shown_of = attrgetter(*SHOWN)
_wanted_of = attrgetter(*OF_BRIEF)


def task_view(work: UnitOfWork, task: Task, brief: Brief) -> v.TaskView:
    """The task as people and programs see it: both rows in one, unset fields left out."""
    title, description, spec, *others = _wanted_of(brief)
    if brief.description:
        description = unpacked(work, task.project, description)
    if brief.spec:
        spec = unpacked(work, task.project, spec)
    if task.sealed:
        from tenure.core.task_secrets import masked  # most tasks have none; keeps startup fast

        spec, others = masked(spec), [masked(value) for value in others]
    view = view_of(_shown_of(task), (title, description, spec, *others), task.last_error)
    if task.done_by is not None:  # never of a plain task
        view["expected_at"] = task.done_by
    return view


def view_of(shown: Iterable[Any], wanted: Iterable[Any], last_error: LastError | None) -> v.TaskView:
    """The same from values: those of SHOWN; and the brief's fields (title, description, spec, …) in their order."""
    title, description, spec, *others = wanted
    view: Any = {"title": title}
    view |= {
        name: value for name, value in zip(SHOWN, shown, strict=True) if value or (value is not None and value != ())
    }
    if "pauses" in view:
        view["pauses"] = tuple(cause_view(pause) for pause in view["pauses"])
    if "cancelled" in view:
        view["cancelled"] = cause_view(view["cancelled"])
    view["tier"] = tier_of(view["priority"])
    if description:
        view["description"] = description
    if spec:
        view["spec"] = spec
    for name, value in zip(OF_BRIEF[3:], others, strict=True):
        if value:
            view[name] = value
    if last_error is not None:
        view["last_error"] = msgspec.structs.asdict(last_error)
    return view  # type: ignore[no-any-return]


def dependencies(work: UnitOfWork, task: Task) -> list[tuple[Edge, Task]]:
    if not task.waits_on:
        return []
    edges = work.find(Edge, {"project": task.project, "task": task.id})
    tasks = work.get_many(Task, task.project, [e.needs for e in edges])
    return [(e, tasks[e.needs]) for e in edges if e.needs in tasks]


def dependents_of(work: UnitOfWork, task: Task) -> list[Task]:
    """The unfinished tasks that wait for it."""
    if not task.dependents:
        return []
    edges = work.find(Edge, {"project": task.project, "needs": task.id})
    waiting = work.get_many(Task, task.project, [edge.task for edge in edges])
    return [other for other in waiting.values() if other.state not in lifecycle.FINISHED]


def waits_for(work: UnitOfWork, task: Task) -> tuple[str, ...]:
    """Keys of the unmet dependencies."""
    return tuple(sorted(t.key for e, t in dependencies(work, task) if not is_met(e, t.state)))


def accepted_result(work: UnitOfWork, task: Task) -> Result | None:
    where = {"project": task.project, "task": task.id, "run": task.run, "accepted": True}
    found = work.find(Result, where, limit=1)
    return found[0] if found else None


class Inputs(msgspec.Struct, frozen=True):
    """What a task gets from others: the output of each by key, and the `context_refs` that name nothing."""

    outputs: dict[str, Any]
    missing: tuple[str, ...] = ()


NO_INPUTS = Inputs({})


def inputs_of(work: UnitOfWork, task: Task, brief: Brief) -> Inputs:
    """Outputs and failures of its dependencies and references; beyond 256 KB by reference only."""
    if not (task.waits_on or brief.spec):
        return NO_INPUTS
    wanted = _Wanted(work, {t.id: t for _, t in dependencies(work, task)})
    spec = unpacked(work, task.project, brief.spec)
    for ref in spec.get("context_refs", ()):
        wanted.add(task.project, ref)
    handed: dict[str, Any] = {}
    size = 0
    for source in sorted(wanted.tasks.values(), key=lambda t: t.key):
        entry: dict[str, Any] = {"state": source.state}
        rows = wanted.artifacts.get(source.id, [])
        if source.state == lifecycle.COMPLETED and source.id in wanted.outputs:
            result = accepted_result(work, source)
            if result is not None:
                entry |= {"agent": result.agent, "summary": result.summary, "work_product": result.work_product}
                size += result.size
                if size <= MOST_INPUTS:
                    entry["data"] = unpacked(work, task.project, result.data)
                else:
                    entry["data_ref"] = result.id
                if result.artifacts:
                    rows = [*work.get_many(Artifact, task.project, result.artifacts).values(), *rows]
        elif source.last_error is not None:
            entry["error"] = msgspec.structs.asdict(source.last_error)
        if rows:
            size = _list_artifacts(entry, source, rows, size)
        handed[source.key] = entry
    return Inputs(handed, tuple(wanted.missing))


def _list_artifacts(entry: dict[str, Any], source: Task, rows: Iterable[Artifact], size: int) -> int:
    """Add an artifact's description; its bytes are fetched on request. Returns the size so far."""
    from tenure.engine.artifacts.artifact_verbs import view  # most tasks have none; keeps startup fast

    listed = entry["artifacts"] = []
    for row in {row.id: row for row in rows}.values():
        seen = view(row, source)
        size += len(msgspec.json.encode(seen))
        if size > MOST_INPUTS:
            entry["artifacts_left_out"] = entry.get("artifacts_left_out", 0) + 1
        else:
            listed.append(seen)
    return size


class _Wanted:
    """What the claim carries: outputs of tasks, and single artifacts of others."""

    def __init__(self, work: UnitOfWork, tasks: dict[str, Task]) -> None:
        self.tasks = tasks
        self.outputs = set(tasks)  # the others are needed only for an artifact
        self.artifacts: dict[str, list[Artifact]] = {}
        self.missing: list[str] = []
        self._work = work

    def add(self, project: str, ref: str) -> None:
        """What a reference names; a dangling reference must not block the claim."""
        if not (self._add_output(project, ref) or self._add_artifact(project, ref)):
            self.missing.append(ref)

    def _add_output(self, project: str, ref: str) -> bool:
        if not (ref.startswith("task:") and ref.endswith(":output")):
            return False
        task = self._task(project, ref[len("task:") : -len(":output")])
        if task is not None:
            self.tasks[task.id] = task
            self.outputs.add(task.id)
        return task is not None

    def _add_artifact(self, project: str, ref: str) -> bool:
        if not ref.startswith("artifact:"):
            return False
        from tenure.core.artifacts import named_by
        from tenure.engine.artifacts.artifact_verbs import of_task

        named = named_by(ref)
        task = self._task(project, named.task) if named is not None else None
        if named is None or task is None:
            return False
        row = next((row for row in of_task(self._work, task) if row.name == named.name), None)
        if row is not None:
            self.tasks[task.id] = task
            self.artifacts.setdefault(task.id, []).append(row)
        return row is not None

    def _task(self, project: str, name: str) -> Task | None:
        try:
            return find_task(self._work, project, name)
        except Ambiguous:
            return None


def earlier_artifacts(work: UnitOfWork, task: Task) -> tuple[v.ArtifactView, ...] | None:
    """Artifacts of earlier claims of this run, the last of each name: for the next holder."""
    if not task.artifacts:
        return None
    from tenure.core.artifacts import newest
    from tenure.engine.artifacts.artifact_verbs import of_task, view

    rows = [row for row in of_task(work, task) if row.generation < task.generation]
    return tuple(view(row, task) for row in newest(rows, task.run)) or None


def checkpoint_for_holder(work: UnitOfWork, task: Task) -> v.CheckpointView | None:
    """The checkpoint that a new holder gets."""
    if task.generation <= 1 and not task.late_submit_open:
        return None  # no earlier claim could have saved one
    return checkpoint_of(work, task)


def checkpoint_of(work: UnitOfWork, task: Task) -> v.CheckpointView | None:
    """The last checkpoint, even the current holder's own."""
    kept = work.get(Checkpoint, task.project, task.id)
    if kept is None:
        return None
    answer: v.CheckpointView = fields_of(kept, "generation agent at") | {
        "data": unpacked(work, task.project, kept.data)
    }
    return answer
