"""Claims of the next best task, handed over as a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tenure.core import commands, inputs
from tenure.core.claims import MOST_NAMED
from tenure.core.commands import Principal
from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome
from tenure.core.priority import Place
from tenure.core.receipts import NONCE_BYTES, Receipt
from tenure.core.records import Brief, Claim, Task, replace
from tenure.engine import claiming
from tenure.engine.fused.runs import Done, Run, is_allowed, members, text
from tenure.engine.lanes import queues
from tenure.engine.work import Work
from tenure.stores.fused import Fused, Grant


class _Asked(NamedTuple):
    """A claim that can be handed over, and the tasks that it takes."""

    command: commands.ClaimNext
    principal: Principal
    asker: claiming.Asker
    sent: claiming.Sent
    tasks: list[str]


class _Shelf:
    """The lanes of one project, each with how far it has been emptied."""

    def __init__(self, work: Work, project: str, expected: int) -> None:
        self.queues = queues(work, project, expected, ahead=False)
        self.at = [0] * len(self.queues)
        self._fitting: dict[Any, list[int]] = {}

    def take(self, work: Work, command: commands.ClaimNext, asker: claiming.Asker) -> list[str]:
        """Ids of the tasks that this claim gets, or of as many as there are; [] where one of them is not plain."""
        agent, n = asker.agent, command.n
        # All that `claiming.Search` goes by when it chooses lanes: who is like another fits into the same ones.
        like = (
            agent.capabilities, agent.tracks, agent.region, command.capabilities, command.tracks, command.types,
            command.region,
        )  # fmt: skip
        fitting = self._fitting.get(like)
        if fitting is None:
            search = claiming.Search(work, command, asker)
            fitting = [k for k, queue in enumerate(self.queues) if search.fits(queue.lane)]
            self._fitting[like] = fitting
        before = self.at.copy() if n > 1 else self.at
        taken: list[str] = []
        while len(taken) < n and (best := self._best(fitting)) is not None:
            place, lane = best
            if not place.plain:
                self.at = before
                return []
            self.at[lane] += 1
            taken.append(place.id)
        return taken

    def _best(self, fitting: list[int]) -> tuple[Place, int] | None:
        heads = [
            (queue.places[at], k)
            for k in fitting
            if (at := self.at[k]) < len((queue := self.queues[k]).places) or queue.reach(at)
        ]
        return min(heads) if len(heads) > 1 else heads[0] if heads else None


class _Claims:
    """A run of claims in the making. It ends with the first that has to be decided."""

    def __init__(self, work: Work, run: Run) -> None:
        self.work = work
        self.asked: list[_Asked] = []
        self._expected: dict[str, int] = {}
        self._shelves: dict[str, _Shelf] = {}
        self._allowed: dict[tuple[str, str], bool] = {}
        self._requests: set[str] = set()  # a request that comes twice is answered from what is stored
        self._askers: dict[tuple[Any, ...], claiming.Asker | None] = {}
        for command, _ in run:
            self._expected[command.project] = self._expected.get(command.project, 0) + command.n

    def take(self, command: commands.ClaimNext, principal: Principal) -> bool:
        """Add a claim; False where it ends the run, of which it has left no trace then."""
        work = self.work
        bookmark = work.bookmark()
        found = self._asked_for(command, principal)
        # Somebody new is told of before its own claim, and not before another's.
        if found is None or (self.asked and work.bookmark()[1] > bookmark[1]):
            work.undo_to(bookmark)
            return False
        self.asked.append(found)
        return True

    def _asked_for(self, command: commands.ClaimNext, principal: Principal) -> _Asked | None:
        if command.tags or not 1 <= command.n <= claiming.MOST_AT_ONCE:
            return None
        if not self._may(command, principal):
            return None
        if principal.agent not in (None, command.agent) or principal.session not in (None, command.session):
            return None
        self.work.begin_command(principal, command.trace_id)
        try:
            sent, repeated = claiming.sending(self.work, command)
            inputs.check_list(command.capabilities or (), "capability")
            asker = None if repeated or sent.id in self._requests else self._asker(command, principal)
        except TenureError:
            return None
        if asker is None:
            return None
        shelf = self._shelves.get(command.project)
        if shelf is None:
            shelf = _Shelf(self.work, command.project, self._expected[command.project])
            self._shelves[command.project] = shelf
        tasks = shelf.take(self.work, command, asker)
        if not tasks:
            return None
        if sent.id is not None:
            self._requests.add(sent.id)
        return _Asked(command, principal, asker, sent, tasks)

    def _may(self, command: commands.ClaimNext, principal: Principal) -> bool:
        if principal.projects or principal.is_proven:
            return is_allowed(self.work, command, principal)
        place = (command.project, principal.role)
        if place not in self._allowed:
            self._allowed[place] = is_allowed(self.work, command, principal)
        return self._allowed[place]

    def _asker(self, command: commands.ClaimNext, principal: Principal) -> claiming.Asker | None:
        """Who asks, where nothing about it needs deciding; the same one may ask many times."""
        like = (command.project, command.agent, command.session, command.lease, command.user, principal.key)
        if like not in self._askers:
            asker = claiming.Asker(self.work, command)
            self._askers[like] = asker if self._is_plain(asker) else None
        return self._askers[like]

    def _is_plain(self, asker: claiming.Asker) -> bool:
        agent, project = asker.agent, asker.project
        if project.stopped or "max_concurrent_claims" in project.limits or agent.draining:
            return False
        if agent.max_concurrent_tasks is not None or agent.troubles or agent.cool_until is not None:
            return False
        return self.work.has_none(Task, project.id, "offer_to", agent.id) or not self.work.find(
            Task, {"project": project.id, "offer_to": agent.id}, limit=1
        )


def claim(work: Work, run: Run) -> list[Done]:
    claims = _Claims(work, run)
    for command, principal in run:
        if not claims.take(command, principal):
            break
    if not claims.asked:
        return []
    work.flush()
    tx: Fused = work.tx  # type: ignore[assignment]  # the store declares it
    held = _held(work, claims.asked)
    grants = [grant for asked in claims.asked for grant in _grants(work, asked)]
    granted = tx.grant(grants)
    work.forget(Task, Claim)
    told = iter([_told(work, task, brief, grant) for (task, brief), grant in zip(granted, grants, strict=True)])
    outcomes: list[Done] = []
    for command, _, _, _, tasks in claims.asked:
        mine = [next(told) for _ in tasks]
        others = held.setdefault((command.project, command.session), [])
        if others:
            names = tuple(key for _, key in sorted(others)[:MOST_NAMED])
            mine[0] = replace(mine[0], unfinished=names)
        others += [(o.task["id"], o.task["key"]) for o in mine if o.task]
        outcomes.append(claiming.several(mine, command.n))
    return outcomes


def _held(work: Work, asked: Sequence[_Asked]) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Ids and keys of what the sessions hold already, by project and session."""
    sessions: dict[str, dict[str, None]] = {}
    for command, *_ in asked:
        sessions.setdefault(command.project, {})[command.session] = None
    tx: Fused = work.tx  # type: ignore[assignment]  # the store declares it
    return {
        (project, session): list(tasks)
        for project, names in sessions.items()
        for session, tasks in tx.held(project, names, MOST_NAMED).items()
    }


def _grants(work: Work, asked: _Asked) -> Iterable[Grant]:
    command, principal, asker, sent, tasks = asked
    work.begin_command(principal, command.trace_id)
    who = f'"agent":{text(asker.agent.id)},"session":{text(asker.session.id)}'
    row = {
        "project": command.project, "lease": asker.lease, "user": asker.user, "request_id": sent.id,
        "request_hash": sent.digest,
    }  # fmt: skip
    about = members({name: value for name, value in row.items() if value is not None})
    for task in tasks:
        nonce = work.chance.token(NONCE_BYTES)
        event = work.new_id("evt")
        yield Grant(
            command.project, task, asker.agent.id, asker.session.id, asker.user, asker.lease, nonce, sent.process,
            sent.id, sent.digest, event, work.command_id, command.trace_id, principal.user,
            principal.address, who, about,
        )  # fmt: skip


def _told(work: Work, task: Task, brief: Brief, grant: Grant) -> Outcome:
    work.learn(task, brief)
    receipt = str(Receipt(task.ref, task.generation, work.epoch, grant.nonce))
    return claiming.granted_outcome(work, task, task.generation, task.attempts, receipt)
