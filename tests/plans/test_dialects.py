"""Plan files of other shapes are read as ours."""

from __future__ import annotations

import pytest

from tenure.core.commands import Plan
from tenure.core.records import Task
from tenure.plans.files import PlanFile, read
from tenure.stores.memory import Memory
from tenure.testing.clock import FakeClock
from tenure.testing.factories import Scene


@pytest.fixture
def scene() -> Scene:
    clock = FakeClock()
    return Scene(Memory(clock=clock), clock)


def plan(text: str, path: str = "plan.yaml") -> PlanFile:
    found = read(text, path, now=0)
    assert found.errors == []
    (one,) = found.plans
    return one


def test_tasks_may_stand_below_their_tracks() -> None:
    made = plan("""
project: shop
tracks:
  A:
    - id: A1
      description: |
        Write the API.
        With tests.
    - {id: A2, description: Write the page, depends_on: [A1]}
  B:
    - {id: 7, title: Deploy, depends_on: [A2]}
""")
    assert made.name == "shop"
    assert [(t.code, t.name) for t in made.tracks] == [("A", "A"), ("B", "B")]
    assert [(t.name, t.title, t.track) for t in made.tasks] == [
        ("A1", "Write the API.", "A"), ("A2", "Write the page", "A"), ("7", "Deploy", "B"),
    ]  # fmt: skip
    assert made.tasks[0].description == "Write the API.\nWith tests.\n"
    assert [getattr(d, "task", d) for d in made.tasks[2].depends_on] == ["A2"]


@pytest.mark.parametrize("path", ["plan.json", "plan.yaml"])
def test_a_list_with_ids_is_a_plan(path: str) -> None:
    made = plan('[{"id": 1, "title": "One"}, {"id": 2, "title": "Two", "depends_on": [1]}]', path)
    assert [(t.name, t.title) for t in made.tasks] == [("1", "One"), ("2", "Two")]
    assert [getattr(d, "task", d) for d in made.tasks[1].depends_on] == ["1"]


def test_an_error_in_another_shape_keeps_its_place() -> None:
    (error,) = read("tracks:\n  A:\n    - {id: x, description: Do it, prioritty: 1}\n", "p.yaml", now=0).errors
    assert (error.line, "prioritty" in error.message) == (3, True)


def test_a_list_without_tasks_is_still_an_error() -> None:
    assert read("[1, 2]", "p.yaml", now=0).errors


def test_a_list_with_something_else_in_it_is_wrong_at_that_item() -> None:
    (error,) = read("- {id: a, title: A}\n- [1]\n", "p.yaml", now=0).errors
    assert error.line == 2, error


DESIGNED = """\
project: generation-clock
tracks:
  A:
    - id: A-001-core-framework
      description: Implement core framework
      depends_on: []
    - id: A-002-claim-manager
      description: Implement claim manager
      depends_on: [A-001-core-framework]
  B:
    - id: B-003-repositories
      description: Implement repository pattern
      depends_on: [A-001]
    - id: B-007
      description: Something later
      depends_on: [B-003-repositories]
"""


def test_an_id_in_the_form_of_a_key_is_the_key_number_included(scene: Scene) -> None:
    made = plan(DESIGNED)
    names = ["A-001-core-framework", "A-002-claim-manager", "B-003-repositories", "B-007"]
    assert [t.name for t in made.tasks] == names
    assert [t.key for t in made.tasks] == [*names[:3], "B-007-something-later"]
    planned = {"tasks": made.tasks, "name": made.name, "tracks": made.tracks}
    keys = [task["key"] for task in scene.do(Plan, **planned).tasks or ()]
    assert keys == ["A-001-core-framework", "A-002-claim-manager", "B-003-repositories", "B-007-something-later"]
    scene.do(Plan, **planned)
    assert len(scene.rows(Task)) == 4
    assert scene.add("next", track="B") == "B-008-next"


@pytest.mark.parametrize("id", ["A-001::1", "a-001-x", "A-1", "7", "A-001 x"])
def test_any_other_id_is_a_name_alone(id: str) -> None:
    (task,) = plan(f"- {{id: '{id}', title: One}}\n").tasks
    assert (task.name, task.key) == (id, None)


def test_a_key_beside_an_id_counts(scene: Scene) -> None:
    (task,) = plan("- {id: A-001-x, key: A-005-y, title: One}\n").tasks
    assert (task.name, task.key) == ("A-001-x", "A-005-y")
