"""Graphs as text, Mermaid and DOT; titles can only ever be labels."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure import Client
from tenure.core.errors import InvalidInput
from tenure.plans import graph_text
from tenure.plans.apply import apply
from tests.plans.conftest import plan_of

PLAN = """\
name: shop
title: The shop
tasks:
  - {name: a, title: Design}
  - {name: b, title: Build, depends_on: [a, {task: Z-001, on_failure: ignore}]}
  - {name: c, title: Test, depends_on: [b]}
  - {name: d, title: Aside, depends_on: [a]}
"""
EVIL = [
    'say "hi"', "a [b] (c) {d}", "x\ny\r\nz", "end", "a --> b", "<script>alert(1)</script>", "`code` **bold**",
    "back\\slash", '\\"', "#quot; &quot; %%{init}%%", "a;b|c", "n0", "\x1b[31mred\x1b[0m", "\u202eright to left",
    "line\u2028sep", "", "subgraph x", ":::completed", "1. list", "- item", "'single'", "click n0 call x()", "漢字と😀",
]  # fmt: skip


def view(title: str, key: str = "A-001-x") -> dict[str, Any]:
    return {
        "id": "dag_1", "title": title, "plan": None, "status": "open", "total": 2, "completed": 0,
        "tasks": [{"key": key, "state": "ready", "title": title}, {"key": "B", "state": "pending", "title": title}],
        "edges": [{"task": "B", "needs": key, "on_failure": "block"}],
        "critical_path": [key, "B"],
    }  # fmt: skip


def seen(client: Client) -> dict[str, Any]:
    client.define_track("Z", "Last")
    client.add("Elsewhere", track="Z")
    apply(client, plan_of(PLAN))
    receipt = client.claim("A-001").receipt or ""
    client.submit(receipt, 1)
    client.cancel("Z-001")
    client.claim("A-002")
    return client.dag(client.dags()[0]["id"])


def test_the_text_shows_levels_states_holders_and_the_critical_path(client: Client) -> None:
    assert (
        graph_text.draw(seen(client), "text").split("\n", 1)[1]
        == """
level 1
   ✓ A-001-design  completed    Design

level 2
 * ● A-002-build   claimed      Build  [me]  ← A-001-design, Z-001-elsewhere (ignore) (elsewhere)
   ○ A-004-aside   ready        Aside  ← A-001-design

level 3
 * · A-003-test    pending      Test  ← A-002-build

* critical path, 2 long: A-002-build → A-003-test
"""
    )


def test_mermaid_has_a_node_for_each_task_and_marks_the_path(client: Client) -> None:
    lines = graph_text.draw(seen(client), "mermaid").splitlines()
    assert lines[0] == "flowchart TD"
    assert '    n0["A-001-design<br/>Design<br/>completed"]:::completed' in lines
    assert '    n4["Z-001-elsewhere"]:::elsewhere' in lines
    assert "    n4 -. ignore .-> n1" in lines
    assert "    n0 --> n1" in lines
    assert "    class n1,n2 critical" in lines


def test_dot_has_the_same_graph(client: Client) -> None:
    text = graph_text.draw(seen(client), "dot")
    assert text.startswith('digraph "The shop" {\n')
    assert 'n0 [label="A-001-design\\nDesign\\ncompleted", fillcolor="#c8e6c9"];' in text
    assert 'n4 -> n1 [style=dashed, label="ignore"];' in text
    assert 'n1 -> n2 [color="#c62828", penwidth=2];' in text


def test_a_plan_file_is_drawn_without_a_store() -> None:
    text = graph_text.draw(graph_text.planned(plan_of(PLAN + "  - {title: Sub, parent: d}\n")), "text")
    assert "The shop (shop): planned, 0 of 5 completed" in text
    assert "   · d    planned      Aside  ← a, sub" in text
    assert "* critical path, 3 long: a → b → c" in text


def mermaid_labels(text: str) -> list[str]:
    """The labels of the nodes, by Mermaid's own rule: from a quote to the next quote."""
    nodes = [line for line in text.splitlines() if "[" in line]
    labels = [re.fullmatch(r'    n\d+\["([^"]*)"\]:::[a-z_]+', line) for line in nodes]
    assert all(labels), text
    return [match.group(1) for match in labels if match]


def unescaped(label: str) -> str:
    return re.sub(r"#(\d+);", lambda match: chr(int(match.group(1))), label)


def check_mermaid(title: str) -> None:
    text = graph_text.draw(view(title), "mermaid")
    lines = text.splitlines()
    assert len(mermaid_labels(text)) == 2
    assert [line for line in lines if "-->" in line] == ["    n0 --> n1"]
    for label in mermaid_labels(text):
        parts = label.split("<br/>")
        assert len(parts) == 3
        assert not any(c in part for part in parts for c in '<>"`[]{}|&;\\' if c != ";")
        assert unescaped(parts[1]).strip() == (graph_text.shortened(title) or unescaped(parts[0]))


def check_dot(title: str) -> None:
    text = graph_text.draw(view(title), "dot")
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)
    assert bare == drawing_of_nothing
    for label in re.findall(r'label="((?:[^"\\]|\\.)*)"', text):
        assert re.fullmatch(r'(?:[^\\"&]|\\n|\\\\|\\"|&amp;)*', label)


drawing_of_nothing = re.sub(r'"(?:[^"\\]|\\.)*"', '""', graph_text.draw(view("plain"), "dot"))


@pytest.mark.parametrize("title", EVIL)
def test_no_title_can_be_more_than_a_label(title: str) -> None:
    check_mermaid(title)
    check_dot(title)
    lines = graph_text.draw(view(title), "text").splitlines()
    assert len(lines) == 9
    assert not any(ord(c) < 32 or c in "\u202e\u2028" for line in lines for c in line)


@given(st.text(max_size=80))
def test_any_title_is_quoted(title: str) -> None:
    check_mermaid(title)
    check_dot(title)
    assert len(graph_text.draw(view(title), "text").splitlines()) == 9


@pytest.mark.parametrize("form", ["text", "mermaid", "dot"])
def test_names_of_tasks_are_quoted_as_titles_are(form: str) -> None:
    drawn = graph_text.draw(view("x", key='a"] --> b\n["'), form)
    assert len(drawn.splitlines()) == len(graph_text.draw(view("x"), form).splitlines())


def test_a_long_title_is_shortened_and_a_long_path_too() -> None:
    assert len(graph_text.shortened("x" * 500)) == graph_text.LONGEST_LABEL
    tasks = [{"key": f"t{n:03}", "state": "pending", "title": ""} for n in range(300)]
    edges = [{"task": f"t{n:03}", "needs": f"t{n - 1:03}", "on_failure": "block"} for n in range(1, 300)]
    long = view("x") | {"tasks": tasks, "edges": edges, "critical_path": [t["key"] for t in tasks]}
    last = graph_text.draw(long, "text").splitlines()[-1]
    assert last.startswith("* critical path, 300 long: t000 → ")
    assert "…" in last


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(InvalidInput, match="one of text, mermaid, dot; did you mean mermaid"):
        graph_text.draw(view("x"), "mermaiid")
