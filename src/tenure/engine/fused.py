"""The hot three by the store's own statements, for runs of like commands on plain tasks.

This decides nothing: it finds out whether a command is one of those that a store may carry out by itself, and hands a
run of them over together. The first command that is not, or whose task is not plain, ends the run and is decided
like all others; so is each that the store's guard did not let through.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import msgspec

from tenure.core import commands, graph, inputs, lifecycle, retry, roles, team
from tenure.core.bodies import is_reference
from tenure.core.claims import MOST_NAMED
from tenure.core.commands import Principal
from tenure.core.errors import TenureError
from tenure.core.filters import Present
from tenure.core.outcomes import Outcome
from tenure.core.priority import Place
from tenure.core.receipts import NONCE_BYTES, Receipt, parse_receipt
from tenure.core.records import Agent, Brief, Claim, Message, Project, Result, Session, Task, replace
from tenure.engine import claiming, handing, people
from tenure.engine.effects import spread
from tenure.engine.lanes import queues
from tenure.engine.work import Work
from tenure.stores.fused import Completed, Completion, Fused, Grant, Renewal, Renewed

MOST_MAIL = 1000  # as `people.unread` counts
_json = msgspec.json.encode

Run = Sequence[tuple[Any, Principal]]  # commands, and on whose behalf


def answers(work: Work, batch: Run) -> list[Outcome | None]:
    """Outcomes of the first commands, None for one that must be decided like all others; [] where the first must be."""
    kind = type(batch[0][0])
    fuse = _VERBS.get(kind)
    if fuse is None or work.recalled:
        return []
    work.flush()  # what the batch has changed so far must stand where the statement looks
    return fuse(work, list(takewhile(lambda asked: type(asked[0]) is kind, batch)))


def _is_allowed(work: Work, command: Any, principal: Principal) -> bool:
    project = work.get(Project, command.project, command.project)
    if project is None:
        return False
    try:
        roles.check_role(principal, command, agents_may_operate=project.agents_may_operate)
    except TenureError:
        return False
    return True


# --- claims -------------------------------------------------------------------------------------------------


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

    def take(self, search: claiming.Search, n: int) -> list[str]:
        """Ids of the next n tasks for this profile, or of as many as there are; [] where one of them is not plain."""
        profile = search.profile
        like = (profile.capabilities, profile.tracks, profile.types, profile.region)
        fitting = self._fitting.get(like)
        if fitting is None:
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
        if not _is_allowed(self.work, command, principal):
            return None
        if principal.agent not in (None, command.agent) or principal.session not in (None, command.session):
            return None
        self.work.begin_command(principal, command.trace_id)
        try:
            sent, repeated = claiming.sending(self.work, command)
            asker = None if repeated or sent.id in self._requests else self._asker(command)
        except TenureError:
            return None
        if asker is None:
            return None
        shelf = self._shelves.get(command.project)
        if shelf is None:
            shelf = _Shelf(self.work, command.project, self._expected[command.project])
            self._shelves[command.project] = shelf
        tasks = shelf.take(claiming.Search(self.work, command, asker), command.n)
        if not tasks:
            return None
        if sent.id is not None:
            self._requests.add(sent.id)
        return _Asked(command, principal, asker, sent, tasks)

    def _asker(self, command: commands.ClaimNext) -> claiming.Asker | None:
        """Who asks, where nothing about it needs deciding; the same one may ask many times."""
        like = (command.project, command.agent, command.session, command.lease, command.user)
        if like not in self._askers:
            inputs.check_list(command.capabilities or (), "capability")
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


def _claim(work: Work, run: Run) -> list[Outcome | None]:
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
    outcomes: list[Outcome | None] = []
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
    who = f'"agent":{_text(asker.agent.id)},"session":{_text(asker.session.id)}'
    row = {
        "project": command.project, "lease": asker.lease, "user": asker.user, "request_id": sent.id,
        "request_hash": sent.digest,
    }  # fmt: skip
    about = _members({name: value for name, value in row.items() if value is not None})
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


def _text(value: str) -> str:
    return _json(value).decode()


def _members(row: dict[str, Any]) -> str:
    """The members of an object in JSON, to be put behind others."""
    return "," + _json(row)[1:-1].decode()


# --- results ------------------------------------------------------------------------------------------------


def _receipt(work: Work, command: Any, principal: Principal, seen: set[tuple[str, str]]) -> Receipt | None:
    """The receipt of a holder's command that can be handed over; one task comes once in a run."""
    try:
        receipt = parse_receipt(command.receipt)
    except TenureError:
        return None
    place = (command.project, receipt.name)
    if receipt.epoch != work.epoch or place in seen or not _is_allowed(work, command, principal):
        return None
    seen.add(place)
    return receipt


