"""Text for people: tables, times, durations, colour, signs of states, bars. Cheap to import.

Instants are the store's: integer microseconds UTC. Foreign text within a line of ours goes through `plain` or
`shorten`: a title must not break the line. Control characters never reach a terminal: `terminal_output`, the only
module that writes, shows them instead.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from tenure.core import instants, lifecycle
from tenure.core.patterns import pattern
from tenure.core.safe_text import one_line

SECOND = 1_000_000
plain = one_line
lasting = instants.lasting
NOTHING = "–"
NARROWEST = 12  # columns; a narrower last column says nothing

_CODES = {
    "bold": 1, "dim": 2, "underline": 4, "reverse": 7,
    "red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36, "grey": 90,
}  # fmt: skip
# Marks a style until `terminal_output` turns it into an escape; foreign text cannot contain it.
MARK = f"\x1b{os.urandom(8).hex()}["
_STYLED = pattern(f"{re.escape(MARK)}[0-9;]*m")


display: Callable[[str], Any] = lambda key: None  # noqa: E731  # the settings `display.…` of this command

# Signs of ours, in ASCII.
_ASCII = str.maketrans({
    "–": "-", "…": "...", "·": ".", "✎": "~", "○": "o", "◐": "*", "●": "*", "‖": "=", "◇": "?", "✓": "+", "↻": "%",
    "✗": "x", "█": "#", "▓": "+", "░": ".", "└": "`", "≈": "~", "→": "->", "▁": ".", "▂": ".", "▃": ":", "▄": ":",
    "▅": "|", "▆": "|", "▇": "#",
})  # fmt: skip


def is_coloured() -> bool:
    """Colour is for terminals, or as `display.colour` says; never where NO_COLOR or TENURE_NO_COLOR is set."""
    if os.environ.get("NO_COLOR") or os.environ.get("TENURE_NO_COLOR"):
        return False
    wanted = display("colour")
    if wanted in ("always", "never"):
        return bool(wanted == "always")
    return os.environ.get("TERM") != "dumb" and sys.stdout.isatty()


def in_signs(text: str) -> str:
    """The text with the signs that `display.unicode` allows."""
    return text if text.isascii() or display("unicode") is not False else text.translate(_ASCII)


def style(text: str, *names: str) -> str:
    """The text in these styles (`bold`, `red` …) where colour is wanted; else as it is."""
    if not names or not text or not is_coloured():
        return text
    return f"{MARK}{';'.join(str(_CODES[name]) for name in names)}m{text}{MARK}0m"


def shorten(text: str, width: int) -> str:
    """At most `width` columns of the text, on one line; `…` marks a cut."""
    text = plain(text)
    if width_of(text) <= width:
        return text
    room, kept = width - 1, []
    for character in text:
        room -= width_of(character)
        if room < 0:
            break
        kept.append(character)
    return "".join(kept).rstrip() + "…" if width > 0 else ""


def width_of(text: str) -> int:
    """Columns that the text takes on a terminal; styles take none."""
    if "\x1b" in text:
        text = _STYLED.sub("", text)
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def table(rows: Iterable[Sequence[object]], headers: Sequence[str] = (), *, indent: str = "") -> str:
    """Aligned columns, two spaces apart; columns of numbers to the right; None as a dash. Empty without rows."""
    given = list(rows)
    if not given:
        return ""
    cells = [[NOTHING if cell is None else str(cell) for cell in row] for row in given]
    right = [all(isinstance(row[n], (int, float)) for row in given) for n in range(len(given[0]))]
    if headers:
        cells.insert(0, [style(header, "dim") for header in headers])
    widths = [max(width_of(row[n]) for row in cells) for n in range(len(cells[0]))]
    _fit(cells, widths, len(indent))
    return "\n".join(
        (indent + "  ".join(_padded(cell, widths[n], right[n]) for n, cell in enumerate(row))).rstrip() for row in cells
    )


def _fit(cells: list[list[str]], widths: list[int], indent: int) -> None:
    """Cut the last column to what a terminal has left; a pipe gets all of it."""
    room = terminal_width()
    if room is None or isinstance(cells[-1][-1], str) is False:
        return
    left = room - indent - sum(widths[:-1]) - 2 * (len(widths) - 1)
    if left >= widths[-1] or left < NARROWEST:
        return
    for row in cells:
        if width_of(row[-1]) > left and "\x1b" not in row[-1]:
            row[-1] = shorten(row[-1], left)
    widths[-1] = left


def terminal_width() -> int | None:
    """Columns of the terminal; None where stdout is not one."""
    if not sys.stdout.isatty():
        return None
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None
    except OSError:
        return None


SOURCE_WIDTH = 120  # columns of our source, in which help texts are wrapped


def refilled(text: str, width: int) -> str:
    """The text wrapped at `width`: a line goes on with the next if that line's first word did not fit into it."""
    from textwrap import fill

    lines, last = [""], 0
    for line in text.splitlines():
        if last and line and last + len(line.split()[0]) > SOURCE_WIDTH - 25:
            lines[-1] += f" {line}"
        else:
            lines.append(line)
        last = len(line)
    return "\n".join(fill(line, width) for line in lines[1:])


Columns = Mapping[str, str | Callable[[Any], object]]  # header → a key of the row, or a function of it


