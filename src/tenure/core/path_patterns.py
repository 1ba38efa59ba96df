"""Patterns of paths, as triggers on changed files have them.

`*` and `?` stay within one part of a path, `**` is any number of parts; a pattern covers everything below it.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

ANY = "**"


def covers(pattern: str, path: str) -> bool:
    """Whether the pattern matches the path or a folder above it. One pass over the parts, however many stars."""
    wanted = [part for part in pattern.split("/") if part not in ("", ".")]
    places = _skipped(wanted, {0})  # how much of the pattern may be matched so far
    for part in path.split("/"):
        if len(wanted) in places:
            return True
        stays = {at for at in places if wanted[at] == ANY}
        moves = {at + 1 for at in places - stays if fnmatchcase(part, wanted[at])}
        places = _skipped(wanted, stays | moves)
    return len(wanted) in places


def _skipped(wanted: list[str], places: set[int]) -> set[int]:
    """With the places that `**` opens by standing for nothing."""
    found, todo = set(places), list(places)
    while todo:
        at = todo.pop()
        if at < len(wanted) and wanted[at] == ANY and at + 1 not in found:
            found.add(at + 1)
            todo.append(at + 1)
    return found
