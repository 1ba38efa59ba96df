"""Reservations: whether two patterns overlap, and whether one may be taken beside the held ones.

A pattern is a path glob (`src/api/**`; a plain path also covers everything below it) or a named thing
(`port:8080`, `env:staging`). Two globs overlap when some path matches both; where that is hard to decide, they do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tenure.core.errors import InvalidInput
from tenure.core.patterns import pattern
from tenure.core.records import Reservation

MODES = ("exclusive", "shared")
_NAMED = pattern(r"[a-z][a-z0-9_-]*:.+")
_TOKEN = pattern(r"\*\*/?|\*|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)  # in a class a leading ] is literal


def normalised(pattern: str) -> str:
    """The pattern as stored; raises for one that leaves the tree."""
    if _NAMED.fullmatch(pattern):
        return pattern
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if not parts or pattern.startswith("/") or ".." in parts:
        raise InvalidInput(f"pattern {pattern[:80]!r} must be a path inside the project, or name:thing as in port:8080")
    return "/".join(parts) + ("/**" if pattern.endswith("/") else "")


def overlap(a: str, b: str) -> bool:
    if _NAMED.fullmatch(a) or _NAMED.fullmatch(b):
        return a == b
    return _meet(a, b) or _meet(a + "/**", b) or _meet(a, b + "/**")


def _meet(a: str, b: str) -> bool:
    """Whether some text matches both globs. A walk over pairs of positions."""
    left, right = _TOKEN.findall(a), _TOKEN.findall(b)
    todo, seen = [(0, 0)], {(0, 0)}
    while todo:
        i, j = todo.pop()
        if i == len(left) and j == len(right):
            return True
        steps = []
        if i < len(left) and _is_star(left[i]):
            steps.append((i + 1, j))
            if j < len(right) and _absorbs(left[i], right[j]):
                steps.append((i, j + 1))
        if j < len(right) and _is_star(right[j]):
            steps.append((i, j + 1))
            if i < len(left) and _absorbs(right[j], left[i]):
                steps.append((i + 1, j))
        if i < len(left) and j < len(right) and _same(left[i], right[j]):
            steps.append((i + 1, j + 1))
        for step in steps:
            if step not in seen:
                seen.add(step)
                todo.append(step)
    return False


def _is_star(token: str) -> bool:
    return token.startswith("*")


def _absorbs(star: str, token: str) -> bool:
    return star.startswith("**") or token not in ("/",)


def _same(a: str, b: str) -> bool:
    if _is_star(a) or _is_star(b):
        return False
    if len(a) > 1 or len(b) > 1 or a == "?" or b == "?":  # a class or ? matches any character except /
        return "/" not in (a, b)
    return a == b


def in_the_way(
    patterns: Iterable[str], mode: str, held: Iterable[Reservation], *, task: str | None, session: str, now: int
) -> Reservation | None:
    """The first live reservation of another session that the patterns overlap; two shared ones do not conflict."""
    wanted = tuple(patterns)
    for other in held:
        if other.until is not None and other.until <= now:
            continue
        if other.task is not None and other.task == task:
            continue
        if other.task is None and other.session == session:
            continue  # a session does not conflict with itself
        if mode == "shared" and other.mode == "shared":
            continue
        if any(overlap(pattern, other.pattern) for pattern in wanted):
            return other
    return None
