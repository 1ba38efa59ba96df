"""`status`: one screen about a project: leader, agents, progress."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

from tenure.cli.main import Answer, Run, Usage, answered, arg, options, shown
from tenure.cli.option_kinds import moment as moment_text
from tenure.cli.option_kinds import past, seconds
from tenure.cli.text_format import (
    AGENTS,
    BY_INTEREST,
    MARKS,
    ago,
    bar,
    counted,
    in_words,
    lasting,
    moment,
    money,
    plain,
    shorten,
    style,
    table,
)
from tenure.client.wire import plain as wire
from tenure.core import lifecycle, limits
from tenure.core.land_request import COUNTED_AS, JUDGE, LandRequest, waits_for
from tenure.user_state import listed

if TYPE_CHECKING:
    from tenure.agents.unlanded import Unlanded
    from tenure.client import Client

BY = ("task", "agent", "model", "operation", "session", "type", "dag", "track")
MOST_HELD = limits.STATUS_HELD
FORGOTTEN = limits.AGENT_FORGOTTEN
MOST_READ = limits.LISTED
_ORDER = {name: n for n, name in enumerate(("active", "draining", "idle", "stale", "offline"))}


AT = arg("--at", type=past, metavar="WHEN", help="as it was then: an instant, 2h ago, or an event's sequence")


def moment_of(run: Run, given: Namespace) -> str | None:
    """The moment that --at names."""
    return moment_text(given.at, run.client.now)


class Glance(NamedTuple):
    """The data of one screen about a project."""

    status: Mapping[str, Any]
    held: Mapping[str, Mapping[str, Any]]  # by key: tasks that somebody works on
    tracks: dict[str, str]  # code → name


def glance(client: Client, at: str | None = None) -> Glance:
    status = client.status(at=at)
    busy = any(status["tasks"].get(state) for state in lifecycle.HELD)
    held = client.tasks(state=lifecycle.HELD, limit=MOST_HELD, at=at) if busy else []
    names = {track["code"]: track["name"] for track in client.tracks()}
    return Glance(status, {task["key"]: task for task in held}, names)


def elsewhere(client: Client, project: str) -> Client:
    """A client of the same store and agent in another project; it is closed with the first."""
    other = copy(client)
    other.project = project
    return other


@options(arg("--all-projects", action="store_true", help="every project of the store, one after the other"), AT)
def status(run: Run, given: Namespace) -> Answer:
    """Show one screen: leader, agents and their tasks, progress of each track, tasks by state.

    With --json an object with leader, agents, tracks, tasks; with --all-projects an array of them. With --at as it was.
    """
    at = moment_of(run, given)
    if at is not None and given.all_projects:
        raise Usage("status: --at is about one project", "name it with --project")
    if not given.all_projects:
        if run.is_json:
            return Answer(wire(run.client.status(at=at)))
        look = glance(run.client, at)
        more = (
            [
                *hooks_waiting(run, look.status),
                *landings_waiting(run.client, look.status),
                *(f"{one.text}; {one.way}" for one in unlanded_work(run)),
            ]
            if at is None
            else []
        )
        return Answer(None, drawn(look, is_wide=run.is_terminal, more=more))
    looks = [glance(elsewhere(run.client, name)) for name in sorted(run.client.projects())]
    text = "\n\n".join(drawn(look, is_wide=run.is_terminal) for look in looks)
    return Answer(wire([look.status for look in looks]), text or "this store has no project")


def hooks_waiting(run: Run, status: Mapping[str, Any]) -> list[str]:
    """Local hooks of the settings that nobody runs."""
    if run.client.is_remote or not run.settings.named("hooks"):
        return []
    from tenure.sinks.settings import read_hooks
    from tenure.trust.grants import Untrusted

    try:
        read_hooks(run.settings)
    except Untrusted:
        return ["hooks: none of them runs before `tenure trust` allows them"]
    if status.get("coordinator") is not None:
        return []
    return ["hooks wait: none of them runs until `tenure daemon`, `tenure serve` or `tenure run` does"]


def unlanded_work(run: Run) -> list[Unlanded]:
    """Finished work of this repository whose commits are on no branch but its own."""
    if not listed(os.path.join(run.home.folder, "worktrees")):
        return []
    from tenure.agents.unlanded import unlanded  # git is asked only where there are worktrees

    return unlanded(run.folder, run.client)


def drawn(look: Glance, *, is_wide: bool, more: Sequence[str] = ()) -> str:
    """The screen as text; `is_wide` draws bars. `more` are further things that wait."""
    status = look.status
    parts = [headline(status)]
    parts += [f"{style('Stopped', 'bold', 'red')}  {line}" for line in stops(status)]
    parts += [f"{style('Waiting', 'bold', 'yellow')}  {line}" for line in [*waiting(status), *more]]
    parts += [_agents(look), _tracks(look, is_wide=is_wide)]
    parts += [f"{style('Tasks', 'bold')}   {tally(status['tasks'])}"]
    if status.get("validations"):
        parts += [f"{style('Results', 'bold')}\n" + "\n".join(f"  {line}" for line in verdicts(status))]
    spent = paid(status.get("usage"))
    if spent:
        parts += [f"{style('Usage', 'bold')}   {spent}"]
    if status.get("budgets"):
        from tenure.cli.budgets import line

        parts += [f"{style('Budget', 'bold')}\n" + "\n".join(f"  {line(budget)}" for budget in status["budgets"])]
    return "\n\n".join(part for part in parts if part)


def verdicts(status: Mapping[str, Any]) -> list[str]:
    """Results that wait for a verdict, by validator, and those that have passed and wait to be landed."""
    lines = []
    for validator, count in status["validations"].items():
        name, does, who = _WHO.get(validator, (validator, "checked", "`run`, `daemon` or `serve` does, where it can"))
        parts = [f"{count['running']} being {does}"] if count["running"] else []
        parts += [f"{count['waiting']} waiting ({who})"] if count["waiting"] else []
        lines.append(f"{plain(name)}: {', '.join(parts)}")
    return lines


# Of a validator: its name here, what its takers do, and who does it.
_WHO = {
    "review": ("review", "checked", "approve or reject them"),
    COUNTED_AS: ("to be landed", "landed", "`run`, `daemon` or `tenure land TASK` does, in a checkout"),
}


def landings_waiting(client: Client, status: Mapping[str, Any]) -> list[str]:
    """What has passed and waits to be landed, and the obstacle."""
    if COUNTED_AS not in status["validations"]:
        return []
    found = [one for one in client.validations(MOST_READ) if one["phase"] != JUDGE]
    return [f"{plain(one['key'])}: {plain(landing_of(one))}" for one in found]


def landing_of(view: Mapping[str, Any]) -> str:
    """Of a validation in one of its later phases: what it waits for."""
    land = LandRequest(**view["land"])
    return waits_for(land, view["phase"], holder=view["holder"], note=view["note"])


def headline(status: Mapping[str, Any]) -> str:
    return f"{style(status['project'], 'bold')}   {led(status)}"


def led(status: Mapping[str, Any]) -> str:
    leaders = []
    for name in ("leader", "coordinator"):
        one = status.get(name)
        if one is not None:
            since = f"{moment(one['since'], status['now'])}, {lasting((status['now'] - one['since']) / 1e6)}"
            leaders.append(f"{name} {plain(one['holder'])} (term {one['term']}, since {since})")
    return "; ".join(leaders) or "no leader"


def stops(status: Mapping[str, Any]) -> list[str]:
    """Stopped scopes, each with its reason."""
    return [
        plain(f"{'the whole project' if scope == 'project:' else scope.replace(':', ' ', 1)}{why and ': ' + why}")
        for scope, why in status["stopped"].items()
    ]


def waiting(status: Mapping[str, Any]) -> list[str]:
    """Schedules and triggers that need a coordinator, if none runs."""
    sources = status["sources"]
    some = [counted(sources[name], name.removesuffix("s")) for name in ("schedules", "triggers") if sources[name]]
    some += ["the watch"] if sources["watch"] else []
    if not some or status.get("coordinator") is not None:
        return []
    return [f"{' and '.join(some)}: nothing fires until `tenure daemon` or `tenure serve` runs"]


def present(status: Mapping[str, Any]) -> tuple[list[dict[str, Any]], int]:
    """Agents worth a line, the busy first; and how many others there are."""
    shown = [
        agent
        for agent in status["agents"]
        if agent["tasks"] or (agent["status"] != "offline" and status["now"] - agent["last_seen"] < FORGOTTEN)
    ]
    shown.sort(key=lambda agent: (_ORDER.get(agent["status"], 9), agent["name"]))
    return shown, len(status["agents"]) - len(shown)


def work_of(agent: Mapping[str, Any], held: Mapping[str, Mapping[str, Any]], width: int = 46) -> str:
    """The agent's task and its progress."""
    if not agent["tasks"]:
        return ""
    key = agent["tasks"][0]
    task = held.get(key, {})
    percent = f" {task['percent']} %" if task.get("percent") is not None else ""
    more = f" (+{len(agent['tasks']) - 1})" if len(agent["tasks"]) > 1 else ""
    return shorten(key, width - len(percent) - len(more)) + percent + more


