"""Creating tasks: one, a whole plan, or a holder's subtasks, through one builder.

`Builder` checks everything first and then writes rows, so a plan is created whole or not at all. New tasks only point
at existing ones, so a cycle can close only among the new ones or through a parent that waits for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tenure.core import claims, graph, ids, inputs, lifecycle, moves, priority
from tenure.core.commands import Dependency, NewTask
from tenure.core.errors import Cycle, InvalidInput, LimitReached, TooLarge
from tenure.core.ids import has_number
from tenure.core.outcomes import Outcome
from tenure.core.records import Brief, Dag, Edge, Project, Row, Task, Track, replace
from tenure.core.task_defaults import filled
from tenure.core.task_records import is_reference
from tenure.engine.checks import evidence
from tenure.engine.reads import task_view
from tenure.engine.runtime.effects import cancel_task, cascade_of, spread
from tenure.engine.runtime.rows import (
    TRACKS_LISTED,
    current,
    fields_of,
    find_task,
    task_by_ref,
    task_named,
    tasks_by_idempotency,
)
from tenure.engine.runtime.unit_of_work import Refused, Repeated, UnitOfWork

KEYS_PER_QUERY = 500
LISTED = "`tenure list` shows the keys of tasks"


class Made(NamedTuple):
    """A task being created: the input, its row, and its dependencies."""

    new: NewTask
    task: Task
    edges: list[Edge]
    model: NewTask  # an earlier one, alike in everything but its names; else its own


class Builder:
    """`spawned_in` is the run of the parent whose holder creates its subtasks; their names are then their keys.

    `aliases` are names by which the new tasks may refer to existing ones.
    """

    def __init__(
        self,
        work: UnitOfWork,
        project: Project,
        created_by: str,
        *,
        spawned_in: int | None = None,
        aliases: Mapping[str, Task] | None = None,
    ) -> None:
        self.aliases = aliases or {}
        self.spawned_in = spawned_in
        self.work, self.project, self.created_by = work, project, created_by
        self.tracks: dict[str, Track] = {}
        self.made: dict[str, Made] = {}  # new task's id → task
        self.started: dict[int, Task] = {}  # identity of a model's input → its task
        self.by_name: dict[str, str] = {}  # local names and keys → id
        self.specs: dict[str, dict[str, Any]] = {}  # new task's id → its spec, with keys for local names
        self.sealed: set[str] = set()  # ids of new tasks with secrets
        self.refs: set[str] = set()  # short keys that this build has named
        self.grown: dict[str, int] = {}  # root → tasks that this build adds to its lineage
        self.late_edges: list[Edge] = []  # from existing parents that will wait for new subtasks

    def build(
        self,
        new_tasks: Sequence[NewTask],
        *,
        dag: Dag | None = None,
        parent: Task | None = None,
        blocks_parent: bool = True,
    ) -> list[Task]:
        """Create the tasks, in the dag or each in its own: all of them, or an error and none.

        With `parent` they are subtasks of an existing task, which waits for them if `blocks_parent`.
        """
        new_tasks, models = self._with_models(new_tasks)
        self._check_names(new_tasks, models)
        for new in self._keyed_first(new_tasks):
            self._start(new, models[id(new)], dag, parent)
        for made in self.made.values():
            self._resolve(made)
        if blocks_parent:
            self._add_subtask_edges()
        created = self._put(self._check_cycles())
        return [created[id(new)] for new in new_tasks]

    def _with_models(self, given: Sequence[NewTask]) -> tuple[list[NewTask], dict[int, NewTask]]:
        """The inputs, and by their identity the first that is alike; only that one has every field filled in."""
        new_tasks: list[NewTask] = []
        models: dict[int, NewTask] = {}
        model = given[0] if given else None
        for own, like in zip(given, inputs.alike(given), strict=True):
            new = own if id(own) not in models else replace(own)  # one that is given twice makes two tasks
            if own is like:
                new = model = filled(own, self.project.id, self.work.context.task_defaults)
            assert model is not None
            new_tasks.append(new)
            models[id(new)] = model
        return new_tasks, models

    # --- names, keys, ids ---

    def _check_names(self, new_tasks: Sequence[NewTask], models: Mapping[int, NewTask]) -> None:
        names: set[str] = set()
        for new in new_tasks:
            check = inputs.check_new_task if models[id(new)] is new else inputs.check_own
            check(new)
            if new.name is None is new.key:
                continue
            for name in {n for n in (new.name, new.key) if n is not None}:
                if name in names:
                    raise InvalidInput(f"{name[:80]!r} is used twice; names and keys must be unique")
                names.add(name)
        if any(new.output for new in new_tasks):
            evidence.check_contracts(self.work, [new.output for new in new_tasks])
        keys = [new.idempotency_key for new in new_tasks if new.idempotency_key is not None]
        if len(set(keys)) < len(keys):
            twice = next(k for k in keys if keys.count(k) > 1)
            raise InvalidInput(f"idempotency_key {twice[:80]!r} is used twice; it must be unique per task")
        for start in range(0, len(keys), KEYS_PER_QUERY):
            some = keys[0] if len(keys) == 1 else tuple(keys[start : start + KEYS_PER_QUERY])
            for taken in tasks_by_idempotency(self.work, self.project.id, some):
                raise InvalidInput(f"idempotency_key {taken.idempotency_key!r:.80} already belongs to {taken.key}")

    @staticmethod
    def _keyed_first(new_tasks: Sequence[NewTask]) -> list[NewTask]:
        """Tasks with an explicit key take its number before the store counts on; parents before children."""
        waiting = sorted(new_tasks, key=lambda n: n.key is None)
        names = {n for new in new_tasks for n in (new.name, new.key) if n is not None}
        ordered: list[NewTask] = []
        placed: set[str] = set()
        while waiting:
            later = []
            for new in waiting:
                if new.parent is not None and new.parent in names and new.parent not in placed:
                    later.append(new)
                    continue
                ordered.append(new)
                placed |= {n for n in (new.name, new.key) if n is not None}
            if len(later) == len(waiting):
                raise Cycle("parents form a cycle: " + ", ".join(str(n.name or n.key or n.title) for n in later[:5]))
            waiting = later
        return ordered

    def _track(self, code: str) -> Track:
        track = self.tracks.get(code) or self.work.get(Track, self.project.id, code)
        if track is None:
            raise InvalidInput(f"track {code!r} is not defined in project {self.project.id}", TRACKS_LISTED)
        return track

    def _start(self, new: NewTask, model: NewTask, dag: Dag | None, parent: Task | None) -> None:
        work, now = self.work, self.work.now
        if parent is None is new.parent is new.key and (started := self.started.get(id(model))) is not None:
            task_id = work.new_id("task")
            _, sequence, key, ref = self._next_key(new)
            task = replace(
                started, id=task_id, key=key, ref=ref, sequence=sequence, idempotency_key=new.idempotency_key,
                dag=dag.id if dag else ids.lone_dag(task_id),
            )  # fmt: skip
            self._name(new, task)
            self.made[task_id] = Made(new, task, [], model)
            return
        if new.parent is not None:
            parent = self._named(new.parent) or task_named(work, self.project.id, new.parent)
        task_id = work.new_id("task")
        if parent is not None:
            parent = self._adopt(parent)
            key = f"{parent.key}::{parent.children}"
            track, sequence, ref = parent.track, parent.sequence, f"{parent.ref}::{parent.children}"
            if new.key is not None:
                raise InvalidInput(f"key {new.key}: a subtask's key follows from its parent's ({key})")
        else:
            track, sequence, key, ref = self._next_key(new)
        assert model.priority is not None  # `filled`
        family: dict[str, Any] = {"dag": dag.id if dag else ids.lone_dag(task_id)}
        if parent is not None:
            family = {"dag": parent.dag, "parent": parent.id, "root": parent.root or parent.id}
            family |= {"depth": parent.depth + 1, "capped": parent.capped}
        task = Task(
            project=self.project.id,
            id=task_id,
            key=key,
            ref=ref,
            track=track,
            sequence=sequence,
            **family,
            local_name=new.name if self.spawned_in is not None else None,
            parent_run=self.spawned_in or 0,
            **fields_of(model, "type max_attempts"),
            idempotency_key=new.idempotency_key,
            state=lifecycle.CREATED,
            priority=priority.parse_priority(model.priority),
            boost=self.project.boost if new.boost is None else priority.parse_boost(new.boost),
            deadline=_at(new.deadline, new.deadline_in, now),
            tags=tuple(dict.fromkeys(new.tags)),
            not_before=_at(new.not_before, new.not_before_in, now),
            created_by=self.created_by,
            trace_id=work.trace_id,
            created_at=now,
            updated_at=now,
        )
        self._name(new, task)
        self.made[task_id] = Made(new, task, [], model)
        self.started[id(model)] = task

    def _name(self, new: NewTask, task: Task) -> None:
        for name in (new.name, new.key, task.key):
            if name is not None:
                self.by_name[name] = task.id

    def _named(self, name: str) -> Task | None:
        made = self.made.get(self.by_name.get(name, ""))
        return made.task if made else self.aliases.get(name)

    def _next_key(self, new: NewTask) -> tuple[str, int, str, str]:
        if new.key is not None:
            key = ids.parse_key(new.key)
            assert key is not None, "checked with the other inputs"
            track = self._track(key.track)
            is_gone = has_number(track.gone, key.sequence)
            if is_gone or key.ref in self.refs or task_by_ref(self.work, self.project.id, key.ref):
                raise InvalidInput(f"key {new.key}: {key.ref} is taken; keys are never reused")
            self.refs.add(key.ref)
            self.tracks[key.track] = replace(track, last_sequence=max(track.last_sequence, key.sequence))
            return key.track, key.sequence, new.key, key.ref
        track = self._track(new.track or self.project.default_track)
        sequence = track.last_sequence + 1
        self.tracks[track.id] = replace(track, last_sequence=sequence)
        ref = ids.ref_of(track.id, sequence)
        return track.id, sequence, f"{ref}-{ids.slug_of(new.title)}", ref

    def _adopt(self, parent: Task) -> Task:
        """The parent with one more child, within the growth limits."""
        fresh = self.made.get(parent.id)
        parent = fresh.task if fresh else current(self.work, parent)
        root_id = parent.root or parent.id
        new_root = self.made.get(root_id)
        root = new_root.task if new_root else self.work.get(Task, parent.project, root_id)
        grown = self.grown.get(root_id, 0)
        if parent.depth + 1 > graph.DEEPEST_SUBTASK:
            raise LimitReached(f"{parent.key}: subtasks may be at most {graph.DEEPEST_SUBTASK} levels deep")
        if parent.children >= graph.MOST_CHILDREN:
            raise LimitReached(f"{parent.key} has {parent.children} subtasks, the maximum ({graph.MOST_CHILDREN})")
        if root is not None and root.lineage + grown >= graph.LARGEST_LINEAGE:
            raise LimitReached(f"{root.key}: its lineage has {graph.LARGEST_LINEAGE} tasks, the maximum")
        self.grown[root_id] = grown + 1
        more = replace(parent, children=parent.children + 1)
        if fresh:
            self.made[parent.id] = fresh._replace(task=more)
        else:
            self._ensure_dag(parent)
            self.work.put(more)
        return more

    def _ensure_dag(self, parent: Task) -> None:
        """A single task that gets subtasks becomes a dag with counts."""
        if ids.has_dag_row(parent) or self.work.get(Dag, parent.project, parent.dag) is not None:
            return
        dag = Dag(project=parent.project, id=parent.dag, title=self._title_of(parent),
                  created_by=self.created_by, created_at=self.work.now)  # fmt: skip
        dag = graph.counted(dag, None, graph.part(parent))
        self.work.record("dag.created", dag, project=parent.project, details={"dag": dag.id, "title": dag.title})

    def _title_of(self, task: Task) -> str:
        brief = self.work.get(Brief, task.project, task.id)
        return brief.title if brief else ""

    # --- edges ---

    def _resolve(self, made: Made) -> None:
        if made.new.spec.get("context_refs"):
            self._check_refs(made)
        for wanted in made.new.depends_on:
            dependency = Dependency(task=wanted) if isinstance(wanted, str) else wanted
            needs = self._named(dependency.task) or find_task(self.work, self.project.id, dependency.task)
            if needs is None:
                known = self._suggestion(dependency.task, made)
                raise InvalidInput(
                    f"{made.task.key} depends on {dependency.task[:80]!r}, which is unknown{known}", LISTED
                )
            edge = new_edge(self.project.id, made.task.id, needs.id, on_failure=dependency.on_failure)
            if all(e.id != edge.id for e in made.edges):
                made.edges.append(edge)

    def _check_refs(self, made: Made) -> None:
        """Refuse references to tasks that do not exist; a name of this build becomes the task's key."""
        from tenure.core.artifacts import task_of_ref  # few tasks have references; keeps startup fast

        refs = []
        for ref in made.new.spec["context_refs"]:
            name = task_of_ref(ref)
            if name is None:
                hint = "as in task:B-003:output or artifact:B-003/report.md"
                raise InvalidInput(f"context_refs: {ref[:80]!r} does not name an output or an artifact", hint)
            task = self._named(name)
            if task is not None:
                kind, _, rest = ref.partition(":")
                refs.append(f"{kind}:{task.key}{rest.removeprefix(name)}")
                continue
            if find_task(self.work, self.project.id, name) is None:
                known = self._suggestion(name, made)
                raise InvalidInput(
                    f"context_refs: {ref[:80]!r} names the task {name[:80]!r}, which is unknown{known}", LISTED
                )
            refs.append(ref)
        self.specs[made.task.id] = {**made.new.spec, "context_refs": refs}

    def _suggestion(self, name: str, made: Made) -> str:
        """The nearest name of another task of this build."""
        return inputs.suggestion(name, [known for known, task in self.by_name.items() if task != made.task.id])

    def _add_subtask_edges(self) -> None:
        """A declared subtask blocks its parent; a subtask spawned by a holder does so only if the holder waits."""
        for made in self.made.values():
            if made.task.parent is None:
                continue
            edge = new_edge(self.project.id, made.task.parent, made.task.id, subtask=True)
            if made.task.parent in self.made:
                edges = self.made[made.task.parent].edges
                declared = next((e for e in edges if e.id == edge.id), None)
                if declared is not None:  # also declared as a dependency: one edge, with the declared values
                    edges.remove(declared)
                    edge = replace(edge, on_failure=declared.on_failure)
                edges.append(edge)
            else:
                check_may_wait(task_named(self.work, self.project.id, made.task.parent))
                self.late_edges.append(edge)

    def _check_cycles(self) -> dict[str, int]:
        if not any(made.edges for made in self.made.values()):
            return dict.fromkeys(self.made, 0)
        needs = {m.task.id: [e.needs for e in m.edges] for m in self.made.values()}
        names = {m.task.id: m.task.key for m in self.made.values()}
        order = graph.check_acyclic(needs, names)
        return graph.heights([n for n in order if n in needs], needs)

    # --- rows ---

    def _put(self, heights: Mapping[str, int]) -> dict[int, Task]:
        """Write the rows; return the tasks as stored, keyed by the identity of their input."""
        work = self.work
        pointed: dict[str, int] = {}  # task → number of new edges that need it
        below: dict[str, int] = {}  # task → longest path of new tasks below it
        for edge in (e for m in self.made.values() for e in m.edges):
            pointed[edge.needs] = pointed.get(edge.needs, 0) + 1
            below[edge.needs] = max(below.get(edge.needs, 0), heights[edge.task] + 1)
        outside = work.get_many(Task, self.project.id, [n for n in pointed if n not in self.made])
        for needs in outside.values():
            work.put(replace(needs, dependents=needs.dependents + pointed[needs.id]))
        for needs in outside.values():  # after all rows are put: raising one height may raise another
            raise_height(work, current(work, needs), below[needs.id])
        doomed: list[tuple[Task, Task]] = []
        tracks: list[Row] = list(self.tracks.values())
        alone: dict[int, Repeated] = {}  # identity of a model's input → its rows and event
        final: dict[int, Task] = {}  # rows that no later one of this build changes
        for made in self.made.values():
            unmet = 0
            is_alone = not made.edges and made.task.id not in pointed and made.task.parent is None
            is_alone = is_alone and not made.task.children
            if is_alone and (like := alone.get(id(made.model))) is not None:
                final[id(made.new)] = work.repeat(like, made.task, self._own_brief(made, like.brief))
                continue
            for edge in made.edges:
                needs_state = outside[edge.needs].state if edge.needs in outside else lifecycle.PENDING
                unmet += not graph.is_met(edge, needs_state)
                if graph.cascades(edge, needs_state):
                    doomed.append((made.task, outside[edge.needs]))
            recorded = self._create(made, heights[made.task.id], unmet, pointed.get(made.task.id, 0), tracks)
            if is_alone and recorded is not None:
                alone[id(made.model)] = recorded
            tracks = []
        for root_id, grown in self.grown.items():
            root = work.require(Task, self.project.id, root_id)
            work.put(replace(root, lineage=root.lineage + grown))
        self._block_parents()
        spread(work)
        for task, because in doomed:
            now_is = current(work, task)
            if now_is.state not in lifecycle.FINISHED:
                cancel_task(work, now_is, cascade_of(because), f"{because.key} is {lifecycle.spoken(because.state)}")
        spread(work)
        return {id(m.new): final.get(id(m.new)) or current(work, m.task) for m in self.made.values()}

    def _create(self, made: Made, height: int, unmet: int, dependents: int, tracks: list[Row]) -> Repeated | None:
        """Record the task with its rows; returned where tasks that are alike need nothing else."""
        work, brief = self.work, self._brief(made)
        task = inputs.constrained(made.task, brief)
        task = replace(
            task,
            sealed=made.task.id in self.sealed,
            length=priority.length_of(self.project.ordering, task.estimate),
            order_turn=self.project.order_turn,
            height=height,
            waits_on=len(made.edges),
            unmet=unmet,
            dependents=dependents,
        )
        if not made.new.draft:
            task = moves.waiting(task, work.now)
        cap: list[Row] = []
        if "max_cost_usd" in brief.constraints:
            from tenure.engine.budgets.task_caps import new_cap  # few tasks have one; keeps startup fast

            cap += new_cap(work, task, brief)
        details = {"title": brief.title, "created_by": self.created_by}
        rows = (brief, *made.edges, *tracks, *cap)
        kept = work.record("task.created", *rows, task=task, message=brief.title, details=details)
        if cap or task.sealed or is_reference(brief.spec):  # a body counts its uses
            return None
        return Repeated(kept, brief, work.events[-1])

    def _block_parents(self) -> None:
        for edge in self.late_edges:
            parent = self.work.get(Task, self.project.id, edge.task)
            child = self.work.get(Task, self.project.id, edge.needs)
            assert parent is not None
            assert child is not None
            connect(self.work, parent, child, edge)

    def _own_brief(self, made: Made, like: Brief) -> Brief:
        """The brief of a task that is alike to one with this brief."""
        new = made.new
        description = task_view.packed(self.work, self.project.id, new.description)
        return replace(like, id=made.task.id, title=new.title, description=description)

    def _brief(self, made: Made) -> Brief:
        new, pack = made.new, task_view.packed
        spec, metadata = self.specs.get(made.task.id, new.spec), new.metadata
        if spec or metadata:
            from tenure.engine.secrets.sealed_rows import sealed_for  # most tasks have neither; keeps startup fast

            spec, metadata, is_sealed = sealed_for(self.work, made.task, spec, metadata)
            if is_sealed:
                self.sealed.add(made.task.id)
        return Brief(
            project=self.project.id,
            id=made.task.id,
            title=new.title,
            **fields_of(made.model, "constraints output touches on_lost"),
            metadata=metadata,
            description=pack(self.work, self.project.id, new.description),
            spec=pack(self.work, self.project.id, spec),
            retry=inputs.check_retry(new.retry),
        )


