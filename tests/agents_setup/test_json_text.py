"""JSON edited as text: what was there stays, to the byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.agents.recipes import json_text
from tenure.agents.recipes.pieces import CannotMerge
from tenure.agents.recipes.setup_record import inserted, undone

names = st.text(max_size=6) | st.sampled_from(["hooks", "Stop", "mcpServers", 'a"b', "\\", "{", "}", "[1,2]", "//x"])
atoms = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
values = st.recursive(atoms, lambda v: st.lists(v, max_size=3) | st.dictionaries(names, v, max_size=3), max_leaves=10)
objects = st.dictionaries(names, values, max_size=4)
layouts = st.sampled_from(
    [
        {"indent": 2},
        {"indent": 4},
        {"indent": "\t"},
        {"indent": 0},
        {},
        {"separators": (",", ":")},
        {"indent": 2, "ensure_ascii": False},
        {"ensure_ascii": False},
    ]
)


@st.composite
def documents(draw: st.DrawFn, content: st.SearchStrategy[Any] = objects) -> str:
    text = json.dumps(draw(content), **draw(layouts))
    text = draw(st.sampled_from(["", "\n", "  ", "\ufeff"])) + text + draw(st.sampled_from(["", "\n", "\n\n"]))
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


def at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value[name]
    return value


def is_open_to(value: Any, path: tuple[str, ...]) -> bool:
    """Nothing is at the path yet, and all that is on the way to it are objects."""
    for name in path:
        if not isinstance(value, dict):
            return False
        if name not in value:
            return True
        value = value[name]
    return False


PATH = ("hooks", "Stop")


@given(documents(), values)
def test_a_member_is_put_in_by_one_insertion_and_taken_out_again(text: str, value: Any) -> None:
    before = json_text.read(text)
    if not is_open_to(before, PATH):
        with pytest.raises(CannotMerge):
            json_text.put_member(text, PATH, value)
        return
    after = json_text.put_member(text, PATH, value)

    parsed = json_text.read(after)
    assert at(parsed, PATH) == value
    kept = inserted(text, [after])
    assert kept is not None
    assert undone(after, kept) == text
    del parsed["hooks"]["Stop"]
    if "hooks" not in before:
        assert parsed.pop("hooks") == {}
    assert list(parsed.items()) == list(before.items())

    holder = before.get("hooks", before)
    taken = json_text.take_member(after, PATH)
    if holder:
        assert taken == text
    else:  # an object that held only our member cannot be distinguished from one of ours
        assert json_text.read(taken) in ({}, {k: v for k, v in before.items() if k != "hooks"})


@given(documents(), st.lists(values, max_size=3), values)
def test_an_item_is_appended_and_only_ours_are_taken_out(text: str, others: list[Any], value: Any) -> None:
    before = json_text.read(text)
    if not is_open_to(before, PATH):
        return
    text = json_text.put_member(text, PATH, [*others, {"theirs": 1}])
    ours = {"ours": value}
    after = json_text.put_item(text, PATH, ours)

    assert at(json_text.read(after), PATH) == [*others, {"theirs": 1}, ours]
    assert json_text.take_items(after, PATH, lambda item: isinstance(item, dict) and "ours" in item) == text


def test_items_of_ours_are_taken_from_between_others() -> None:
    text = '{"a": [1, {"x": 1}, 2, {"x": 2}]}'
    assert json_text.take_items(text, ("a",), lambda item: isinstance(item, dict)) == '{"a": [1, 2]}'


def test_the_layout_of_the_file_is_taken_up() -> None:
    text = '{\n\t"mcpServers": {\n\t\t"x": {}\n\t}\n}\n'
    after = json_text.put_member(text, ("mcpServers", "tenure"), {"command": "tenure"})
    assert after == '{\n\t"mcpServers": {\n\t\t"x": {},\n\t\t"tenure": {\n\t\t\t"command": "tenure"\n\t\t}\n\t}\n}\n'


def test_a_single_line_stays_one() -> None:
    after = json_text.put_member('{"a":{}}', ("a", "b"), [1])
    assert after == '{"a":{"b": [1]}}'


@pytest.mark.parametrize(
    "text",
    ['{"a": 1, // why\n "b": 2}', '{"a": 1,}', '/* x */ {"a": 1}', '{"u": "http://x", /* "y" */ "a": [1,],}'],
)
def test_comments_and_trailing_commas_can_be_read_but_not_edited(text: str) -> None:
    assert json_text.read_loosely(text)["a"] in (1, [1])
    with pytest.raises(CannotMerge, match="comments or trailing commas"):
        json_text.put_member(text, ("b",), 1)


@pytest.mark.parametrize("text", ["", "{", "no", "[1]", '"x"', "{'a': 1}"])
def test_a_value_that_is_not_an_object_is_refused(text: str) -> None:
    with pytest.raises(CannotMerge):
        json_text.put_member(text, ("b",), 1)


def test_slashes_inside_texts_are_no_comments() -> None:
    assert json_text.read_loosely('{"u": "http://x/*y*/", "v": "a,]"}') == {"u": "http://x/*y*/", "v": "a,]"}


def test_nesting_beyond_reason_is_refused_with_a_sentence() -> None:
    with pytest.raises(CannotMerge, match="too deep"):
        json_text.put_member('{"a":' * 20_000 + "1" + "}" * 20_000, ("b",), 1)