def _agents(look: Glance) -> str:
    shown, others = present(look.status)
    if not look.status["agents"]:
        return "no agent has worked here yet"
    now = look.status["now"]
    rows = [
        (
            shorten(a["name"], 24),
            shorten(a["type"], 12),
            style(a["status"], AGENTS.get(a["status"], "dim")),
            work_of(a, look.held) or None,
            ago(a["last_seen"], now),
        )
        for a in shown
    ]
    text = table(rows, ("agent", "type", "status", "task", "heartbeat"))
    rest = f"{counted(others, 'agent')} not here" if others else ""
    return "\n".join(part for part in (text, style(rest, "dim")) if part)


def _tracks(look: Glance, *, is_wide: bool) -> str:
    rows = []
    is_routed = any("assigned" in part for part in look.status["tracks"].values())
    for code, part in look.status["tracks"].items():
        counts = (part["completed"], part["in_progress"], part["pending"])
        drawing = (bar(*counts),) if is_wide else ()
        there = (plain(", ".join(part.get("assigned", ()))) or None,) if is_routed else ()
        rows.append((f"{code} {shorten(look.tracks.get(code, ''), 24)}".rstrip(), *drawing, *counts, *there))
    titles = ("track", *(("",) if is_wide else ()), "completed", "in progress", "pending")
    return table(rows, (*titles, *(("assigned to",) if is_routed else ())))


