"""Sweeps keep events prompt. Anyone may run them; they only settle, so no answer needs them.

Each is idempotent, takes at most a page of rows per transaction, and confines an error to its row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenure.core import queries as q
from tenure.core import team
from tenure.core.filters import Present, Range
from tenure.core.records import Agent, Leader, Project, Request, Reservation, Session, Task, replace
from tenure.engine.archive import mover
from tenure.engine.artifacts import retention
from tenure.engine.runtime.decision import KEPT
from tenure.engine.runtime.effects import PAGE, Report, end_agent, settle_due
from tenure.engine.runtime.unit_of_work import Reads, UnitOfWork
from tenure.engine.secrets.known_secrets import MARK, kept_on
from tenure.engine.verbs.lead import PROJECT_LEADER, announced
from tenure.engine.verbs.reserve import release_reservations

if TYPE_CHECKING:
    from tenure.engine.runtime.engine import Engine


def sweep(engine: Engine, project: str) -> Report:
    """Settle everything due in a project; then stale agents, idle sessions, old reservations and requests.

    Last, tasks that ended long ago move to the archive.
    """
    total = settle(engine, project)
    total.add(tidy(engine, project))
    total.add(archive(engine, project))
    total.add(retention.drop(engine, project))
    return total


def settle(engine: Engine, project: str) -> Report:
    """Settle everything due in a project, a page per transaction."""

    def decide(work: UnitOfWork) -> Report:
        page = Report()
        settle_due(work, (project,), page, limit=PAGE)
        return page

    total = Report()
    while True:
        page = engine.transact((project,), decide, settled=False)
        total.add(page)
        if not page.more or not page.settled:
            return total


def tidy(engine: Engine, project: str) -> Report:
    """The end of a leader, stale agents, idle sessions, expired reservations and requests."""

    def decide(work: UnitOfWork) -> Report:
        report = Report()
        already = len(work.events)
        _tidy(work, project)
        report.note(work.events[already:])
        return report

    return engine.transact((project,), decide)


def is_untidy(engine: Engine, project: str) -> bool:
    """Whether `tidy` would change anything: the same, on rows that are never saved."""

    def ask(work: UnitOfWork) -> bool:
        before = work.bookmark()
        _tidy(work, project)
        return work.bookmark() != before

    return engine.read_settled((project,), ask)


def archive(engine: Engine, project: str) -> Report:
    """Move tasks that ended long ago to the archive, and delete from it in time."""
    moved = mover.sweep(engine, project)
    report = Report()
    report.failed = moved.failed
    report.events.update({"archive.moved": moved.tasks, "archive.pruned": moved.pruned})
    report.events = +report.events
    return report


def visible_projects(work: UnitOfWork, project: str) -> list[str]:
    """The names of all projects in the store that the caller may see."""
    only = work.principal.projects
    return [p.id for p in work.find(Project, {}) if not only or p.id in only]


def projects(engine: Engine) -> list[str]:
    return [p.id for p in engine.read(lambda tx: tx.find(Project, {}))]


def _tidy(work: UnitOfWork, project: str) -> None:
    leader = work.get(Leader, project, PROJECT_LEADER)
    if leader is not None:
        announced(work, leader)
    ending = {"project": project, "terminated_at": Present(), "left_at": Present(False)}
    for agent in work.find(Agent, ending, limit=PAGE):
        end_agent(work, agent)
    for agent in work.find(Agent, {"project": project, "stale": False, "left_at": Present(False)}):
        if team.is_stale(agent, work.now):
            work.record("agent.stale", replace(agent, stale=True), project=project, agent=agent.id, level="warning")
    silent = Range(high=team.in_use_since(work.now))
    idle = {"project": project, "ended_at": Present(False), "last_activity": silent}
    for session in work.find(Session, idle, limit=PAGE):
        if not work.find(Task, {"project": project, "session": session.id}, limit=1):
            ended = replace(session, ended_at=session.last_activity + team.SESSION_IDLE)
            work.record("session.ended", ended, project=project, agent=session.agent, session=session.id)
    for held in work.find(Reservation, {"project": project, "until": Range(high=work.now + 1)}, limit=PAGE):
        release_reservations(work, project, [held])
    for request in work.find(Request, {"project": project, "at": Range(high=work.now - KEPT + 1)}, limit=PAGE):
        if not (request.id.startswith(MARK) and kept_on(work, request)):
            work.remove(request)


READS: Reads = {q.Projects: visible_projects}
