"""Plans: a dag created in one atomic operation, and the same plan applied again.

A task of a named plan is identified by its local name, its key, or the slug of its title, in that order; that identity
is its idempotency key (`plan:NAME:IDENTITY`). Applied again: new tasks are created; changed tasks are edited if they
were never claimed, and otherwise only reported; missing tasks are reported, or with `prune` cancelled if they were
never claimed. Tracks in the plan are created with it, or not at all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import msgspec

from tenure.core import commands, ids, inputs, lifecycle, priority, roles
from tenure.core.commands import Dependency, NewTask, Template
from tenure.core.errors import InvalidInput
from tenure.core.filters import Prefix
from tenure.core.lifecycle import PRUNE, Cancelled
from tenure.core.outcomes import Outcome
from tenure.core.records import Budget, Dag, Edge, Project, Task, Track, replace
from tenure.core.task_defaults import filled
from tenure.engine.reads import task_view
from tenure.engine.runtime.effects import cancel_task, spread
from tenure.engine.runtime.rows import brief_of, current, project_of, task_named, tasks_by_idempotency
from tenure.engine.runtime.unit_of_work import Handlers, Refused, UnitOfWork
from tenure.engine.verbs.create import Builder, check_plan_size, connect, new_edge
from tenure.engine.verbs.edit import apply_changes, current_value
from tenure.engine.verbs.graph import disconnect

_PRUNED = "it is no longer in the plan"

_COMPARED = tuple(name for name in inputs.EDITABLE if name != "boost")


def plan(work: UnitOfWork, cmd: commands.Plan) -> Outcome:
    check_plan_size(len(cmd.tasks))
    project = project_of(work, cmd.project)
    inputs.check_text(cmd.title, "title", 1000)
    tracks = _define_tracks(work, cmd, project)
    on_end = _checked_ends(work, project, cmd.on_end) if cmd.on_end else {}
    if cmd.name is None:
        dag = _new_dag(work, cmd, on_end)
        made = Builder(work, project, work.principal.name).build(cmd.tasks, dag=dag)
        _set_budget(work, cmd, dag)
        outcome = _answer(work, "CREATED", made, (), (), (), tracks)
    else:
        inputs.check_plan_name(cmd.name)
        outcome = _apply(work, cmd, project, tracks, on_end)
    if cmd.dry_run:
        raise Refused(replace(outcome, command_id=None, message=f"nothing was stored; it would be: {outcome.message}"))
    return outcome


class Tracks(NamedTuple):
    """Codes of the tracks that a plan created, and of those that existed under another name and keep it."""

    made: list[str]
    kept: list[str]


def _define_tracks(work: UnitOfWork, cmd: commands.Plan, project: Project) -> Tracks:
    tracks = Tracks([], [])
    for new in cmd.tracks:
        inputs.check_track(new.code, new.name, new.purpose)
        there = work.get(Track, cmd.project, new.code)
        if there is None:
            roles.check_role(
                work.principal,
                commands.DefineTrack(project=cmd.project, code=new.code, name=new.name, purpose=new.purpose),
                agents_may_operate=project.agents_may_operate,
            )
            track = Track(project=cmd.project, id=new.code, name=new.name, purpose=new.purpose)
            work.record("track.defined", track, project=cmd.project, details={"track": new.code})
            tracks.made.append(new.code)
        elif new.name not in (there.name, new.code):  # a track that the plan does not name has its code
            tracks.kept.append(new.code)
    return tracks


def _set_budget(work: UnitOfWork, cmd: commands.Plan, dag: Dag) -> bool:
    """Set the dag's budget from the plan; return whether it changed."""
    if cmd.budget is None:
        return False
    from tenure.core.budgets import DAG, USD, budget_id, parse_amount  # few plans have one; keeps startup fast
    from tenure.engine.budgets.budget_verbs import set_budget

    row = work.get(Budget, cmd.project, budget_id(DAG, dag.id))
    if row is not None and row.allocated == parse_amount(cmd.budget, USD, "budget") and row.currency == USD:
        return False
    asked = commands.SetBudget(project=cmd.project, scope=budget_id(DAG, dag.id), usd=cmd.budget)
    project = project_of(work, cmd.project)
    roles.check_role(work.principal, asked, agents_may_operate=project.agents_may_operate)
    return set_budget(work, asked).outcome != "UNCHANGED"


