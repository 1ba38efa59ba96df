"""Findings of the doctor: one shape for all checks, and their text."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from textwrap import wrap

import msgspec

from tenure.cli.text_format import LEVELS as COLOURS
from tenure.cli.text_format import counted, plain, style
from tenure.core import limits

LEVELS = ("ok", "note", "warning", "error")
MOST = limits.DOCTOR_NAMED


class Finding(msgspec.Struct, frozen=True):
    """`fix` never names a command that destroys something."""

    level: str
    check: str
    message: str
    fix: str | None = None


ok, note, warning, error = (partial(Finding, level) for level in LEVELS)


def first_of(names: Sequence[str]) -> str:
    """`a, b, c and 4 more`."""
    more = len(names) - len(names[:MOST])
    return ", ".join(names[:MOST]) + (f" and {more} more" if more > 0 else "")


def _folded(text: str, indent: int) -> str:
    """On a terminal, lines of its width below one another; piped, one line whatever its length."""
    if not sys.stdout.isatty():
        return text
    room = max(os.get_terminal_size(sys.stdout.fileno()).columns - indent, 20)
    return f"\n{' ' * indent}".join(wrap(text, room, break_on_hyphens=False))


def drawn(findings: Iterable[Finding]) -> str:
    """The findings, worst last, next to the prompt."""
    found = sorted(findings, key=lambda finding: LEVELS.index(finding.level))
    width = max(len(finding.check) for finding in found)
    lines = []
    for finding in found:
        level = style(f"{finding.level:<7}", COLOURS[finding.level], *(("bold",) if finding.level == "error" else ()))
        message = _folded(plain(finding.message), width + 11)
        lines.append(f"{level}  {finding.check:<{width}}  {message}")
        if finding.fix:
            lines.append(f"{'':<{width + 11}}{style('→', 'cyan')} {_folded(plain(finding.fix), width + 13)}")
    count = {level: sum(finding.level == level for finding in found) for level in LEVELS}
    totals = [counted(count[level], level) for level in ("error", "warning", "note") if count[level]]
    return "\n".join([*lines, "", ", ".join(totals) if totals else style("no problems found", "green")])
