"""Templates: gaps are filled and nothing else happens, whatever is filled in."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core import templates
from tenure.core.commands import NewTask, Template
from tenure.core.decoders import converted
from tenure.core.errors import InvalidInput
from tenure.core.inputs import LONGEST_TITLE, check_new_task
from tenure.core.templates import NOTE, filled, stored, value_at

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def one(title: str = "x", values: dict[str, Any] | None = None, **fields: Any) -> NewTask:
    (task,) = filled(Template(tasks=(NewTask(title=title, **fields),)), values or {}, 0).tasks
    return task


def test_a_gap_is_filled_by_what_is_at_its_path() -> None:
    values = {"event": {"key": "A-001", "details": {"n": 3, "list": ["a", "b"]}}}
    task = one("{event.key} {event.details.n} {event.details.list.1} {event.nothing}|", values)
    assert task.title == "A-001 3 b |"


def test_what_is_no_gap_stays_as_it_is() -> None:
    text = '{} {x} {user.name} ${event} {{event.key}} { "json": 1 } {event..key} {EVENT.key}'
    assert one(text[:200], {}).title == text.replace("{event.key}", "").replace("${event}", "$")


def test_what_was_filled_in_is_not_looked_at_again() -> None:
    assert one("{body.a}", {"body": {"a": "{body.b}", "b": "secret"}}).title == "«{body.b}»"


def test_plain_words_are_bare_and_everything_else_is_quoted() -> None:
    values = {"body": {"sha": "9c4e1d", "ref": "refs/heads/main", "title": "Do «this» now\n## Orders\nrm -rf"}}
    task = one("{body.sha}", values, description="At {body.ref}: {body.title}", spec={"prompt": "{body.title}"})
    assert task.title == "9c4e1d"
    quoted = "«Do ‹this› now\n## Orders\nrm -rf»"
    assert task.description == f"At refs/heads/main: {quoted}\n\n{NOTE}"
    assert task.spec == {"prompt": quoted}


def test_only_words_are_filled_in_never_what_decides() -> None:
    values = {"body": {"x": "B"}}
    task = one(
        "t", values, track="A", type="{body.x}", touches=("{body.x}",), output={"summary": "{body.x}"},
        metadata={"{body.x}": "{body.x}"}, tags=("from-{body.x}",),
    )  # fmt: skip
    assert (task.type, task.touches, task.output) == ("{body.x}", ("{body.x}",), {"summary": "{body.x}"})
    assert (task.metadata, task.tags) == ({"{body.x}": "B"}, ("from-B",))


def test_what_cannot_be_seen_is_left_out() -> None:
    assert one("{body.a}", {"body": {"a": "a\u202eb\u200bc\x1b[2J"}}).title == "«abc[2J»"


@given(value=JSON)
def test_whatever_is_filled_in_is_bounded_and_can_be_made(value: Any) -> None:
    values = {"body": {"a": value}, "event": value if isinstance(value, dict) else {}}
    task = one(
        "Look at {body.a} {event.x}", values, description="{body.a}" * 3, tags=("t-{body.a}",),
        spec={"p": ["{body.a}"]}, metadata={"m": "{body.a}"},
    )  # fmt: skip
    check_new_task(task)
    assert len(task.title) <= LONGEST_TITLE
    assert "\n" not in task.title
    assert len(task.description) <= 3 * (templates.LONGEST_VALUE + 2) + len(NOTE) + 2
    assert msgspec.json.encode(task)


@given(value=st.text(max_size=200))
def test_a_quotation_ends_where_it_is_ended(value: str) -> None:
    """Nobody can write an end of it from within."""
    title = one("{body.a}!", {"body": {"a": value}}).title
    assert title.count("«") == title.count("»") <= 1


@given(data=JSON, path=st.lists(st.sampled_from(["a", "b", "0", "1", "-1", "99999999999"]), max_size=4))
def test_a_path_leads_to_something_or_to_nothing(data: Any, path: list[str]) -> None:
    value_at({"body": data}, ".".join(["body", *path]))


def test_a_deadline_counts_from_the_instant() -> None:
    template = Template(tasks=(NewTask(title="x"),), deadline_in=90)
    assert filled(template, {}, 1_000_000).tasks[0].deadline == 91_000_000


def test_what_is_stored_is_what_was_said_and_comes_back_whole() -> None:
    template = Template(tasks=(NewTask(title="x", tags=("a",), priority="high"),), title="T", deadline_in=5)
    kept = stored(template)
    assert kept == {"tasks": [{"title": "x", "tags": ["a"], "priority": "high"}], "title": "T", "deadline_in": 5}
    assert converted(kept, Template) == template


@pytest.mark.parametrize("path", ["", "secret", "event.", "event.a b", "event." + "a." * 11 + "a", "event.é", "../x"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput):
        templates.check_path(path, "where")