def tally(counts: Mapping[str, int]) -> str:
    """Tasks by state, active ones first."""
    parts = [
        style(f"{MARKS[state].sign} {counts[state]} {in_words(state)}", MARKS[state].colour)
        for state in BY_INTEREST
        if counts.get(state)
    ]
    return "  ".join(parts) or "none yet; `tenure add` creates one"


def paid(usage: Mapping[str, Any] | None) -> str:
    """The cost so far, in one line; empty if no usage was reported."""
    if not usage:
        return ""
    parts: list[str] = []
    if usage.get("cost_usd") is not None:
        parts.append(money(usage["cost_usd"]) + (f" ({usage['unpriced']} unpriced)" if usage.get("unpriced") else ""))
    read = sum(usage.get(name, 0) for name in ("fresh", "cached", "written"))
    if read or usage.get("output"):
        from_cache = f" ({thousands(usage['cached'])} from cache)" if usage.get("cached") else ""
        parts.append(f"{thousands(read)} tokens in{from_cache}, {thousands(usage.get('output', 0))} out")
    if usage.get("duration"):
        parts.append(f"{lasting(usage['duration'])} of compute")
    if usage.get("doubtful_usd"):
        parts.append(f"{money(usage['doubtful_usd'])} of the cost is doubtful: it counts when a person confirms it")
    if usage.get("rejected_usd"):
        parts.append(f"{money(usage['rejected_usd'])} more was reported and rejected")
    return ", ".join(parts)


def thousands(count: int) -> str:
    """`950`, `12.3 k`, `4.1 M`."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return str(count)


@options(
    arg("--by", choices=BY, default="task", help="group by (task)"),
    arg("--limit", type=int, default=20, metavar="N", help="the most expensive N (20)"),
)
def usage(run: Run, given: Namespace) -> Answer:
    """Show tokens and money that agents reported, most expensive first; late reports are included and marked."""
    return shown(run.client.spent(given.by, given.limit), lambda spent: _spent(spent, given.by))


@options(
    arg("task", nargs="?", help="the claim, as KEY@GENERATION; the key alone, or nothing, if it is unambiguous"),
    arg("--receipt", metavar="R", help="the receipt to present (else the one this session keeps)"),
    arg("--model", required=True, metavar="NAME", help="which model"),
    arg("--in", dest="fresh", type=int, default=0, metavar="N", help="input tokens that no cache served"),
    arg("--cached", type=int, default=0, metavar="N", help="input tokens from a cache"),
    arg("--written", type=int, default=0, metavar="N", help="input tokens written to a cache"),
    arg("--out", dest="output", type=int, default=0, metavar="N", help="output tokens"),
    arg("--cost", "--usd", metavar="USD", help="dollars, if known (else from the price table)"),
    arg("--duration", type=seconds, default=0.0, metavar="DURATION", help="time of compute"),
    arg("--operation", default="", metavar="NAME", help="only the part of the totals that was for this, as review"),
)
def add_usage(run: Run, given: Namespace) -> Answer:
    """Report what a model has used under your claim so far: totals, so that a repeat counts once.

    Several models are reported one after another. The runner and the hooks of agents do this by themselves.
    """
    names = ("model", "fresh", "cached", "written", "output", "duration", "operation")
    fields = {name: getattr(given, name) for name in names}
    outcome = run.present(given, lambda r: run.client.usage(r, **fields, cost_usd=given.cost))
    return answered(outcome, lambda: paid(outcome.usage) or "nothing was used yet")


def _cost(row: Mapping[str, Any]) -> str | None:
    """Marked with ≈ where part of it is computed from the price table."""
    if row["cost_usd"] is None:
        return None
    return f"{'≈ ' if row.get('computed_usd') else ''}{money(row['cost_usd'])}"


def _spent(spent: Sequence[Mapping[str, Any]], by: str) -> str:
    rows = [
        (
            shorten(str(row[by] or "(none)"), 50),
            _cost(row),
            *(thousands(row[name]) for name in ("fresh", "cached", "output")),
            "some" if row.get("late") else None,
            money(row["doubtful_usd"]) if row.get("doubtful_usd") else None,
        )
        for row in spent
    ]
    lines = [table(rows, (by, "cost", "fresh", "cached", "output", "late", "doubtful")) or "no usage was reported"]
    if any(row.get("doubtful_usd") for row in spent):
        lines.append("doubtful: far above what the tokens cost; it counts when a person confirms it, see `tenure todo`")
    return "\n".join(lines)
