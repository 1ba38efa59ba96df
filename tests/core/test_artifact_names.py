"""Names of artifacts cannot leave their folder, on any system, and have one spelling."""

import unicodedata
from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.artifacts import DEVICES, LONGEST, LONGEST_SEGMENT, checked_name, folded
from tenure.core.errors import InvalidInput

GOOD = [
    "report.md", "reports/2026/summary.md", "Übersicht.txt", "結果.json", "a b.txt", "x", "archive.tar.gz", "-", "a..b",
    "console.log", "communication", "com10", "x.con", "e\u0301", "naïve/co-op_1.txt", "a" * LONGEST_SEGMENT,
]  # fmt: skip
BAD = [
    'say "x"', "<x>",
    "", "/", "/etc/passwd", "a/", "a//b", ".", "..", "../x", "a/../b", "a/./b", "a/..", "..\\x", "a\\b", "C:x", "C:/x",
    "\\\\host\\share", "x\0", "a\nb", "a\rb", "\x1b[31m", "a\x7fb", "a\x85b", "nul", "NUL.txt", "a/CON", "Com1.log",
    "lpt¹", "COM²", "aux .txt", "conin$", "prn", "x.", "x ", "a. /b", " x", "...", "a:stream", "a|b", "what?", "*",
    "a\u202eb", "a\u2066b", "a\u200bb", "a\ufeffb", "a\u2028b", "a\ud800b", "\ue000", ".git/config", ".env",
    "a/.git/hooks/x", "\uff0e\uff0e/x", "\u2025", "\u2024\u2024", "a\uff0fb", "a\uff3cb", "\u2100", "\uff23ON",
    "a" * (LONGEST_SEGMENT + 1), "ü" * 128, "a/" * 16 + "a", "a" * (LONGEST + 1), "/".join(["a" * 200] * 6),
]  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_plain_names_are_taken(name: str) -> None:
    assert checked_name(name) == unicodedata.normalize("NFC", name)


@pytest.mark.parametrize("name", BAD)
def test_names_that_could_be_read_otherwise_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput) as told:
        checked_name(name)
    assert told.value.message.isascii() or told.value.message.isprintable()
    assert "\x1b" not in told.value.message


@given(
    st.text(max_size=40)
    | st.lists(st.sampled_from(["..", ".", "/", "\\", "a", "nul", " ", "\u2025", ":", "\0"])).map("".join)
)
def test_what_is_taken_stays_in_its_folder_and_is_taken_again_as_it_is(text: str) -> None:
    try:
        name = checked_name(text)
    except InvalidInput:
        return
    assert checked_name(name) == name
    for parts in (PurePosixPath(name).parts, PureWindowsPath(name).parts):
        assert ".." not in parts
        assert "/".join(parts) == name
        assert not {part.partition(".")[0].casefold() for part in parts} & DEVICES
    assert not PureWindowsPath(name).drive
    assert not PurePosixPath(name).is_absolute()
    assert name.isprintable()


def test_two_spellings_of_one_name_are_one() -> None:
    assert checked_name("e\u0301te\u0301") == checked_name("été")
    assert folded("Été.MD") == folded("e\u0301te\u0301.md")
    assert folded("STRASSE") == folded("straße")
