"""Signs and colours of states, and bars. The words beside them must suffice without them."""

from __future__ import annotations

from typing import NamedTuple

from tenure.cli.text_format import style
from tenure.core import lifecycle


class Mark(NamedTuple):
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


class Shares(NamedTuple):
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