# --- edges between tasks that exist -------------------------------------------------------------------------


def may_wait(task: Task) -> bool:
    """Whether a dependency may be added: nobody holds the task and it has not ended."""
    return task.state in (lifecycle.CREATED, lifecycle.PENDING, lifecycle.READY)


def new_edge(project: str, task: str, needs: str, **more: Any) -> Edge:
    return Edge(project=project, id=graph.edge_id(task, needs), task=task, needs=needs, **more)


def check_may_wait(task: Task) -> None:
    """Raise Refused where a dependency may not be added."""
    if not may_wait(task):
        hint = "its holder can spawn subtasks and wait for them" if claims.is_held(task) else None
        message = f"{task.key} is {lifecycle.spoken(task.state)}: dependencies can change only before it is claimed"
        raise Refused(Outcome(outcome="DENIED_STATE", state=task.state, message=message, hint=hint))


def connect(work: UnitOfWork, task: Task, needs: Task, edge: Edge) -> Task:
    """Add one edge between existing tasks: refuse cycles, update counts and heights, move the dependent if needed."""
    path = path_between(work, task.project, needs, task)
    if path is not None:
        raise Cycle("the dependency would create a cycle: " + " → ".join([task.key, *path]))
    needs = work.put(replace(needs, dependents=needs.dependents + 1))
    kept = _linked(work, replace(task, waits_on=task.waits_on + 1), needs, edge, {})
    raise_height(work, needs, kept.height + 1)
    return _judged(work, kept, needs, edge)


