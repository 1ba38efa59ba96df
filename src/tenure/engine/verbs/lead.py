"""Leadership: one leader at a time, each change with a higher term, the term checked in every leader's write.

The coordinator's lease belongs to the whole store: its row has no project. A project's `@leader` is another lease,
held by the agent that the project chose.
"""

from __future__ import annotations

from tenure.core import commands, ids, inputs, team
from tenure.core.outcomes import Outcome
from tenure.core.records import Leader, replace
from tenure.engine.runtime.rows import project_of
from tenure.engine.runtime.unit_of_work import Handlers, UnitOfWork

COORDINATOR = "coordinator"
PROJECT_LEADER = "agent"


def _place(cmd: commands.Lead | commands.StepDown) -> tuple[str, str]:
    return (cmd.project, PROJECT_LEADER) if cmd.agent else ("", COORDINATOR)


def lead(work: UnitOfWork, cmd: commands.Lead) -> Outcome:
    ids.check_name(cmd.holder, "holder")
    lease = inputs.micros(cmd.lease, "lease", low=1, high=3600)
    if cmd.agent:
        project_of(work, cmd.project)
    project, name = _place(cmd)
    before = work.get(Leader, project, name)
    leader = team.elected(before, project, name, cmd.holder, lease, cmd.term, work.now)
    if leader is None:
        assert before is not None
        message = f"{before.holder} leads with term {before.term}"
        return Outcome(
            outcome="DENIED_LEADER", holder=before.holder, term=before.term, lease_until=before.until, message=message
        )
    if before is not None and leader.term == before.term:
        work.put(leader)
        return Outcome(outcome="RENEWED", term=leader.term, lease_until=leader.until, lease=cmd.lease)
    work.record("leader.elected", leader, project=project, agent=cmd.holder, details={"term": leader.term, "for": name})
    return Outcome(outcome="ELECTED", term=leader.term, lease_until=leader.until, lease=cmd.lease)


def step_down(work: UnitOfWork, cmd: commands.StepDown) -> Outcome:
    if cmd.agent:
        project_of(work, cmd.project)
    project, name = _place(cmd)
    refusal = check_term(work, project, name, cmd.holder, cmd.term)
    if refusal is not None:
        return refusal
    leader = work.require(Leader, project, name)
    work.record(
        "leader.lost", replace(leader, until=work.now), project=project, agent=cmd.holder, details={"term": cmd.term}
    )
    return Outcome(outcome="OK", term=cmd.term)


def check_term(work: UnitOfWork, project: str, name: str, holder: str, term: int) -> Outcome | None:
    """The guard of every leader's write: refuses unless this holder leads with this term now."""
    leader = work.get(Leader, project, name)
    if leader is not None and (leader.holder, leader.term) == (holder, term) and leader.until > work.now:
        return None
    now_is = f"{leader.holder} with term {leader.term}" if leader and leader.until > work.now else "nobody"
    message = f"{holder} led with term {term}; now {now_is} leads"
    return Outcome(outcome="STALE_TERM", term=leader.term if leader else None, directive="abort", message=message)


HANDLERS: Handlers = {commands.Lead: lead, commands.StepDown: step_down}
