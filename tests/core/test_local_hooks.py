"""Local hooks: which event a setting names, and which command."""

from __future__ import annotations

import pytest

from tenure.core.errors import InvalidInput
from tenure.core.events import KINDS
from tenure.core.local_hooks import commands_of, kind_of


@pytest.mark.parametrize(
    ("setting", "kind"),
    [
        ("on_task_completed", "task.completed"),
        ("on_task_result_refused", "task.result_refused"),
        ("on_agent_died", "agent.died"),
        ("on_dag_failed", "dag.failed"),
    ],
)
def test_a_setting_names_an_event(setting: str, kind: str) -> None:
    assert kind_of(setting) == kind


def test_every_event_kind_can_have_a_hook() -> None:
    assert [kind_of("on_" + kind.replace(".", "_", 1)) for kind in KINDS] == list(KINDS)


@pytest.mark.parametrize("setting", ["on_task_complete", "on_", "task_completed", "on_completed"])
def test_a_setting_that_names_no_event_is_refused_with_a_suggestion(setting: str) -> None:
    with pytest.raises(InvalidInput, match=f"hooks.{setting} names no kind of event"):
        kind_of(setting)


def test_a_command_is_a_list_of_texts_or_there_are_several() -> None:
    assert commands_of("on_x", ["a", "b c"]) == (("a", "b c"),)
    assert commands_of("on_x", [["a"], ["b", ""]]) == (("a",), ("b", ""))


@pytest.mark.parametrize(
    "value", ["rm x", [], [""], ["a", 1], [["a"], "b"], [[]], {"a": 1}, ["a\0b"], None, [["a"]] * 11]
)
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match=r"hooks\.on_x"):
        commands_of("on_x", value)
