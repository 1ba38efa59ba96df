"""Reservations: do two patterns overlap, and may one be taken beside those that are held?

A pattern is a path glob (`src/api/**`; a plain path also stands for what lies below it) or a named thing
(`port:8080`, `env:staging`). Two globs overlap when some path matches both; where it is hard to say, they do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tenure.core.errors import InvalidInput
from tenure.core.records import Reservation

MODES = ("exclusive", "shared")
_NAMED = re.compile(r"[a-z][a-z0-9_-]*:.+")
_TOKEN = re.compile(r"\*\*/?|\*|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)  # in a class a leading ] stands for itself


def normalised(pattern: str) -> str:
    """The pattern as it is kept; raises for one that leaves the tree."""
    if _NAMED.fullmatch(pattern):
        return pattern
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if not parts or pattern.startswith("/") or ".." in parts:
        raise InvalidInput(f"pattern {pattern[:80]!r}: a path inside the project, or name:thing as in port:8080")
    return "/".join(parts) + ("/**" if pattern.endswith("/") else "")


def overlap(a: str, b: str) -> bool:
    if _NAMED.fullmatch(a) or _NAMED.fullmatch(b):
        return a == b
    return _meet(a, b) or _meet(a + "/**", b) or _meet(a, b + "/**")


def _meet(a: str, b: str) -> bool:
    """Is there a text that both globs match? A walk over pairs of positions."""
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
    if len(a) > 1 or len(b) > 1 or a == "?" or b == "?":  # a class or ? stands for any character but /
        return "/" not in (a, b)
    return a == b


def in_the_way(
    patterns: Iterable[str], mode: str, held: Iterable[Reservation], *, task: str | None, session: str, now: int
) -> Reservation | None:
    """The first live reservation of somebody else that the patterns would overlap; two shared ones do not mind."""
    wanted = tuple(patterns)
    for other in held:
        if other.until is not None and other.until <= now:
            continue
        if other.task is not None and other.task == task:
            continue
        if other.task is None and other.session == session:
            continue  # a session does not stand in its own way
        if mode == "shared" and other.mode == "shared":
            continue
        if any(overlap(pattern, other.pattern) for pattern in wanted):
            return other
    return None
