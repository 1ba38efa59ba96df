"""The live view as text of exactly the terminal's size. Drawn with rich, which is imported nowhere else."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rich.box import ROUNDED
from rich.console import Console, Group, RenderableType
from rich.layout import Layout
from rich.panel import Panel
from rich.screen import Screen
from rich.table import Table
from rich.text import Text

from tenure.cli.answers import clean_frame, printed
from tenure.cli.status import led, paid, present, stops, work_of
from tenure.cli.task_reads import drawn
from tenure.cli.text_format import AGENTS, LEVELS, MARKS, ago, briefly, clock, in_words, plain, shares
from tenure.cli.watch.data import MOST_TASKS, Detail, Snapshot
from tenure.cli.watch.state import FILTERS, KEYS, View
from tenure.core import lifecycle, limits

WIDE = 120  # columns from which lists stand side by side
NARROW = 60  # columns below which a list of tasks has fewer columns
TALL = 18  # lines below which only the tasks are shown
BORDER = 2  # lines that a panel takes for itself
_SINCE = {
    lifecycle.CLAIMED: "claimed_at", lifecycle.RUNNING: "claimed_at", lifecycle.READY: "ready_at",
    lifecycle.COMPLETED: "completed_at", lifecycle.DEAD_LETTERED: "dead_lettered_at",
}  # fmt: skip
# Columns of a list of tasks: sign, key, title, state, agent, percent, since.
_COLUMNS: tuple[dict[str, Any], ...] = (
    {}, {}, {"ratio": 1}, {}, {"max_width": 14}, {"justify": "right"}, {"justify": "right"},
)  # fmt: skip
_STATE, _AGE = 3, 6


class Shown(NamedTuple):
    """The content of a frame; `tasks` are those of `data` that the search has left."""

    view: View
    data: Snapshot
    tasks: Sequence[Mapping[str, Any]]
    detail: Detail | None
    trouble: str
    width: int
    height: int


def frame(shown: Shown) -> str:
    """One frame, styled as the terminal allows."""
    console = Console(
        file=io.StringIO(), force_terminal=True, width=shown.width, height=shown.height, legacy_windows=False
    )
    layout, body = Layout(), Layout()
    layout.split_column(Layout(_header(shown), size=1), body, Layout(_footer(shown.view, shown.trouble), size=1))
    room = shown.height - 2
    if shown.view.is_helping:
        body.update(_help())
    elif shown.width >= WIDE and shown.height >= TALL:
        _side_by_side(shown, body, room)
    elif shown.detail is not None:
        body.update(_detail(shown.detail, shown, room))
    elif shown.height >= TALL:
        _stacked(shown, body, room)
    else:
        body.update(_tasks(shown, shown.width, room))
    with console.capture() as captured:
        console.print(Screen(layout), end="")
    return clean_frame(captured.get()).replace("\n", "\r\n")


def _side_by_side(shown: Shown, body: Layout, room: int) -> None:
    right = Layout(ratio=2)
    body.split_row(Layout(_tasks(shown, shown.width * 3 // 5, room), ratio=3), right)
    if shown.detail is not None:
        right.update(_detail(shown.detail, shown, room))
        return
    people, streams = _counts(shown)
    agents, tracks = min(people + 1 + BORDER, room // 3), min(streams + BORDER, room // 3)
    right.split_column(
        Layout(_agents(shown, agents - BORDER), size=agents),
        Layout(_tracks(shown, tracks - BORDER, cells=20), size=tracks),
        Layout(_events(shown, room - agents - tracks - BORDER)),
    )


def _stacked(shown: Shown, body: Layout, room: int) -> None:
    people, streams = _counts(shown)
    top, bottom = min(max(people + 1, streams) + BORDER, room // 3), max(room // 4, 3 + BORDER)
    above = Layout(size=top)
    above.split_row(
        Layout(_agents(shown, top - BORDER), ratio=3), Layout(_tracks(shown, top - BORDER, cells=8), ratio=2)
    )
    body.split_column(
        above,
        Layout(_tasks(shown, shown.width, room - top - bottom)),
        Layout(_events(shown, bottom - BORDER), size=bottom),
    )


def _counts(shown: Shown) -> tuple[int, int]:
    """Lines that agents and tracks want, at least one each."""
    status = shown.data.look.status
    return max(len(present(status)[0]), 1), max(len(status["tracks"]), 1)


# --- the parts ----------------------------------------------------------------------------------------------


def _panel(content: RenderableType, title: str | Text, subtitle: str = "", *, is_active: bool = False) -> Panel:
    return Panel(
        content, title=title, subtitle=Text(subtitle, "dim"), title_align="left", subtitle_align="right", box=ROUNDED,
        border_style="cyan" if is_active else "bright_black", padding=(0, 1),
    )  # fmt: skip


def _grid(*columns: dict[str, Any]) -> Table:
    table = Table.grid(expand=True, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(**{"no_wrap": True, "overflow": "ellipsis", **column})
    return table


def _header(shown: Shown) -> RenderableType:
    status = shown.data.look.status
    left = Text.assemble((" tenure ", "bold reverse"), " ", (plain(status["project"]), "bold"), "  ")
    for state in (*lifecycle.HELD, lifecycle.READY, lifecycle.DEAD_LETTERED, lifecycle.PAUSED, lifecycle.COMPLETED):
        if status["tasks"].get(state):
            mark = MARKS[state]
            left.append(f"{mark.sign}{status['tasks'][state]} {in_words(state)}  ", colour(mark.colour))
    if status["stopped"]:
        left.append(f"stopped: {'; '.join(stops(status))}  ", "bold red")
    if status["leader"] is not None:
        left.append(f"{led({**status, 'coordinator': None})}  ", "dim")
    left.append(paid(status.get("usage")), "dim")
    right = Text(clock(shown.data.now), "dim")
    if shown.view.is_paused:
        right = Text.assemble((" view paused ", "black on yellow"), " ", right)
    grid = _grid({"ratio": 1}, {"justify": "right"})
    grid.add_row(left, right)
    return grid


def _footer(view: View, trouble: str) -> RenderableType:
    if trouble:
        return Text(f" {trouble}", "bold red", no_wrap=True, overflow="ellipsis")
    if view.is_searching:
        typed = Text.assemble((" / ", "black on cyan"), " ", plain(view.search), ("▏", "cyan"))
        return typed.append("  enter: done  esc: clear", "dim")
    detail = ("enter", "back" if view.is_detailed else "detail")
    hints = (("q", "quit"), ("↑↓", "move"), detail, ("f", "filter"), ("/", "search"), ("p", "pause"), ("?", "help"))
    text = Text(" ", no_wrap=True, overflow="ellipsis")
    for key, what in hints:
        text.append(f" {key} ", "bold").append(f"{what}  ", "dim")
    return text


def _help() -> RenderableType:
    grid = _grid({"style": "bold"}, {"ratio": 1})
    for key, what in KEYS:
        grid.add_row(key, what)
    signs = Text()
    for state, mark in MARKS.items():
        signs.append(f"{mark.sign} {in_words(state)}  ", colour(mark.colour))
    return _panel(Group(grid, Text(), signs, Text(), Text("any key goes back", "dim")), "Keys", is_active=True)


def _agents(shown: Shown, room: int) -> RenderableType:
    look, now = shown.data.look, shown.data.now
    here, others = present(look.status)
    listed = here if len(here) + bool(others) <= room else here[: max(room - 1, 0)]
    left = others + len(here) - len(listed)
    grid = _grid({"max_width": 16}, {}, {"ratio": 1}, {"justify": "right"})
    for agent in listed:
        name = Text(plain(agent["name"]), "" if agent["tasks"] else "dim")
        state = Text(agent["status"], colour(AGENTS.get(agent["status"], "dim")))
        seen = Text(briefly((now - agent["last_seen"]) / 1e6), "dim")
        grid.add_row(name, state, work_of(agent, look.held, 60), seen)
    if left:
        grid.add_row(Text(f"+ {left}", "dim"), "", Text("not here" if left == others else "more", "dim"), "")
    if not look.status["agents"]:
        grid.add_row("", "", Text("no agents yet", "dim"), "")
    busy = sum(bool(agent["tasks"]) for agent in here)
    return _panel(grid, f"Agents {busy}/{len(here)} at work" if here else "Agents")


def _tracks(shown: Shown, room: int, *, cells: int) -> RenderableType:
    look = shown.data.look
    grid = _grid({"ratio": 1}, {}, {"justify": "right"})
    for code, part in list(look.status["tracks"].items())[:room]:
        done, doing, rest = part["completed"], part["in_progress"], part["pending"]
        bar = shares(done, doing, rest, cells)
        drawing = Text.assemble(
            ("█" * bar.done, "green"), ("▓" * bar.doing, "yellow"), ("░" * bar.rest, "bright_black")
        )
        name = f"{code} {plain(look.tracks.get(code, ''))}"
        grid.add_row(name, drawing, Text(f"{done}/{done + doing + rest}", "dim"))
    if not look.status["tracks"]:
        grid.add_row(Text("no tasks yet", "dim"))
    return _panel(grid, "Tracks")


def _tasks(shown: Shown, width: int, room: int) -> RenderableType:
    view, tasks, now = shown.view, shown.tasks, shown.data.now
    lines = max(room - BORDER, 1)
    keys = [task["key"] for task in tasks]
    at = keys.index(view.selected) if view.selected in keys else 0
    first = max(0, min(at - lines // 2, len(tasks) - lines))
    # In a narrow list the sign stands for the state, and for how long it is there is left out.
    columns = [n for n in range(len(_COLUMNS)) if width >= NARROW or n not in (_STATE, _AGE)]
    grid = _grid(*(_COLUMNS[n] for n in columns))
    for task in tasks[first : first + lines]:
        row = _task_row(task, now)
        grid.add_row(*(row[n] for n in columns), style="reverse" if task["key"] == view.selected else "")
    if not tasks:
        nothing = "nothing matches; enter finds it by name" if view.search else "no tasks here"
        grid.add_row("", "", Text(nothing, "dim"))
    title = Text(f"Tasks: {FILTERS[view.filter].name}")
    if view.search:
        title.append(f' "{plain(view.search)}"', "cyan")
    return _panel(grid, title, _how_many(shown), is_active=True)


def _how_many(shown: Shown) -> str:
    view, count = shown.view, len(shown.tasks)
    total = sum(shown.data.look.status["tasks"].get(state, 0) for state in view.states)
    if len(shown.data.tasks) < total:
        return f"{f'{count} found in ' if view.search else ''}the first {MOST_TASKS} of each state; {total} in all"
    return f"{count} of {total}" if view.search else str(total)


def _task_row(task: Mapping[str, Any], now: int) -> Sequence[Text]:
    mark = MARKS[task["state"]]
    since = task.get(_SINCE.get(task["state"], ""), task["updated_at"])
    percent = f"{task['percent']} %" if task.get("percent") is not None and task["state"] in lifecycle.HELD else ""
    return (
        Text(mark.sign, colour(mark.colour)), Text(task["ref"], "bold"), Text(plain(task["title"])),
        Text(in_words(task["state"]), colour(mark.colour)), Text(plain(task.get("agent") or "")), Text(percent),
        Text(briefly((now - since) / 1e6), "dim"),
    )  # fmt: skip


def _events(shown: Shown, room: int) -> RenderableType:
    grid = _grid({}, {"ratio": 1})
    for event in shown.data.events[-max(room, 1) :]:
        level = event.get("level", "info")
        grid.add_row(Text(clock(event["time"]), "dim"), Text(event["text"], colour(LEVELS.get(level, "default"))))
    return _panel(grid, "Events")


def _detail(detail: Detail, shown: Shown, room: int) -> RenderableType:
    view = shown.view
    lines = detail_lines(detail, shown.data.now)
    view.scroll = max(0, min(view.scroll, len(lines) - 1))
    more = f"J K scroll: {view.scroll + 1}/{len(lines)}" if len(lines) > room - BORDER else ""
    return _panel(Group(*lines[view.scroll :]), Text(detail.task["key"], "bold"), more, is_active=True)


MOST_LINES = limits.WATCH_SCREEN_LINES


def colour(name: str) -> str:
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


def _facts(task: Mapping[str, Any]) -> Iterator[Text]:
    depends = ", ".join(f"{part['key']} ({in_words(part['state'])})" for part in task["depends_on"])
    for name, value in (
        ("depends on", depends),
        ("blocks", ", ".join(task["blocks"])),
        ("subtasks", ", ".join(task["subtasks"])),
        ("tags", ", ".join(task.get("tags", ()))),
        ("touches", ", ".join(task.get("touches", ()))),
        ("cost", paid(task.get("usage"))),
        ("work product", task.get("work_product")),
    ):
        if value:
            yield Text.assemble((f"{name} ", "dim"), plain(str(value)))


def _left_behind(task: Mapping[str, Any], now: int) -> Iterator[Text]:
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
