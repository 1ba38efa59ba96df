"""Who speaks: agent, session and role, from flags, environment or the process tree. Nothing has to be joined first.

A session must be the same for all commands of one run of an agent, and another for everything else. In this order:
`--session`, TENURE_SESSION, the agent CLI's own variable, the nearest agent process (pid and start time), the
terminal's session leader. The agent's *name* is for people; authority is the receipt alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from tenure.agents import processes
from tenure.agents.known import KNOWN, Known, marked
from tenure.agents.processes import Process


class Who(NamedTuple):
    agent: str
    session: str
    role: str  # agent, or owner: the user's own hands
    type: str  # claude, codex …, human, or generic
    user: str
    source: str  # where the session's name came from
    process: Process | None  # whose end is the session's end, where there is one


def recognise(environ: Mapping[str, str], agent: str | None = None, session: str | None = None) -> Who:
    """Who runs this command; `agent` and `session` are what was given by flags."""
    inside = _innermost(environ)
    name = agent or environ.get("TENURE_AGENT") or None
    user = environ.get("USER") or environ.get("LOGNAME") or _login()
    found, source, process = _session(environ, session, inside)
    # A marker lowers the role, and nothing in the environment raises it again.
    is_agent = inside is not None or environ.get("TENURE_ROLE") == "agent"
    type = inside.type if inside else ("generic" if is_agent or agent else "human")
    if name is None:
        name = f"{inside.type}-{_short(found)}" if inside else user
    return Who(name, found, "agent" if is_agent else "owner", type, user, source, process)


def _login() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container may run as a number that nobody has named
        return f"uid-{os.getuid()}"


def _innermost(environ: Mapping[str, str]) -> Known | None:
    """The agent this runs in; where one agent started another, the one whose process is nearest."""
    candidates = marked(environ)
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    programs = {program: agent for agent in candidates for program in agent.programs}
    process = processes.nearest(programs)
    named = (programs[name] for name in process.programs if name in programs) if process else iter(())
    return next(named, candidates[0])


def _session(environ: Mapping[str, str], given: str | None, inside: Known | None) -> tuple[str, str, Process | None]:
    if given:
        return given, "--session", None
    if environ.get("TENURE_SESSION"):
        return environ["TENURE_SESSION"], "TENURE_SESSION", None
    programs = inside.programs if inside else [program for agent in KNOWN.values() for program in agent.programs]
    # The processes of a sandbox end with the command that it was made for: they stand for no session.
    process = None if processes.is_sandboxed(programs) else processes.nearest(programs)
    if inside and inside.session and environ.get(inside.session):
        return environ[inside.session], inside.session, process
    if process is not None:
        kind = inside.type if inside else process.programs[-1]
        return f"{kind}-{process.pid}-{process.start}", "the nearest agent process", process
    leader = processes.look_up(os.getsid(0))
    if leader is None:  # the leader has ended: its number is still this session's alone
        return f"terminal-{os.getsid(0)}", "the session's number", None
    # Without a terminal the leader may be the shell of this one command: its end says nothing.
    lasting = leader if leader.has_terminal else None
    return f"terminal-{leader.pid}-{leader.start}", "the terminal's session leader", lasting


def _short(session: str) -> str:
    """Four characters that tell this session from another of the same agent."""
    return "".join(c for c in session if c.isalnum())[-4:].lower()
