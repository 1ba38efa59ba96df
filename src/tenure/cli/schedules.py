"""`schedule add|list|show|pause|resume|remove|run`: tasks on a schedule."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from tenure.cli.main import Answer, Run, answered, arg, options
from tenure.cli.templates import TEMPLATE, template_of
from tenure.cli.text_format import counted, lasting, moment, plain, shorten, table
from tenure.client.wire import plain as wire
from tenure.core import commands as c
from tenure.core.outcomes import Outcome

NAME = arg("name", help="the schedule")
WAITS = "no coordinator runs, so nothing fires: start `tenure daemon` or `tenure serve`"


@options(
    arg("name", help="its name, as in nightly"),
    arg("cron", help="when: minute, hour, day of month, month, day of week, as in '30 6 * * mon-fri', or @daily"),
    *TEMPLATE,
    arg("--zone", default="UTC", metavar="ZONE", help="the time zone, as in Europe/Berlin (UTC)"),
    arg("--misfire", choices=("skip", "once", "all"), default="once",
        help="for missed ticks, fire: none, the last one, or all (once)"),
)  # fmt: skip
def add(run: Run, given: Namespace) -> Answer:
    """Create or change a schedule. The store's coordinator fires it: a daemon or server.

    Daylight saving loses nothing: a tick skipped in spring fires right after the gap, a repeated one in
    autumn fires once. `{tick.date}`, `{tick.time}` and `{tick.at}` in texts are the time of the tick.
    """
    template = template_of(run, given)
    outcome = run.client.do(
        c.SetSchedule(
            project=run.project, schedule=given.name, cron=given.cron, zone=given.zone, misfire=given.misfire,
            template=template,
        )
    )  # fmt: skip
    return _told(run, outcome)


def _told(run: Run, outcome: Outcome) -> Answer:
    row = outcome.schedule
    if not outcome.ok or row is None:
        return answered(outcome)

    def text() -> str:
        when = _when(row, run.client.status()["now"])
        lines = [f"{row['name']}  {outcome.outcome.lower()}, {'next ' if row['enabled'] else ''}{when}"]
        return "\n".join([*lines, *([f"  {WAITS}"] if is_waiting(run) and row["enabled"] else [])])

    return answered(outcome, text)


def is_waiting(run: Run) -> bool:
    """Whether no coordinator runs."""
    return run.client.status()["coordinator"] is None


def _when(row: Mapping[str, Any], now: int) -> str:
    if not row["enabled"]:
        return f"paused{row['reason'] and ': ' + plain(row['reason'])}"
    return f"{moment(row['next_at'], now)}, in {lasting(row['next_in'])}"


@options()
def list_(run: Run, given: Namespace) -> Answer:
    """List the project's schedules, and when each fires next."""
    found = run.client.schedules()

    def text() -> str:
        now = run.client.status()["now"]
        rows = [
            (
                row["name"], plain(row["cron"]), row["zone"], _when(row, now), _last(row), str(row["fired"]),
                shorten(plain(row["title"]), 40),
            )
            for row in found
        ]  # fmt: skip
        listed = table(rows, ("schedule", "cron", "zone", "next", "last made", "fired", "title"))
        note = f"\n{WAITS}" if any(r["enabled"] for r in found) and is_waiting(run) else ""
        return listed + note if listed else "no schedules"

    return Answer(wire(found), text)


def _last(row: Mapping[str, Any]) -> str | None:
    return f"failed: {shorten(plain(row['last_error']), 40)}" if row["last_error"] else row["last_made"]


@options(NAME, arg("--ticks", type=int, default=5, metavar="N", help="how many of its next ticks (5)"))
def show(run: Run, given: Namespace) -> Answer:
    """Show one schedule: its next ticks in its time zone, and its tasks."""
    row = run.client.schedule(given.name, given.ticks)

    def text() -> str:
        now = run.client.status()["now"]
        lines = [
            f"{row['name']}  {plain(row['cron'])}  {row['zone']}  misfire {row['misfire']}",
            f"  {'next ' if row['enabled'] else ''}{_when(row, now)}",
            f"  fired {row['fired']}, missed {row['missed']}, failed {row['failed']}"
            + (f", last made {row['last_made']}" if row["last_made"] else ""),
            *([f"  last error: {plain(row['last_error'])}"] if row["last_error"] else []),
            *(f"  {tick['local']}" for tick in row["ticks"]),
            f"creates {counted(len(row['template']['tasks']), 'task')}:",
            *(f"  {shorten(plain(task['title']), 80)}" for task in row["template"]["tasks"]),
        ]
        return "\n".join(lines)

    return Answer(wire(row), text)


@options(NAME, arg("-m", "--reason", default="", metavar="TEXT", help="why"))
def pause(run: Run, given: Namespace) -> Answer:
    """Pause the schedule: its ticks create nothing."""
    return _told(run, run.client.pause_schedule(given.name, given.reason))


@options(NAME)
def resume(run: Run, given: Namespace) -> Answer:
    """Resume the schedule with its next tick. Ticks in between are skipped."""
    return _told(run, run.client.resume_schedule(given.name))


@options(NAME)
def remove(run: Run, given: Namespace) -> Answer:
    """Remove the schedule; its tasks stay."""
    return answered(run.client.remove_schedule(given.name))


@options(NAME)
def run_(run: Run, given: Namespace) -> Answer:
    """Create its tasks now, in addition to its ticks."""
    outcome = run.client.run_schedule(given.name)
    return answered(outcome, lambda: "\n".join(f"{task['key']}  {task['state']}" for task in outcome.tasks or ()))
