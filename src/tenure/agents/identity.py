"""Who runs a command: agent, session and role, from flags, environment or the process tree. No `join` is needed.

A session must be the same for all commands of one run of an agent, and another for everything else. In this order:
`--session`, TENURE_SESSION, the nearest ancestor that has joined, the agent CLI's own variable, the nearest agent
process (pid and start time), the terminal. The agent's *name* is for people; authority is the receipt alone.

`join` records the process that called it, with its agent and its session. The first command in a terminal records the
terminal's session. Both records outlive their process: a script's children still act for it after its end, and a
session keeps its name when its shell has ended. A pid counts only with its start time, or while the kernel reserves its
number for a group or session.

The role is a person's only where no process above is an agent or a supervisor of ours: an environment can be emptied,
and a terminal opened, by any program; what a process descends from it cannot change. See `process_above`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from tenure import process_table
from tenure.core import limits
from tenure.core.ids import fitted_name, fitted_session
from tenure.process_table import Process
from tenure.user_state import (
    is_own,
    listed,
    make_private_folder,
    read_record,
    safe_name,
    user_states,
    writable_state,
    write_private,
)

# --- the CLI agents, recognised by the variables that they set for their commands -----------------------------


class Known(msgspec.Struct, frozen=True, array_like=True):  # a file has it as an array
    type: str
    title: str
    markers: tuple[str, ...]  # variables that are set inside this agent
    session: str | None  # the variable with the agent's session id
    programs: tuple[str, ...]  # names of its process


KNOWN: dict[str, Known] = {
    agent.type: agent
    for agent in (
        Known("claude", "Claude Code", ("CLAUDECODE",), "CLAUDE_CODE_SESSION_ID", ("claude",)),
        Known("codex", "Codex", ("CODEX_SESSION_ID", "CODEX_SANDBOX"), "CODEX_SESSION_ID", ("codex",)),
        Known("gemini", "Gemini CLI", ("GEMINI_CLI",), None, ("gemini",)),
        Known("opencode", "OpenCode", ("OPENCODE",), None, ("opencode",)),
        Known("copilot", "Copilot CLI", ("COPILOT_AGENT_SESSION_ID",), "COPILOT_AGENT_SESSION_ID", ("copilot",)),
    )
}


TYPES = "agent-types.json"  # in the user's state folder: types of plug-ins


def known_types(environ: Mapping[str, str]) -> dict[str, Known]:
    """Our own types, and those of plug-ins that were set up or run by this user."""
    for folder in user_states(environ):
        path = os.path.join(folder, TYPES)
        if not os.path.exists(path) or not is_own(folder):
            continue
        with suppress(OSError, msgspec.MsgspecError), open(path, "rb") as file:
            return {**msgspec.json.decode(file.read(), type=dict[str, Known]), **KNOWN}
    return KNOWN


def record_types(environ: Mapping[str, str], *types: Known) -> None:
    """Recognise these types of plug-ins from now on."""
    kept = {name: one for name, one in known_types(environ).items() if name not in KNOWN}
    wanted = kept | {one.type: one for one in types if one.type not in KNOWN}
    if wanted != kept:
        write_private(os.path.join(writable_state(environ), TYPES), msgspec.json.encode(wanted))


def marked(environ: Mapping[str, str]) -> list[Known]:
    """The agents whose marker is set; several where one agent started another."""
    return [agent for agent in known_types(environ).values() if any(environ.get(marker) for marker in agent.markers)]


# --- who ----------------------------------------------------------------------------------------------------

JOINED = "a process that joined"
AGENT_PROCESS = "the nearest agent process"
USER = "the user's name"
# Sources of sessions that a process that joins keeps: named ones, and those of an agent CLI.
GIVEN = ("--session", "TENURE_SESSION")
SURE = frozenset({*GIVEN, AGENT_PROCESS, *(agent.session for agent in KNOWN.values() if agent.session)})


class Who(msgspec.Struct, frozen=True):
    agent: str
    session: str
    role: str  # agent, or owner: the user
    type: str  # claude, codex …, human, or generic
    user: str
    source: str  # where the session's name came from
    process: Process | None  # whose end ends the session, where there is one
    agent_source: str = ""  # where the agent's name came from
    role_source: str = ""

    @property
    def has_joined(self) -> bool:
        """Whether it speaks by the name that `join` gave to its script, or printed for it."""
        return self.agent_source == "TENURE_AGENT" or self.agent_source.startswith(JOINED)


def recognise(environ: Mapping[str, str], agent: str | None = None, session: str | None = None) -> Who:
    """Who runs this command; `agent` and `session` are of the flags."""
    return _recognised(environ, agent, session, nearest_joined(environ))


def join(
    environ: Mapping[str, str],
    agent: str | None,
    session: str | None,
    type: str | None,
    free_name: Callable[[str, str], str] = lambda name, session: name,
) -> Who:
    """Who joins: as `recognise`, and the calling process is recorded under that name.

    `free_name`: given the user's name, where nothing else names the agent, and its session, a name that nobody uses.
    """
    who = _recognised(environ, agent, session, None)
    process = joining_process()
    if who.agent_source == USER:
        who = msgspec.structs.replace(who, agent=free_name(who.agent, _session_before(environ, process) or who.session))
    if process is None:
        return who
    is_sure = who.source in SURE
    try:
        named = record_joined(environ, process, who.agent, who.session if is_sure else None, type or who.type)
        if is_sure and who.source not in GIVEN:
            record_agent_name(environ, who.session, who.agent)
    except OSError:
        return who  # no record can be written: the session is still recognised as before
    return who if is_sure else msgspec.structs.replace(who, session=named, source=JOINED, process=process)


def _recognised(environ: Mapping[str, str], agent: str | None, session: str | None, joined: Joined | None) -> Who:
    inside = _innermost(environ)
    user = user_of(environ)
    found, source, process, terminal_name = _session(environ, session, inside, joined)
    # A marker lowers the role, and nothing in the environment raises it again.
    role, role_source = _role(environ, inside)
    if inside is not None and process is not None:
        _record_agent(environ, process, inside)
    name, named_by = _name(environ, agent, joined)
    if name is None and inside is not None:
        name, named_by = agent_name(environ, found), JOINED
        if name is None:
            name, named_by = f"{fitted_name(inside.type, 'agent')}-{_short(found)}", f"{inside.title} and its session"
    if name is None and terminal_name:
        name, named_by = terminal_name, JOINED
    if name is None:
        name, named_by = fitted_name(user, "user"), USER
    type = inside.type if inside else ("generic" if role == "agent" or agent else "human")
    if joined is not None and joined.type and inside is None:
        type = joined.type
    return Who(name, found, role, type, user, source, process, named_by, role_source)


def _role(environ: Mapping[str, str], inside: Known | None) -> tuple[str, str]:
    if inside is not None:
        return "agent", next((f"{marker} is set" for marker in inside.markers if environ.get(marker)), inside.title)
    if environ.get("TENURE_ROLE") == "agent":
        return "agent", "TENURE_ROLE"
    if (above := process_above(environ)) is not None:
        return "agent", f"pid {above.pid}, {above.programs[-1]}, started this command"
    return "owner", "no agent was recognised"


def process_above(environ: Mapping[str, str]) -> Process | None:
    """The nearest process above this command that starts what works for a person: no person speaks below it.

    A supervisor (of the runner, a hook, a check, a pool), or a process that commands within an agent CLI have recorded.
    A shell of a person in the same tree stands beside it, not below.
    """
    records = {name for root in _folders(environ) for name in listed(root)}
    types = known_types(environ)
    for process in process_table.lineage():
        if SUPERVISOR in process.programs:
            return process
        for name in records.intersection((f"agent-{process.pid}", f"joined-{process.pid}")):
            row = _row(environ, name)
            if row is not None and row.start == process.start and row.type in types:
                return process
    return None


def _record_agent(environ: Mapping[str, str], process: Process, inside: Known) -> None:
    """Once for each process of an agent CLI: a later command below it may hide its variables."""
    name = f"agent-{process.pid}"
    known = _row(environ, name)
    if known is None or known.start != process.start:
        with suppress(OSError):
            _write(environ, name, _new_row(process.pid, process.start, "", type=inside.type))


def _name(environ: Mapping[str, str], given: str | None, joined: Joined | None) -> tuple[str | None, str]:
    if given:
        return given, "--agent"
    if environ.get("TENURE_AGENT"):
        return environ["TENURE_AGENT"], "TENURE_AGENT"
    if joined is not None and joined.agent:
        return joined.agent, f"{JOINED} (pid {joined.pid})"
    return None, ""


def user_of(environ: Mapping[str, str]) -> str:
    """The user's name on this machine."""
    if name := environ.get("USER") or environ.get("LOGNAME"):
        return name
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
        # Of a script that joined, though it has also taken over what `join` printed.
        own = joined.process if joined is not None and joined.session == environ["TENURE_SESSION"] else None
        return environ["TENURE_SESSION"], "TENURE_SESSION", own, None
    if joined is not None:
        return joined.session, JOINED, joined.process, None
    types = known_types(environ)
    programs = inside.programs if inside else [program for agent in types.values() for program in agent.programs]
    # The processes of a sandbox end with its command: they do not identify a session.
    process = None if process_table.is_sandboxed(programs) else process_table.nearest(programs)
    if inside and inside.session and environ.get(inside.session):
        return fitted_session(environ[inside.session]), inside.session, process, None
    if process is not None:
        kind = inside.type if inside else process.programs[-1]
        return f"{fitted_name(kind, 'agent')}-{process.pid}-{process.start}", AGENT_PROCESS, process, None
    here = terminal(environ)
    return here.session, here.source, here.process, here.joined.agent if here.joined else None


