"""Leadership: one leader at a time, each change with a higher term, the term checked in every leader's write.

The coordinator's lease belongs to the whole store: its row has no project. A project's `@leader` is another lease,
held by the agent that the project chose: with `lead`, or, where the project's `lead` is auto, by its commands. There
the first agent that joins or claims leads for 30 s (`agents.leader_lease`), and each of its commands renews that,
written at most every 10 s.
The leader may assign, reassign and recover under its term. Whether an agent may lead is `roles.check_leads`.
"""

from __future__ import annotations

from collections.abc import Collection

from tenure.core import claims, commands, ids, inputs, limits, roles, team
from tenure.core.outcomes import Outcome
from tenure.core.processes import check_process, text_of
from tenure.core.records import Agent, Leader, Project, replace
from tenure.engine.runtime.rows import check_agent_name, project_of
from tenure.engine.runtime.unit_of_work import Handlers, Refused, UnitOfWork

COORDINATOR = "coordinator"
PROJECT_LEADER = "agent"
ELECTING = (commands.Register, commands.ClaimTask, commands.ClaimNext)
WRITTEN = limits.AGENT_LEADER_WRITTEN
MOST_ELECTIONS = limits.LISTED


def _place(cmd: commands.Lead | commands.StepDown) -> tuple[str, str]:
    return (cmd.project, PROJECT_LEADER) if cmd.agent else ("", COORDINATOR)


def lead(work: UnitOfWork, cmd: commands.Lead, store_term: int | None = None) -> Outcome:
    """`store_term`: of the store's leader that takes this tenant."""
    if cmd.agent:
        check_agent_name(work, cmd.project, cmd.holder, "holder")
    else:
        ids.check_name(cmd.holder, "holder")
    lease = inputs.micros(cmd.lease, "lease", low=1, high=limits.LONGEST_LEADER_LEASE)
    if cmd.agent:
        _check_leads(work, cmd)
    project, name = _place(cmd)
    before = work.get(Leader, project, name)
    if cmd.agent and before is not None:
        before = announced(work, before)
        if before.is_auto and cmd.holder == before.holder and cmd.term is None and before.until > work.now:
            # Its commands have elected it: here it gets to know its term. The lease stays as short as it is.
            return _leads("RENEWED", work.put(replace(before, until=work.now + before.lease)), asked=lease)
    leader = team.elected(before, project, name, cmd.holder, lease, cmd.term, work.now, store_term=store_term)
    if leader is None:
        assert before is not None
        message = f"{before.holder} leads with term {before.term}"
        return Outcome(
            outcome="DENIED_LEADER", holder=before.holder, term=before.term, lease_until=before.until, message=message
        )
    if before is not None and leader.term == before.term:
        work.put(leader)
        return _leads("RENEWED", leader)
    work.record("leader.elected", leader, project=project, agent=cmd.holder, details={"term": leader.term, "for": name})
    return _leads("ELECTED", leader)


def _leads(outcome: str, leader: Leader, asked: int | None = None) -> Outcome:
    """`asked`: the lease that was asked for without the term, and so not given."""
    seconds = leader.lease / inputs.SECOND
    message = f"{leader.holder} leads with term {leader.term} for {seconds:g} s, unless renewed"
    hint = None
    if asked is not None:
        message = f"{leader.holder} leads with term {leader.term} for {seconds:g} s, which each of its commands renews"
        if asked != leader.lease:
            hint = f"for a lease of {asked / inputs.SECOND:g} s pass the term: {leader.term}"
    return Outcome(
        outcome=outcome, term=leader.term, lease_until=leader.until, lease=seconds, message=message, hint=hint
    )


def _check_leads(work: UnitOfWork, cmd: commands.Command) -> None:
    setting, verb = project_of(work, cmd.project).lead, str(type(cmd).__struct_config__.tag)
    roles.check_leads(work.principal, setting, verb, elects=work.context.elects)


def step_down(work: UnitOfWork, cmd: commands.StepDown) -> Outcome:
    if cmd.agent:
        project_of(work, cmd.project)
    project, name = _place(cmd)
    refusal = check_term(work, project, name, cmd.holder, cmd.term)
    if refusal is not None:
        return refusal
    leader = work.require(Leader, project, name)
    work.record(
        "leader.lost", replace(leader, until=work.now, is_lost=True), project=project, agent=cmd.holder,
        details={"term": cmd.term},
    )  # fmt: skip
    return Outcome(outcome="OK", term=cmd.term)


def check_term(work: UnitOfWork, project: str, name: str, holder: str, term: int) -> Outcome | None:
    """The guard of every leader's write: refuses unless this holder leads with this term now."""
    leader = work.get(Leader, project, name)
    if leader is not None and (leader.holder, leader.term) == (holder, term) and leader.until > work.now:
        return None
    message = _why_not(work, leader, holder or "a sender without a name", term)
    return Outcome(outcome="STALE_TERM", term=leader.term if leader else None, directive="abort", message=message)


