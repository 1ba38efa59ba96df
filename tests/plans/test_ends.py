"""What the end of a plan makes, from its file to the store and back."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.client import Client
from tenure.core.errors import InvalidInput
from tenure.plans import apply, export, files

FILE = """\
name: shop
title: The shop
tasks:
  - title: Build it
on_end:
  completed: Announce {dag.title}
  failed:
    - name: why
      title: Find out what is wrong with {dag.title}
      priority: high
      tags: [post-mortem]
    - title: Mend it
      depends_on: why
"""


def plan_of(text: str) -> files.PlanFile:
    reading = files.read(text, "shop.yaml", 0)
    assert reading.errors == []
    (plan,) = reading.plans
    return plan


def test_on_end_says_what_is_made(client: Client) -> None:
    apply.apply(client, plan_of(FILE))
    (dag,) = client.dags()
    assert dag["on_end"]["completed"] == {"tasks": [{"title": "Announce {dag.title}"}]}
    assert [task["title"] for task in dag["on_end"]["failed"]["tasks"]] == [
        "Find out what is wrong with {dag.title}", "Mend it",
    ]  # fmt: skip


def test_what_was_exported_changes_nothing(client: Client) -> None:
    apply.apply(client, plan_of(FILE))
    text = export.export(client, plan="shop")
    assert apply.apply(client, plan_of(text)).outcome == "UNCHANGED"
    left_out = FILE.partition("on_end")[0]
    assert apply.apply(client, plan_of(left_out)).outcome == "UPDATED"
    assert client.dags()[0]["on_end"] == {}


@pytest.mark.parametrize(
    ("ends", "line", "message"),
    [
        ("on_end: later", 3, "on_end"),
        ("on_end:\n  done: x", 4, "on_end.done"),
        ("on_end:\n  failed: {priority: high}", 4, "title"),
        ("on_end:\n  failed: {title: x, key: A-001-x}", 4, "key"),
        ("on_end:\n  failed: {title: x, priority: urgent}", 4, "priority"),
        ("on_end:\n  failed: []", 4, "no tasks"),
    ],
)
def test_what_is_wrong_has_its_line(ends: str, line: int, message: str) -> None:
    reading = files.read(f"tasks:\n  - title: a\n{ends}\n", "x.yaml", 0)
    (finding,) = reading.errors
    assert message in finding.message
    assert finding.line == line


def test_what_the_store_does_not_know_is_refused_with_all_of_the_plan(client: Client) -> None:
    text: Any = FILE.replace("priority: high", "track: QQ")
    with pytest.raises(InvalidInput, match="QQ"):
        apply.apply(client, plan_of(text))
    assert client.dags() == []