def _short(session: str) -> str:
    """Four characters that distinguish sessions of the same agent."""
    return "".join(c for c in session if c.isalnum())[-4:].lower()


# --- records of processes and terminals, in the user's state folder -------------------------------------------

_OLD = limits.JOIN_RECORD
_MANY = limits.JOIN_FILES
SUPERVISOR = "supervisor_script"  # as `processes/supervisor_script.py` stands in the process table
# Programs that run one command and end with it: their caller is the process that joins.
_WRAPPERS = frozenset({"timeout", "uv", "uvx", "time", "sudo", "flock", "stdbuf", "poetry", "hatch", "pdm"})


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    host: str
    boot: str
    pid: int
    start: int  # 0: it had ended before it was first seen
    session: str
    agent: str | None = None
    type: str | None = None
    is_terminal: bool = False  # it leads the session of a terminal: a person's shell, or a script with its own session


class Joined(msgspec.Struct, frozen=True):
    agent: str
    session: str
    type: str | None
    pid: int
    process: Process | None  # None when it has ended


class Terminal(msgspec.Struct, frozen=True):
    session: str
    source: str
    process: Process | None  # whose end ends the session, where that is known
    joined: Row | None  # the record of its leader, where that joined


def nearest_joined(environ: Mapping[str, str]) -> Joined | None:
    """The nearest ancestor that has joined; or the ended script that started this process group or session."""
    names = {name for folder in _folders(environ) for name in listed(folder)}
    if not any(name.startswith("joined-") for name in names):
        return None
    for process in process_table.lineage():
        row = _row(environ, f"joined-{process.pid}") if f"joined-{process.pid}" in names else None
        if row is not None and row.start == process.start and not row.is_terminal:
            return _joined(row, process)
    # The kernel does not reuse the number of a living group or session: its members were started by that script.
    for pid in (os.getpgrp(), os.getsid(0)):
        row = _row(environ, f"joined-{pid}") if f"joined-{pid}" in names else None
        if row is None or row.is_terminal:
            continue
        running = process_table.look_up(pid)
        if running is None or running.start == row.start:
            return _joined(row, running)
    return None


