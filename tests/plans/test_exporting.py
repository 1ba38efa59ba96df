"""What is in a project, written down as a plan file that makes the same again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure import Client, Dependency, NewTask
from tenure.core.errors import NotFound, TooLarge
from tenure.core.retry import CLASSES, STRATEGIES
from tenure.plans import check, files, yaml_text
from tenure.plans.apply import apply
from tenure.plans.export import export
from tenure.testing import FakeClock
from tests.plans.conftest import plan_of

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30)
WORD = st.text("abcdefghij-_é.7", min_size=1, max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(-1e9, 1e9) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "description": st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.just("\n") | st.just(" "), max_size=60),
    "type": WORD,
    "priority": st.integers(0, 100) | st.sampled_from(["critical", "high", "normal", "low", "background"]),
    "boost": st.sampled_from([0, 0.01, 0.1, 1, 10]),
    "tags": st.lists(WORD, max_size=3),
    "touches": st.lists(st.sampled_from(["src/**", "docs/*.md", "env:staging"]), max_size=2),
    "caps": st.lists(WORD, max_size=2),
    "deadline": st.sampled_from(["2026-03-01T18:00:00Z", "2030-01-01T00:00:00.000001Z", "3d"]),
    "not_before": st.sampled_from(["2026-03-01T18:00:00+02:00", "90s"]),
    "max_attempts": st.integers(1, 1000),
    "on_lost": st.sampled_from(["retry", "back_off", "hold"]),
    "draft": st.booleans(),
    "metadata": st.dictionaries(TEXT, JSON, max_size=3),
    "spec": st.dictionaries(WORD, JSON, max_size=2),
    "output": st.fixed_dictionaries({}, optional={"type": st.just("json"), "summary": TEXT}),
    "constraints": st.fixed_dictionaries(
        {}, optional={"max_duration": st.integers(1, 10**6) | st.just("2h"), "region": WORD, "complexity": st.just(3)}
    ),
    "retry": st.fixed_dictionaries(
        {},
        optional={
            "strategy": st.sampled_from(STRATEGIES),
            "initial_delay": st.integers(0, 1000) | st.just("1.5s") | st.just("0.000007s"),
            "cap": st.just("10m"), "multiplier": st.floats(1, 100), "jitter": st.floats(0, 1),
            "retry_on": st.lists(st.sampled_from(sorted(CLASSES)), max_size=2),
        },
    ),
}  # fmt: skip


@st.composite
def plans(draw: st.DrawFn) -> dict[str, Any]:
    """A plan as a file has it: tasks that wait for earlier ones, some of them subtasks of earlier ones."""
    tasks: dict[str, dict[str, Any]] = {}
    parent: dict[str, str] = {}
    for n in range(draw(st.integers(1, 6))):
        name = f"{n}{draw(WORD)}"
        task: dict[str, Any] = {"name": name, "title": draw(TEXT.filter(lambda t: t.strip() != ""))}
        for field in draw(st.sets(st.sampled_from(sorted(FIELDS)), max_size=4)):
            task[field] = draw(FIELDS[field])
        tops = [other for other in tasks if other not in parent]
        if tops and draw(st.booleans()):
            parent[name] = draw(st.sampled_from(tops))
            tasks[parent[name]].setdefault("subtasks", []).append(task)
        elif draw(st.booleans()):
            task["track"] = draw(st.sampled_from(["A", "B", "Q"]))
        # What stands before its own family in the file: nothing of that can come to wait for it.
        family = tops.index(parent[name]) if name in parent else len(tops)
        free = [o for o in tasks if tops.index(parent.get(o, o)) < family]
        if free:
            wanted = draw(st.lists(st.sampled_from(free), unique=True, max_size=2))
            how = draw(st.sampled_from(["block", "cancel", "ignore"]))
            task["depends_on"] = [o if how == "block" else {"task": o, "on_failure": how} for o in wanted]
        tasks[name] = task
    top = {name: task for name, task in tasks.items() if name not in parent}
    return {"name": draw(WORD), "title": draw(TEXT), "tracks": {"Q": "Quality"}, "tasks": top}


def project(clock: FakeClock) -> Client:
    client = Client("memory://", "shop", clock=clock)
    client.init()
    return client


@given(plans())
def test_what_is_exported_changes_nothing_here_and_makes_the_same_elsewhere(file: dict[str, Any]) -> None:
    clock = FakeClock()
    here, there = project(clock), project(clock)
    assert apply(here, plan_of(yaml_text.document(file), now=clock())).outcome == "CREATED"
    text = export(here, plan=file["name"])
    again = apply(here, plan_of(text, now=clock()))
    assert (again.outcome, again.changed, again.left, again.missing) == ("UNCHANGED", None, None, None)
    assert apply(there, plan_of(text, now=clock())).outcome == "CREATED"
    assert export(there, plan=file["name"]) == text
    assert there.verify() == []


def test_states_do_not_matter_to_the_project_it_came_from(client: Client, clock: FakeClock) -> None:
    text = """\
