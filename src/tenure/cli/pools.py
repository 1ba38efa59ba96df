"""`pool …` and `spawn list`: agents that the leading process starts while tasks are ready."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any

from tenure.cli.main import Answer, Run, Usage, answered, arg, options, shown
from tenure.cli.option_kinds import seconds
from tenure.cli.sources import is_waiting, nobody_leads
from tenure.cli.text_format import Columns, ago, columns, lasting, moment, plain, shorten
from tenure.core.outcomes import Outcome

NOT_STARTED = nobody_leads("nothing is started")
POOL = arg("name", help="the pool")
LIVE = ("starting", "running")


@options(
    arg("name", help="its name, as in coders; its agents are coders-1, coders-2 …"),
    arg("--agent", metavar="PROGRAM", help="claude, codex …, or a name of [programs.NAME] in the server's settings"),
    arg("--size", type=int, metavar="N", help="how many agents at once (1)"),
    arg("--spawner", metavar="NAME", help="what starts them: local, or a name of [spawners.NAME] (local)"),
    arg("--idle", type=seconds, metavar="DURATION", help="end a process without a task after this time (60s)"),
    arg("-c", "--cap", action="append", metavar="NAME", help="a capability of its agents (may be repeated)"),
    arg("--type", action="append", metavar="NAME", help="take only tasks of this type (may be repeated)"),
    arg("--track", action="append", metavar="CODE", help="take only tasks of this track (may be repeated)"),
    arg("--model", action="append", metavar="NAME", help="a model that its agents use (may be repeated)"),
)
def set_pool(run: Run, given: Namespace) -> Answer:
    """Create or change a pool: the leading process starts agents while tasks are ready.

    Omitted options stay as they are.

    tenure pool set coders --agent claude --size 3
    tenure pool set coders --size 5
    """
    outcome = run.client.set_pool(
        given.name, given.agent, size=given.size, spawner=given.spawner, idle=given.idle, capabilities=given.cap,
        types=given.type, tracks=given.track, models=given.model,
    )  # fmt: skip
    return _answer(run, outcome)


def _answer(run: Run, outcome: Outcome) -> Answer:
    """The answer to a command about one pool."""
    row = outcome.pool
    if not outcome.ok or row is None:
        return answered(outcome)

    def text() -> str:
        lines = [f"{row['name']}  {outcome.outcome.lower()}, {_state(row)}: {_what(row)}"]
        lines += [f"  {NOT_STARTED}"] if row["enabled"] and is_waiting(run) else []
        return "\n".join(lines)

    return answered(outcome, text)


def _what(row: Mapping[str, Any]) -> str:
    return f"{row['running'] + row['starting']} of {row['size']} {plain(row['program'])} by {plain(row['spawner'])}"


def _state(row: Mapping[str, Any]) -> str:
    return f"paused ({plain(row['disabled_for'])})" if row["state"] == "paused" else str(row["state"])


@options()
def list_pools(run: Run, given: Namespace) -> Answer:
    """List pools, their live processes, and the last error of each."""

    def text(found: list[dict[str, Any]]) -> str:
        now = run.client.now()
        wanted: Columns = {
            "pool": "name",
            "": "state",
            "program": lambda row: plain(row["program"]),
            "spawner": lambda row: plain(row["spawner"]),
            "running": lambda row: f"{row['running']} of {row['size']}",
            "starting": lambda row: str(row["starting"]),
            "started": lambda row: str(row["spawned"]),
            "error": lambda row: row["error"] and f"{shorten(plain(row['error']), 50)} ({ago(row['error_at'], now)})",
        }
        note = f"\n{NOT_STARTED}" if any(row["enabled"] for row in found) and is_waiting(run) else ""
        return columns(found, wanted, "no pools") + note

    return shown(run.client.pools(), text)


@options(POOL)
def show_pool(run: Run, given: Namespace) -> Answer:
    """Show one pool: what it takes, its live processes, its last error."""

    def text(row: Mapping[str, Any]) -> str:
        now = run.client.now()
        lines = [f"{row['name']}  {_state(row)}: {_what(row)}"]
        limits = [name for name in ("types", "tracks", "capabilities", "models") if row[name]]
        lines += [f"  {name} {', '.join(map(plain, row[name]))}" for name in limits]
        lines.append(f"  a process without a task ends after {lasting(row['idle'])}; {row['spawned']} started so far")
        if row["error"]:
            lines.append(f"  last error {ago(row['error_at'], now)}: {plain(row['error'])}")
        if row["wait_until"] and row["state"] == "backing off":
            lines.append(f"  the next starts {moment(row['wait_until'], now)}; `tenure pool resume` starts it now")
        return "\n".join([*lines, _table(row["spawns"], now)]) if row["spawns"] else "\n".join(lines)

    return shown(run.client.pool(given.name), text)


def _verb(name: str, text: str) -> Callable[[Run, Namespace], Answer | int]:
    @options(POOL)
    def verb(run: Run, given: Namespace) -> Answer:
        return _answer(run, getattr(run.client, name)(given.name))

    verb.__doc__ = text
    return verb


@options(POOL, arg("-m", "--message", default="", metavar="TEXT", help="why"))
def pause_pool(run: Run, given: Namespace) -> Answer:
    """Start no more agents of a pool; those that run finish their tasks."""
    return _answer(run, run.client.pause_pool(given.name, given.message))


resume_pool = _verb("resume_pool", "Start agents of a pool again, at once, also while it backs off.")
remove_pool = _verb("remove_pool", "Remove a pool. Agents that hold a task finish it; the others end.")


@options(
    arg("pool", nargs="?", help="only this pool's"),
    arg("-a", "--all", action="store_true", help="ended and lost ones too"),
    arg("--state", action="append", metavar="STATE", help="starting, running, ended or lost (may be repeated)"),
    arg("-n", "--limit", type=int, default=50, metavar="N", help="at most so many, the newest first (50)"),
)
def list_spawns(run: Run, given: Namespace) -> Answer:
    """List the processes that pools have started, the newest first."""
    if given.all and given.state:
        raise Usage("spawn list: --all and --state exclude each other", "give one of them")
    states = None if given.all else given.state or LIVE

    def text(found: list[dict[str, Any]]) -> str:
        return _table(found, run.client.now())

    return shown(run.client.spawns(given.pool, state=states, limit=given.limit), text)


def _table(found: list[dict[str, Any]], now: int) -> str:
    wanted: Columns = {
        "spawn": "id",
        "agent": "agent",
        "": "state",
        "task": lambda row: ", ".join(row["holds"]) or f"({row['task']})",
        "by": lambda row: plain(row["spawner"]),
        "process": lambda row: row["handle"] and shorten(plain(row["handle"]), 30),
        "started": lambda row: ago(row["started_at"], now),
        "why": lambda row: row["why"] and shorten(plain(row["why"]), 50),
    }
    return columns(found, wanted, "no processes")
