"""`plan` and `import` through the command line: files in, tasks out, and every error where an editor can jump to."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Tenure

FIXTURES = Path(__file__).parents[1] / "plans" / "fixtures"
SHOP = """\
name: shop
title: The shop
tracks: {Q: Quality}
tasks:
  - {name: schema, title: Design the schema, track: B, priority: high}
  - {name: api, title: Build the API, depends_on: [schema], subtasks: [Routes, Errors]}
  - {name: test, title: Test it, track: Q, depends_on: [api]}
"""
WRONG = """\
name: shop
tasks:
  - {name: a, title: A, depends_on: [b]}
  - {name: b, title: B, depends_on: [a], priorty: 3}
"""


def write(tenure: Tenure, name: str, text: str) -> str:
    (tenure.folder / name).write_text(text)
    return name


def test_check_says_all_that_is_wrong_in_lines_to_jump_to(tenure: Tenure) -> None:
    file = write(tenure, "shop.yaml", WRONG)
    said = tenure("plan", "check", file)
    assert said.code == 8
    assert said.out.splitlines() == [
        "shop.yaml:3:37: the dependencies form a cycle: a → b → a",
        "shop.yaml:4:42: priorty: unknown key (did you mean priority?)",
    ]
    listed = tenure("plan", "check", file, "--json")
    assert listed.code == 8
    assert [(f["path"], f["line"], f["column"], f["code"]) for f in listed.json] == [
        ("shop.yaml", 3, 37, "CYCLE"), ("shop.yaml", 4, 42, "UNKNOWN_KEY"),
    ]  # fmt: skip


def test_check_takes_many_files_and_stdin_and_needs_no_store(bare: Tenure) -> None:
    good, bad = write(bare, "shop.yaml", SHOP), write(bare, "bad.json", '{"tasks": [')
    said = bare("plan", "check", good, bad, "-", stdin="tasks: [{title: A, track: QQ}]")
    assert said.code == 8
    lines = said.out.splitlines()
    assert lines[:2] == [
        "shop.yaml: 5 tasks, nothing wrong",
        "bad.json:1:12: not JSON: a value is expected; the text ends here",
    ]
    assert lines[2].startswith("-:1:27: warning: track QQ is neither in this file nor a default track (")
    assert lines[3:] == [
        "-: 1 task, nothing wrong",
        "no store here: tasks and tracks outside the files were not looked up",
    ]
    assert bare("plan", "check", good, "--json").json == []
    assert bare("plan", "check", "none.yaml").code == 8


def test_check_looks_tasks_up_where_there_is_a_store(tenure: Tenure) -> None:
    file = write(tenure, "p.yaml", "tasks:\n  - {title: A, depends_on: [B-003]}\n")
    assert "p.yaml:2:29: 'B-003' is not a task of default" in tenure("plan", "check", file).out


def test_apply_makes_the_plan_and_again_changes_nothing(tenure: Tenure) -> None:
    file = write(tenure, "shop.yaml", SHOP)
    dry = tenure("plan", "apply", file, "--dry-run")
    assert (dry.code, "nothing was stored; it would be: 5 created" in dry.out) == (0, True)
    assert tenure("list", "--json").json == []
    said = tenure("plan", "apply", file, "--json")
    assert said.code == 0
    (plan,) = said.json["plans"]
    assert (plan["name"], plan["outcome"]) == ("shop", "CREATED")
    assert [t["key"] for t in plan["tasks"]] == [
        "B-001-design-the-schema", "A-001-build-the-api", "A-001-build-the-api::1", "A-001-build-the-api::2",
        "Q-001-test-it",
    ]  # fmt: skip
    assert tenure("plan", "apply", file).out == "shop: 0 created, 0 changed\n"
    assert tenure("undo", plan["command_id"], "--json").json["outcome"] == "UPDATED"


def test_apply_reports_what_it_left_and_prunes_when_told(tenure: Tenure) -> None:
    tenure("plan", "apply", write(tenure, "shop.yaml", SHOP))
    assert tenure("claim", "B-001", "--agent", "ann", "--session", "s").code == 0
    less = "name: shop\ntasks: [{name: schema, title: Another, track: B}, {name: api, title: Build it}]\n"
    file = write(tenure, "shop.yaml", less)
    (plan,) = tenure("plan", "apply", file, "--json").json["plans"]
    assert (plan["changed"], plan["left"], plan["missing"]) == (
        ["A-001-build-the-api"], ["B-001-design-the-schema"],
        ["A-001-build-the-api::1", "A-001-build-the-api::2", "Q-001-test-it"],
    )  # fmt: skip
    said = tenure("plan", "apply", file, "--prune")
    assert "  Q-001-test-it  changed" in said.out
    assert tenure("show", "Q-001", "--json").json["state"] == "cancelled"


def test_a_wrong_file_stores_nothing_and_tells_all(tenure: Tenure) -> None:
    file = write(tenure, "shop.yaml", WRONG.replace("name: shop\n", "name: shop\ntracks: {Q: Quality}\n"))
    said = tenure("plan", "apply", file)
    assert (said.code, said.out) == (8, "")
    assert said.err.splitlines()[0] == "tenure: shop.yaml: 2 errors; nothing was stored"
    assert "shop.yaml:5:42: priorty: unknown key (did you mean priority?)" in said.err
    error = tenure("plan", "apply", file, "--json").json["error"]
    assert (error["code"], len(error["findings"])) == ("INVALID_INPUT", 2)
    assert tenure("list", "--json").json == []


def test_a_plan_from_a_pipe_needs_a_name(tenure: Tenure) -> None:
    assert tenure("plan", "apply", "-", stdin="tasks: [A]").code == 8
    assert tenure("plan", "apply", "-", "--name", "piped", stdin="tasks: [A]").code == 0
    said = tenure.process("plan", "apply", "-", "--json", stdin='{"name": "piped", "tasks": ["A", "B"]}')
    assert [t["key"] for t in said.json["plans"][0]["tasks"]] == ["A-002-b"]


def test_a_file_of_several_plans_is_applied_in_turn(tenure: Tenure) -> None:
    one = "name: one\ntasks: [{title: A, key: A-007-a}]\n---\n"
    file = write(tenure, "two.yaml", one + "name: two\ntasks: [{title: B, depends_on: [A-007]}]\n")
    assert tenure("plan", "apply", file, "--name", "x").code == 8
    assert tenure("plan", "check", file).out == "two.yaml: 2 tasks, nothing wrong\n"
    said = tenure("plan", "apply", file, "--json")
    assert [(plan["name"], plan["outcome"]) for plan in said.json["plans"]] == [("one", "CREATED"), ("two", "CREATED")]
    assert tenure("show", "A-008", "--json").json["blocked_by"] == ["A-007-a"]
    # What only the engine can see: the second is refused, and that the first stands is said.
    circle = "name: one\ntasks: [{title: A, key: A-007-a, depends_on: [A-008]}]\n"
    file = write(tenure, "circle.yaml", "name: new\ntasks: [N]\n---\n" + circle)
    refused = tenure("plan", "apply", file)
    assert refused.code == 8
    assert "A-007-a → A-008-b → A-007-a; of this file, new had been applied before" in refused.err


def test_the_graph_is_drawn_in_every_form(tenure: Tenure) -> None:
    file = write(tenure, "shop.yaml", SHOP)
    assert "planned, 0 of 5 completed" in tenure("plan", "graph", file).out
    assert tenure("plan", "graph").code == 4
    tenure("plan", "apply", file)
    text = tenure("plan", "graph").out
    assert " * ○ B-001-design-the-schema  ready        Design the schema" in text
    assert tenure("plan", "graph", "shop").out == text
    assert tenure("plan", "graph", "Q-001").out == text
    assert tenure("plan", "graph", "shop", "--format", "mermaid").out.startswith("flowchart TD\n")
    assert tenure("plan", "graph", "shop", "--format", "dot").out.startswith('digraph "The shop" {')
    view = tenure("plan", "graph", "shop", "--json").json
    assert json.loads(tenure("plan", "graph", "shop", "--format", "json").out) == view
    assert view["critical_path"][-1] == "Q-001-test-it"
    said = tenure("plan", "graph", "shopp")
    assert (said.code, "plans here: shop" in said.err) == (4, True)


def test_an_export_can_be_applied_and_never_replaces_a_file(tenure: Tenure) -> None:
    tenure("plan", "apply", write(tenure, "shop.yaml", SHOP))
    text = tenure("plan", "export", "shop").out
    assert tenure("plan", "apply", "-", stdin=text).out == "shop: 0 created, 0 changed\n"
    assert tenure("plan", "export", "Q-001", "-o", "copy.yaml").code == 0
    assert (tenure.folder / "copy.yaml").read_text() == text
    assert tenure("plan", "export", "shop", "-o", "shop.yaml").code == 8
    assert (tenure.folder / "shop.yaml").read_text() == SHOP
    assert tenure("plan", "export").code == 8
    assert tenure("plan", "export", "shop", "--all").code == 8
    tenure("add", "Alone")
    assert tenure("plan", "export", "--all", "--json").json["text"].count("\n---\n") == 1
    assert "key:" not in tenure("plan", "export", "shop", "--no-keys").out
    assert tenure("plan", "export", "none").code == 4


@pytest.mark.parametrize(
    ("tool", "count"), [("beads", 8), ("task-master", 9), ("backlog", 4)], ids=["beads", "task-master", "backlog"]
)
def test_an_import_takes_over_what_is_open_and_nothing_twice(tenure: Tenure, tool: str, count: int) -> None:
    folder = FIXTURES / tool
    dry = tenure("import", tool, folder, "--dry-run", "--json")
    assert (dry.code, len(dry.json["outcome"]["tasks"])) == (0, count)
    assert tenure("list", "--json").json == []
    said = tenure("import", tool, folder)
    assert said.code == 0
    assert f"{count} created, 0 changed" in said.out
    assert "done there, not imported" in said.out
    again = tenure("import", tool, folder, "--json")
    assert (again.json["outcome"]["outcome"], again.json["plan"]) == ("UNCHANGED", f"import-{tool}")
    assert {note["what"] for note in again.json["notes"]} >= {"done", "dropped", "begun", "draft", "met", "loosened"}
    shown = tenure("list", "--json").json
    assert len(shown) == count
    assert all(task["metadata"]["imported_from"] == tool for task in shown)


def test_an_import_starts_where_it_is_run(tenure: Tenure) -> None:
    shutil.copytree(FIXTURES / "beads", tenure.folder, dirs_exist_ok=True)
    assert tenure("import", "beads").code == 0
    assert tenure("import", "task-master").code == 8
    assert tenure("import", "task-master", FIXTURES / "task-master", "--tag", "winter").code == 0
    assert [t["title"] for t in tenure("list", "-t", "winter", "--json").json] == ["Insulate the roof", "Heat at night"]


def test_bad_lines_stop_an_import_unless_they_are_skipped(tenure: Tenure) -> None:
    file = write(tenure, "issues.jsonl", '{"id": "x-1", "title": "One", "priority": 2}\n{"id": \n')
    said = tenure("import", "beads", file)
    assert (said.code, said.out) == (8, "")
    assert "issues.jsonl:2:8: not JSON: Expecting value" in said.err
    assert "--skip-bad" in said.err
    assert tenure("list", "--json").json == []
    skipped = tenure("import", "beads", file, "--skip-bad")
    assert skipped.code == 0
    assert "issues.jsonl:2:8: warning: not JSON: Expecting value" in skipped.out
    assert [t["title"] for t in tenure("list", "--json").json] == ["One"]
    only_done = write(tenure, "done.jsonl", '{"id": "x-1", "title": "One", "status": "closed"}\n')
    assert "nothing open to import" in tenure("import", "beads", only_done).out


def test_an_agent_may_check_and_draw_but_not_apply(tenure: Tenure, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tenure, "shop.yaml", SHOP)
    monkeypatch.setenv("TENURE_ROLE", "agent")
    assert tenure("plan", "check", file).code == 0
    assert tenure("plan", "graph", file).code == 0
    assert tenure("plan", "apply", file).code == 7
    assert tenure("import", "beads", FIXTURES / "beads").code == 7