name: p
tasks:
  - {name: a, title: A}
  - {name: b, title: B, depends_on: [a]}
  - {name: c, title: C, depends_on: [{task: b, on_failure: ignore}]}
  - {name: d, title: D, subtasks: [S, T]}
  - {name: e, title: E, draft: true}
"""
    apply(client, plan_of(text))
    receipt = client.claim("A-001").receipt or ""
    client.submit(receipt, {"ok": True})
    client.cancel("A-002")
    client.claim("A-003")
    held = client.claim("A-004::1").receipt or ""
    client.spawn(held, [NewTask(title="grown", name="g")])
    written = export(client, plan="p")
    assert "grown" not in written
    assert apply(client, plan_of(written)).outcome == "UNCHANGED"


def test_tasks_of_the_store_are_named_by_key(client: Client) -> None:
    client.add("Before", track="B")
    apply(client, plan_of("name: p\ntasks: [{title: A, depends_on: [{task: B-001, on_failure: cancel}]}]\n"))
    written = export(client, plan="p")
    assert "task: B-001-before" in written
    assert apply(client, plan_of(written)).outcome == "UNCHANGED"


def test_a_dependency_that_is_met_is_written_down_too(client: Client) -> None:
    client.add("Before", track="B")
    client.submit(client.claim("B-001").receipt or "", 1)
    apply(client, plan_of("name: p\ntasks: [{title: A, depends_on: [B-001]}]\n"))
    written = export(client, plan="p")
    assert plan_of(written).tasks[0].depends_on == ("B-001-before",)
    assert apply(client, plan_of(written)).outcome == "UNCHANGED"


def test_what_a_holder_spawned_is_no_part_of_a_plan(client: Client) -> None:
    client.plan([NewTask(title="X", name="x"), NewTask(title="Y", depends_on=("x",))])
    client.spawn(client.claim("A-001").receipt or "", [NewTask(title="grown", name="g")])
    assert [t.title for t in plan_of(export(client, dag=client.dags()[0]["id"])).tasks] == ["X", "Y"]
    assert [t.title for t in plan_of(export(client)).tasks] == ["X", "Y"]


def test_open_work_alone_leaves_what_is_done_behind(client: Client, clock: FakeClock) -> None:
    done = client.add("Done elsewhere").task or {}
    client.submit(client.claim(done["key"]).receipt or "", 1)
    apply(client, plan_of("name: p\ntasks: [{title: A}, {title: B, depends_on: [a, A-001]}]\n"))
    client.submit(client.claim("A-002").receipt or "", 1)
    written = export(client, plan="p", open_only=True)
    assert [t.title for t in plan_of(written).tasks] == ["B"]
    assert plan_of(written).tasks[0].depends_on == ()
    other = project(clock)
    apply(other, plan_of(written))
    assert [t["state"] for t in other.tasks()] == ["ready"]
    client.submit(client.claim("A-003").receipt or "", 1)
    with pytest.raises(NotFound, match="nothing to export"):
        export(client, plan="p", open_only=True)


def test_everything_is_a_document_for_each_plan_and_one_for_the_rest(client: Client, clock: FakeClock) -> None:
    client.add("Alone", priority=3)
    client.plan([NewTask(title="X", name="x"), NewTask(title="Y", depends_on=("x",))], title="Unnamed")
    apply(client, plan_of("name: p\ntracks: {Q: {name: Quality, purpose: good}}\ntasks: [{title: P, track: Q}]\n"))
    apply(client, plan_of("name: r\ntasks: [{title: R, depends_on: [Q-001]}]\n"))
    client.add("Late", parent="Q-001")
    text = export(client)
    reading = check.proven(files.read(text, "all.yaml", 0), project(clock))
    assert reading.findings == ()
    assert {p.name for p in reading.plans} == {"p", "r", "unnamed", "rest"}
    assert [t.title for p in reading.plans for t in p.tasks if p.name == "unnamed"] == ["X", "Y"]
    other = project(clock)
    for plan in reading.plans:
        apply(other, plan)
    keys = {t["key"]: t["title"] for t in client.tasks(limit=100)}
    assert {t["key"]: t["title"] for t in other.tasks(limit=100)} == keys
    assert other.show("A-004")["blocked_by"] == ["Q-001-p"]


def test_work_of_no_plan_is_never_made_twice(client: Client) -> None:
    client.add("Alone")
    again = check.check(export(client), "all.yaml", client)
    assert [f.code for f in again] == ["DUPLICATE"]


def test_plans_that_wait_for_each_other_become_one(client: Client, clock: FakeClock) -> None:
    apply(client, plan_of("name: p\ntasks: [{name: x, title: P1}, {name: y, title: P2}]\n"))
    apply(client, plan_of("name: r\ntasks: [{name: x, title: R1, depends_on: [A-001]}, {name: y, title: R2}]\n"))
    client.link("A-002", "A-004")
    (plan,) = files.read(export(client), "all.yaml", 0).plans
    other = project(clock)
    apply(other, plan)
    assert other.show("A-002")["blocked_by"] == ["A-004-r2"]
    assert other.show("A-003")["blocked_by"] == ["A-001-p1"]


def test_without_keys_the_tasks_get_new_ones(client: Client) -> None:
    client.plan([NewTask(title="Same", name="a"), NewTask(title="Same", depends_on=("a",))], title="t")
    dag = client.dags()[0]["id"]
    plan = plan_of(export(client, dag=dag, keys=False))
    assert [(t.name, t.key, t.track, t.depends_on) for t in plan.tasks] == [
        ("same", None, "A", ()), ("same-2", None, "A", ("same",)),
    ]  # fmt: skip
    made = apply(client, plan, name="copy")
    assert [t["key"] for t in made.tasks or ()] == ["A-003-same", "A-004-same"]


def test_a_lone_tasks_dag_can_be_exported(client: Client) -> None:
    client.add("Alone", tags=("x",))
    plan = plan_of(export(client, dag=client.show("A-001")["dag"]))
    assert [(t.title, t.tags) for t in plan.tasks] == [("Alone", ("x",))]


def test_a_subtask_that_may_fail_keeps_that(client: Client, clock: FakeClock) -> None:
    client.plan(
        [
            NewTask(title="P", name="p", depends_on=(Dependency(task="c", on_failure="ignore"),)),
            NewTask(title="C", name="c", parent="p"),
        ],
        name="fam",
    )
    text = export(client, plan="fam")
    assert apply(client, plan_of(text)).outcome == "UNCHANGED"
    other = project(clock)
    apply(other, plan_of(text))
    other.cancel("A-001::1")
    assert other.show("A-001")["state"] == "ready"


def test_what_is_not_there_is_told(client: Client) -> None:
    with pytest.raises(NotFound, match="no plan 'x'"):
        export(client, plan="x")
    with pytest.raises(NotFound, match="no dag"):
        export(client, dag="dag_x")
    with pytest.raises(NotFound, match="nothing to export"):
        export(client)


def test_more_tasks_than_a_plan_holds_are_not_exported_at_once(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenure.core.inputs.LARGEST_PLAN", 3)
    for n in range(4):
        client.add(f"t{n}")
    with pytest.raises(TooLarge, match="at most 3 tasks"):
        export(client)


def test_a_text_that_begins_with_a_control_is_quoted() -> None:
    text = yaml_text.document({"title": "\x1b\nand more\n"})
    assert text == 'title: "\\x1b\\nand more\\n"\n'


def test_the_budget_of_a_plan_is_a_part_of_it(client: Client, clock: FakeClock) -> None:
    assert apply(client, plan_of("name: p\nbudget: 20\ntasks: [A]\n", now=clock())).outcome == "CREATED"
    text = export(client, plan="p")
    assert 'budget: "20.00"' in text or "budget: 20" in text
    assert apply(client, plan_of(text, now=clock())).outcome == "UNCHANGED"
    there = project(clock)
    apply(there, plan_of(text, now=clock()))
    assert export(there, plan="p") == text
