"""How times, durations, tables and untrusted text are said."""

from __future__ import annotations

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.cli import text_format
from tenure.cli.answers import printed

NOW = 1_700_000_000_000_000


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("seconds", "said", "brief"),
    [
        (0, "0 s", "0 s"),
        (0.4, "0.4 s", "0 s"),
        (12.9, "12 s", "12 s"),
        (61, "1 min 1 s", "1 min"),
        (120, "2 min", "2 min"),
        (1500, "25 min", "25 min"),
        (12_000, "3 h 20 min", "3 h"),
        (7_200, "2 h", "2 h"),
        (187_200, "2 d 4 h", "2 d"),
        (864_000, "10 d", "10 d"),
    ],
)
def test_durations_have_at_most_two_units(seconds: float, said: str, brief: str) -> None:
    assert text_format.lasting(seconds) == said
    assert text_format.briefly(seconds) == brief


def test_an_instant_is_told_by_its_distance() -> None:
    assert text_format.ago(NOW - 12_000_000, NOW) == "12 s ago"
    assert text_format.ago(NOW, NOW) == "now"
    assert text_format.ago(NOW + 90_000_000, NOW) == "in 1 min 30 s"
    assert text_format.ago(None, NOW) == "–"


def test_a_table_is_aligned_whatever_the_width_of_its_characters() -> None:
    drawn = text_format.table([("a", 1, None), ("日本", 22, "x")], ("name", "n", "z"))
    assert drawn.split("\n") == ["name   n  z", "a      1  –", "日本  22  x"]
    assert text_format.table([], ("name",)) == ""


@given(st.text(), st.integers(0, 40))
def test_shortened_text_fits_and_cannot_move_the_cursor(text: str, width: int) -> None:
    cut = text_format.shorten(text, width)
    assert text_format.width_of(cut) <= width
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in cut)


def test_colour_is_for_terminals_unless_no_color_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert text_format.style("x", "red") == "x"
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert printed(text_format.style("x", "red", "bold")) == "\x1b[31;1mx\x1b[0m"
    assert text_format.width_of(text_format.style("x", "red")) == 1
    monkeypatch.setenv("NO_COLOR", "1")
    assert text_format.style("x", "red") == "x"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert text_format.style("x", "red") == "x"