def relink(work: UnitOfWork, task: Task, needs: Task, edge: Edge, on_failure: str) -> Task:
    """Change what a failure of `needs` means for the dependent; applied at once if it has already failed."""
    counted = replace(task, unmet=task.unmet - (not graph.is_met(edge, needs.state)))
    changed = replace(edge, on_failure=on_failure)
    kept = _linked(work, counted, needs, changed, {"before": edge.on_failure})
    return _judged(work, kept, needs, changed)


def _linked(work: UnitOfWork, task: Task, needs: Task, edge: Edge, details: dict[str, str]) -> Task:
    """Store the edge; it counts while it is not met."""
    before = work.get(Task, task.project, task.id)
    linked = replace(task, unmet=task.unmet + (not graph.is_met(edge, needs.state)))
    if task.state in (lifecycle.READY, lifecycle.PENDING):
        linked = moves.waiting(linked, work.now)
    kept = work.record(
        "task.linked", edge, task=linked, details={"needs": needs.key, "on_failure": edge.on_failure, **details}
    )
    if before is not None and kept.state == before.state and kept.unmet != before.unmet:
        work.moved.append((before, kept))  # the count may change its part in the dag
    return kept


def _judged(work: UnitOfWork, task: Task, needs: Task, edge: Edge) -> Task:
    spread(work)
    if graph.cascades(edge, needs.state):
        task = cancel_task(
            work, current(work, task), cascade_of(needs), f"{needs.key} is {lifecycle.spoken(needs.state)}"
        )
        spread(work)
    return current(work, task)


