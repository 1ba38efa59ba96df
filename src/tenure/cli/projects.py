"""`project …`, `track …`: the settings of a project, the order of its tasks, and which agents its tracks are for."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from tenure.cli.answers import outcome_text
from tenure.cli.main import Answer, Run, Usage, answered, arg, options, shown, verb_of
from tenure.cli.option_kinds import pair
from tenure.cli.text_format import clock, moment, plain, table
from tenure.core import commands as c
from tenure.core.outcomes import Outcome

ON = ("on", "off")
_SIZES = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))
_SWITCHES = ("router", "routing", "agents_may_operate", "review_other_person")


@options()
def list_(run: Run, given: Namespace) -> Answer:
    """List the projects of the store; the one that commands use here has a mark."""
    names = run.client.projects()
    return Answer(names, lambda: "\n".join(f"{'*' if name == run.project else ' '} {plain(name)}" for name in names))


@options()
def show(run: Run, given: Namespace) -> Answer:
    """Show the settings of the project."""
    return shown(run.client.settings(), lambda found: _settings(found, run.client.now()))


def _settings(found: dict[str, Any], now: int) -> str:
    others = ("project", "created_at", "limits", "audited_at")
    rows = [(name, _value(value)) for name, value in found.items() if name not in others]
    rows += [("log sealed since", None if found["audited_at"] is None else moment(found["audited_at"], now))]
    rows += [(f"limit {name}", limit_text(name, value)) for name, value in found["limits"].items()]
    return f"{plain(found['project'])}\n{table(rows, ('setting', 'value'))}"


def _value(value: Any) -> str | None:
    return ("off", "on")[value] if isinstance(value, bool) else None if value is None else f"{value}"


@options(
    arg("--router", choices=ON, help="whether tracks are assigned to agents (off)"),
    arg("--order", metavar="NAME", help="priority, or shortest; of tasks that are created from now on"),
    arg("--lead", metavar="NAME", help="auto: the first agent leads; off: no agent leads; default"),
    arg("--default-track", metavar="CODE", help="the track of tasks without one"),
    arg("--boost", type=float, metavar="POINTS", help="points that a task gains each minute: 0, 0.01, 0.1, 1 or 10"),
    arg("--agents-may-operate", choices=ON, help="whether agents may use the verbs for people"),
    arg("--review-other-person", choices=ON, help="whether a review is for another person than the claim's (off)"),
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
    settings = [f"{name} {plain(str(value))}" for name, value in changes.items()]
    changes |= {name: changes[name] == "on" for name in _SWITCHES if name in changes}
    return _settings_answer(run.client.init(**changes), settings)


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
    return shown(run.client.project_limits(), lambda found: _limits(found) + _preset(run, found))


def _preset(run: Run, found: Sequence[Mapping[str, Any]]) -> str:
    from tenure.core import compliance

    name = run.client.settings()["compliance"]
    kept = next(one["value"] for one in found if one["name"] == compliance.LIMIT)
    return f"\n{compliance.retention_text(name, kept)}" if name in compliance.DAYS else ""


def _limits(found: list[dict[str, Any]]) -> str:
    rows = [
        (
            one["name"],
            limit_text(one["name"], one["value"]),
            one["source"],
            one["used"],
            one["meaning"].split(", in ")[0],
        )
        for one in found
    ]
    return table(rows, ("limit", "value", "source", "used", "meaning"))


def limit_text(name: str, value: int | None) -> str:
    """The limit as `limits set` takes it: a duration in its largest whole unit."""
    if value is None:
        return "none"
    unit = _units().get(name)
    if unit is None:
        return str(value)
    return next(
        f"{value * unit // size}{word}" for word, size in _SIZES if (value and value * unit % size == 0) or size == 1
    )


def _units() -> dict[str, int]:
    """The seconds of a unit, of limits that are durations."""
    from tenure.core.inputs import LIMITS

    seconds = {"seconds": 1, "days": 86_400}
    return {name: seconds[unit] for name, text in LIMITS.items() if (unit := text.rpartition(", in ")[2]) in seconds}


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
    outcome = run.client.init(change_limits=changes, compliance=given.compliance)
    settings = [
        f"{name} {'default' if value is None else limit_text(name, value)}" for name, value in (changes or {}).items()
    ]
    return _settings_answer(outcome, settings + ([f"compliance {given.compliance}"] if given.compliance else []))


def _settings_answer(outcome: Outcome, settings: Sequence[str]) -> Answer:
    """The answer to a change of settings, which names them."""
    return answered(outcome, lambda: outcome_text(replace(outcome, message=outcome.message or ", ".join(settings))))


def limit_changes(verb: str, pairs: Sequence[tuple[str, str]]) -> dict[str, int | None]:
    """The limits that NAME=VALUE pairs change; None: back to the default."""
    changes: dict[str, int | None] = {}
    for name, value in pairs:
        changes[name] = None if value == "default" else _amount(verb, name, value)
    return changes


def _amount(verb: str, name: str, value: str) -> int:
    from tenure.core.written_times import SECOND, parse_duration

    if value.isascii() and value.isdecimal():
        return int(value)
    unit = _units().get(name)
    duration = parse_duration(value) if unit else None
    if unit is None or duration is None or duration % (unit * SECOND):
        whole = {None: "a whole number", 1: "whole seconds, as in 3600 or 2h"}.get(unit, "whole days, as in 30 or 30d")
        raise Usage(f"{verb}: {name}={value[:40]} must be {whole}; or default")
    return duration // (unit * SECOND)


# --- tracks -------------------------------------------------------------------------------------------------

_CODE = arg("code", metavar="TRACK", help="its code, as in B")


@options()
def tracks(run: Run, given: Namespace) -> Answer:
    """List tracks, and the agents that each is assigned to by the router."""
    found = run.client.tracks()
    return shown(found, lambda tracks: _tracks(tracks, is_routed=run.client.settings()["router"]))


def _tracks(found: list[dict[str, Any]], *, is_routed: bool) -> str:
    rows = [
        (
            track["code"],
            plain(track["name"]),
            track["max_agents"] if is_routed else "off",
            ", ".join(map(_assigned, track["assigned"])) or None,
            plain(track["purpose"]),
        )
        for track in found
    ]
    listed = table(rows, ("track", "name", "max agents", "assigned to", "purpose"))
    return (
        listed
        if is_routed
        else f"{listed}\nthe router is off: no track limits its agents (`tenure project set --router on`)"
    )


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
