"""Do two patterns overlap? Never a miss, compared with brute force over all short paths."""

from functools import cache
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.errors import InvalidInput
from tenure.core.records import Reservation
from tenure.core.reservations import in_the_way, normalised, overlap
from tenure.testing.samples import row_of

LETTERS = "ab"


@cache
def paths() -> tuple[str, ...]:
    """Every path of up to five characters over a tiny alphabet that could be a file."""
    found = ("".join(p) for n in range(1, 6) for p in product(LETTERS + "/", repeat=n))
    return tuple(p for p in found if not p.startswith("/") and not p.endswith("/") and "//" not in p)


def matches(pattern: str, path: str) -> bool:
    """A slow and plain reading: the pattern matches the path itself, or a folder that it lies in."""
    parts = path.split("/")
    return any(_glob(pattern, "/".join(parts[:n])) for n in range(1, len(parts) + 1))


@cache
def _glob(pattern: str, text: str) -> bool:
    if not pattern:
        return not text
    if pattern.startswith("**/"):
        rests = [text] + [text[i + 1 :] for i, c in enumerate(text) if c == "/"]
        return any(_glob(pattern[3:], rest) for rest in rests)
    if pattern.startswith("**"):
        return any(_glob(pattern[2:], text[i:]) for i in range(len(text) + 1))
    if pattern.startswith("*"):
        ends = (i for i in range(len(text) + 1) if "/" not in text[:i])
        return any(_glob(pattern[1:], text[i:]) for i in ends)
    if pattern.startswith("[") and (end := pattern.find("]", 3 if pattern[1:2] == "!" else 2)) > 0:
        allowed, negated = pattern[1:end], pattern[1] == "!"
        fits = bool(text) and text[0] != "/" and (text[0] in allowed.lstrip("!")) != negated
        return fits and _glob(pattern[end + 1 :], text[1:])
    if pattern.startswith("?"):
        return bool(text) and text[0] != "/" and _glob(pattern[1:], text[1:])
    return bool(text) and text[0] == pattern[0] and _glob(pattern[1:], text[1:])


pieces = st.sampled_from(["a", "b", "*", "**", "?", "[ab]", "[!a]", "[]a]", "/", "a/", "**/"])
patterns = st.lists(pieces, min_size=1, max_size=5).map("".join)


@given(patterns, patterns)
def test_an_overlap_is_never_missed(one: str, other: str) -> None:
    try:
        a, b = normalised(one), normalised(other)
    except InvalidInput:
        return
    common = next((p for p in paths() if matches(a, p) and matches(b, p)), None)
    if common is not None:
        assert overlap(a, b), f"{common} is matched by both"


@given(patterns, patterns)
def test_overlap_is_the_same_both_ways(one: str, other: str) -> None:
    assert overlap(one, other) == overlap(other, one)


@given(patterns)
def test_everything_overlaps_itself_and_what_matches_it(pattern: str) -> None:
    assert overlap(pattern, pattern)


plain = st.lists(st.sampled_from(["a", "b", "*", "?"]), min_size=1, max_size=3).map("/".join)


@given(plain, plain)
def test_plain_globs_overlap_exactly_where_a_path_fits_both(one: str, other: str) -> None:
    common = any(matches(one, p) and matches(other, p) for p in paths())
    assert overlap(one, other) == common


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("src/api/**", "src/api/users.py", True),
        ("src/api", "src/api/users.py", True),
        ("src/api", "src/apis/users.py", False),
        ("src/*.py", "src/a/b.py", False),
        ("src/**/*.py", "src/a/b.py", True),
        ("**", "anything/at/all", True),
        ("*.md", "docs/a.md", False),
        ("src/[ab].py", "src/c.py", True),  # classes are not looked into: where it is hard to say, they overlap
        ("env:staging", "env:staging", True),
        ("env:staging", "env:stage", False),
        ("env:*", "env:staging", False),
        ("port:8080", "port/8080", False),
    ],
)
def test_overlaps_that_people_expect(one: str, other: str, expected: bool) -> None:
    assert overlap(one, other) is expected


@pytest.mark.parametrize(
    ("pattern", "kept"),
    [
        ("./src", "src"), ("src/", "src/**"), ("src//a", "src/a"), ("src/./a", "src/a"), ("././a", "a"), ("a/.", "a"),
        ("env:x", "env:x"), (".github/**", ".github/**"), ("a/...", "a/..."),
    ],
)  # fmt: skip
def test_one_place_has_one_spelling(pattern: str, kept: str) -> None:
    assert normalised(pattern) == kept


@pytest.mark.parametrize("pattern", ["", "/", "/etc/passwd", "../x", "a/../b", "..", ".", "./"])
def test_what_leaves_the_tree_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput, match="pattern"):
        normalised(pattern)


def reservation(**fields: object) -> Reservation:
    return row_of(Reservation, **{"pattern": "a", "session": "s", "task": None, "until": None, **fields})


def test_who_is_in_the_way() -> None:
    def way(held: Reservation, **asked: object) -> bool:
        values = {"mode": "exclusive", "task": "t1", "session": "me", "now": 100, **asked}
        return in_the_way(("a",), held=[held], **values) is held  # type: ignore[arg-type]

    assert way(reservation())
    assert way(reservation(task="t2"))
    assert not way(reservation(task="t1"))
    assert not way(reservation(session="me"))
    assert way(reservation(task="t2", session="me"))
    assert not way(reservation(until=100))
    assert way(reservation(until=101))
    assert not way(reservation(mode="shared"), mode="shared")
    assert way(reservation(mode="shared"))
    assert way(reservation(), mode="shared")
    assert not way(reservation(pattern="b"))