def _new_dag(work: UnitOfWork, cmd: commands.Plan, on_end: dict[str, Any]) -> Dag:
    dag = Dag(
        project=cmd.project,
        id=work.new_id("dag"),
        title=cmd.title or cmd.name or "",
        plan=cmd.name,
        created_by=work.principal.name,
        created_at=work.now,
    )
    dag = replace(dag, on_end=_sealed_ends(work, dag, on_end))
    work.record("dag.created", dag, project=cmd.project, details={"dag": dag.id, "title": dag.title, "plan": cmd.name})
    return dag


def _apply(work: UnitOfWork, cmd: commands.Plan, project: Project, tracks: Tracks, on_end: dict[str, Any]) -> Outcome:
    assert cmd.name is not None
    wanted: dict[str, NewTask] = {}
    for new in cmd.tasks:
        identity = f"plan:{cmd.name}:{new.name or new.key or ids.slug_of(new.title)}"
        if identity in wanted:
            raise InvalidInput(
                f"{new.title[:80]!r}: two tasks of the plan have the same identity",
                "give each a different name, key or title",
            )
        wanted[identity] = replace(new, idempotency_key=identity)
    there = {t.idempotency_key or "": t for t in tasks_by_idempotency(work, cmd.project, Prefix(f"plan:{cmd.name}:"))}
    dags = work.find(Dag, {"project": cmd.project, "plan": cmd.name}, limit=1)
    dag = _with_ends(work, dags[0], on_end) if dags else _new_dag(work, cmd, on_end)
    is_changed = bool(dags) and dag != dags[0]
    aliases = {n: there[i] for i, new in wanted.items() if i in there for n in (new.name, new.key) if n}
    rewired = _drop_edges(work, wanted, there, aliases)
    aliases = {name: current(work, task) for name, task in aliases.items()}
    builder = Builder(work, project, work.principal.name, aliases=aliases)
    missing = tuple(new for identity, new in wanted.items() if identity not in there)
    made = builder.build(missing, dag=dag) if missing else []
    names = {n: t for t, new in zip(made, missing, strict=True) for n in (new.name, new.key) if n} | aliases
    edited, left = [], []
    for identity, new in wanted.items():
        task = there.get(identity)
        if task is None:
            continue
        changes = _changes(work, current(work, task), new)
        added, removed = _rewiring(work, task, new, names)
        if not (changes or added or removed or identity in rewired):
            continue
        if not _is_editable(task):
            left.append(task.key)
            continue
        _edit(work, task, changes, added)
        edited.append(task.key)
    gone = []
    dropped = [current(work, task) for identity, task in there.items() if identity not in wanted]
    for task in [task for task in dropped if task.state not in lifecycle.FINISHED]:
        if not cmd.prune or task.generation:
            gone.append(task.key)
            continue
        if current(work, task).state not in lifecycle.FINISHED:  # an earlier one may have cancelled it with itself
            cancel_task(work, current(work, task), Cancelled(cause=PRUNE, reason=_PRUNED), _PRUNED)
            spread(work)
        edited.append(task.key)
    is_changed |= _set_budget(work, cmd, dag)
    is_changed |= bool(made or edited or tracks.made)
    code = "CREATED" if made and not there else "UPDATED" if is_changed else "UNCHANGED"
    return _answer(work, code, made, edited, left, gone, tracks)


def _answer(work: UnitOfWork, code: str, made: Any, edited: Any, left: Any, gone: Any, tracks: Tracks) -> Outcome:
    return Outcome(
        outcome=code,
        command_id=work.command_id if code != "UNCHANGED" else None,
        tasks=tuple(task_view.task_view(work, t, brief_of(work, t)) for t in made),
        changed=tuple(edited) or None,
        left=tuple(left) or None,
        missing=tuple(gone) or None,
        message=f"{len(made)} created, {len(edited)} changed"
        + (f", {len(left)} changed in the plan but already claimed: {', '.join(left[:5])}" if left else "")
        + (f", {len(gone)} no longer in the plan: {', '.join(gone[:5])}" if gone else "")
        + (f", tracks created: {', '.join(tracks.made)}" if tracks.made else "")
        + (f", tracks that keep their present name: {', '.join(tracks.kept)}" if tracks.kept else ""),
    )


def _is_editable(task: Task) -> bool:
    return not task.generation and task.state in (lifecycle.CREATED, lifecycle.PENDING, lifecycle.READY)


