"""`project …`, `track …`: the settings of a project, the order of its tasks, and which agents its tracks are for."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from tenure.cli.main import Answer, Run, Usage, answered, arg, options, shown, verb_of
from tenure.cli.option_kinds import pair
from tenure.cli.text_format import clock, plain, table
from tenure.core import commands as c

ON = ("on", "off")
_SWITCHES = ("router", "routing", "agents_may_operate")


@options()
def list_(run: Run, given: Namespace) -> Answer:
    """List the projects of the store; the one that commands use here has a mark."""
    names = run.client.projects()
    return Answer(names, lambda: "\n".join(f"{'*' if name == run.project else ' '} {plain(name)}" for name in names))


@options()
def show(run: Run, given: Namespace) -> Answer:
    """Show the settings of the project."""
    return shown(run.client.settings(), _settings)


def _settings(found: dict[str, Any]) -> str:
    rows = [(name, _value(value)) for name, value in found.items() if name not in ("project", "created_at", "limits")]
    rows += [(f"limit {name}", value) for name, value in found["limits"].items()]
    return f"{plain(found['project'])}\n{table(rows, ('setting', 'value'))}"


def _value(value: Any) -> str:
    return ("off", "on")[value] if isinstance(value, bool) else f"{value}"


@options(
    arg("--router", choices=ON, help="whether tracks are assigned to agents (off)"),
    arg("--order", metavar="NAME", help="priority, or shortest; of tasks that are created from now on"),
    arg("--lead", metavar="NAME", help="auto: the first agent leads; off: only by `lead`; default"),
    arg("--default-track", metavar="CODE", help="the track of tasks without one"),
    arg("--boost", type=float, metavar="POINTS", help="points that a task gains each minute: 0, 0.01, 0.1, 1 or 10"),
    arg("--agents-may-operate", choices=ON, help="whether agents may use the verbs for people"),
    arg("--routing", choices=ON, help="whether claims name the model to use"),
)
def set_(run: Run, given: Namespace) -> Answer:
    """Change settings of the project; those that you do not name stay.

    tenure project set --router on
    tenure project set --order shortest
    """
    names = ("order", "lead", "default_track", "boost", *_SWITCHES)
    changes = {name: value for name in names if (value := getattr(given, name)) is not None}
    if not changes:
        raise Usage("project set: name a setting", "`tenure project show` lists them with their values")
    changes |= {name: changes[name] == "on" for name in _SWITCHES if name in changes}
    return answered(run.client.init(**changes))


@options()
def reorder(run: Run, given: Namespace) -> Answer:
    """Move all open tasks to the order of `project set --order`, a page at a time."""
    moved = 0
    outcome = run.client.reorder()
    while outcome.ok:
        moved += len(outcome.changed or ())
        if outcome.next is None:
            break
        outcome = run.client.reorder(outcome.next)
    order = run.client.settings()["order"]
    return answered(outcome, f"moved {moved} {'task' if moved == 1 else 'tasks'} to the order {order}", moved=moved)


# --- limits -------------------------------------------------------------------------------------------------


@options()
def limits(run: Run, given: Namespace) -> Answer:
    """List the limits of the project: the value of each, where it comes from, and how much of it is used."""
    return shown(run.client.project_limits(), _limits)


def _limits(found: list[dict[str, Any]]) -> str:
    rows = [
        (one["name"], "none" if one["value"] is None else one["value"], one["source"], one["used"], one["meaning"])
        for one in found
    ]
    return table(rows, ("limit", "value", "source", "used", "meaning"))


@options(
    arg("limits", nargs="*", type=pair, metavar="NAME=VALUE",
        help="as in max_concurrent_claims=20; NAME=default removes it"),
    arg("--compliance", metavar="NAME", help="a retention preset: soc2, pci or hipaa; none"),
)  # fmt: skip
def set_limits(run: Run, given: Namespace) -> Answer:
    """Change limits of the project; those that you do not name stay.

    A preset keeps history and access log for at least 365 (soc2, pci) or 2,190 days (hipaa). Lowering below it needs
    an owner, and the log has both values.
    """
    if not given.limits and given.compliance is None:
        raise Usage("limits set: name a limit, or --compliance", "`tenure limits` lists them with their values")
    changes = limit_changes(run.verb, given.limits) if given.limits else None
    return answered(run.client.init(change_limits=changes, compliance=given.compliance))


def limit_changes(verb: str, pairs: Sequence[tuple[str, str]]) -> dict[str, int | None]:
    """The limits that NAME=VALUE pairs change; None: back to the default."""
    changes: dict[str, int | None] = {}
    for name, value in pairs:
        if value != "default" and not value.isdecimal():
            raise Usage(f"{verb}: {name}={value[:40]} must be a whole number from 0, or default")
        changes[name] = None if value == "default" else int(value)
    return changes


# --- tracks -------------------------------------------------------------------------------------------------

_CODE = arg("code", metavar="TRACK", help="its code, as in B")


@options()
def tracks(run: Run, given: Namespace) -> Answer:
    """List tracks, and the agents that each is assigned to by the router."""
    return shown(run.client.tracks(), _tracks)


def _tracks(found: list[dict[str, Any]]) -> str:
    rows = [
        (track["code"], plain(track["name"]), track["max_agents"], ", ".join(map(_assigned, track["assigned"])) or None)
        for track in found
    ]
    return table(rows, ("track", "name", "max agents", "assigned to"))


def _assigned(one: dict[str, Any]) -> str:
    until = " until released" if one["pinned"] else f" until {clock(one['until'])}" if one["until"] else ""
    return plain(one["agent"]) + until


define_track = verb_of(
    c.DefineTrack,
    "Create a track, or change one.",
    _CODE,
    arg("name", nargs="?", help="its name (without one, name and purpose stay)"),
    arg("--purpose", default="", metavar="TEXT", help="what it is for"),
    arg("--max-agents", type=int, metavar="N", help="agents that may work there at once, with the router (1)"),
)
assign_track = verb_of(
    c.AssignTrack,
    "Assign a track to an agent, until it leaves or is released. Needs `project set --router on`.",
    _CODE,
    arg("agent_name", metavar="AGENT", help="to whom"),
    agent="agent_name",
)
release_track = verb_of(
    c.ReleaseTrack,
    "End the assignment of a track. The claims of the agent continue.",
    _CODE,
    arg("agent_name", nargs="?", metavar="AGENT", help="of this agent (else of all)"),
    agent="agent_name",
)
