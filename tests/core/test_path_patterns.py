"""Patterns of paths: what they cover, and that many stars cost nothing."""

from __future__ import annotations

import pytest

from tenure.core.path_patterns import covers


@pytest.mark.parametrize(
    ("pattern", "path", "is_covered"),
    [
        ("src/**", "src/a.py", True),
        ("src/**", "src/a/b.py", True),
        ("src/**", "lib/a.py", False),
        ("src/", "src/a/b.py", True),
        ("src", "src/a/b.py", True),
        ("src", "srcs/a.py", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/a/b.py", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "x/y/a.py", True),
        ("**/test/**/*.py", "x/test/a.py", True),
        ("**/test/**/*.py", "x/tests/a.py", False),
        ("./docs/?.md", "docs/a.md", True),
        ("**", "anything", True),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b/c", True),
        ("a/b/c", "a/b", False),
        ("A", "a", False),
    ],
)
def test_a_pattern_covers_what_it_says(pattern: str, path: str, is_covered: bool) -> None:
    assert covers(pattern, path) == is_covered


def test_many_stars_are_one_pass() -> None:
    assert not covers("**/a/" * 100 + "b", "a/" * 2000 + "c")