def _joined(row: Row, process: Process | None) -> Joined:
    return Joined(row.agent or "", row.session, row.type, row.pid, process)


def joining_process() -> Process | None:
    """The script that called this command, and outlives it."""
    above = process_table.lineage()
    while len(above) > 1 and above[0].programs[0] in _WRAPPERS:
        above = above[1:]
    # A shell runs `$(…)` in forks of itself that end with it.
    copies = 0
    while copies + 1 < len(above) and process_table.is_copy(above[copies], above[copies + 1]):
        copies += 1
    read = [n for n in range(copies) if process_table.is_read_by(above[n], above[n + 1])]
    return above[read[-1] + 1] if read else (above[0] if above else None)


def record_joined(environ: Mapping[str, str], process: Process, agent: str, session: str | None, type: str) -> str:
    """Record that this process joined; its session is the given one, its former one, or a new one."""
    if session is None and leads_terminal(process):
        session = terminal(environ).session
    if session is None:
        session = _session_before(environ, process) or f"{_word(agent)}-{process.pid}-{process.start}"
    is_terminal = leads_terminal(process)
    row = _new_row(process.pid, process.start, session, agent=agent, type=type, is_terminal=is_terminal)
    _write(environ, f"joined-{process.pid}", row)
    return session


def _session_before(environ: Mapping[str, str], process: Process | None) -> str | None:
    """The session with which this process has joined before."""
    row = _row(environ, f"joined-{process.pid}") if process is not None else None
    return row.session if row is not None and process is not None and row.start == process.start else None


def has_ended(environ: Mapping[str, str], session: str) -> bool:
    """Whether a session of this machine is over for certain: every process that is known to have it has ended."""
    known = [
        row
        for folder in _folders(environ)
        for name in listed(folder)
        if (row := read_record(os.path.join(folder, name), Row)) is not None and row.session == session and row.start
    ]
    processes = [process_table.look_up(row.pid) for row in known]
    return bool(known) and all(p is None or p.start != row.start for p, row in zip(processes, known, strict=True))