def columns(rows: Iterable[Any], wanted: Columns, empty: str = "") -> str:
    """A table of rows; `empty` where there are none."""
    cells = [[row[read] if isinstance(read, str) else read(row) for read in wanted.values()] for row in rows]
    return table(cells, tuple(wanted)) or empty


def _padded(cell: str, width: int, is_right: bool) -> str:
    space = " " * (width - width_of(cell))
    return space + cell if is_right else cell + space


def briefly(seconds: float) -> str:
    """A duration in one unit, for narrow columns: `12 s`, `5 min`, `3 h`, `2 d`."""
    whole = max(int(seconds), 0)
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if whole >= size:
            return f"{whole // size} {unit}"
    return f"{whole} s"


def ago(instant: int | None, now: int) -> str:
    """`12 s ago`, `now` within a second, `in 5 s` for the future; a dash for never."""
    if instant is None:
        return NOTHING
    seconds = (now - instant) / SECOND
    if seconds <= -1:
        return f"in {lasting(-seconds)}"
    return "now" if seconds < 1 else f"{lasting(seconds)} ago"


def clock(instant: int | None) -> str:
    """Local time of day, HH:MM:SS; a dash for never."""
    return NOTHING if instant is None else time.strftime("%H:%M:%S", time.localtime(instant / SECOND))


def moment(instant: int | None, now: int | None = None) -> str:
    """Local time of day, with its date where that is another than today's."""
    if instant is None:
        return NOTHING
    then, today = time.localtime(instant / SECOND), time.localtime(None if now is None else now / SECOND)
    return time.strftime("%H:%M:%S" if then[:3] == today[:3] else "%Y-%m-%d %H:%M:%S", then)


def day(instant: int) -> str:
    """The local date, as 2026-03-01."""
    return time.strftime("%Y-%m-%d", time.localtime(instant / SECOND))


def money(amount: str | float | None) -> str:
    """Dollars with two digits: `$1.20`, `-$0.50`, `<$0.01`; a dash for none. `--json` has the exact amount."""
    if amount is None:
        return NOTHING
    value = float(amount)
    sign, value = ("-" if value < 0 else ""), abs(value)
    return f"{sign}<$0.01" if 0 < value < 0.005 else f"{sign}${value:,.2f}"


def counted(count: int, word: str, plural: str | None = None) -> str:
    """`1 task`, `3 tasks`."""
    return f"{count} {word if count == 1 else plural or word + 's'}"


# --- states: the words beside signs and colours must suffice without them -----------------------------------


class Mark(msgspec.Struct, frozen=True):
    sign: str
    colour: str


MARKS: dict[str, Mark] = {
    lifecycle.CREATED: Mark("✎", "grey"),
    lifecycle.PENDING: Mark("·", "grey"),
    lifecycle.READY: Mark("○", "cyan"),
    lifecycle.CLAIMED: Mark("◐", "yellow"),
    lifecycle.RUNNING: Mark("●", "yellow"),
    lifecycle.PAUSED: Mark("‖", "magenta"),
    lifecycle.VALIDATING: Mark("◇", "blue"),
    lifecycle.COMPLETED: Mark("✓", "green"),
    lifecycle.RETRYING: Mark("↻", "magenta"),
    lifecycle.DEAD_LETTERED: Mark("✗", "red"),
    lifecycle.CANCELLED: Mark("-", "grey"),
}
# States that need attention come first, final ones last.
BY_INTEREST = (
    lifecycle.RUNNING, lifecycle.CLAIMED, lifecycle.VALIDATING, lifecycle.DEAD_LETTERED, lifecycle.PAUSED,
    lifecycle.RETRYING, lifecycle.READY, lifecycle.PENDING, lifecycle.CREATED, lifecycle.COMPLETED,
    lifecycle.CANCELLED,
)  # fmt: skip

AGENTS = {"active": "green", "idle": "cyan", "draining": "yellow", "stale": "red", "offline": "grey"}
LEVELS = {"ok": "green", "note": "cyan", "warning": "yellow", "error": "red", "critical": "red", "debug": "grey"}


def in_words(state: str) -> str:
    """The state as people say it: `dead letter`, not `dead_lettered`."""
    return {lifecycle.CREATED: "draft", lifecycle.DEAD_LETTERED: "dead letter"}.get(state, state)


class Shares(msgspec.Struct, frozen=True):
    """How many of `width` cells each part of a bar gets."""

    done: int
    doing: int
    rest: int


def shares(done: int, doing: int, rest: int, width: int) -> Shares:
    """Cells in proportion; a part that is not empty gets a cell, and only a complete bar looks full."""
    total = done + doing + rest
    if not total:
        return Shares(0, 0, width)
    first = done * width // total
    first = max(first, 1) if done else 0
    second = max(doing * width // total, 1) if doing else 0
    if doing + rest:
        first = min(first, width - second - (1 if rest else 0))
    return Shares(first, second, width - first - second)


def bar(done: int, doing: int, rest: int, width: int = 20) -> str:
    part = shares(done, doing, rest, width)
    return style("█" * part.done, "green") + style("▓" * part.doing, "yellow") + style("░" * part.rest, "grey")


def left_out(found: Any, further: str = "") -> str:
    """That a page is not the whole list, and how to see more."""
    from tenure.core.query import Page

    if not isinstance(found, Page) or not found.more:
        return ""
    if further:
        return f"… more: add {further}"
    way = f"--limit {found.largest} shows more" if len(found) < found.largest else "one list shows no more than these"
    return f"… more than {len(found)}: {way}"