def _complete(work: Work, run: Run) -> list[Outcome | None]:
    given: list[Completion] = []
    seen: set[tuple[str, str]] = set()
    for command, principal in run:
        receipt = _receipt(work, command, principal, seen)
        if receipt is None or (completion := _completion(work, command, principal, receipt)) is None:
            break
        given.append(completion)
    if not given:
        return []
    tx: Fused = work.tx  # type: ignore[assignment]  # the store declares it
    done = {(d.project, d.ref): d for d in tx.complete(given)}
    work.forget(Task, Claim, Result)
    _signs_of_life(work, done.values())
    outcomes: list[Outcome | None] = []
    for (command, principal), completion in zip(run, given, strict=False):
        d = done.get((completion.project, completion.ref))
        if d is None:
            outcomes.append(None)
            continue
        if d.dependents or d.children or d.dag != graph.lone_dag(d.task):
            work.begin_command(principal, command.trace_id, completion.command)
            _follow(work, d)
        outcomes.append(
            Outcome(
                outcome="ACCEPTED", message=f"{d.key}: accepted as {d.work_product}", work_product=d.work_product,
                result=completion.result, generation=completion.generation, current_generation=completion.generation,
                work_lost=False, state=lifecycle.COMPLETED, version=d.version,
            )
        )  # fmt: skip
    return outcomes


def _completion(work: Work, command: commands.Submit, principal: Principal, receipt: Receipt) -> Completion | None:
    if command.usage:
        return None
    encoded = _json(command.data)
    if len(encoded) > handing.INLINE or is_reference(command.data):
        return None
    project = work.get(Project, command.project, command.project)
    most = None if project is None else project.limits.get("max_result_size")
    if (most is not None and len(encoded) > most) or len(command.summary) > inputs.LARGEST_TEXT // 4:
        return None
    digest = hashlib.sha256(encoded).hexdigest()[:32]
    row: dict[str, Any] = {"project": command.project, "size": len(encoded), "digest": digest}
    if command.data is not None:
        row["data"] = msgspec.Raw(encoded)
    if command.summary:
        row["summary"] = command.summary
    if command.request_id is not None:
        row["request_id"] = command.request_id
    work.begin_command(principal, command.trace_id)
    result, event = work.new_id("result"), work.new_id("evt")
    return Completion(
        command.project, receipt.name, receipt.generation, receipt.nonce, result,
        None if command.data is None else encoded.decode(), command.summary, len(encoded), digest, command.request_id,
        event, work.command_id, command.trace_id, principal.user, principal.address, _members(row),
    )  # fmt: skip


def _follow(work: Work, done: Completed) -> None:
    """What the move means for others, as after any other."""
    after = work.get(Task, done.project, done.task)
    assert after is not None, done.key
    work.moved.append((replace(after, state=done.state_before), after))
    spread(work)


def _signs_of_life(work: Work, held: Iterable[Completed | Renewed]) -> None:
    """The holders were heard of; a success clears an agent's troubles. Most were heard of a moment ago."""
    agents: dict[tuple[str, str], bool] = {}
    sessions: dict[tuple[str, str], None] = {}
    before = work.now - team.PRESENCE
    for row in held:
        if row.agent_seen is not None and (row.agent_is_odd or row.agent_seen <= before):
            place = (row.project, row.agent)
            agents[place] = agents.get(place, False) or isinstance(row, Completed)
        if row.session_seen is not None and row.session_seen <= before:
            sessions[row.project, row.session] = None
    for (project, name), succeeded in agents.items():
        agent = work.get(Agent, project, name)
        if agent is not None:
            known = people.seen(work, agent)
            if succeeded and known.troubles:
                work.put(retry.agent_succeeded(known))
    for project, name in sessions:
        session = work.get(Session, project, name)
        if session is not None:
            people.active(work, session, held=True)


# --- renewals -----------------------------------------------------------------------------------------------


def _renew(work: Work, run: Run) -> list[Outcome | None]:
    given: list[Renewal] = []
    seen: set[tuple[str, str]] = set()
    for command, principal in run:
        receipt = None if command.background else _receipt(work, command, principal, seen)
        if receipt is None:
            break
        project = work.get(Project, command.project, command.project)
        assert project is not None
        try:
            lease = None if command.lease is None else inputs.lease_of(command.lease, project)
        except TenureError:
            break
        given.append(Renewal(command.project, receipt.name, receipt.generation, receipt.nonce, lease))
    if not given:
        return []
    tx: Fused = work.tx  # type: ignore[assignment]  # the store declares it
    renewed = {(r.project, r.ref): r for r in tx.renew(given)}
    work.forget(Task)
    _signs_of_life(work, renewed.values())
    mail = _mail(work, renewed.values())
    outcomes: list[Outcome | None] = []
    for renewal in given:
        r = renewed.get((renewal.project, renewal.ref))
        if r is None:
            outcomes.append(None)
            continue
        outcomes.append(
            Outcome(
                outcome="RENEWED", lease_until=r.lease_until, lease=(r.lease_until - work.now) / inputs.SECOND,
                generation=renewal.generation, state=lifecycle.RUNNING, directive="continue",
                mail=mail.get((r.project, r.agent), 0),
            )
        )  # fmt: skip
    return outcomes


def _mail(work: Work, renewed: Iterable[Renewed]) -> dict[tuple[str, str], int]:
    agents: dict[str, dict[str, None]] = {}
    for r in renewed:
        agents.setdefault(r.project, {})[r.agent] = None
    counts = {}
    for project, names in agents.items():
        where = {"project": project, "recipient": tuple(names), "read_at": Present(False)}
        for agent, count in work.count(Message, where, "recipient").items():
            counts[project, agent] = min(MOST_MAIL, count)
    return counts


_VERBS: dict[type[Any], Callable[[Work, Run], list[Outcome | None]]] = {
    commands.ClaimNext: _claim,
    commands.Submit: _complete,
    commands.Renew: _renew,
}
