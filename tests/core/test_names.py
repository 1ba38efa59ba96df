"""Names: what a new one may be, what is made to fit, and that a name to be copied is one word of a command."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.errors import InvalidInput
from tenure.core.ids import check_name, check_new_name, fitted_name, fitted_session, is_new_name
from tenure.core.safe_text import shell_word


@pytest.mark.parametrize("name", ["a", "0", "ann", "B-003", "run-host.1-77", "a_b", "x" * 128])
def test_letters_digits_and_three_signs_are_a_name(name: str) -> None:
    assert check_new_name(name, "agent") == name


@pytest.mark.parametrize("name", ["", ".", "..", "-a", "_a", ".a", "a b", "ä", "$(id)", "a\n", "x" * 129, "a@b", "a/b"])
def test_everything_else_is_refused_with_a_name_that_would_do(name: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_new_name(name, "agent")
    assert is_new_name(str(refused.value.hint).removesuffix(" would do"))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("shop", "shop"), ("Größe & Maß", "Grosse-Mass"), ("my shop", "my-shop"), (".dotfiles", "dotfiles"),
        ("..", "none"), ("日本", "none"), ("-x-", "x"), ("mia@corp", "mia-corp"), ("x" * 200, "x" * 128),
    ],
)  # fmt: skip
def test_a_text_is_made_into_a_name(text: str, name: str) -> None:
    assert fitted_name(text, "none") == name


@given(st.text())
def test_whatever_is_made_to_fit_fits(text: str) -> None:
    assert is_new_name(fitted_name(text, "none"))
    assert is_new_name(fitted_session(text))
    assert check_name(fitted_name(text, "none"), "agent")


def test_two_sessions_do_not_become_one() -> None:
    assert fitted_session("a b") != fitted_session("a-b") == "a-b"
    assert fitted_session("ä") != fitted_session("ö")
    assert fitted_session("0193f3c2-88aa-7bbb-8ccc-123456789abc") == "0193f3c2-88aa-7bbb-8ccc-123456789abc"


@given(st.text(st.characters(exclude_characters="\0"), min_size=1))
def test_a_name_to_be_copied_is_one_word(name: str) -> None:
    assert shlex.split(shell_word(name)) == [name]


@pytest.mark.parametrize("name", ["$(id)", "`id`", "a b", "~root", "*", ";x", "q'uote", "!!", "a&b", "#x", "{a,b}"])
def test_what_a_shell_would_read_is_in_quotes(name: str) -> None:
    assert shell_word(name).startswith("'")
    assert shell_word("B-003") == "B-003"
