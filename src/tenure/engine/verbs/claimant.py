"""Who wants to claim, and for how long: the same for every candidate task."""

from __future__ import annotations

from collections import deque
from functools import cached_property
from typing import TYPE_CHECKING

from tenure.core import commands, inputs, priority
from tenure.core.priority import Profile
from tenure.core.records import Agent, Project, Session, Task
from tenure.engine.models.model_choice import Cooling, user_of
from tenure.engine.runtime.rows import project_of
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.verbs import agents
from tenure.engine.verbs.grant_answer import Sent
from tenure.engine.verbs.lease_length import leases_of

if TYPE_CHECKING:
    from tenure.engine.verbs.track_router import Assignments


class Claimant:
    """An agent in a session. A `KnownClaimant` is one whose claim is only imagined."""

    work: UnitOfWork
    project: Project
    agent: Agent
    session: Session

    @property
    def profile(self) -> Profile:
        """What it declares that it can do."""
        taken = self.assignments.taken if self.project.router else None
        return priority.profile_of(self.agent, self.project.stopped, taken)

    @cached_property
    def assignments(self) -> Assignments:
        """The tracks that are closed to it, where claims assign them."""
        from tenure.engine.verbs.track_router import assignments_for  # few projects route; keeps startup fast

        return assignments_for(self.work, self.project, self.agent.id)

    @property
    def cooling(self) -> Cooling:
        return Cooling(self.work, self.project)

    def waits(self, task: Task) -> bool:
        """Whether all models that it could use for the task are rate limited."""
        return bool(self.project.limited) and self.cooling.waits(task, user_of(self.agent))


class CommandClaimant(Claimant):
    """The sender of a claim. Its agent and session are recorded where they are new."""

    def __init__(
        self, work: UnitOfWork, cmd: commands.ClaimTask | commands.ClaimNext, sent: Sent | None = None
    ) -> None:
        self.work = work
        self.project = project_of(work, cmd.project)
        self.leases = leases_of(work, self.project, cmd.lease)
        self.agent = agents.known_agent(work, cmd.project, cmd.agent, cmd.agent_type)
        self.user = agents.user_of(work, cmd.user)
        self.session = agents.known_session(work, self.project, cmd.session, cmd.agent, self.user)
        self.sent = sent or Sent()
        self.metadata = cmd.metadata
        self.causes = deque(cmd.caused_by)
        for cause in cmd.caused_by:
            inputs.check_text(cause, "caused_by", 200)
        if self.metadata:
            inputs.check_size(self.metadata, "metadata", inputs.LARGEST_CLAIM_METADATA)


class KnownClaimant(Claimant):
    """An agent that may claim later, in this session or, without one, in a new one."""

    def __init__(self, work: UnitOfWork, project: Project, agent: Agent, session: Session | None = None) -> None:
        self.work, self.project, self.agent = work, project, agent
        self.is_new = session is None
        self.session = session or Session(
            project=project.id, id="", agent=agent.id, created_at=work.now, last_activity=work.now
        )
