"""The reference pages of limits and retention."""

from __future__ import annotations

from tenure.core import limits
from tenure.core.inputs import LIMITS
from tests.docs.tables import table

INTRODUCTION = """\
# Limits

Every limit has a default and one place where it may be changed; *fixed* ones are part of the release. The names in the
first column are those in `tenure.core.limits`.

## Limits of a project
An admin sets them: `client.init(limits={"max_lease": 3600})`, or `limits` of the command `define_project`.

"""
RETENTION = """\
# What is deleted after how long

Tenure deletes nothing that a person wrote unless you ask for it. Finished tasks move into the archive, where every
command still finds them, and stay there unless the project limit `history_retention` (days) is set. The log, accepted
results and dead letters follow their task. What does go:

"""
AFTERWARDS = """\

An archived task that is older than `history_retention` is deleted with its claims, results, events and artifacts; what
it used stays in the project's totals.
"""
FOREVER = 1e15


def page() -> str:
    parts = [INTRODUCTION, table(("limit", "meaning"), [(f"`{name}`", meaning) for name, meaning in LIMITS.items()])]
    sections: dict[str, list[tuple[str, ...]]] = {}
    for name, (section, value, unit, what, by, then) in limits.table().items():
        sections.setdefault(section, []).append((f"`{name}`", spelled(value, unit), what, by, then))
    for section, rows in sections.items():
        parts.append(f"\n## {section}\n\n" + table(("name", "limit", "of", "changed by", "at the limit"), rows))
    return "".join(parts)


def retention() -> str:
    rows = [
        (what, spelled(value, unit), by, then)
        for section, value, unit, what, by, then in limits.table().values()
        if section == "Retention"
    ]
    return RETENTION + table(("what", "kept for", "changed by", "then"), rows) + AFTERWARDS


def spelled(value: float, unit: str) -> str:
    """A value as people read it: 300 s is 5 minutes, 1,048,576 bytes are 1 MiB."""
    if unit in ("s", "us"):
        seconds = value / 1_000_000 if unit == "us" else value
        for size, name in ((86_400, "day"), (3600, "hour"), (60, "minute")):
            if seconds >= size and seconds % size == 0 and (size < 86_400 or seconds >= 2 * size or seconds == size):
                return counted(seconds / size, name)
        return f"{seconds:,g} s"
    if unit == "bytes":
        for size, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
            if value >= size and value % size == 0:
                return f"{value / size:,.0f} {name}"
    if unit == "version":
        return f"{value / 10_000:.0f}"
    if value == (1 << 63) - 1:
        return "64 bits, signed"
    number = f"{value:,.0f}" if value < FOREVER and value == int(value) else f"{value:g}"
    return number if unit == "–" else f"{number} {unit}"


def counted(number: float, name: str) -> str:
    return f"{number:,.0f} {name}" + ("" if number == 1 else "s")
