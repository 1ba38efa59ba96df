"""Tasks and their edges: add, link, unlink, publish, spawn, wait."""

from __future__ import annotations

from typing import Any

from tenure.core import claims, commands, graph, ids, inputs, lifecycle, limits, moves
from tenure.core.errors import Cycle, InvalidInput, NotFound, TooLarge
from tenure.core.outcomes import Outcome
from tenure.core.records import Edge, Row, Task, replace
from tenure.engine.reads import task_view
from tenure.engine.runtime.effects import spread
from tenure.engine.runtime.rows import (
    brief_of,
    current,
    current_claim,
    fields_of,
    project_of,
    task_named,
    tasks_by_idempotency,
)
from tenure.engine.runtime.unit_of_work import Handlers, UnitOfWork
from tenure.engine.verbs.agents import sign_of_life
from tenure.engine.verbs.create import (
    KEYS_PER_QUERY,
    Builder,
    check_may_wait,
    connect,
    lower_height,
    new_edge,
    path_between,
    raise_height,
    relink,
)
from tenure.engine.verbs.holder_verbs import Hold, done_before, judged, keep_worked


def add(work: UnitOfWork, cmd: commands.Add) -> Outcome:
    project = project_of(work, cmd.project)
    if cmd.task.idempotency_key is not None:
        found = tasks_by_idempotency(work, cmd.project, cmd.task.idempotency_key)
        if found:
            return Outcome(outcome="EXISTS", again=True, **_shown(work, found[0]))
    inputs.check_deadline(cmd.task.deadline, work.now)
    if work.principal.role == "agent":
        sign_of_life(work, cmd.project, work.principal.agent)
    (task,) = Builder(work, project, work.principal.name).build((cmd.task,))
    return Outcome(
        outcome="CREATED",
        command_id=work.command_id,
        message=f"{task.key} is {lifecycle.spoken(task.state)}",
        **_shown(work, task),
    )


def add_many(work: UnitOfWork, cmd: commands.AddMany) -> Outcome:
    """The tasks in the order of the command; one whose idempotency key has a task already is that task."""
    if not 1 <= len(cmd.tasks) <= limits.ADDED_AT_ONCE:
        raise TooLarge(f"a batch must have from 1 to {limits.ADDED_AT_ONCE} tasks (got {len(cmd.tasks)})", "split it")
    project = project_of(work, cmd.project)
    keys = [new.idempotency_key for new in cmd.tasks if new.idempotency_key is not None]
    there: dict[str | None, Task] = {}
    for start in range(0, len(keys), KEYS_PER_QUERY):
        found = tasks_by_idempotency(work, cmd.project, tuple(keys[start : start + KEYS_PER_QUERY]))
        there |= {task.idempotency_key: task for task in found}
    new_tasks = [new for new in cmd.tasks if new.idempotency_key not in there]
    made = iter(Builder(work, project, work.principal.name).build(new_tasks))
    entries = []
    for new in cmd.tasks:
        task = there.get(new.idempotency_key)
        title = new.title if task is None else brief_of(work, task).title
        task = next(made) if task is None else task
        entries.append({"id": task.id, "key": task.key, "ref": task.ref, "state": task.state, "title": title})
    code = "CREATED" if new_tasks else "EXISTS"
    return Outcome(
        outcome=code, again=not new_tasks, command_id=work.command_id if new_tasks else None,
        tasks=tuple(entries), message=f"{len(new_tasks)} tasks were created, {len(entries) - len(new_tasks)} existed",
    )  # fmt: skip


def _shown(work: UnitOfWork, task: Task) -> dict[str, Any]:
    return {"task": task_view.task_view(work, task, brief_of(work, task)), "state": task.state, "version": task.version}


def link(work: UnitOfWork, cmd: commands.Link) -> Outcome:
    inputs.check_choice(cmd.on_failure, graph.ON_FAILURE, "on_failure")
    task = task_named(work, cmd.project, cmd.task)
    needs = task_named(work, cmd.project, cmd.needs)
    there = work.get(Edge, cmd.project, graph.edge_id(task.id, needs.id))
    if there is not None and there.on_failure == cmd.on_failure:
        return Outcome(outcome="UNCHANGED", state=task.state)
    check_may_wait(task)
    if there is not None:
        task = relink(work, task, needs, there, cmd.on_failure)
    else:
        edge = new_edge(cmd.project, task.id, needs.id, on_failure=cmd.on_failure)
        task = connect(work, task, needs, edge)
    return Outcome(outcome="UPDATED", state=task.state, version=task.version, command_id=work.command_id)


def unlink(work: UnitOfWork, cmd: commands.Unlink) -> Outcome:
    task = task_named(work, cmd.project, cmd.task)
    needs = task_named(work, cmd.project, cmd.needs)
    edge = work.get(Edge, cmd.project, graph.edge_id(task.id, needs.id))
    if edge is None:
        raise NotFound(f"{task.key} does not depend on {needs.key}")
    check_may_wait(task)
    kept = disconnect(work, task, edge)
    return Outcome(outcome="UPDATED", state=kept.state, version=kept.version, command_id=work.command_id)


def disconnect(work: UnitOfWork, task: Task, edge: Edge) -> Task:
    """Remove one edge; the dependent moves to the state that follows."""
    needs = work.require(Task, task.project, edge.needs)
    work.put(replace(needs, dependents=needs.dependents - 1))
    free = replace(task, waits_on=task.waits_on - 1, unmet=task.unmet - (not graph.is_met(edge, needs.state)))
    if task.state != lifecycle.CREATED:
        free = moves.waiting(free, work.now)
    details = {"needs": needs.key, "on_failure": edge.on_failure}
    kept = work.record("task.unlinked", task=free, removed=[edge], details=details)
    if kept.state == task.state:
        work.moved.append((task, kept))  # the count may change its part in the dag
    lower_height(work, needs)
    spread(work)
    return current(work, kept)


