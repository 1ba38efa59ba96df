"""Work of other tools as plans: what is open comes over, what is done stays done, nothing comes twice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure import Client
from tenure.core.errors import InvalidInput
from tenure.plans.apply import apply
from tenure.plans.importers import backlog_md
from tenure.plans.importers.item_plan import Imported
from tenure.plans.importers.registry import NAMES, importer_of, read
from tenure.testing.suites.importers import ImporterSuite

FIXTURES = Path(__file__).parent / "fixtures"


def tasks(imported: Imported) -> dict[str, Any]:
    assert imported.plan is not None, imported.findings
    return {task.name: task for task in imported.plan.tasks}


def notes(imported: Imported) -> set[tuple[str, str]]:
    return {(note.what, note.id) for note in imported.notes}


def bad(imported: Imported) -> list[tuple[int, int, str]]:
    return [(f.line, f.column, f.code) for f in imported.errors]


def issues(folder: Path, *lines: dict[str, Any] | str) -> Path:
    (folder / ".beads").mkdir(exist_ok=True)
    file = folder / ".beads" / "issues.jsonl"
    file.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return folder


def issue(id: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "title": f"Issue {id}", "status": "open", "priority": 2, "issue_type": "task", **more}


def blocks(id: str, *others: str, type: str = "blocks") -> list[dict[str, str]]:
    return [{"issue_id": id, "depends_on_id": other, "type": type} for other in others]


# --- beads --------------------------------------------------------------------------------------------------


def test_beads_issues_come_over_with_all_that_belongs_to_them() -> None:
    imported = read("beads", FIXTURES / "beads")
    made = tasks(imported)
    assert imported.findings == ()
    assert list(made) == [
        "kiln-a1f", "kiln-a1f.1", "kiln-a1f.2", "kiln-b2c", "kiln-b3d", "kiln-b4e", "kiln-d6a", "kiln-e7b",
    ]  # fmt: skip
    epic, first, second = made["kiln-a1f"], made["kiln-a1f.1"], made["kiln-a1f.2"]
    assert (epic.type, epic.priority, epic.tags) == ("epic", 20, ("schedule", "kiln-north"))
    assert epic.description == (
        "The schedule drifts by an hour each week.\n\n## Design\n\nKeep the offsets in one table.\n\n"
        "## Acceptance criteria\n\n- no drift in 30 days"
    )
    assert epic.metadata["id"] == "kiln-a1f"
    assert (first.parent, first.depends_on, first.constraints) == ("kiln-a1f", (), {"estimated_duration": 5400})
    assert (second.parent, second.depends_on, second.priority, second.type) == (
        "kiln-a1f", ("kiln-a1f.1",), 0, "bug",
    )  # fmt: skip
    assert second.deadline == 1_772_388_000_000_000
    assert second.metadata["related"] == [{"type": "discovered-from", "id": "kiln-9xz"}]
    assert second.description == "## Comments\n\n- juno: Mind the summer time."
    assert (made["kiln-b4e"].not_before, made["kiln-b4e"].draft) == (1_780_272_000_000_000, False)


def test_what_beads_holds_back_is_a_draft_and_what_is_no_work_is_not_made() -> None:
    imported = read("beads", FIXTURES / "beads")
    assert {name for name, task in tasks(imported).items() if task.draft} == {
        "kiln-b2c", "kiln-b3d", "kiln-d6a", "kiln-e7b",
    }  # fmt: skip
    assert notes(imported) >= {
        ("done", "kiln-9xz"), ("dropped", "kiln-gone"), ("dropped", "kiln-c5f"), ("begun", "kiln-a1f.1"),
        ("met", "kiln-a1f.1"), ("loosened", "kiln-a1f.2"), ("changed", "kiln-a1f"),
    }  # fmt: skip
    assert {note.line for note in imported.notes if note.id == "kiln-b2c"} == {7}


def test_an_import_makes_nothing_twice_and_follows_the_source(client: Client, tmp_path: Path) -> None:
    issues(tmp_path, issue("x-1"), issue("x-2", dependencies=blocks("x-2", "x-1")), issue("x-3"))
    plan = read("beads", tmp_path).plan
    assert plan is not None
    assert apply(client, plan).outcome == "CREATED"
    assert [t["state"] for t in client.tasks(order="key")] == ["ready", "pending", "ready"]
    assert apply(client, plan).outcome == "UNCHANGED"
    issues(
        tmp_path,
        issue("x-1", status="closed"),
        issue("x-2", title="Renamed", dependencies=blocks("x-2", "x-1")),
        issue("x-3"),
        issue("x-4"),
    )
    again = read("beads", tmp_path).plan
    assert again is not None
    outcome = apply(client, again)
    assert ([t["key"] for t in outcome.tasks or ()], outcome.changed, outcome.missing) == (
        ["A-004-issue-x-4"], ("A-002-issue-x-2",), ("A-001-issue-x-1",),
    )  # fmt: skip
    assert (client.show("A-002")["state"], client.show("A-002")["title"]) == ("ready", "Renamed")
    assert client.history("A-001") == [], "nobody is said to have done it here"


def test_bad_lines_are_told_and_nothing_comes_over_unless_they_are_skipped(tmp_path: Path) -> None:
    issues(
        tmp_path,
        issue("x-1"),
        '{"id": "x-2", "title": }',
        "[1]",
        "<<<<<<< HEAD",
        issue("x-3", priority=9),
        issue("x-4", labels="none"),
        issue("", title="no id"),
        issue("x-1", title="Again"),
        issue("x-5", dependencies=blocks("x-5", "x-99")),
        issue("x-6", dependencies=blocks("x-6", "x-6")),
        issue("x-7", dependencies=[{"type": "blocks"}]),
        issue("x-8", due_at="soon"),
        issue("x-9", description="nul \0"),
        issue("x-10", dependencies=blocks("x-10", "x-3")),
        issue("x-11", estimated_minutes="many"),
        issue("x-12", title=7),
    )
    imported = read("beads", tmp_path)
    assert imported.plan is None
    assert bad(imported) == [
        (2, 24, "SYNTAX"), (3, 1, "SYNTAX"), (4, 1, "SYNTAX"), (5, 1, "SYNTAX"), (6, 1, "SYNTAX"), (7, 1, "SYNTAX"),
        (8, 1, "DUPLICATE"), (9, 1, "UNKNOWN_TASK"), (10, 1, "UNKNOWN_TASK"), (11, 1, "SYNTAX"), (12, 1, "SYNTAX"),
        (13, 1, "INVALID_INPUT"), (14, 1, "UNKNOWN_TASK"), (15, 1, "SYNTAX"), (16, 1, "SYNTAX"),
    ]  # fmt: skip
    skipped = read("beads", tmp_path, skip_bad=True)
    assert (skipped.errors, {f.level for f in skipped.findings}) == ([], {"warning"})
    assert {name: task.depends_on for name, task in tasks(skipped).items()} == {
        "x-1": (), "x-5": (), "x-6": (), "x-10": (),
    }  # fmt: skip


def test_circles_of_the_source_are_told_or_opened(tmp_path: Path) -> None:
    issues(
        tmp_path,
        issue("p"),
        issue("c", dependencies=[*blocks("c", "p", type="parent-child"), *blocks("c", "p")]),
        issue("a", dependencies=blocks("a", "b")),
        issue("b", dependencies=blocks("b", "a")),
        issue("m", dependencies=blocks("m", "n", type="parent-child")),
        issue("n", dependencies=blocks("n", "m", type="parent-child")),
    )
    assert {code for _, _, code in bad(read("beads", tmp_path))} == {"CYCLE"}
    opened = tasks(read("beads", tmp_path, skip_bad=True))
    assert (opened["c"].parent, opened["c"].depends_on) == ("p", ())
    assert len(opened["a"].depends_on) + len(opened["b"].depends_on) == 1
    assert [opened["m"].parent, opened["n"].parent].count(None) == 1


def test_families_beyond_the_bounds_stand_side_by_side(client: Client, tmp_path: Path) -> None:
    wide = [issue(f"w-{n}", dependencies=blocks(f"w-{n}", "w", type="parent-child")) for n in range(201)]
    deep = [issue("d-0"), *(issue(f"d-{n}", dependencies=blocks(f"d-{n}", f"d-{n - 1}", type="parent-child"))
                            for n in range(1, 8))]  # fmt: skip
    issues(tmp_path, issue("w"), *wide, *deep)
    imported = read("beads", tmp_path)
    made = tasks(imported)
    assert (len(made["w"].depends_on), made["w-1"].parent) == (201, None)
    assert (made["d-6"].parent, made["d-6"].depends_on) == (None, ("d-7",))
    assert ("parent", "w") in notes(imported)
    assert imported.plan is not None
    assert len(apply(client, imported.plan).tasks or ()) == 210


def test_children_of_closed_parents_stand_alone_and_texts_are_made_to_fit(tmp_path: Path) -> None:
    issues(
        tmp_path,
        issue("p", status="closed"),
        issue(
            "c", dependencies=blocks("c", "p", type="parent-child"), title="T" * 300 + "\nx", description="D" * 70_000
        ),
        issue("o", dependencies=[*blocks("o", "c", type="conditional-blocks"), *blocks("o", "p", type="tracks")]),
        issue("b", status="blocked", dependencies=blocks("b", "c")),
        issue("h", labels=["", "x|y", *(f"l{n}" for n in range(200))], status="hooked", pinned=False),
        issue("q", pinned=True),
    )
    imported = read("beads", tmp_path)
    made = tasks(imported)
    child = made["c"]
    assert (child.parent, len(child.title), child.title[-1]) == (None, 255, "…")
    assert child.spec["prompt"].startswith("T" * 300 + " x\n\nDDD")
    assert child.description.startswith("T" * 300)
    assert (made["o"].depends_on[0].task, made["o"].depends_on[0].on_failure) == ("c", "ignore")
    assert made["o"].metadata["related"] == [{"type": "tracks", "id": "p"}]
    assert (made["b"].draft, made["b"].depends_on) == (False, ("c",))
    assert (len(made["h"].tags), made["h"].tags[0]) == (100, "x-y")
    assert "q" not in made


def test_only_closed_issues_leave_nothing_to_make(tmp_path: Path) -> None:
    imported = read("beads", issues(tmp_path, issue("x-1", status="closed")))
    assert (imported.plan, imported.errors, imported.seen) == (None, [], 1)


@given(
    st.lists(st.binary(max_size=30) | st.text(max_size=30).map(lambda t: json.dumps({"id": t}).encode()), max_size=5)
)
def test_no_bytes_make_an_import_fail(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    file = tmp_path_factory.mktemp("bytes") / "issues.jsonl"
    file.write_bytes(b"\n".join(lines))
    assert read("beads", file).plan is None
    read("beads", file, skip_bad=True)
    task_master_file = file.with_name("tasks.json")
    task_master_file.write_bytes(b'{"tasks": [' + b",".join(lines) + b"]}")
    read("task-master", task_master_file, skip_bad=True)


# --- Task Master --------------------------------------------------------------------------------------------


def test_task_master_lists_of_all_tags_come_over() -> None:
    imported = read("task-master", FIXTURES / "task-master")
    made = tasks(imported)
    assert list(made) == ["2", "2.2", "2.3", "3", "4", "4.1", "6", "winter:1", "winter:2"]
    assert made["2"].description == (
        "Temperature and moisture.\n\n## Details\n\nOver I2C.\n\n## Test strategy\n\nCompare with the thermometer."
    )
    assert (made["2"].priority, made["2.2"].priority, made["4"].priority) == (20, 20, 70)
    assert (made["2.3"].parent, made["2.3"].depends_on) == ("2", ("2.2",))
    assert made["3"].depends_on == ("2", "2.3")
    assert (made["4"].draft, made["4.1"].draft, made["4.1"].parent) == (True, True, "4")
    assert (made["winter:2"].depends_on, made["winter:2"].tags) == (("winter:1",), ("winter",))
    assert made["winter:2"].metadata == {"imported_from": "task-master", "id": "2", "tag": "winter"}
    assert notes(imported) >= {
        ("done", "1"), ("done", "1.1"), ("done", "2.1"), ("dropped", "5"), ("begun", "2"), ("begun", "6"),
        ("met", "2"), ("met", "2.2"), ("loosened", "6"), ("changed", "6"), ("draft", "4"),
    }  # fmt: skip


def test_one_tag_of_task_master_can_be_picked() -> None:
    assert list(tasks(read("task-master", FIXTURES / "task-master", tag="winter"))) == ["winter:1", "winter:2"]
    with pytest.raises(InvalidInput, match="no tag 'summer'") as error:
        read("task-master", FIXTURES / "task-master", tag="summer")
    assert error.value.hint == "there are: master, winter"


def test_the_older_form_and_the_newer_are_the_same_tasks(client: Client) -> None:
    old = read("task-master", FIXTURES / "task-master-old")
    assert list(tasks(old)) == ["2", "2.1", "3"]
    assert old.plan is not None
    apply(client, old.plan)
    new = read("task-master", FIXTURES / "task-master").plan
    assert new is not None
    outcome = apply(client, new)
    assert [t["title"] for t in outcome.tasks or ()] == [
        "Moisture", "Average them", "Write the manual", "Drawings", "Check the wiring", "Insulate the roof",
        "Heat at night",
    ]  # fmt: skip
    assert outcome.missing == ("A-001-read-the-sensors::1",)


def test_wrong_parts_of_tasks_json_are_told_with_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "tasks.json"
    file.write_text(
        '{"tasks": [\n'
        '  {"id": 1, "title": "A", "dependencies": "2"},\n'
        '  {"id": 2},\n'
        '  {"id": 3, "title": ["x"]},\n'
        '  "four",\n'
        '  {"id": 5, "title": "E", "dependencies": [9, {}]},\n'
        '  {"id": 6, "title": "F", "dependencies": [9]},\n'
        '  {"id": 7, "title": "G", "title": "H", "subtasks": [{"id": 1, "title": "I", "dependencies": [1]}]},\n'
        '  {"id": 8, "title": "J", "status": "somewhere"}\n'
        "]}"
    )
    imported = read("task-master", file)
    assert bad(imported) == [
        (2, 43, "WRONG_TYPE"), (3, 3, "WRONG_TYPE"), (4, 22, "WRONG_TYPE"), (5, 3, "WRONG_TYPE"),
        (6, 47, "WRONG_TYPE"), (7, 3, "UNKNOWN_TASK"), (8, 27, "DUPLICATE"), (8, 54, "UNKNOWN_TASK"),
    ]  # fmt: skip
    skipped = tasks(read("task-master", file, skip_bad=True))
    assert list(skipped) == ["6", "7", "7.1", "8"]
    assert skipped["8"].draft
    file.write_text('{"tasks": [{"id": 1,]}')
    assert bad(read("task-master", file)) == [(1, 21, "SYNTAX")]
    assert bad(read("task-master", file, skip_bad=True)) == [(1, 21, "SYNTAX")], "there is nothing to skip to"
    file.write_bytes(b'{"tasks": ["\xff"]}')
    assert bad(read("task-master", file)) == [(1, 1, "SYNTAX")]
    file.write_text('{"name": "x"}')
    with pytest.raises(InvalidInput, match="no list of tasks"):
        read("task-master", file)


# --- Backlog.md ---------------------------------------------------------------------------------------------


def test_backlog_files_come_over_with_front_matter_and_body() -> None:
    imported = read("backlog", FIXTURES / "backlog")
    made = tasks(imported)
    assert imported.findings == ()
    assert list(made) == ["TASK-01", "TASK-01.1", "TASK-02", "DRAFT-1"]
    first, sub = made["TASK-01"], made["TASK-01.1"]
    assert (first.priority, first.tags) == (20, ("winter", "trees", "milestone:Spring- early"))
    assert first.metadata["assignee"] == ["@mara"]
    assert first.description == (
        "## Description\n\nThe rows by the fence have not been cut for years.\n\n## Acceptance Criteria\n"
        "- [x] #1 No branch rubs another\n- [ ] #2 The cuttings are burnt\n\n## Implementation Plan\n\n"
        "1. Start at the gate."
    )
    assert (sub.title, sub.parent, sub.depends_on) == ("Sharpen the saws: both of them", "TASK-01", ())
    assert (sub.deadline, sub.metadata["assignee"]) == (1_772_409_599_000_000, ["@mara", "juno"])
    assert (made["TASK-02"].depends_on, made["TASK-02"].type) == (("TASK-01",), "feature")
    assert made["DRAFT-1"].draft
    assert notes(imported) >= {
        ("done", "TASK-03"), ("done", "TASK-05"), ("dropped", "TASK-04"), ("begun", "TASK-01"), ("met", "TASK-01.1"),
        ("loosened", "TASK-02"), ("draft", "DRAFT-1"),
    }  # fmt: skip


def test_the_last_configured_status_is_the_one_of_finished_tasks(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "backlog", tmp_path, dirs_exist_ok=True)
    config = tmp_path / "backlog" / "config.yml"
    config.write_text('statuses: ["To Do", "Done", "In Progress", "Review"]\npriorities: [Now, Soon, Someday, high]\n')
    task = tmp_path / "backlog" / "tasks" / "task-09 - x.md"
    task.write_text("---\nid: TASK-9\ntitle: X\nstatus: Elsewhere\npriority: soon\n---\n")
    imported = read("backlog", tmp_path)
    made = tasks(imported)
    assert "TASK-02" not in made, "it is in review, which is last here"
    assert (made["TASK-9"].draft, made["TASK-9"].priority) == (True, 37)
    assert ("begun", "TASK-05") in notes(imported)
    config.write_text("statuses: [")
    assert [f.path for f in read("backlog", tmp_path).errors] == [str(config)]


def test_wrong_files_of_a_backlog_are_told_with_their_lines(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "backlog", tmp_path, dirs_exist_ok=True)
    folder = tmp_path / "backlog" / "tasks"
    (folder / "a.md").write_text("no front matter\n")
    (folder / "b.md").write_text("---\nid: B\ntitle: [\n---\n")
    (folder / "c.md").write_text("---\nid: C\nstatus: To Do\n---\n")
    (folder / "d.md").write_bytes(b"---\nid: \xff\n---\n")
    (folder / "e.md").write_text("---\n- x\n---\n")
    (folder / "f.md").write_text("---\nid: F\ntitle: F\ndue_date: soon\ndependencies: TASK-77\npriority: odd\n---\n")
    (folder / "g.md").write_text("---\nid: G\ntitle: !!python/name:os G\n---\n")
    imported = read("backlog", tmp_path)
    assert [(Path(f.path).name, f.line, f.code) for f in imported.errors] == [
        ("a.md", 1, "SYNTAX"), ("b.md", 4, "SYNTAX"), ("c.md", 2, "MISSING"), ("d.md", 1, "SYNTAX"),
        ("e.md", 2, "WRONG_TYPE"), ("f.md", 2, "UNKNOWN_TASK"), ("g.md", 3, "TAG"),
    ]  # fmt: skip
    made = tasks(read("backlog", tmp_path, skip_bad=True))
    assert made["F"].metadata["due_date"] == "soon"
    assert made["F"].depends_on == ()


def test_the_backlog_is_found_where_its_config_says(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "backlog" / "backlog", tmp_path / "notes" / "work")
    (tmp_path / "backlog.config.yml").write_text("backlog_directory: notes/work\n")
    assert backlog_md.find(tmp_path) == tmp_path / "notes" / "work"
    assert len(tasks(read("backlog", tmp_path / "notes" / "work"))) == 4
    inside = tmp_path / "inside"
    inside.mkdir()
    for folder in ("../notes/work", str(tmp_path / "notes" / "work")):
        (inside / "backlog.config.yml").write_text(f"backlog_directory: {folder}\n")
        with pytest.raises(InvalidInput):
            backlog_md.find(inside)


def test_every_import_is_one_that_the_engine_takes(client: Client) -> None:
    for imported in (
        read("beads", FIXTURES / "beads"),
        read("task-master", FIXTURES / "task-master"),
        read("backlog", FIXTURES / "backlog"),
    ):
        assert imported.plan is not None
        assert apply(client, imported.plan).outcome == "CREATED"
        assert apply(client, imported.plan).outcome == "UNCHANGED"
    assert {d["plan"] for d in client.dags()} == {"import-beads", "import-task-master", "import-backlog"}


# --- the contract -------------------------------------------------------------------------------------------


class TestBeads(ImporterSuite):
    importer = importer_of("beads")

    def write(self, folder: Path) -> None:
        issues(folder, issue("x-1"), issue("x-2", dependencies=blocks("x-2", "x-1")), issue("x-3", status="closed"))


class TestTaskMaster(ImporterSuite):
    importer = importer_of("task-master")

    def write(self, folder: Path) -> None:
        listed = [{"id": 1, "title": "One"}, {"id": 2, "title": "Two", "dependencies": [1]}]
        (folder / "tasks.json").write_text(json.dumps({"tasks": listed}))


class TestBacklog(ImporterSuite):
    importer = importer_of("backlog")

    def write(self, folder: Path) -> None:
        tasks = folder / "backlog" / "tasks"
        tasks.mkdir(parents=True)
        for number, needs in ((1, "[]"), (2, "[task-1]")):
            front = f"id: task-{number}\ntitle: Task {number}\nstatus: To Do\ndependencies: {needs}\n"
            (tasks / f"task-{number} - T.md").write_text(f"---\n{front}---\n\nText.\n")


PLUGIN = """
from tenure.plans.importers.port import Importer, Item, Items
from tenure.plans.nodes import SourcePosition

def read(path, report, tag):
    return Items(str(path), [Item(id="m-1", title="Mine", path=str(path), place=SourcePosition(1, 1))])

IMPORTER = Importer(read)
"""


def test_an_installed_importer_is_found_by_its_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tenure_mine.py").write_text(PLUGIN)
    about = tmp_path / "tenure_mine-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: tenure-mine\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[tenure.importers]\nmine = tenure_mine:IMPORTER\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    imported = read("mine", tmp_path)
    assert (list(tasks(imported)), imported.plan and imported.plan.name) == (["m-1"], "import-mine")
    with pytest.raises(InvalidInput, match="no tags"):
        read("mine", tmp_path, tag="x")
    with pytest.raises(InvalidInput, match="there is no importer 'mime'") as unknown:
        read("mime", tmp_path)
    assert unknown.value.hint == f"there are: {', '.join((*NAMES, 'mine'))}"