def _drop_edges(
    work: UnitOfWork, wanted: dict[str, NewTask], there: dict[str, Task], aliases: dict[str, Task]
) -> set[str]:
    """Remove the edges that the plan no longer has, of all tasks before the first is added: no false cycles.

    Returns the identities of the tasks that lost one.
    """
    to_be_made = {n for i, new in wanted.items() if i not in there for n in (new.name, new.key) if n}
    found = set()
    for identity, new in wanted.items():
        task = there.get(identity)
        if task is None or not _is_editable(task):
            continue
        _, removed = _rewiring(work, task, new, aliases, to_be_made)
        for edge in removed:
            disconnect(work, current(work, task), edge)
            found.add(identity)
    return found


def _changes(work: UnitOfWork, task: Task, new: NewTask) -> dict[str, Any]:
    """The fields that differ in the plan."""
    brief = brief_of(work, task)
    new = filled(new, task.project, work.context.task_defaults)
    changes = {}
    for name in _COMPARED:
        value: Any = inputs.check_retry(new.retry) if name == "retry" else getattr(new, name)
        comparable = priority.parse_priority(value) if name == "priority" else msgspec.to_builtins(value)
        known = msgspec.to_builtins(current_value(work, task, brief, name))
        if comparable != known and not (name in ("spec", "metadata") and is_same(comparable, known)):
            changes[name] = value
    return changes


def is_same(wanted: Any, known: Any) -> bool:
    """Whether two values differ in nothing but how their secrets are sealed."""
    from tenure.core.task_secrets import same  # few plans have secrets; keeps startup fast

    return same(wanted, known)


def _rewiring(
    work: UnitOfWork, task: Task, new: NewTask, names: dict[str, Task], to_be_made: Collection[str] = ()
) -> tuple[list[Edge], list[Edge]]:
    """The edges that the plan adds and removes; without those to tasks that are still to be made."""
    edges = {}
    for wanted in new.depends_on:
        dependency = Dependency(task=wanted) if isinstance(wanted, str) else wanted
        if dependency.task in to_be_made:
            continue
        needs = names.get(dependency.task) or task_named(work, task.project, dependency.task)
        edge = new_edge(task.project, task.id, needs.id, on_failure=dependency.on_failure)
        edges[edge.id] = edge
    have = {e.id: e for e in work.find(Edge, {"project": task.project, "task": task.id})}
    edges |= {i: e for i, e in have.items() if e.subtask}  # it waits for its subtasks in any case
    added = [e for i, e in edges.items() if have.get(i) != e]
    removed = [e for i, e in have.items() if edges.get(i) != e]
    return added, removed


def _edit(work: UnitOfWork, task: Task, changes: dict[str, Any], added: list[Edge]) -> None:
    if changes:
        edited, brief, old = apply_changes(work, current(work, task), changes)
        work.record("task.edited", brief, task=edited, details={"changes": list(changes), "before": old})
    for edge in added:
        needs = work.require(Task, task.project, edge.needs)
        connect(work, current(work, task), needs, edge)
    spread(work)


def _checked_ends(work: UnitOfWork, project: Project, on_end: Mapping[str, Template]) -> dict[str, Any]:
    """Templates for the end of the dag, as stored in it, each checked once; the project's log is read for them."""
    from tenure.core.templates import check_template, stored  # few plans have any
    from tenure.core.triggers import DAG_ENDS
    from tenure.engine.sources.template_tasks import rehearse
    from tenure.engine.sources.triggers import SAMPLE, listen

    for status, template in on_end.items():
        inputs.check_choice(status, tuple(DAG_ENDS.values()), "on_end")
        rehearse(work, project, check_template(template), SAMPLE, lambda _: None)
    listen(work, project.id)
    return {status: stored(template) for status, template in on_end.items()}


def _sealed_ends(work: UnitOfWork, dag: Dag, on_end: dict[str, Any]) -> dict[str, Any]:
    """The templates with their secrets sealed for the dag."""
    if not on_end:
        return on_end
    from tenure.core.triggers import owner_of_end  # as above
    from tenure.engine.secrets.sealed_rows import stored_template

    return {
        status: stored_template(work, dag.project, owner_of_end(dag.id, status), template, dag.on_end.get(status))
        for status, template in on_end.items()
    }


def _with_ends(work: UnitOfWork, dag: Dag, on_end: dict[str, Any]) -> Dag:
    """The dag with the templates of its current plan."""
    on_end = _sealed_ends(work, dag, on_end)
    if dag.on_end == on_end:
        return dag
    dag = replace(dag, on_end=on_end)
    work.record("dag.changed", dag, project=dag.project, details={"dag": dag.id, "on_end": sorted(on_end)})
    return dag


HANDLERS: Handlers = {commands.Plan: plan}
