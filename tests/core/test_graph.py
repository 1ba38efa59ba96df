"""Circles, heights, when a dependency is met, where a dag stands, the critical path."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core import graph, ids
from tenure.core.errors import Cycle
from tenure.core.lifecycle import STATES
from tenure.core.records import Dag, Edge, Task, replace
from tenure.testing.samples import row_of

DAG = row_of(Dag)
EDGE = row_of(Edge)
TASK = row_of(Task)
NODES = "abcdef"
edges = st.sets(st.tuples(st.sampled_from(NODES), st.sampled_from(NODES)), max_size=10)


def needs_of(pairs: set[tuple[str, str]]) -> dict[str, list[str]]:
    needs: dict[str, list[str]] = {n: [] for n in NODES}
    for task, needed in sorted(pairs):
        needs[task].append(needed)
    return needs


def reaches(needs: dict[str, list[str]], start: str, goal: str) -> bool:
    seen, todo = set(), list(needs[start])
    while todo:
        here = todo.pop()
        if here == goal:
            return True
        if here not in seen:
            seen.add(here)
            todo += needs[here]
    return False


@given(edges)
def test_a_circle_is_found_exactly_where_there_is_one_and_is_one(pairs: set[tuple[str, str]]) -> None:
    needs = needs_of(pairs)
    circular = any(reaches(needs, n, n) for n in NODES)
    try:
        order = graph.check_acyclic(needs, {n: n.upper() for n in NODES})
    except Cycle as error:
        assert circular
        spelled = error.message.rpartition(": ")[2].split(" → ")
        assert spelled[0] == spelled[-1]
        assert len(spelled) >= 2
        for task, needed in pairwise(spelled):
            assert needed.lower() in needs[task.lower()], "each waits for the next"
    else:
        assert not circular
        assert sorted(order) == sorted(NODES)
        assert all(order.index(d) < order.index(n) for n in NODES for d in needs[n])


@given(edges)
def test_a_height_is_the_longest_path_of_dependents_up_to_its_bound(pairs: set[tuple[str, str]]) -> None:
    needs = needs_of({(t, n) for t, n in pairs if t > n})  # no circle

    def longest(node: str) -> int:
        return max((1 + longest(t) for t in NODES if node in needs[t]), default=0)

    order = graph.check_acyclic(needs, {})
    assert graph.heights(order, needs) == {n: min(10, longest(n)) for n in NODES}


def test_heights_end_at_ten() -> None:
    needs = {str(n): [str(n - 1)] if n else [] for n in range(30)}
    order = graph.check_acyclic(needs, {})
    assert graph.heights(order, needs)["0"] == 10


@pytest.mark.parametrize("state", STATES)
def test_a_dependency_is_met_by_a_completion_or_an_ignored_failure(state: str) -> None:
    failed = state in ("cancelled", "dead_lettered")
    for on_failure in graph.ON_FAILURE:
        edge = replace(EDGE, on_failure=on_failure)
        assert graph.is_met(edge, state) == (state == "completed" or (failed and on_failure == "ignore"))
        assert graph.cascades(edge, state) == (failed and on_failure == "cancel")


parts = st.lists(st.sampled_from(["live", "blocked", "completed", "cancelled", "dead"]), min_size=1, max_size=6)


@given(parts)
def test_a_dag_stands_where_its_tasks_do(tasks: list[str]) -> None:
    dag = DAG
    for part in tasks:
        dag = graph.counted(dag, None, part)
    assert dag.total == len(tasks)
    if set(tasks) == {"cancelled"}:
        expected = "cancelled"
    elif set(tasks) <= {"completed", "cancelled"}:
        expected = "completed"
    elif "dead" in tasks and "live" not in tasks:
        expected = "failed"
    else:
        expected = "open"
    assert dag.status == graph.status(dag) == expected


@given(parts, st.data())
def test_counting_moves_is_counting_anew(tasks: list[str], data: st.DataObject) -> None:
    dag = DAG
    for part in tasks:
        dag = graph.counted(dag, None, part)
    at = data.draw(st.integers(0, len(tasks) - 1))
    moved = data.draw(st.sampled_from(["live", "blocked", "completed", "cancelled", "dead"]))
    after = graph.counted(dag, tasks[at], moved)
    anew = DAG
    for part in [*tasks[:at], moved, *tasks[at + 1 :]]:
        anew = graph.counted(anew, None, part)
    assert after == anew or tasks[at] == moved


@pytest.mark.parametrize("state", STATES)
def test_each_task_is_counted_under_one_part(state: str) -> None:
    names = {"completed": "completed", "cancelled": "cancelled", "dead_lettered": "dead", "created": "blocked"}
    for unmet in (0, 1):
        task = replace(TASK, state=state, unmet=unmet)
        expected = "blocked" if state == "pending" and unmet else names.get(state, "live")
        assert graph.part(task) == expected


@given(edges, st.sets(st.sampled_from(NODES)))
def test_the_critical_path_is_a_longest_chain_of_open_tasks(pairs: set[tuple[str, str]], done: set[str]) -> None:
    pairs = {(t, n) for t, n in pairs if t > n}
    tasks = {n: replace(TASK, id=n, key=n, state="completed" if n in done else "ready") for n in NODES}
    path = graph.critical_path(tasks, [replace(EDGE, task=t, needs=n) for t, n in sorted(pairs)])
    open_ = [n for n in NODES if n not in done]
    assert all(n in open_ for n in path)
    assert all((later, earlier) in pairs for earlier, later in pairwise(path))

    def longest(node: str) -> int:
        return 1 + max((longest(n) for t, n in pairs if t == node and n in open_), default=0)

    assert len(path) == max((longest(n) for n in open_), default=0)


def test_a_lone_task_needs_no_dag_row() -> None:
    task = replace(TASK, id="task_01ABC", dag=ids.lone_dag("task_01ABC"), children=0)
    assert task.dag == "dag_01ABC"
    assert not ids.has_dag_row(task)
    assert ids.has_dag_row(replace(TASK, id="task_01ABC", dag=task.dag, children=1))
    assert ids.has_dag_row(replace(TASK, id="task_01ABC", dag="dag_other"))
