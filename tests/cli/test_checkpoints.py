"""`checkpoint save` and `checkpoint show`: one shape, and as much of it as a budget allows."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tenure.agents.tokens import estimate
from tests.cli.conftest import Tenure


@pytest.fixture
def held(tenure: Tenure, add: Callable[..., str]) -> Tenure:
    add("Write the parser")
    assert tenure("claim").code == 0
    return tenure


def test_a_checkpoint_is_saved_and_shown_most_important_first(held: Tenure) -> None:
    saved = held(
        "checkpoint", "save", "--file", "a.py", "--file", "b.py", "--tests", "3 fail", "--next-action", "mend them",
        "--blocker", "no key", "--notes", "none", "--json",
    )  # fmt: skip
    assert saved.code == 0
    assert saved.json["data"] == {
        "next_action": "mend them", "files": ["a.py", "b.py"], "tests": "3 fail", "blockers": ["no key"],
        "notes": "none",
    }  # fmt: skip
    assert held("checkpoint", "show").out == (
        "next action: mend them\nblockers: no key\ntests: 3 fail\nfiles: a.py, b.py\nnotes: none\n"
    )
    assert held("checkpoint", "show", "A-001", "--json").json["checkpoint"] == saved.json["data"]


def test_a_checkpoint_by_json_has_the_same_shape(held: Tenure) -> None:
    data = {"next_action": "go on", "files": "one.py", "notes": {"free": [1, 2]}}
    assert held("checkpoint", "save", "--data", "-", stdin=json.dumps(data)).code == 0
    assert held("checkpoint", "show", "--json").json["checkpoint"] == {**data, "files": ["one.py"]}
    assert 'notes: {"free":[1,2]}' in held("checkpoint", "show").out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--data", '{"next_acton": "x"}'], "next_acton"),
        (["--data", '{"next_action": 3}'], "next_action must be a text"),
        (["--data", '{"files": [1]}'], "files must be a list of texts"),
        (["--data", "[1]"], "a JSON object"),
        (["--data", "{}"], "empty"),
        ([], "empty"),
    ],
)
def test_a_checkpoint_of_another_shape_is_refused_with_the_way_on(held: Tenure, words: list[str], told: str) -> None:
    said = held("checkpoint", "save", *words)
    assert said.code == 8
    assert told in said.err
    assert held("checkpoint", "show").out == "A-001-write-the-parser: no checkpoint yet\n"


def test_data_and_options_together_are_refused(held: Tenure) -> None:
    assert held("checkpoint", "save", "--data", "{}", "--tests", "x").code == 2


@pytest.mark.parametrize("budget", [1, 5, 12, 30, 100, 1000])
def test_a_checkpoint_fits_into_its_budget(held: Tenure, budget: int) -> None:
    data: dict[str, Any] = {
        "next_action": "write the test of the parser for nested lists and see it fail " * 3, "files": ["src/a.py"] * 20,
        "blockers": ["no staging key"], "tests": "12 pass", "notes": {"a": "b" * 500},
    }  # fmt: skip
    held("checkpoint", "save", "--data", json.dumps(data))
    said = held("checkpoint", "show", "--budget", budget, "--json").json
    assert estimate(said["text"]) <= budget
    if budget >= 30:
        assert said["text"].startswith("next action: write the test")
    assert bool(said["left_out"]) == (budget < 1000)


def test_the_next_holder_sees_what_was_left(held: Tenure) -> None:
    held("checkpoint", "save", "--next-action", "mend the test")
    held("release")
    assert "mend the test" in held("checkpoint", "show", "A-001").out
    other = held("claim", "A-001", "--agent", "bo", "--session", "other", "--json").json
    assert other["checkpoint"]["data"] == {"next_action": "mend the test"}


def test_a_stale_holder_cannot_save(held: Tenure) -> None:
    held("recover", "A-001")
    held("claim", "A-001", "--agent", "bo", "--session", "other")
    said = held("checkpoint", "save", "A-001", "--next-action", "x")
    assert said.code == 6
    assert "STALE_GENERATION" in said.out
