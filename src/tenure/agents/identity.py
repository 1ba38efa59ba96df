"""Who runs a command: agent, session and role, from flags, environment or the process tree. No `join` is needed.

A session must be the same for all commands of one run of an agent, and another for everything else. In this order:
`--session`, TENURE_SESSION, the nearest ancestor that has joined, the agent CLI's own variable, the nearest agent
process (pid and start time), the terminal. The agent's *name* is for people; authority is the receipt alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from tenure.agents import process_table, session_records
from tenure.agents.known_agents import KNOWN, Known, marked
from tenure.agents.process_table import Process
from tenure.agents.session_records import Joined

JOINED = "a process that joined"
AGENT_PROCESS = "the nearest agent process"
# Sources of sessions that a process that joins keeps: named ones, and those of an agent CLI.
GIVEN = ("--session", "TENURE_SESSION")
SURE = frozenset({*GIVEN, AGENT_PROCESS, *(agent.session for agent in KNOWN.values() if agent.session)})


class Who(NamedTuple):
    agent: str
    session: str
    role: str  # agent, or owner: the user
    type: str  # claude, codex …, human, or generic
    user: str
    source: str  # where the session's name came from
    process: Process | None  # whose end ends the session, where there is one
    agent_source: str = ""  # where the agent's name came from
    role_source: str = ""


def recognise(environ: Mapping[str, str], agent: str | None = None, session: str | None = None) -> Who:
    """Who runs this command; `agent` and `session` are of the flags."""
    return _recognised(environ, agent, session, session_records.nearest_joined(environ))


def join(environ: Mapping[str, str], agent: str | None, session: str | None, type: str | None) -> Who:
    """Who joins: as `recognise`, and the calling process is recorded under that name."""
    who = _recognised(environ, agent, session, None)
    process = session_records.joining_process()
    if process is None:
        return who
    is_sure = who.source in SURE
    try:
        named = session_records.record_joined(
            environ, process, who.agent, who.session if is_sure else None, type or who.type
        )
        if is_sure and who.source not in GIVEN:
            session_records.record_agent_name(environ, who.session, who.agent)
    except OSError:
        return who  # no record can be written: the session is still recognised as before
    return who if is_sure else who._replace(session=named, source=JOINED, process=process)


def _recognised(environ: Mapping[str, str], agent: str | None, session: str | None, joined: Joined | None) -> Who:
    inside = _innermost(environ)
    user = environ.get("USER") or environ.get("LOGNAME") or _login()
    found, source, process, terminal_name = _session(environ, session, inside, joined)
    # A marker lowers the role, and nothing in the environment raises it again.
    role, role_source = _role(environ, inside)
    name, named_by = _name(environ, agent, joined)
    if name is None and inside is not None:
        name, named_by = session_records.agent_name(environ, found), JOINED
        name, named_by = (
            (name, JOINED) if name else (f"{inside.type}-{_short(found)}", f"{inside.title} and its session")
        )
    if name is None and terminal_name:
        name, named_by = terminal_name, JOINED
    if name is None:
        name, named_by = user, "the user's name"
    type = inside.type if inside else ("generic" if role == "agent" or agent else "human")
    if joined is not None and joined.type and inside is None:
        type = joined.type
    return Who(name, found, role, type, user, source, process, named_by, role_source)


def _role(environ: Mapping[str, str], inside: Known | None) -> tuple[str, str]:
    if inside is not None:
        return "agent", next((f"{marker} is set" for marker in inside.markers if environ.get(marker)), inside.title)
    if environ.get("TENURE_ROLE") == "agent":
        return "agent", "TENURE_ROLE"
    return "owner", "no agent was recognised"


def _name(environ: Mapping[str, str], given: str | None, joined: Joined | None) -> tuple[str | None, str]:
    if given:
        return given, "--agent"
    if environ.get("TENURE_AGENT"):
        return environ["TENURE_AGENT"], "TENURE_AGENT"
    if joined is not None and joined.agent:
        return joined.agent, f"{JOINED} (pid {joined.pid})"
    return None, ""


def _login() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container may run as a user without a name
        return f"uid-{os.getuid()}"


def _innermost(environ: Mapping[str, str]) -> Known | None:
    """The agent that runs this command; the nearest one where an agent started another."""
    candidates = marked(environ)
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    programs = {program: agent for agent in candidates for program in agent.programs}
    process = process_table.nearest(programs)
    named = (programs[name] for name in process.programs if name in programs) if process else iter(())
    return next(named, candidates[0])


def _session(
    environ: Mapping[str, str], given: str | None, inside: Known | None, joined: Joined | None
) -> tuple[str, str, Process | None, str | None]:
    """The session, its source, the process whose end ends it, and the name that a terminal's leader joined with."""
    if given:
        return given, "--session", None, None
    if environ.get("TENURE_SESSION"):
        return environ["TENURE_SESSION"], "TENURE_SESSION", None, None
    if joined is not None:
        return joined.session, JOINED, joined.process, None
    programs = inside.programs if inside else [program for agent in KNOWN.values() for program in agent.programs]
    # The processes of a sandbox end with its command: they do not identify a session.
    process = None if process_table.is_sandboxed(programs) else process_table.nearest(programs)
    if inside and inside.session and environ.get(inside.session):
        return environ[inside.session], inside.session, process, None
    if process is not None:
        kind = inside.type if inside else process.programs[-1]
        return f"{kind}-{process.pid}-{process.start}", AGENT_PROCESS, process, None
    terminal = session_records.terminal(environ)
    return terminal.session, terminal.source, terminal.process, terminal.joined.agent if terminal.joined else None


def _short(session: str) -> str:
    """Four characters that distinguish sessions of the same agent."""
    return "".join(c for c in session if c.isalnum())[-4:].lower()
