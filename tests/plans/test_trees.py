"""Texts read into trees: every part at its place, whatever the text does."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.plans import json_trees, yaml_text, yaml_trees
from tenure.plans.nodes import Findings, Mapping, Node, Scalar, Sequence, SourcePosition, Unreadable, plain

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=40)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def yaml(text: str) -> tuple[list[Any], list[tuple[int, int, str]]]:
    findings = Findings("x")
    trees = [plain(tree) for tree in yaml_trees.read_trees(text, findings)]
    return trees, [(f.line, f.column, f.code) for f in findings.sorted()]


def yaml_error(text: str) -> tuple[SourcePosition, str]:
    with pytest.raises(Unreadable) as error:
        list(yaml_trees.read_trees(text, Findings("x")))
    return error.value.place, error.value.code


def as_json(text: str) -> Any:
    return plain(json_trees.read_tree(text, Findings("x")))


def test_plain_scalars_are_those_of_yaml_1_2() -> None:
    text = (
        "[1, -2, 010, 0o17, 0x1F, 1.5, .5, 1e3, true, False, ~, null, yes, on, 2026-01-01, '5', !!str 5, 1_000, 1:30]"
    )
    (tree,), wrong = yaml(text)
    assert tree == [
        1, -2, 10, 15, 31, 1.5, 0.5, 1000.0, True, False, None, None, "yes", "on", "2026-01-01", "5", "5", "1_000",
        "1:30",
    ]  # fmt: skip
    assert wrong == []


def test_every_node_knows_its_line_and_column() -> None:
    (tree,) = yaml_trees.read_trees("a: 1\nb:\n  - x\n  - {c: y}\n", Findings("x"))
    assert isinstance(tree, Mapping)
    key, value = tree.entries["b"]
    assert (key, value.place) == (SourcePosition(2, 1), SourcePosition(3, 3))
    assert isinstance(value, Sequence)
    inner = value.items[1]
    assert isinstance(inner, Mapping)
    assert inner.entries["c"][1].place == SourcePosition(4, 9)


def test_documents_come_one_by_one_and_empty_ones_are_none() -> None:
    assert yaml("---\n---\na: 1\n---\nb: 2\n...\n---\n")[0] == [{"a": 1}, {"b": 2}]


def test_anchors_and_merges_are_spelled_out() -> None:
    (tree,), wrong = yaml("base: &b {x: 1, y: 2}\nmine: {<<: *b, y: 3}\nboth: {<<: [*b, {z: 4}]}\nlist: [*b]\n")
    assert tree["mine"] == {"x": 1, "y": 3}
    assert tree["both"] == {"x": 1, "y": 2, "z": 4}
    assert tree["list"] == [{"x": 1, "y": 2}]
    assert wrong == []
    assert yaml("a: {<<: 5}")[1] == [(1, 5, "WRONG_TYPE")]


def test_a_key_given_twice_is_found_at_the_second() -> None:
    assert yaml("a: 1\nb: 2\na: 3\n")[1] == [(3, 1, "DUPLICATE")]


@pytest.mark.parametrize(
    "text",
    [
        "a: !!python/object/apply:os.system ['true']",
        "a: !!python/name:os.system",
        "a: !ruby/object:Gem {}",
        "a: !!binary aGk=",
        "a: !!set {x, y}",
        "a: !mine 5",
        "!!python/object:x.Y a: 1",
    ],
)
def test_tags_make_nothing_and_are_told(text: str) -> None:
    trees, wrong = yaml(text)
    assert [code for _, _, code in wrong] == ["TAG"]
    assert len(json.dumps(trees)) < 60, "only plain values come out"


def test_a_billion_laughs_are_not_spelled_out() -> None:
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 40)]
    place, code = yaml_error("\n".join(lines))
    assert (place.line, code) == (6, "TOO_LARGE")


def test_a_long_text_with_many_aliases_is_weighed_too() -> None:
    text = "a: &a " + "x" * 1_000_000 + "\nb: [" + ", ".join(["*a"] * 100) + "]\n"
    assert yaml_error(text)[1] == "TOO_LARGE"


def test_an_alias_of_itself_is_refused() -> None:
    assert yaml_error("a: &x\n  b: [*x]") == (SourcePosition(2, 7), "SYNTAX")
    assert yaml_error("a: *nowhere") == (SourcePosition(1, 4), "SYNTAX")


@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 50_000, "- " * 3_000 + "x", "? " * 200 + "x"])
def test_nesting_ends_at_a_hundred(text: str) -> None:
    _, code = yaml_error(text)
    assert code in ("TOO_LARGE", "SYNTAX")


def test_deep_nesting_through_aliases_ends_too() -> None:
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 120))]
    place, code = yaml_error("\n".join(lines))
    assert (code, place.line <= 101) == ("TOO_LARGE", True)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: b: c\n", SourcePosition(1, 5)),
        ("a: 1\n\tb: 2\n", SourcePosition(2, 1)),
        ("a: [1, 2\n", SourcePosition(2, 1)),
        ('a: "x\n', SourcePosition(2, 1)),
        ("a: 1\n b: 2\n", SourcePosition(2, 3)),
        ("a: x\nb: \x07\n", SourcePosition(2, 4)),
        ("? [a]\n: b\n", SourcePosition(1, 3)),
        ("*a : b\n", SourcePosition(1, 1)),
        ('a: 1\nb: "\\UFFFFFFFF"\n', SourcePosition(2, 1)),  # which the parser itself stumbles over
    ],
)
def test_a_syntax_error_has_its_place(text: str, place: SourcePosition) -> None:
    assert yaml_error(text) == (place, "SYNTAX")


@pytest.mark.parametrize("text", [".inf", "-.INF", ".nan", "1e999", "9" * 200])
def test_numbers_that_are_none_are_found(text: str) -> None:
    trees, wrong = yaml(f"a: {text}")
    assert [(line, column) for line, column, _ in wrong] == [(1, 4)]
    assert trees == [{"a": text}]


@given(st.text(max_size=60) | st.text(alphabet="ab:-?#&*!|>'\"%@`{}[], \n\t\\<~.0", max_size=60))
def test_no_text_is_too_strange_to_be_read_or_refused(text: str) -> None:
    with suppress(Unreadable):
        for tree in yaml_trees.read_trees(text, Findings("x")):
            plain(tree)


@given(st.dictionaries(TEXTS, VALUES, max_size=5))
def test_what_is_written_as_yaml_is_read_as_the_same(value: dict[str, Any]) -> None:
    trees, wrong = yaml(yaml_text.document(value))
    assert wrong == []
    assert trees == ([value] if value else [])


@pytest.mark.parametrize(
    "text",
    [
        "one\ntwo\n", "one\n\n  two", "one\ntwo\n\n", " one\ntwo", "\none", "tab\there\n", "a\r\nb", "# no\n- list\n",
        "trailing \nspace", "--- \n...", "a\x85b", "a\u2028b\n", "\ufeffx\n", "true", "Null", "~",
        "0x1f", "1e5", "- a", "key: value", "",
        "x" * 3000, "😀 and «é»\n",
    ],
)  # fmt: skip
def test_difficult_texts_come_back_as_they_went(text: str) -> None:
    assert yaml(yaml_text.document({"a": {"b": text, "c": [text, [text]]}}))[0] == [
        {"a": {"b": text, "c": [text, [text]]}}
    ]


def test_words_that_other_readers_take_for_something_else_are_quoted() -> None:
    assert yaml_text.document({"yes": "off", "a": "yes sir"}) == '"yes": "off"\na: yes sir\n'


def test_a_long_key_stays_one() -> None:
    value = {"k" * 3000: {"inner" * 100: [1, {"x": "y"}]}}
    assert yaml(yaml_text.document(value))[0] == [value]


@given(VALUES)
def test_json_is_read_as_the_standard_library_reads_it(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        assert as_json(text) == json.loads(text)


@given(st.text(max_size=40) | st.text(alphabet='{}[]",:0123456789.eE+-truefalsn \n\\', max_size=40))
def test_no_text_passes_as_json_that_is_none(text: str) -> None:
    try:
        expected = json.loads(text, parse_constant=lambda word: math.nan)
    except (ValueError, RecursionError):
        with pytest.raises(Unreadable):
            as_json(text)
        return
    try:
        assert as_json(text) == expected
    except Unreadable as error:
        assert error.code in ("INVALID_INPUT", "TOO_LARGE") or "NaN" in text or "Infinity" in text  # noqa: PT017  # codes differ


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ('{"a": 1,}', SourcePosition(1, 8), "no comma"),
        ('{\n  "a" 1}', SourcePosition(2, 7), "':' is expected"),
        ("[1 2]", SourcePosition(1, 4), "',' or ']'"),
        ("", SourcePosition(1, 1), "the text ends here"),
        ('{"a":\n  tru}', SourcePosition(2, 3), "a value"),
        ('{"a": 1}\n{', SourcePosition(2, 1), "after the end"),
        ("{a: 1}", SourcePosition(1, 2), "double quotes"),
        ('{"a": "\\q"}', SourcePosition(1, 8), "escape"),
        ("[" * 200, SourcePosition(1, 101), "nested"),
        ("[NaN]", SourcePosition(1, 2), "a value"),
        ("[1e999]", SourcePosition(1, 2), "too large"),
    ],
)
def test_what_is_no_json_is_told_with_its_place(text: str, place: SourcePosition, words: str) -> None:
    with pytest.raises(Unreadable, match=words) as error:
        json_trees.read_tree(text, Findings("x"))
    assert error.value.place == place


def test_names_given_twice_in_json_are_found() -> None:
    findings = Findings("x")
    tree: Node = json_trees.read_tree('{"a": 1,\n "a": "\\ud83d\\ude00"}', findings)
    assert [(f.line, f.column, f.code) for f in findings.sorted()] == [(2, 2, "DUPLICATE")]
    assert isinstance(tree, Mapping)
    assert isinstance(tree.get("a"), Scalar)
    assert plain(tree) == {"a": "😀"}
