"""A line for each agent of `tenure run` at the end of a terminal, below the lines that stay."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tenure.cli.answers import redraw
from tenure.cli.status import thousands
from tenure.cli.text_format import lasting, money, shorten, style, terminal_width, width_of

if TYPE_CHECKING:
    from tenure.agents.runner.activity import Activity

TITLE = 32  # columns of a title, at most
NARROWEST_LINE = 12  # columns for the agent's last line; with fewer it is left out


def is_possible() -> bool:
    return os.environ.get("TERM", "dumb") not in ("", "dumb") and terminal_width() is not None


class LiveLines:
    """For several threads: one says something while another shows the agents."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._shown: list[str] = []
        self._mutex = threading.Lock()

    def say(self, text: str) -> None:
        """Write a line that stays, above those of the agents."""
        with self._mutex:
            self._draw(text)

    def show(self, agents: Sequence[Activity]) -> None:
        with self._mutex:
            columns, rows = terminal_width() or 80, _rows()
            shown = [line_of(agent, columns - 1) for agent in agents[: max(1, rows - 2)]]
            more = len(agents) - len(shown)
            self._lines = [*shown, *([f"… and {more} more"] if more else [])]
            if self._lines != self._shown:
                self._draw("")

    def close(self) -> None:
        """Remove the lines of the agents; the others stay."""
        with self._mutex:
            self._lines = []
            self._draw("")

    def _draw(self, text: str) -> None:
        redraw(len(self._shown), text, self._lines)
        self._shown = list(self._lines)


def _rows() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).lines or 24
    except OSError:
        return 24


def line_of(agent: Activity, room: int) -> str:
    """What an agent does, in at most `room` columns: its task, for how long, at what cost, its last words."""
    if not agent.task:
        waits = f"waits: {agent.waits}" if agent.waits else "starts"
        return style(shorten(f"{agent.agent}  {waits}", room), "dim")
    tokens = sum(totals.fresh + totals.cached + totals.written + totals.output for totals in agent.usage)
    costs = [float(totals.cost_usd) for totals in agent.usage if totals.cost_usd is not None]
    facts = [
        agent.agent,
        agent.task,
        shorten(agent.title, TITLE),
        lasting(agent.seconds),
        f"{thousands(tokens)} tokens" if tokens else "",
        money(sum(costs)) if costs else "",
    ]
    text = shorten("  ".join(fact for fact in facts if fact), room)
    left = room - width_of(text) - 2
    is_shown = agent.last_line and left >= NARROWEST_LINE
    return f"{text}  {style(shorten(agent.last_line, left), 'dim')}" if is_shown else text
