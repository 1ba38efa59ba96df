"""Records of which agent and session a process or terminal of this host is, in the user's state folder.

`join` records the process that called it, with its agent and its session. The first command in a terminal records the
terminal's session. Both outlive the process they name: a script's children still act for it after its end, and a
session keeps its name when its shell has ended. A pid counts only with its start time, or while the kernel reserves its
number for a group or session.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

import msgspec

from tenure import user_state
from tenure.agents import process_table
from tenure.agents.private_files import safe_name, write_private
from tenure.agents.process_table import Process
from tenure.core import limits

_OLD = limits.JOIN_RECORD
_MANY = limits.JOIN_FILES
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


class Joined(NamedTuple):
    agent: str
    session: str
    type: str | None
    pid: int
    process: Process | None  # None when it has ended


class Terminal(NamedTuple):
    session: str
    source: str
    process: Process | None  # whose end ends the session, where that is known
    joined: Row | None  # the record of its leader, where that joined


# --- who has joined -----------------------------------------------------------------------------------------


def nearest_joined(environ: Mapping[str, str]) -> Joined | None:
    """The nearest ancestor that has joined; or the ended script that started this process group or session."""
    names = _names(environ)
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
    while len(above) > 1 and _is_wrapper(above[0]):
        above = above[1:]
    # A shell runs `$(…)` in forks of itself that end with it.
    copies = 0
    while copies + 1 < len(above) and process_table.is_copy(above[copies], above[copies + 1]):
        copies += 1
    read = [n for n in range(copies) if process_table.is_read_by(above[n], above[n + 1])]
    return above[read[-1] + 1] if read else (above[0] if above else None)


def _is_wrapper(process: Process) -> bool:
    return any(name in _WRAPPERS for name in process.programs[:1])


def record_joined(environ: Mapping[str, str], process: Process, agent: str, session: str | None, type: str) -> str:
    """Record that this process joined; its session is the given one, its former one, or a new one."""
    if session is None and leads_terminal(process):
        session = terminal(environ).session
    if session is None:
        before = _row(environ, f"joined-{process.pid}")
        known = before is not None and before.start == process.start
        session = before.session if before and known else f"{_word(agent)}-{process.pid}-{process.start}"
    row = Row(
        host=process_table.host(),
        boot=process_table.boot_id(),
        pid=process.pid,
        start=process.start,
        session=session,
        agent=agent,
        type=type,
        is_terminal=leads_terminal(process),
    )
    _write(environ, f"joined-{process.pid}", row)
    return session


def leads_terminal(process: Process) -> bool:
    return process.has_terminal and process.pid == os.getsid(0)


def record_agent_name(environ: Mapping[str, str], session: str, agent: str) -> None:
    """Record the name that joined inside an agent CLI's session; two different names cancel each other."""
    before = _row(environ, _of_session(session))
    name = agent if before is None or before.agent == agent else None
    row = Row(host=process_table.host(), boot=process_table.boot_id(), pid=0, start=0, session=session, agent=name)
    _write(environ, _of_session(session), row)


def agent_name(environ: Mapping[str, str], session: str) -> str | None:
    """The only name that joined in this session of an agent CLI."""
    row = _row(environ, _of_session(session))
    return row.agent if row is not None else None


def _of_session(session: str) -> str:
    return f"session-{safe_name(session)}"


def forget(environ: Mapping[str, str], session: str) -> None:
    """Remove the records of a session that has ended."""
    for root in _folders(environ):
        for name in _listed(root):
            row = None if name.startswith("terminal-") else _read(os.path.join(root, name))
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
        record = Row(
            host=process_table.host(),
            boot=process_table.boot_id(),
            pid=number,
            start=start,
            session=f"terminal-{number}-{unlike}",
            is_terminal=True,
        )
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
    return [os.path.join(root, "who", boot) for root in user_state.user_states(environ) if user_state.is_own(root)]


def _names(environ: Mapping[str, str]) -> set[str]:
    return {name for folder in _folders(environ) for name in _listed(folder)}


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _row(environ: Mapping[str, str], name: str) -> Row | None:
    """The newest record of that name."""
    found = []
    for folder in _folders(environ):
        path = os.path.join(folder, name)
        row = _read(path)
        if row is not None:
            with suppress(OSError):
                found.append((os.stat(path).st_mtime_ns, row))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _read(path: str) -> Row | None:
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=Row)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return None


def _write(environ: Mapping[str, str], name: str, row: Row) -> None:
    folder = os.path.join(user_state.writable_state(environ), "who", row.boot)
    user_state.make_private_folder(folder)
    write_private(os.path.join(folder, name), msgspec.json.encode(row))
    if len(_listed(folder)) > _MANY:
        _prune(os.path.dirname(folder))


def _prune(folder: str) -> None:
    import time

    for boot in _listed(folder):
        for name in _listed(os.path.join(folder, boot)):
            path = os.path.join(folder, boot, name)
            with suppress(OSError):
                if time.time() - os.stat(path).st_mtime > _OLD and not _runs(_read(path)):
                    os.unlink(path)
        with suppress(OSError):
            os.rmdir(os.path.join(folder, boot))


def _runs(row: Row | None) -> bool:
    return row is not None and row.pid > 0 and row.boot == process_table.boot_id() and _is_there(row)


def _is_there(row: Row) -> bool:
    process = process_table.look_up(row.pid)
    return process is not None and process.start == row.start


def _word(name: str) -> str:
    word = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in name).strip("-.")
    return word[:40] or "agent"