def publish(work: UnitOfWork, cmd: commands.Publish) -> Outcome:
    if (cmd.task is None) == (cmd.dag is None):
        raise InvalidInput("publish needs a task or a dag, and not both")
    if cmd.task is not None:
        drafts = [task_named(work, cmd.project, cmd.task)]
    else:
        if not work.find(Task, {"project": cmd.project, "dag": cmd.dag}, limit=1):
            raise NotFound(f"no dag {(cmd.dag or '')[:80]!r} in project {cmd.project}")
        drafts = work.find(Task, {"project": cmd.project, "dag": cmd.dag, "state": lifecycle.CREATED})
    published = []
    for draft in drafts:
        if draft.state == lifecycle.CREATED:
            work.record("task.published", task=moves.waiting(draft, work.now))
            published.append(draft.key)
    spread(work)
    if not published:
        return Outcome(outcome="UNCHANGED", changed=())
    return Outcome(outcome="UPDATED", changed=tuple(published), command_id=work.command_id)


# --- growth at run time -------------------------------------------------------------------------------------


def spawn(work: UnitOfWork, cmd: commands.Spawn) -> Outcome:
    """Subtasks of the held task, keyed by (parent, run, local name): existing ones are returned, not created again."""
    if not cmd.tasks:
        raise InvalidInput("spawn needs at least one task")
    named = [n if n.name else replace(n, name=ids.slug_of(n.title)) for n in cmd.tasks]
    hold = judged(work, cmd.project, cmd.receipt)
    existing = {t.local_name: t for t in spawned(work, hold.task)}
    if hold.refusal is not None:
        is_repeat = cmd.wait and all(n.name in existing for n in named)
        return (done_before(hold, "WAITING") if is_repeat else None) or hold.refusal
    parent = hold.task
    if any(n.parent is not None for n in named):
        raise InvalidInput("spawn always uses the held task as parent; leave out `parent`")
    missing = [n for n in named if n.name not in existing]
    made = {}
    if missing:
        denial = _without_money(work, hold)
        if denial is not None:
            return denial
        builder = Builder(work, hold.project, f"agent:{hold.claim.agent}", spawned_in=parent.run)
        made = {t.local_name: t for t in builder.build(missing, parent=parent, blocks_parent=False)}
    if made and parent.capped:
        from tenure.engine.budgets.budget_guard import lend  # few tasks have a cost cap

        lend(work, hold.project, parent, hold.claim, list(made.values()))
    tasks = [made[n.name] if n.name in made else existing[n.name] for n in named]
    children = tuple(task_view.task_view(work, t, brief_of(work, t)) for t in tasks)
    if cmd.wait:
        waited = _wait(work, current(work, parent))
        return replace(waited, tasks=children)
    task = keep_worked(work, hold)
    return Outcome(outcome="OK", tasks=children, **fields_of(task, "state generation lease_until"))


def _without_money(work: UnitOfWork, hold: Hold) -> Outcome | None:
    """A denial where no budget is left for subtasks, else None."""
    if not (hold.project.funded or hold.task.capped):
        return None
    from tenure.engine.budgets.budget_guard import no_headroom  # most projects have no budget

    return no_headroom(work, hold.project, hold.task, hold.claim)


def spawned(work: UnitOfWork, parent: Task) -> list[Task]:
    """The subtasks that this run of the parent has spawned."""
    children = work.find(Task, {"project": parent.project, "parent": parent.id, "parent_run": parent.run})
    return [t for t in children if t.local_name is not None]


def wait(work: UnitOfWork, cmd: commands.Wait) -> Outcome:
    hold = judged(work, cmd.project, cmd.receipt)
    if hold.refusal is not None:
        return done_before(hold, "WAITING") or hold.refusal
    return _wait(work, hold.task)


def _wait(work: UnitOfWork, parent: Task) -> Outcome:
    """The holder releases its claim until its subtasks have ended, in any way."""
    claim = current_claim(work, parent)
    edges: list[Row] = []
    unmet = 0
    for child in spawned(work, parent):
        if work.get(Edge, parent.project, graph.edge_id(parent.id, child.id)) is not None:
            continue
        path = path_between(work, parent.project, child, parent) if child.waits_on else None
        if path is not None:
            raise Cycle("waiting would create a cycle: " + " → ".join([parent.key, *path]))
        edge = new_edge(parent.project, parent.id, child.id, on_failure="ignore", subtask=True)
        edges.append(edge)
        unmet += not graph.is_met(edge, child.state)
        as_it_is = current(work, child)  # the previous link may have raised it
        work.put(replace(as_it_is, dependents=as_it_is.dependents + 1))
        raise_height(work, current(work, child), parent.height + 1)
    waiting = replace(parent, waits_on=parent.waits_on + len(edges), unmet=parent.unmet + unmet)
    free, over = claims.ended(waiting, claim, lifecycle.WAITING_BY, work.now)
    details = {"waits_for": task_view.waits_for(work, free)}
    kept = work.record("task.waiting", over, *edges, task=free, holder=parent, details=details)
    spread(work)
    task = current(work, kept)
    waits, message = task_view.waits_for(work, task) or None, f"{task.key} is {lifecycle.spoken(task.state)}"
    return Outcome(outcome="OK", state=task.state, generation=over.generation, waits_for=waits, message=message)


HANDLERS: Handlers = {
    commands.Add: add,
    commands.AddMany: add_many,
    commands.Link: link,
    commands.Unlink: unlink,
    commands.Publish: publish,
    commands.Spawn: spawn,
    commands.Wait: wait,
}