def _new_row(pid: int, start: int, session: str, **more: Any) -> Row:
    return Row(host=process_table.host(), boot=process_table.boot_id(), pid=pid, start=start, session=session, **more)


def leads_terminal(process: Process) -> bool:
    return process.has_terminal and process.pid == os.getsid(0)


def record_agent_name(environ: Mapping[str, str], session: str, agent: str) -> None:
    """Record the name that joined inside an agent CLI's session; two different names cancel each other."""
    before = _row(environ, _of_session(session))
    name = agent if before is None or before.agent == agent else None
    _write(environ, _of_session(session), _new_row(0, 0, session, agent=name))


def agent_name(environ: Mapping[str, str], session: str) -> str | None:
    """The only name that joined in this session of an agent CLI."""
    row = _row(environ, _of_session(session))
    return row.agent if row is not None else None


def _of_session(session: str) -> str:
    return f"session-{safe_name(session)}"


def forget(environ: Mapping[str, str], session: str) -> None:
    for root in _folders(environ):
        for name in listed(root):
            row = None if name.startswith("terminal-") else read_record(os.path.join(root, name), Row)
            if row is not None and row.session == session:
                with suppress(OSError):
                    os.unlink(os.path.join(root, name))


# --- terminals ----------------------------------------------------------------------------------------------


def terminal(environ: Mapping[str, str]) -> Terminal:
    """The session of this terminal or process session; its name is recorded when it is first seen."""
    number = os.getsid(0)
    if number == 0:  # the leader is outside of this container: the first process inside is used instead
        leader = _first_process()
        number = leader.pid if leader else 0
    else:
        leader = process_table.look_up(number)
    record = _row(environ, f"terminal-{number}")
    if record is None or (leader is not None and leader.start != record.start):
        start = leader.start if leader is not None else 0
        # Without a leader the number may be reused: the start of the first process makes the name unique.
        first = leader or _first_process()
        unlike = first.start if first is not None else 0
        record = _new_row(number, start, f"terminal-{number}-{unlike}", is_terminal=True)
        with suppress(OSError):
            _write(environ, f"terminal-{number}", record)
    joined = _row(environ, f"joined-{number}")
    if joined is not None and (not joined.is_terminal or joined.start != record.start):
        joined = None
    source = "the terminal's session" if leader is not None and leader.has_terminal else "the session's number"
    return Terminal(record.session, source, leader if _ends_with(leader, joined) else None, joined)


def _first_process() -> Process | None:
    """The oldest visible ancestor; for the first process of a container, itself."""
    seen = process_table.lineage(os.getpid())
    return seen[-1] if seen else None


def _ends_with(leader: Process | None, joined: Row | None) -> bool:
    """Does the leader's end prove that the caller of this command has ended?

    Only for commands typed at the terminal's prompt, or run by a leader that joined. A script may outlive its shell: in
    the background, or by nohup.
    """
    if leader is None or not leader.has_terminal:
        return False
    if joined is not None:
        return True
    return os.getppid() == leader.pid and process_table.is_in_foreground() and not process_table.is_nohup()


# --- the files ----------------------------------------------------------------------------------------------


def _folders(environ: Mapping[str, str]) -> list[str]:
    boot = process_table.boot_id()
    return [os.path.join(root, "who", boot) for root in user_states(environ) if is_own(root)]


def _row(environ: Mapping[str, str], name: str) -> Row | None:
    """The newest record of that name."""
    found = []
    for folder in _folders(environ):
        path = os.path.join(folder, name)
        row = read_record(path, Row)
        if row is not None:
            with suppress(OSError):
                found.append((os.stat(path).st_mtime_ns, row))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _write(environ: Mapping[str, str], name: str, row: Row) -> None:
    folder = os.path.join(writable_state(environ), "who", row.boot)
    make_private_folder(folder)
    write_private(os.path.join(folder, name), msgspec.json.encode(row))
    if len(listed(folder)) > _MANY:
        _prune(os.path.dirname(folder))


def _prune(folder: str) -> None:
    import time

    for boot in listed(folder):
        for name in listed(os.path.join(folder, boot)):
            path = os.path.join(folder, boot, name)
            with suppress(OSError):
                if time.time() - os.stat(path).st_mtime > _OLD and not _runs(read_record(path, Row)):
                    os.unlink(path)
        with suppress(OSError):
            os.rmdir(os.path.join(folder, boot))


def _runs(row: Row | None) -> bool:
    if row is None or row.pid <= 0 or row.boot != process_table.boot_id():
        return False
    process = process_table.look_up(row.pid)
    return process is not None and process.start == row.start


def _word(name: str) -> str:
    return fitted_name(name, "agent")[:40]
