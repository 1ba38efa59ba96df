"""`log`: print events; `wait`: wait until tasks have ended."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tenure.cli.answers import reader_left, say, say_json
from tenure.cli.main import Answer, Run, Usage, arg, options, shown
from tenure.cli.option_kinds import before, instant, seconds
from tenure.cli.text_format import moment, plain, style
from tenure.client.wire import plain as wire
from tenure.core.events import LEVELS
from tenure.core.lifecycle import ENDED

if TYPE_CHECKING:
    from tenure.core.views import EventView

COLOURS = {"warning": "yellow", "error": "red", "critical": "red", "debug": "dim"}
POLL = 5.0  # seconds between polls, in case a wake-up is missed
HELD_BACK = 0.02  # while an earlier write is not committed yet
PAGE = 1000


@options(
    arg("--task", metavar="TASK", help="only of this task"),
    arg("--level", choices=LEVELS, help="at least this level"),
    arg("--kind", metavar="KIND", help="only this kind, as task.claimed, or task for all of tasks"),
    arg("--since", type=instant, metavar="WHEN", help="not older than this instant"),
    arg("-n", "--limit", type=int, default=100, metavar="N", help="the last N (100)"),
    arg("--after", type=int, metavar="N", help="the first ones behind the event with this sequence (0: the oldest)"),
    arg("--store", action="store_true", help="also events of no project: sinks, leaders; keys and members"),
    arg("-f", "--follow", action="store_true", help="follow new events; with --json one object a line"),
)
def log(run: Run, given: Namespace) -> Answer | int:
    """Print events, oldest first. With --agent only those of this agent."""
    # `log --agent ann`: what ann did
    where = {name: value for name in ("task", "kind", "agent", "level") if (value := getattr(given, name))}
    if given.store:
        where["store"] = True
    if given.since is not None:
        where["since"] = before(given.since, run.client.now)
    if given.after is not None:
        if given.follow:
            raise Usage("log: --after and --follow exclude each other", "without --follow it shows page after page")
        where |= {"after": given.after, "last": False}
    events = run.client.log(limit=given.limit, **where)
    if not given.follow:
        further = f"--after {events.next}" if given.after is not None else "--after 0 for the oldest first"
        return shown(events, lambda events: "\n".join(map(line, events)) or "no events", further)
    try:
        for event in _followed(run, events, where):
            if run.is_json:
                say_json(wire(event))
            else:
                say(line(event))
    except BrokenPipeError:
        reader_left()
    return 0


def _followed(run: Run, first: list[EventView], where: dict[str, Any]) -> Iterator[EventView]:
    """Existing events, then new ones, forever."""
    yield from first
    shown = {event["sequence"] for event in first}
    seen = min(shown, default=1) - 1  # events with lower sequences may be committed later
    is_news = False
    while True:
        found = run.client.log(after=seen, last=False, limit=PAGE, **where)
        if is_news and not found:
            time.sleep(HELD_BACK)
        yield from (event for event in found if event["sequence"] not in shown)
        seen = found[-1]["sequence"] if found else seen
        is_news = run.client.wait_for_news(seen, POLL)


def line(event: Mapping[str, Any]) -> str:
    who = event.get("agent") or event.get("user") or ""
    subject = event.get("key") or ""
    if event.get("generation"):
        subject += f"@{event['generation']}"
    parts = [moment(event["time"]), style(event["kind"], COLOURS.get(event.get("level", ""), "")), subject, who]
    text = "  ".join(part for part in parts if part)
    return f"{text}: {plain(event['message'])}" if event.get("message") else text


@options(
    arg("tasks", nargs="*", metavar="TASK", help="which ones"),
    arg("--dag", metavar="ID", help="all tasks of this dag"),
    arg("--timeout", type=seconds, metavar="SECONDS", help="give up after that long: exit code 3"),
    arg("--any", action="store_true", help="return when the first has ended"),
)
def wait(run: Run, given: Namespace) -> Answer:
    """Wait until tasks are completed, cancelled or dead letters; for scripts. Exit code 0 if all completed."""
    names = list(given.tasks)
    if given.dag:
        names += [task["key"] for task in run.client.dag(given.dag)["tasks"]]
    if not names:
        raise Usage("wait: for which tasks?", "name them, or pass --dag")
    until = None if given.timeout is None else time.monotonic() + given.timeout
    while True:
        mark = run.client.mark()
        states = run.client.states(names)
        missing = [state["name"] for state in states if state["outcome"] != "OK"]
        if missing:
            from tenure.core.errors import NotFound

            raise NotFound(f"no task {missing[0]!r} in project {run.project}")
        ended = [state["state"] in ENDED for state in states]
        if any(ended) if given.any else all(ended):
            break
        left = POLL if until is None else min(POLL, until - time.monotonic())
        if left <= 0:
            break
        run.client.wait_for_news(mark, left)
    good = all(state["state"] == "completed" for state, over in zip(states, ended, strict=True) if over)
    is_over = any(ended) if given.any else all(ended)
    code = 3 if not is_over else (0 if good else 7)
    return Answer(wire(states), "\n".join(f"{state['key']}  {state['state']}" for state in states), code)
