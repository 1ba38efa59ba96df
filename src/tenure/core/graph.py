"""The task graph: cycles, heights, when a dependency is met, the status of a dag, the critical path."""

from __future__ import annotations

import graphlib
from collections.abc import Iterable, Mapping, Sequence

from tenure.core import lifecycle, limits
from tenure.core.errors import Cycle
from tenure.core.priority import DEEPEST
from tenure.core.records import Dag, Edge, Task, replace

ON_FAILURE = ("block", "cancel", "ignore")
MOST_CHILDREN = limits.CHILDREN
DEEPEST_SUBTASK = limits.SUBTASK_DEPTH
LARGEST_LINEAGE = limits.LINEAGE


def edge_id(task: str, needs: str) -> str:
    return f"{task}>{needs}"


def is_met(edge: Edge, needs_state: str) -> bool:
    """Whether the dependency no longer blocks its dependent."""
    if needs_state == lifecycle.COMPLETED:
        return True
    return edge.on_failure == "ignore" and needs_state in lifecycle.FAILED


def cascades(edge: Edge, needs_state: str) -> bool:
    """Whether the failed dependency cancels its dependent."""
    return edge.on_failure == "cancel" and needs_state in lifecycle.FAILED


def check_acyclic(needs: Mapping[str, Iterable[str]], name: Mapping[str, str]) -> tuple[str, ...]:
    """The nodes with dependencies first; raises Cycle with the cycle's names."""
    try:
        return tuple(graphlib.TopologicalSorter(needs).static_order())
    except graphlib.CycleError as error:
        nodes = list(reversed(error.args[1]))
        shown = [name.get(node, node) for node in nodes]
        if len(shown) > 12:
            shown = [*shown[:6], "…", *shown[-5:]]
        cycle = Cycle("the dependencies form a cycle: " + " → ".join(shown))
        cycle.circle = tuple(nodes)
        raise cycle from None


def heights(order: Sequence[str], needs: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """The longest path of dependents below each node; `order` has dependencies first."""
    below = dict.fromkeys(order, 0)
    for node in reversed(order):
        for dependency in needs.get(node, ()):
            if dependency in below:
                below[dependency] = max(below[dependency], min(DEEPEST, below[node] + 1))
    return below


# --- dags ---------------------------------------------------------------------------------------------------


OPEN = "open"  # of the row; views show whether anything runs
PENDING, RUNNING = "pending", "running"
STATUSES = (PENDING, RUNNING, "completed", "failed", "cancelled")  # of views


def part(task: Task) -> str:
    """The count of its dag that a task belongs to."""
    if task.state == lifecycle.COMPLETED:
        return "completed"
    if task.state == lifecycle.CANCELLED:
        return "cancelled"
    if task.state == lifecycle.DEAD_LETTERED:
        return "dead"
    if task.state == lifecycle.CREATED or (task.state == lifecycle.PENDING and task.unmet > 0):
        return "blocked"
    return "live"


def counted(dag: Dag, left: str | None, entered: str | None) -> Dag:
    """The dag with one task moved between counts; None for a new task."""
    changes = {}
    if left is not None:
        changes[left] = getattr(dag, left) - 1
    else:
        changes["total"] = dag.total + 1
    if entered is not None:
        changes[entered] = getattr(dag, entered) + 1
    moved = replace(dag, **changes)
    return replace(moved, status=status(moved))


def status(dag: Dag) -> str:
    """completed, cancelled, failed (a dead letter and nothing else can run) or open."""
    if dag.total and dag.completed + dag.cancelled == dag.total:
        return "completed" if dag.completed else "cancelled"
    if dag.dead and not dag.live:
        return "failed"
    return OPEN


def critical_path(tasks: Mapping[str, Task], edges: Iterable[Edge]) -> tuple[str, ...]:
    """The longest chain of unfinished tasks, dependencies first; ids."""
    open_ = {i for i, t in tasks.items() if t.state not in lifecycle.FINISHED}
    needs: dict[str, list[str]] = {i: [] for i in open_}
    for edge in edges:
        if edge.task in open_ and edge.needs in open_:
            needs[edge.task].append(edge.needs)
    length: dict[str, int] = {}
    before: dict[str, str | None] = {}
    for node in graphlib.TopologicalSorter(needs).static_order():
        longest = max(needs[node], key=lambda n: (length[n], tasks[n].key), default=None)
        before[node] = longest
        length[node] = 1 + (length[longest] if longest is not None else 0)
    node_ = max(length, key=lambda n: (length[n], tasks[n].key), default=None)
    path: list[str] = []
    while node_ is not None:
        path.append(node_)
        node_ = before[node_]
    return tuple(reversed(path))