def path_between(work: UnitOfWork, project: str, start: Task, goal: Task) -> list[str] | None:
    """Keys along dependencies from `start` to `goal`, or None where there is no such path."""
    came: dict[str, str | None] = {start.id: None}
    todo = [start.id]
    while todo:
        here = todo.pop()
        if here == goal.id:
            path: list[str] = []
            at: str | None = here
            while at is not None:
                path.append(at)
                at = came[at]
            tasks = work.get_many(Task, project, path)
            return [tasks[i].key for i in reversed(path)]
        work.get(Task, project, here)  # an archived task has its edges in the archive
        for edge in work.find(Edge, {"project": project, "task": here}):
            if edge.needs not in came:
                came[edge.needs] = here
                todo.append(edge.needs)
    return None


def raise_height(work: UnitOfWork, task: Task, height: int) -> None:
    """Propagate a longer path below to everything above, up to the bound of the weight."""
    todo = [(task, height)]
    while todo:
        task, height = todo.pop()
        task = current(work, task)  # another path may have raised it since
        height = min(height, priority.DEEPEST)
        if task.height >= height or work.is_recalled(task):
            continue
        work.put(replace(task, height=height))
        if task.waits_on:
            edges = work.find(Edge, {"project": task.project, "task": task.id})
            above = work.get_many(Task, task.project, [e.needs for e in edges])
            todo += [(t, height + 1) for t in above.values()]


def lower_height(work: UnitOfWork, task: Task) -> None:
    """Recompute the longest path below after an edge was removed, here and above."""
    todo = [task.id]
    while todo:
        here = work.get(Task, task.project, todo.pop())
        if here is None or work.is_recalled(here):
            continue
        edges = [e for e in work.find(Edge, {"project": here.project, "needs": here.id}) if not work.is_recalled(e)]
        below = work.get_many(Task, here.project, [e.task for e in edges])
        height = max((min(priority.DEEPEST, t.height + 1) for t in below.values()), default=0)
        if height != here.height:
            work.put(replace(here, height=height))
            todo += [e.needs for e in work.find(Edge, {"project": here.project, "task": here.id})]


def check_plan_size(count: int) -> None:
    if count > inputs.LARGEST_PLAN:
        raise TooLarge(f"a plan may have at most {inputs.LARGEST_PLAN} tasks (got {count})", "split the plan")
    if count == 0:
        raise InvalidInput("the plan has no tasks")


def _at(instant: Any, seconds: Any, now: int) -> int | None:
    return instant if seconds is None else now + inputs.micros(seconds, "a time from now")
