"""Plans in a project: made whole or not at all, and applied again."""

from __future__ import annotations

import pytest

from tenure import Client
from tenure.core.commands import Principal
from tenure.core.errors import InvalidInput, NotAllowed
from tenure.plans import check, files
from tenure.plans.apply import apply
from tenure.testing import FakeClock
from tests.plans.conftest import found, plan_of

PLAN = """\
name: shop
title: The shop
tracks: {Q: Quality}
tasks:
  - {name: schema, title: Schema, track: B}
  - {name: api, title: API, depends_on: [schema]}
  - {name: test, title: Test, track: Q, depends_on: [{task: api, on_failure: ignore}]}
"""


def codes(client: Client) -> set[str]:
    return {track["code"] for track in client.tracks()}


def test_a_plan_makes_its_tracks_and_tasks_together(client: Client) -> None:
    outcome = apply(client, plan_of(PLAN))
    assert (outcome.outcome, [t["key"] for t in outcome.tasks or ()]) == (
        "CREATED", ["B-001-schema", "A-001-api", "Q-001-test"],
    )  # fmt: skip
    assert "Q" in codes(client)
    assert client.show("Q-001")["depends_on"][0]["on_failure"] == "ignore"
    assert client.dags()[0]["title"] == "The shop"


@pytest.mark.parametrize("written", ["2.5", '"2.50"'])
def test_a_plan_may_say_what_it_may_cost(client: Client, written: str) -> None:
    outcome = apply(client, plan_of(f"budget: {written}\n{PLAN}"))
    assert outcome.ok
    (budget,) = client.budgets("dag")
    assert (budget["id"], budget["allocated"]) == (f"dag:{client.dags()[0]['id']}", "2.50")
    assert apply(client, plan_of(f"budget: {written}\n{PLAN}")).outcome == "UNCHANGED"


@pytest.mark.parametrize("written", ["much", "-1", "[1]", "1e99"])
def test_a_budget_that_is_none_is_found_at_its_place(written: str) -> None:
    ((line, column, _),) = found(f"tasks: [{{title: A}}]\nbudget: {written}\n")
    assert (line, column) == (2, 9)


def test_a_refused_plan_leaves_no_track_behind(client: Client) -> None:
    client.add("taken", key="B-007-taken")
    text = PLAN + "  - {title: Late, key: B-007-late}\n"
    with pytest.raises(InvalidInput, match="B-007 is taken"):
        apply(client, plan_of(text))
    assert "Q" not in codes(client)
    assert [t["key"] for t in client.tasks()] == ["B-007-taken"]
    assert client.dags() == []


def test_a_dry_run_tells_and_stores_nothing(client: Client) -> None:
    before = client.log(limit=1000)
    outcome = apply(client, plan_of(PLAN), dry_run=True)
    assert (outcome.outcome, len(outcome.tasks or ()), outcome.command_id) == ("CREATED", 3, None)
    assert outcome.message.startswith("nothing was stored; it would be: 3 created")
    assert client.log(limit=1000) == before
    assert (client.tasks(), "Q" in codes(client)) == ([], False)
    apply(client, plan_of(PLAN))
    changed = PLAN.replace("title: Schema", "title: Rows")
    assert apply(client, plan_of(changed), dry_run=True).changed == ("B-001-schema",)
    assert client.show("B-001")["title"] == "Schema"


def test_applied_again_it_changes_only_what_nobody_has_begun(client: Client) -> None:
    apply(client, plan_of(PLAN))
    assert apply(client, plan_of(PLAN)).outcome == "UNCHANGED"
    client.claim("B-001")
    text = """\
name: shop
tasks:
  - {name: schema, title: Another schema, track: B}
  - {name: api, title: API, priority: high, depends_on: [schema, more]}
  - {name: more, title: More}
"""
    outcome = apply(client, plan_of(text))
    assert outcome.outcome == "UPDATED"
    assert [t["key"] for t in outcome.tasks or ()] == ["A-002-more"]
    assert (outcome.changed, outcome.left, outcome.missing) == (("A-001-api",), ("B-001-schema",), ("Q-001-test",))
    assert client.show("B-001")["title"] == "Schema"
    assert client.show("Q-001")["state"] == "pending"
    apply(client, plan_of(text), prune=True)
    assert client.show("Q-001")["state"] == "cancelled"