def _why_not(work: UnitOfWork, leader: Leader | None, holder: str, term: int) -> str:
    if leader is None:
        return f"{holder} does not lead: nobody has led yet"
    is_live = leader.until > work.now
    leads = f"{leader.holder} leads with term {leader.term}" if is_live else "nobody leads now"
    if term < leader.term:
        who = _led(work, leader, term)
        return f"{who} led with term {term}, which is over; {leads}" if who else f"term {term} is over; {leads}"
    if term > leader.term:
        return f"nobody has led with term {term}; {leads}"
    return f"{holder} does not lead; {leads}" if is_live else f"{leader.holder}'s term {term} is over; {leads}"


def _led(work: UnitOfWork, leader: Leader, term: int) -> str | None:
    """Who led with an earlier term, by the log; None where it does not reach back so far."""
    where = {"project": leader.project, "kind": "leader.elected"}
    found = work.tx.events(where, limit=MOST_ELECTIONS, last=True)
    return next((e.agent for e in found if e.details == {"term": term, "for": leader.id}), None)


def check_led(work: UnitOfWork, cmd: commands.Assign | commands.Reassign | commands.Recover) -> None:
    """The guard of a verb that the project's leader sends under its term; raises Refused with STALE_TERM.

    With a term the write is the leader's, whatever the role: an agent must lead itself, a person names who leads.
    """
    if cmd.term is None:
        return
    _check_leads(work, cmd)
    leader = work.get(Leader, cmd.project, PROJECT_LEADER)
    acts_for = work.principal.agent or ("" if work.principal.role == "agent" or leader is None else leader.holder)
    refusal = check_term(work, cmd.project, PROJECT_LEADER, acts_for, cmd.term)
    if refusal is not None:
        raise Refused(refusal)


# --- an agent that its own commands elect and renew ---------------------------------------------------------


def announced(work: UnitOfWork, leader: Leader, why: str = "its lease is over") -> Leader:
    """The leader's row, once the end of its lease is in the log."""
    if leader.until > work.now or leader.is_lost:
        return leader
    lost = replace(leader, is_lost=True)
    details = {"term": leader.term, "why": why, "ended_at": leader.until}
    work.record("leader.lost", lost, project=leader.project, agent=leader.holder, details=details)
    return lost


def noted(work: UnitOfWork, project: Project, command: commands.Command) -> None:
    """A command of an agent renews its leadership; the first agent that joins or claims becomes the leader."""
    leader = work.get(Leader, project.id, PROJECT_LEADER)
    if leader is not None:
        leader = announced(work, leader)
    field = command.declaration.speaks_for
    agent: str | None = getattr(command, field) if field and field != "holder" else work.principal.agent
    if agent is None:
        return
    process = _process_of(command)
    if leader is not None and leader.until > work.now:
        written = min(WRITTEN, leader.lease // 3)
        if leader.is_auto and leader.holder == agent and leader.until - work.now <= leader.lease - written:
            work.put(replace(leader, until=work.now + leader.lease, process=leader.process or process))
        return
    if isinstance(command, ELECTING) and roles.can_lead(work.principal) and _may_lead(work, project.id, agent):
        new = team.elected(leader, project.id, PROJECT_LEADER, agent, work.context.leader_lease, None, work.now)
        assert new is not None
        new = replace(new, is_auto=True, process=process)
        details = {"term": new.term, "for": PROJECT_LEADER}
        work.record("leader.elected", new, project=project.id, agent=agent, details=details)


def _may_lead(work: UnitOfWork, project: str, agent: str) -> bool:
    row = work.get(Agent, project, agent)
    return row is None or not (row.draining or row.terminated_at is not None)


def _process_of(command: commands.Command) -> str | None:
    if isinstance(command, commands.Register):
        if None in (command.host, command.boot, command.pid, command.pid_start):
            return None
        own = {"host": command.host, "boot": command.boot, "pid": command.pid, "start": command.pid_start}
        return text_of(check_process(commands.Process(**own)))  # type: ignore[arg-type]  # none of them is None
    process: commands.Process | None = getattr(command, "process", None)
    return None if process is None else text_of(check_process(process))


def lost_with(work: UnitOfWork, project: str, processes: Collection[str]) -> bool:
    """End the term of a leader whose process has ended."""
    leader = work.get(Leader, project, PROJECT_LEADER)
    if leader is None or leader.until <= work.now or leader.process not in processes:
        return False
    announced(work, replace(leader, until=work.now), claims.PROCESS_GONE)
    return True


def lost_by(work: UnitOfWork, agent: Agent, why: str) -> None:
    """End the term of a leader that is gone: another may lead at once, and no mail to `@leader` waits for it."""
    leader = work.get(Leader, agent.project, PROJECT_LEADER)
    if leader is not None and leader.holder == agent.id and leader.until > work.now:
        announced(work, replace(leader, until=work.now), why)


HANDLERS: Handlers = {commands.Lead: lead, commands.StepDown: step_down}
