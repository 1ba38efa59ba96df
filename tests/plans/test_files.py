"""Plan files: what they may say, and every wrong thing found at its place, all at once."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.commands import Dependency, NewTrack
from tenure.core.errors import InvalidInput
from tenure.core.records import RetryPolicy
from tenure.plans import check, files
from tenure.plans.fields import KEYS
from tenure.plans.nodes import MOST_FINDINGS, SourcePosition
from tests.plans.conftest import findings, found, plan_of

FULL = """\
name: shop
title: The shop
description: For whoever reads this file.
tracks:
  Q: Quality
  B: {name: Data, purpose: rows and columns}
defaults:
  priority: high
  tags: [shop]
  metadata: {team: one, area: web}
  deadline: 2h
tasks:
  schema:
    title: Design the schema
    track: B
    caps: [sql, design]
    metadata: {area: db}
    retry: {strategy: fixed, initial_delay: 30s, cap: 5m, retry_on: [crash]}
    constraints: {max_duration: 2h, estimated_duration: 1.5}
  api:
    title: Build the API
    description: |
      Two lines
      of text
    depends_on: [schema, {task: B-017, on_failure: ignore}]
    touches: src/api/**
    deadline: null
    subtasks:
      - Routes
      - title: Errors
        depends_on: routes
  7:
    title: 404
    depends_on: [api]
    deadline: 2026-03-01T18:00:00Z
    draft: true
    output: {type: json}
"""


def test_a_full_file_is_read_whole() -> None:
    plan = plan_of(FULL, now=1_000_000_000)
    assert (plan.name, plan.title, plan.description) == ("shop", "The shop", "For whoever reads this file.")
    assert plan.tracks == (
        NewTrack(code="Q", name="Quality"),
        NewTrack(code="B", name="Data", purpose="rows and columns"),
    )
    schema, api, routes, errors, last = plan.tasks
    assert (schema.name, schema.track, schema.priority, schema.tags) == ("schema", "B", "high", ("shop",))
    assert schema.constraints == {
        "max_duration": 7200, "estimated_duration": 1.5, "required_capabilities": ["sql", "design"],
    }  # fmt: skip
    assert schema.metadata == {"team": "one", "area": "db"}
    assert schema.retry == RetryPolicy(strategy="fixed", initial_delay=30, cap=300, retry_on=("crash",))
    assert schema.deadline == 1_000_000_000 + 7_200_000_000
    assert api.depends_on == ("schema", Dependency(task="B-017", on_failure="ignore"))
    assert (api.description, api.touches, api.deadline) == ("Two lines\nof text\n", ("src/api/**",), None)
    assert (routes.title, routes.name, routes.parent, routes.track) == ("Routes", "routes", "api", None)
    assert (errors.parent, errors.depends_on) == ("api", ("routes",))
    assert (last.name, last.title, last.draft) == ("7", "404", True)
    assert last.deadline == 1_772_388_000_000_000
    assert [dict(r) for r in plan.relative] == [
        {"deadline": 7_200_000_000}, {}, {"deadline": 7_200_000_000}, {"deadline": 7_200_000_000}, {},
    ]  # fmt: skip


def test_each_task_and_field_knows_its_line() -> None:
    plan = plan_of(FULL)
    assert plan.places[0][""] == SourcePosition(13, 3)
    assert plan.places[0]["track"] == SourcePosition(15, 12)
    assert plan.places[1]["depends_on"] == SourcePosition(25, 17)
    assert plan.places[3]["depends_on"] == SourcePosition(31, 21)
    assert [(r.name, r.place) for r in plan.outside] == [("B-017", SourcePosition(25, 26))]


def test_json_says_the_same_as_yaml() -> None:
    yaml = "name: p\ntasks:\n  - {name: a, title: A, priority: 3}\n  - {title: B, depends_on: [a]}\n"
    same = json.dumps(
        {
            "name": "p",
            "tasks": [{"name": "a", "title": "A", "priority": 3}, {"title": "B", "depends_on": ["a"]}],
        },
        indent=1,
    )
    assert plan_of(same, "p.json").tasks == plan_of(yaml).tasks
    assert plan_of(same, "-").tasks == plan_of(yaml).tasks
    assert plan_of("{name: p, tasks: [A]}", "-").tasks[0].title == "A", "YAML may begin with a brace too"


def test_a_task_without_a_name_is_known_by_the_slug_of_its_title() -> None:
    plan = plan_of("tasks:\n  - Design it!\n  - title: Build\n    depends_on: [design-it]\n")
    assert [t.name for t in plan.tasks] == ["design-it", "build"]


def test_a_short_key_names_the_task_of_the_file_that_has_it() -> None:
    plan = plan_of("tasks:\n  - {key: B-003-rows, title: Rows}\n  - {title: Next, depends_on: [B-003]}\n")
    assert plan.tasks[1].depends_on == ("B-003-rows",)
    assert plan.outside == ()


def test_a_parent_may_be_named_instead_of_nesting() -> None:
    plan = plan_of("tasks:\n  - {name: a, title: A}\n  - {title: B, parent: a}\n  - {title: C, parent: B-009}\n")
    assert [t.parent for t in plan.tasks] == [None, "a", "B-009"]
    assert [r.name for r in plan.outside] == ["B-009"]


def test_several_documents_are_several_plans() -> None:
    reading = files.read("name: a\ntasks: [A]\n---\nname: b\ntasks: [B]\n", "x.yaml", 0)
    assert [p.name for p in reading.plans] == ["a", "b"]
    assert found("name: a\ntasks: [A]\n---\nname: a\ntasks: [B]\n") == [(5, 9, "DUPLICATE")]


# --- one of each kind of error, with its exact place --------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # syntax and shape
        ("tasks: [\n", [(2, 1, "SYNTAX")]),
        ("", [(1, 1, "MISSING")]),
        ("# only words\n", [(1, 1, "MISSING")]),
        ("- A\n", [(1, 1, "WRONG_TYPE")]),
        ("name: x\n", [(1, 1, "MISSING")]),
        ("tasks:\n", [(1, 1, "MISSING")]),
        ("tasks: []\n", [(1, 8, "MISSING")]),
        ("tasks: 5\n", [(1, 8, "WRONG_TYPE"), (1, 8, "MISSING")]),
        ("tasks: [A]\ntasks: [B]\n", [(2, 1, "DUPLICATE")]),
        # the top
        ("taks: [A]\ntasks: [A]\n", [(1, 1, "UNKNOWN_KEY")]),
        ("name: a b\ntasks: [A]\n", [(1, 7, "INVALID_INPUT")]),
        ("name: a:b\ntasks: [A]\n", [(1, 7, "INVALID_INPUT")]),
        ("name: [a]\ntasks: [A]\n", [(1, 7, "WRONG_TYPE")]),
        ("tracks: {q: Quality}\ntasks: [A]\n", [(1, 10, "INVALID_INPUT")]),
        ("tracks: {Q: {purpose: x}}\ntasks: [A]\n", [(1, 13, "MISSING")]),
        ("tracks: {Q: {name: x, porpose: y}}\ntasks: [A]\n", [(1, 23, "UNKNOWN_KEY")]),
        ("tracks: [Q]\ntasks: [A]\n", [(1, 9, "WRONG_TYPE")]),
        ("tracks: {Q: ''}\ntasks: [A]\n", [(1, 10, "INVALID_INPUT")]),
        ("defaults: {priority: 101}\ntasks: [A, B]\n", [(1, 22, "INVALID_INPUT")]),
        ("defaults: {title: x}\ntasks: [A]\n", [(1, 12, "UNKNOWN_KEY")]),
        ("defaults: [a]\ntasks: [A]\n", [(1, 11, "WRONG_TYPE")]),
        # fields
        ("tasks:\n  - {name: a}\n", [(2, 5, "MISSING")]),
        ("tasks:\n  - title: ''\n", [(2, 12, "INVALID_INPUT")]),
        ("tasks:\n  - title: A\n    priorty: 3\n", [(3, 5, "UNKNOWN_KEY")]),
        ("tasks:\n  - title: A\n    priority: urgent\n", [(3, 15, "INVALID_INPUT")]),
        ("tasks:\n  - title: A\n    priority: 101\n", [(3, 15, "INVALID_INPUT")]),
        ("tasks:\n  - title: A\n    priority: true\n", [(3, 15, "WRONG_TYPE")]),
        ("tasks:\n  - title: A\n    track: bb\n", [(3, 12, "INVALID_INPUT")]),
        ("tasks:\n  - title: A\n    tags: {a: b}\n", [(3, 11, "WRONG_TYPE")]),
        ("tasks:\n  - title: A\n    tags: [a, [b]]\n", [(3, 15, "WRONG_TYPE")]),
        ("tasks:\n  - title: A\n    tags: ['a,b']\n", [(3, 11, "INVALID_INPUT")]),
        ("tasks:\n  - title: A\n    draft: yes\n", [(3, 12, "WRONG_TYPE")]),
        ("tasks:\n  - title: A\n    max_attempts: 0\n", [(3, 19, "INVALID_INPUT")]),
        ("tasks:\n  - title: A\n    max_attempts: many\n", [(3, 19, "WRONG_TYPE")]),
        ("tasks:\n  - title: A\n    boost: 3\n", [(3, 12, "INVALID_INPUT")]),
        ("tasks:\n  - title: A\n    on_lost: cry\n", [(3, 14, "INVALID_INPUT")]),
        ("tasks:\n  - title: A\n    deadline: 2026-03-01\n", [(3, 15, "INVALID_INPUT")]),
        ("tasks:\n  - title: A\n    metadata: text\n", [(3, 15, "WRONG_TYPE")]),
        ("tasks:\n  - title: A\n    constraints: {max_cots: 1}\n", [(3, 18, "INVALID_INPUT")]),
        ("tasks:\n  - title: A\n    constraints: {max_duration: soon}\n", [(3, 33, "WRONG_TYPE")]),
        ("tasks:\n  - title: A\n    caps: a\n    constraints: {required_capabilities: [b]}\n", [(3, 11, "DUPLICATE")]),
        ("tasks:\n  - title: A\n    output: {validation: Magic Wand}\n", [(3, 13, "INVALID_INPUT")]),
        ("tasks:\n  - title: A\n    retry: {strategy: never}\n", [(3, 12, "INVALID_INPUT")]),
        ("tasks:\n  - title: A\n    retry: {delay: 3s}\n", [(3, 13, "UNKNOWN_KEY")]),
        ("tasks:\n  - title: A\n    retry: {cap: long}\n", [(3, 18, "WRONG_TYPE")]),
        ("tasks:\n  - title: A\n    idempotency_key: x\n", [(3, 5, "UNKNOWN_KEY")]),
        ("tasks:\n  - title: A\n    touches: ['../x']\n", [(3, 14, "INVALID_INPUT")]),
        ("tasks:\n  - [A]\n", [(2, 5, "WRONG_TYPE")]),
        ("tasks:\n  -\n  - A\n", [(2, 4, "WRONG_TYPE")]),
        # keys
        ("tasks:\n  - title: A\n    key: B-3-x\n", [(3, 10, "INVALID_INPUT")]),
        ("tasks:\n  - title: A\n    key: B-003-x\n    track: C\n", [(3, 10, "INVALID_INPUT")]),
        ("tasks:\n  - {title: A, key: B-003-x}\n  - {title: B, key: B-003-y}\n", [(3, 21, "DUPLICATE")]),
        ("tasks:\n  - {title: A, name: n}\n  - {title: B, name: n}\n", [(3, 22, "DUPLICATE")]),
        ("tasks:\n  - A\n  - a!\n", [(3, 5, "DUPLICATE")]),
        ("tasks:\n  x: {title: A, name: y}\n", [(2, 23, "DUPLICATE")]),
        # links
        ("tasks:\n  - title: A\n    depends_on: [b]\n", [(3, 18, "UNKNOWN_TASK")]),
        ("tasks:\n  - title: A\n    depends_on: [a]\n", [(3, 18, "SELF_DEPENDENCY")]),
        ("tasks:\n  - A\n  - title: B\n    depends_on: [a, a]\n", [(4, 21, "DUPLICATE")]),
        ("tasks:\n  - A\n  - title: B\n    depends_on: [{task: a, on_failure: x}]\n", [(4, 18, "INVALID_INPUT")]),
        ("tasks:\n  - A\n  - title: B\n    depends_on: [{tsk: a}]\n", [(4, 19, "UNKNOWN_KEY")]),
        ("tasks:\n  - A\n  - title: B\n    depends_on: [{on_failure: block}]\n", [(4, 18, "MISSING")]),
        ("tasks:\n  - title: A\n    depends_on: [[b]]\n", [(3, 18, "WRONG_TYPE")]),
        ("tasks:\n  - {title: A, parent: zz}\n", [(2, 24, "UNKNOWN_TASK")]),
        ("tasks:\n  - {title: A, parent: a}\n", [(2, 24, "SELF_DEPENDENCY")]),
        ("tasks:\n  - {title: A, depends_on: b}\n  - {title: B, depends_on: [a]}\n", [(2, 28, "CYCLE")]),
        ("tasks:\n  - title: A\n    subtasks:\n      - title: B\n        depends_on: [a]\n", [(2, 5, "CYCLE")]),
        ("tasks:\n  - title: A\n    subtasks: [{title: B, key: A-001-b}]\n", [(3, 32, "INVALID_INPUT")]),
        ("tasks:\n  - title: A\n    subtasks: [{title: B, track: C}]\n", [(3, 34, "INVALID_INPUT")]),
        ("tasks:\n  - title: A\n    subtasks: 3\n", [(3, 15, "WRONG_TYPE")]),
    ],
)  # fmt: skip
def test_each_error_is_found_at_its_place(text: str, expected: list[tuple[int, int, str]]) -> None:
    assert found(text) == expected


def test_all_errors_are_told_at_once_and_sorted() -> None:
    text = """\
name: "bad:name"
titel: x
tasks:
  - name: a
    title: A
    depends_on: [b, nowhere]
  - name: b
    title: B
    depends_on: [a]
    priorty: 3
    priority: 300
  - name: a
    title: ""
    draft: yes
"""
    assert found(text) == [
        (1, 7, "INVALID_INPUT"), (2, 1, "UNKNOWN_KEY"), (6, 17, "CYCLE"), (6, 21, "UNKNOWN_TASK"),
        (10, 5, "UNKNOWN_KEY"), (11, 15, "INVALID_INPUT"), (12, 11, "DUPLICATE"), (13, 12, "INVALID_INPUT"),
        (14, 12, "WRONG_TYPE"),
    ]  # fmt: skip
    assert files.read(text, "x", 0).plans == ()


def test_suggestions_name_what_was_meant() -> None:
    text = "tasks:\n  - {name: parser, title: P, priorty: 3}\n  - {title: X, depends_on: [parsr]}\n"
    assert [f.hint for f in findings(text)] == ["did you mean priority?", "did you mean parser?"]


def test_a_circle_is_spelled_out_and_each_is_told() -> None:
    text = """\
tasks:
  - {name: a, title: A, depends_on: [b]}
  - {name: b, title: B, depends_on: [a]}
  - {name: c, title: C, depends_on: [d]}
  - {name: d, title: D, depends_on: [e]}
  - {name: e, title: E, depends_on: [c]}
"""
    messages = [f.message for f in findings(text)]
    assert len(messages) == 2
    assert any("a → b → a" in m or "b → a → b" in m for m in messages)
    assert any(" → ".join(c) in m for m in messages for c in ("cdec", "decd", "ecde"))


def test_the_printed_line_can_be_jumped_to() -> None:
    (finding,) = findings("tasks:\n  - {title: A, depends_on: [b]}\n", "plans/shop.yaml")
    assert str(finding).startswith("plans/shop.yaml:2:29: depends_on: no task 'b' in this file")


# --- bounds -------------------------------------------------------------------------------------------------


def test_a_plan_has_at_most_ten_thousand_tasks() -> None:
    most = "tasks:\n" + "".join(f"  - t{n}\n" for n in range(10_000))
    assert found(most) == []
    assert found(most + "  - one more\n") == [(2, 3, "TOO_LARGE")]


def test_a_huge_file_is_refused_before_it_is_read() -> None:
    assert found(b"x" * 50_000_000) == [(1, 1, "TOO_LARGE")]


def test_no_more_of_a_huge_file_is_loaded_than_is_needed_to_refuse_it(tmp_path: Path) -> None:
    file = tmp_path / "huge.yaml"
    with file.open("wb") as sparse:
        sparse.truncate(50_000_000)
    source = files.load(file)
    assert len(source) == files.LARGEST_FILE + 1
    assert found(source) == [(1, 1, "TOO_LARGE")]


def test_findings_end_at_a_bound_and_say_so() -> None:
    text = "tasks:\n" + "".join(f"  - {{title: t{n}, nope{n}: 1}}\n" for n in range(300))
    told = findings(text)
    assert len(told) == MOST_FINDINGS + 1
    assert told[-1].message.startswith("200 more")


def test_subtasks_have_bounds_of_depth_and_number() -> None:
    deep = "tasks:\n  - title: t0\n"
    for n in range(1, 7):
        deep += "  " * (2 * n) + "subtasks:\n" + "  " * (2 * n + 1) + f"- title: t{n}\n"
    assert [(f.line, f.code) for f in findings(deep)] == [(14, "TOO_LARGE")]
    wide = "tasks:\n  - title: p\n    subtasks:\n" + "".join(f"      - c{n}\n" for n in range(201))
    assert found(wide) == [(2, 5, "TOO_LARGE")]


def test_what_no_store_can_keep_is_found_at_its_field() -> None:
    assert found('{"tasks": [{"title": "a\\u0000b"}]}', "p.json") == [(1, 22, "INVALID_INPUT")]
    assert found('{"tasks": [{"title": "a", "description": "\\ud800"}]}', "p.json") == [(1, 42, "INVALID_INPUT")]
    assert found("tasks:\n  - title: A\n    description: " + "x" * 70_000) == [(3, 18, "TOO_LARGE")]
    assert found("tasks:\n  - title: A\n    metadata: " + "{a: " * 99 + "1" + "}" * 99) == [(3, 403, "TOO_LARGE")]


def test_bytes_that_are_no_utf_8_are_told_with_their_place() -> None:
    assert found(b"name: x\ntitle: \xe9\n") == [(2, 8, "SYNTAX")]
    assert found("name: x\ntasks: [A]\n".encode("utf-16")) == [(1, 1, "SYNTAX")]
    assert found("\ufefftasks: [A]\n".encode()) == []


@given(st.text(max_size=80), st.sampled_from(["p.yaml", "p.json", "-"]))
def test_no_text_makes_reading_fail(text: str, path: str) -> None:
    reading = files.read(text, path, 0)
    assert bool(reading.plans) != bool(reading.errors)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "name",
                        "title",
                        "tasks",
                        "tracks",
                        "defaults",
                        "depends_on",
                        "subtasks",
                        "retry",
                        "constraints",
                        "a",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=15,
    )
)
def test_no_shape_makes_reading_fail(value: object) -> None:
    files.read(json.dumps({"tasks": value}), "p.json", 0)
    files.read(json.dumps(value), "p.yaml", 0)


def test_a_task_whose_name_is_null_has_the_name_it_stands_under() -> None:
    reading = files.read("name: p\ntasks:\n  api: {title: Write it, name: null}\n", "p.yaml", 0)
    assert not reading.findings
    assert [task.name for task in reading.plans[0].tasks] == ["api"]


def test_the_manuals_example_is_right_and_its_table_has_every_key() -> None:
    manual = (Path(__file__).parents[2] / "docs" / "how-to" / "write-a-plan.md").read_text()
    example = manual.partition("```yaml\n")[2].partition("```")[0]
    assert [t.name for t in plan_of(example).tasks] == ["schema", "api", "routes", "errors", "test-it"]
    told = {word for line in manual.splitlines() if line.startswith("| `") for word in re.findall(r"`(\w+)`", line)}
    assert set(KEYS) - told == set()


# --- names and files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "name"),
    [("plans/shop.yaml", "shop"), ("My plan (2).yml", "My-plan-2"), ("-", None), ("a:b.yaml", "a-b"), ("é.yaml", "é")],
)
def test_a_plan_can_have_its_files_name(path: str, name: str | None) -> None:
    assert files.name_for(path) == name


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="No such file"):
        files.load(tmp_path / "none.yaml")
    with pytest.raises(InvalidInput, match="directory"):
        files.load(tmp_path)


def test_plans_of_a_wrong_file_are_refused_with_the_first_error() -> None:
    with pytest.raises(InvalidInput, match=r"p\.yaml:1:1: .*; and 1 more") as error:
        check.plans_of(files.read("taks: 1\nb: 2\ntasks: [A]\n", "p.yaml", 0))
    assert error.value.hint == "did you mean tasks?"