def test_a_time_relative_to_now_counts_from_when_the_task_was_made(client: Client, clock: FakeClock) -> None:
    text = "name: p\ndefaults: {not_before: 1h}\ntasks: [{title: A, deadline: 3d}, {title: B, deadline: null}]\n"
    start = clock()
    apply(client, plan_of(text, now=clock()))
    clock.advance(seconds=86_400)
    assert apply(client, plan_of(text, now=clock())).outcome == "UNCHANGED"
    assert client.show("A-001")["deadline"] == start + 3 * 86_400_000_000
    more = text.replace("{title: B, deadline: null}", "{title: B, deadline: null}, {title: C, deadline: 2d}")
    assert apply(client, plan_of(more, now=clock())).changed is None
    assert client.show("A-003")["deadline"] == clock() + 2 * 86_400_000_000
    fixed = text.replace("deadline: 3d", "deadline: 2024-01-01T00:00:00Z")
    assert apply(client, plan_of(fixed, now=clock())).changed == ("A-001-a",)


def test_a_plan_is_known_by_its_name_or_its_files(client: Client) -> None:
    assert apply(client, plan_of("tasks: [A]\n", "plans/week.yaml")).outcome == "CREATED"
    assert apply(client, plan_of("name: week\ntasks: [A]\n")).outcome == "UNCHANGED"
    assert apply(client, plan_of("tasks: [A]\n", "week.yaml"), name="other").outcome == "CREATED"
    with pytest.raises(InvalidInput, match="no name"):
        apply(client, plan_of("tasks: [A]\n", "-"))


def test_a_track_that_is_there_keeps_its_name(client: Client) -> None:
    outcome = apply(client, plan_of("name: p\ntracks: {B: Backend, Q: Quality}\ntasks: [A]\n"))
    assert outcome.message == "1 created, 0 changed, tracks created: Q, tracks that keep their present name: B"
    assert {t["code"]: t["name"] for t in client.tracks()}["B"] == "Data"
    again = apply(client, plan_of("name: p\ntracks: {R: Research}\ntasks: [A]\n"))
    assert (again.outcome, "R" in codes(client)) == ("UPDATED", True)


def test_new_tracks_need_an_admin_and_the_rest_a_member(client: Client) -> None:
    client.principal = Principal(role="member")
    with pytest.raises(NotAllowed, match="define_track: needs the role admin"):
        apply(client, plan_of(PLAN))
    assert client.tasks() == []
    client.principal = Principal(role="admin")
    apply(client, plan_of(PLAN))
    client.principal = Principal(role="member")
    assert apply(client, plan_of(PLAN.replace("title: API", "title: HTTP"))).outcome == "UPDATED"
    client.principal = Principal(role="agent")
    with pytest.raises(NotAllowed):
        apply(client, plan_of(PLAN))


def test_what_a_plan_made_can_be_undone(client: Client) -> None:
    outcome = apply(client, plan_of(PLAN))
    assert client.undo(outcome.command_id or "").outcome == "UPDATED"
    assert {t["state"] for t in client.tasks()} == {"cancelled"}


def test_without_a_store_keys_are_believed_and_odd_tracks_told(client: Client) -> None:
    text = "tasks:\n  - {title: A, track: QQ, depends_on: [B-003]}\n  - {title: B, track: C}\n"
    (warning,) = check.check(text, "p.yaml")
    assert (warning.line, warning.column, warning.code, warning.level) == (2, 23, "UNKNOWN_TRACK", "warning")
    assert check.proven(files.read(text, "p.yaml", 0), None).plans != ()


def test_with_a_store_tasks_tracks_and_keys_are_looked_up(client: Client) -> None:
    client.add("one", track="B")
    client.add("other", key="A-005-other")
    text = """\
name: p
tasks:
  - {title: A, track: QQ, depends_on: [B-003, B-001, task_none]}
  - {title: B, key: A-005-mine}
  - {title: C, parent: C-001}
  - {title: D, key: QQ-001-d}
"""
    assert [(f.line, f.column, f.code) for f in check.check(text, "p.yaml", client)] == [
        (3, 23, "UNKNOWN_TRACK"), (3, 40, "UNKNOWN_TASK"), (3, 54, "UNKNOWN_TASK"), (4, 21, "DUPLICATE"),
        (5, 24, "UNKNOWN_TASK"),
    ]  # fmt: skip


def test_a_plan_that_was_applied_is_right_when_checked_again(client: Client) -> None:
    text = "name: p\ntasks: [{title: A, key: B-007-a}, {title: B, depends_on: [B-007]}]\n"
    apply(client, plan_of(text))
    assert check.check(text, "p.yaml", client) == []


def test_a_later_plan_of_a_file_may_name_what_an_earlier_makes(client: Client) -> None:
    text = "name: one\ntracks: {Q: Quality}\ntasks: [{title: A, key: Q-001-a}]\n---\n"
    text += "name: two\ntasks: [{title: B, track: Q, depends_on: [Q-001]}]\n"
    reading = check.proven(files.read(text, "p.yaml", 0), client)
    assert reading.findings == ()
    for plan in reading.plans:
        apply(client, plan)
    assert client.show("Q-002")["blocked_by"] == ["Q-001-a"]
