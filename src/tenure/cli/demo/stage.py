"""The output of the demo: a graph that changes in place below the story, plain lines, or nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from tenure.cli.answers import printed, say
from tenure.cli.text_format import MARKS, SECOND, bar, shorten, style, width_of
from tenure.core import lifecycle

INNER = 14
BOX = INNER + 2
# Each row of the graph: the boxes from left to right, and the joints at their first line.
ROWS = (
    ((None, "api", "guide", None), ("  ┌─▶", "──┬─▶", "──┐  ")),
    (("schema", "page", "tests", "ship"), ("──┼─▶", "──┴─▶", "──┼─▶")),
    ((None, "import", "───", None), ("  └─▶", "─────", "──┘  ")),
)
# Gaps through which a line runs down from the row above to this one.
DOWN = ((), (0, 1, 2), (0, 2))
WIDTH = 4 * BOX + 3 * 5
HEIGHT = 4 * len(ROWS) + 1

Tasks = Mapping[str, Mapping[str, Any]]  # by local name


def stage(*, is_silent: bool) -> Stage:
    """The kind of output that fits stdout: a drawing needs a large enough terminal."""
    if is_silent:
        return Stage()
    if sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        size = os.get_terminal_size(sys.stdout.fileno())
        if size.columns >= WIDTH and size.lines > HEIGHT + 4:
            return Drawing()
    return Lines()


class Stage:
    """Nothing is printed."""

    def say(self, text: str) -> None: ...
    def draw(self, tasks: Tasks, now: int, dead: str | None) -> None: ...
    def finish(self) -> None: ...


class Lines(Stage):
    def say(self, text: str) -> None:
        say(text)


class Drawing(Stage):
    """The graph stays at the bottom; each line of the story pushes it down, and stays above it for good."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._write("\x1b[?25l")

    def say(self, text: str) -> None:
        self._write(
            self._up() + "\x1b[J" + printed(text) + "\n" + "\n".join(self._lines) + ("\n" if self._lines else "")
        )

    def draw(self, tasks: Tasks, now: int, dead: str | None) -> None:
        lines = [printed(line) for line in graph(tasks, now, dead)]
        if lines != self._lines:
            up, self._lines = self._up(), lines
            self._write(up + "".join(f"\x1b[2K{line}\n" for line in lines))

    def finish(self) -> None:
        self._lines = []
        self._write("\x1b[?25h")

    def _up(self) -> str:
        return f"\x1b[{len(self._lines)}A" if self._lines else ""

    @staticmethod
    def _write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def graph(tasks: Tasks, now: int, dead: str | None) -> list[str]:
    """The dag as lines; `dead` is the name of the task whose holder was killed."""
    lines = []
    for row, (names, joints) in enumerate(ROWS):
        boxes = [_box(name, tasks, now, name == dead) for name in names]
        for line in range(4):
            drawn = ""
            for column, box in enumerate(boxes):
                drawn += box[line]
                if column < len(joints):
                    drawn += style(_joint(row, line, column, joints[column]), "grey")
            lines.append(drawn.rstrip())
    done = sum(task["state"] == lifecycle.COMPLETED for task in tasks.values())
    doing = sum(task["state"] in lifecycle.HELD for task in tasks.values())
    progress = bar(done, doing, len(tasks) - done - doing, 28)
    lines.append(f"  {progress}  {done} of {len(tasks)} tasks completed")
    return lines


def _joint(row: int, line: int, column: int, at_boxes: str) -> str:
    if line == 1:
        return at_boxes
    runs_down = column in DOWN[row] if line == 0 else row + 1 < len(ROWS) and column in DOWN[row + 1]
    return "  │  " if runs_down else "     "


def _box(name: str | None, tasks: Tasks, now: int, is_dead: bool) -> list[str]:
    if name is None:
        return [" " * BOX] * 4
    if name == "───":  # a line that passes by
        return [" " * BOX, style("─" * BOX, "grey"), " " * BOX, " " * BOX]
    task = tasks[name]
    mark = MARKS[task["state"]]
    is_lost = is_dead and task["state"] in lifecycle.HELD and task["generation"] == 1
    colours = ("red", "bold") if is_lost else (mark.colour,)
    title = _filled(f"{'†' if is_lost else mark.sign} {name}")
    below = _filled(_status(task, now, is_lost))
    edge = style("│", *colours)
    return [
        style(f"┌{'─' * INNER}┐", *colours),
        f"{edge}{style(title, *colours, 'bold')}{edge}",
        f"{edge}{below}{edge}",
        style(f"└{'─' * INNER}┘", *colours),
    ]


def _filled(text: str) -> str:
    text = f" {shorten(text, INNER - 2)}"
    return text + " " * (INNER - width_of(text))


def _status(task: Mapping[str, Any], now: int, is_lost: bool) -> str:
    if is_lost:
        return f"{task['agent']} dead, {max(0, (task['lease_until'] - now) // SECOND + 1)} s"
    if task["state"] in lifecycle.HELD:
        again = f" g{task['generation']}" if task["generation"] > 1 else ""
        return f"{task['agent']}{again} {task.get('percent', 0)} %"
    if task["state"] == lifecycle.COMPLETED:
        return f"done gen {task['generation']}"
    return "waits" if task["state"] == lifecycle.PENDING else str(task["state"])
