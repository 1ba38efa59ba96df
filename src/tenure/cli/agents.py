"""`agent show|drain|terminate|resume`: one agent, and what operators decide about it."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from tenure.cli.main import Answer, Run, answered, arg, options
from tenure.cli.text_format import ago, clock, plain
from tenure.client.wire import plain as wire

_NAMED = arg("name", metavar="AGENT", help="its name, as `tenure agent list` shows it")


@options(_NAMED)
def show(run: Run, given: Namespace) -> Answer:
    """Show one agent: capabilities, claims, and whether it may claim."""
    found = next((agent for agent in run.client.agents() if agent["name"] == given.name), None)
    if found is None:
        from tenure.core.errors import NotFound

        raise NotFound(f"no agent {given.name[:80]!r} in project {run.project}", "`tenure agent list` names them")
    now = run.client.now()
    return Answer(wire(found), lambda: _shown(found, now))


def _shown(agent: dict[str, Any], now: int) -> str:
    lines = [f"{plain(agent['name'])}  {agent['type']}, {agent['status']}, last seen {ago(agent['last_seen'], now)}"]
    if agent["terminated_at"] is not None:
        why = f": {plain(agent['terminated_for'])}" if agent["terminated_for"] else ""
        lines.append(f"terminated {clock(agent['terminated_at'])}{why}; `tenure agent resume` lets it claim again")
    elif agent["draining"]:
        lines.append("drained: it claims nothing more; `tenure agent resume` lets it claim again")
    lines += [f"{name:<13}{', '.join(agent[name])}" for name in ("capabilities", "tracks", "models") if agent[name]]
    lines.append(f"{'holds':<13}{', '.join(agent['tasks']) or 'nothing'}")
    return "\n".join(lines)


@options(_NAMED)
def drain(run: Run, given: Namespace) -> Answer:
    """Let an agent finish what it holds and claim nothing more, until `tenure agent resume`."""
    return answered(run.client.drain(given.name))


@options(
    _NAMED,
    arg("-m", "--reason", default="", metavar="TEXT", help="the reason, for the agent and the log"),
    arg("--now", action="store_true", help="end its claims at once; else they may finish"),
)
def terminate(run: Run, given: Namespace) -> Answer:
    """Terminate an agent. Its workers and runners exit, and it cannot claim until `tenure agent resume`."""
    return answered(run.client.terminate(given.name, graceful=not given.now, reason=given.reason))


@options(_NAMED)
def resume(run: Run, given: Namespace) -> Answer:
    """Let a drained or terminated agent claim again."""
    return answered(run.client.resume_agent(given.name))
