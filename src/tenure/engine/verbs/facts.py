"""Facts: emitted by agents and people, or seen in the repository. They feed sinks and triggers, never a decision."""

from __future__ import annotations

import re

from tenure.core import commands, inputs, limits
from tenure.core.errors import InvalidInput, RateLimited
from tenure.core.events import KINDS
from tenure.core.outcomes import Outcome
from tenure.core.records import Agent
from tenure.engine.runtime.rows import check_agent_name
from tenure.engine.runtime.unit_of_work import Handlers, UnitOfWork

EMITTED = "agent.emitted"
MINUTE = 60 * 1_000_000
PERSON = "human"  # the agent type of facts that a person emits
# Subjects `evt.agent.TYPE.NAME` of real events: a fact must not pass for one.
_TAKEN = frozenset(kind.removeprefix("agent.") for kind in KINDS if kind.startswith("agent."))
_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}\Z")


def emit(work: UnitOfWork, cmd: commands.Emit) -> Outcome:
    if not _NAME.match(cmd.name):
        raise InvalidInput(
            f"{cmd.name[:80]!r} is not a valid name of a fact",
            "use a lower-case letter, then up to 40 letters, digits and underscores, as in build_passed",
        )
    if cmd.name in _TAKEN:
        raise InvalidInput(f"{cmd.name} is an event of agents themselves", "choose another name, as in build_passed")
    inputs.check_size(cmd.data, "data", limits.FACT_SIZE)
    agent = cmd.agent or work.principal.agent
    if agent is not None:
        check_agent_name(work, cmd.project, agent)
    session = work.principal.session
    _check_rate(work, cmd.project, agent, session)
    row = work.get(Agent, cmd.project, agent) if agent is not None else None
    details = {"name": cmd.name, "data": cmd.data, "type": row.type if row is not None else PERSON}
    work.record(EMITTED, project=cmd.project, agent=agent, session=session, details=details)
    return Outcome(outcome="OK", command_id=work.command_id, message=f"emitted {cmd.name}")


def _check_rate(work: UnitOfWork, project: str, agent: str | None, session: str | None) -> None:
    """At most so many in any minute from one principal and session."""
    where = {"project": project, "kind": EMITTED, "agent": agent, "session": session, "user": work.principal.person}
    last = [*work.tx.events(where, limit=limits.FACTS_A_MINUTE, last=True)]
    ours = [e for e in work.events if e.kind == EMITTED and (e.agent, e.session) == (agent, session)]
    times = sorted([e.time for e in last] + [e.time for e in ours])[-limits.FACTS_A_MINUTE :]
    if len(times) == limits.FACTS_A_MINUTE and times[0] > work.now - MINUTE:
        wait = (times[0] + MINUTE - work.now) / 1e6
        raise RateLimited(
            f"{limits.FACTS_A_MINUTE} facts were emitted within a minute, the maximum",
            "send it again later",
            retry_after=wait,
        )


def files_changed(work: UnitOfWork, cmd: commands.FilesChanged) -> Outcome:
    paths = list(cmd.paths[: limits.FILES_IN_EVENT])
    details = {"paths": paths, "more": cmd.more + len(cmd.paths) - len(paths)}
    work.record("source.files_changed", project=cmd.project, details=details)
    return Outcome(outcome="OK", command_id=work.command_id, message=f"{len(cmd.paths) + cmd.more} files changed")


HANDLERS: Handlers = {commands.Emit: emit, commands.FilesChanged: files_changed}
