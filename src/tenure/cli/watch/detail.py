"""One task in the live view: its fields, why it is in its state, its lineage, its last events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.text import Text

from tenure.cli.lineage import drawn
from tenure.cli.state_marks import LEVELS, MARKS, in_words
from tenure.cli.status import paid
from tenure.cli.terminal_output import printed
from tenure.cli.text_format import ago, clock, plain
from tenure.cli.watch.data import Detail
from tenure.core import limits

MOST_LINES = limits.WATCH_SCREEN_LINES


def colour(name: str) -> str:
    """The colour as rich calls it."""
    return "bright_black" if name == "grey" else name


def detail_lines(detail: Detail, now: int) -> list[Text]:
    """The lines of the detail, each no longer than it needs; the panel cuts or wraps them."""
    return list(_lines(detail, now))


def _lines(detail: Detail, now: int) -> Iterator[Text]:
    task = detail.task
    mark = MARKS[task["state"]]
    yield Text(plain(task["title"]), "bold")
    yield Text.assemble(
        (f"{mark.sign} {in_words(task['state'])}", colour(mark.colour)),
        f"  {task['tier']} priority ({task['priority']})  attempt {task['attempts']} of {task['max_attempts']}"
        f"  generation {task['generation']}",
    )
    if task.get("agent"):
        percent = f"{task['percent']} %" if task.get("percent") is not None else ""
        step = ", ".join(part for part in (percent, plain(task.get("step") or "")) if part)
        yield Text(f"held by {plain(task['agent'])} in session {plain(task['session'])}{': ' + step if step else ''}")
    for reason in detail.reasons:
        yield Text(plain(reason), "yellow" if task["state"] not in ("running", "claimed") else "")
    yield from _facts(task)
    if task.get("description"):
        yield Text()
        for line in str(task["description"]).split("\n")[:MOST_LINES]:
            yield Text(plain(line))
    yield from _left_behind(task, now)
    yield Text()
    yield Text("Lineage", "bold")
    for line in drawn(detail.history, now, is_narrow=True).split("\n"):
        text = Text.from_ansi(printed(line))
        text.no_wrap, text.overflow = True, "ellipsis"
        yield text
    yield Text()
    yield Text("Events", "bold")
    for event in detail.events:
        level = colour(LEVELS.get(event.get("level", "info"), "default"))
        yield Text.assemble((clock(event["time"]), "dim"), " ", (event["text"], level))


def _facts(task: dict[str, Any]) -> Iterator[Text]:
    depends = ", ".join(f"{part['key']} ({in_words(part['state'])})" for part in task["depends_on"])
    for name, value in (
        ("depends on", depends), ("blocks", ", ".join(task["blocks"])), ("subtasks", ", ".join(task["subtasks"])),
        ("tags", ", ".join(task.get("tags", ()))), ("touches", ", ".join(task.get("touches", ()))),
        ("cost", paid(task.get("usage"))), ("work product", task.get("work_product")),
    ):  # fmt: skip
        if value:
            yield Text.assemble((f"{name} ", "dim"), plain(str(value)))


def _left_behind(task: dict[str, Any], now: int) -> Iterator[Text]:
    """The accepted result and the last checkpoint."""
    if "result" in task:
        yield Text()
        yield Text.assemble(
            ("result by ", "dim"), plain(task["result"]["agent"]), ": ", plain(task["result"]["summary"])
        )
    if "checkpoint" in task:
        kept = task["checkpoint"]
        yield Text()
        yield Text(f"checkpoint by {plain(kept['agent'])}, {ago(kept['at'], now)}", "dim")
        for name, value in kept["data"].items():
            yield Text.assemble((f"  {plain(str(name))} ", "dim"), plain(str(value)))
