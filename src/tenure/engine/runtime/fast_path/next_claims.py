"""Claims of the next best task, as a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from tenure.core import commands, inputs, lifecycle, team
from tenure.core.claims import MOST_NAMED
from tenure.core.commands import Principal
from tenure.core.errors import TenureError
from tenure.core.ids import NONCE_BYTES, Receipt
from tenure.core.outcomes import Outcome
from tenure.core.priority import LanePosition, Profile, tier_of
from tenure.core.records import Agent, Brief, Claim, Project, Task, replace
from tenure.engine.reads.task_view import SHOWN
from tenure.engine.runtime.batch_reads import claimants_of, queues, read_claimers
from tenure.engine.runtime.context import NO_RANDOM
from tenure.engine.runtime.fast_path.claim_models import ModelFor, Models
from tenure.engine.runtime.fast_path.command_run import Allowed, Run, may_be_last
from tenure.engine.runtime.unit_of_work import Deferred, Reply, UnitOfWork
from tenure.engine.verbs import agents
from tenure.engine.verbs.claim import (
    MOST_AT_ONCE,
    Claimant,
    Sent,
    fits,
    nothing,
    profile_for,
    sent_of,
)
from tenure.engine.verbs.grant_answer import granted_as, granted_outcome, several
from tenure.stores.fast_path import TOLD, TOLD_OF_BRIEF, FastPath, Grant, Granted, Known


def ready(command: commands.ClaimNext, principal: Principal) -> Sent | None:
    """The known part of a claim before the transaction; None where the slow path must decide it."""
    if command.tags or command.metadata or command.spawn is not None or not 1 <= command.n <= MOST_AT_ONCE:
        return None
    if command.without or command.like or isinstance(command.lease, str):
        return None
    try:
        inputs.check_list(command.capabilities or (), "capability")
        return sent_of(command, principal)
    except TenureError:
        return None


class _FastClaim(NamedTuple):
    """A claim that can take the fast path, and the tasks that it takes."""

    command: commands.ClaimNext
    principal: Principal
    user: str | None
    lease: int
    sent: Sent
    held: list[tuple[str, str]]
    tasks: list[str]
    model: ModelFor  # the models for its tasks


class _LaneCursor:
    """The lanes of one project, each with how many of its tasks are taken."""

    def __init__(self, work: UnitOfWork, project: str, expected: int) -> None:
        self.queues = queues(work, project, expected, ahead=False)
        self.at = [0] * len(self.queues)
        self._fitting: dict[Any, list[int]] = {}

    def take(self, command: commands.ClaimNext, known: Known) -> list[str] | None:
        """Ids of the tasks that this claim gets, or of as many as there are; None where one of them is not plain."""
        n = command.n
        # Everything that selects lanes: claimants that agree in this fit the same lanes.
        like = (known.skills, command.capabilities, command.tracks, command.types, command.region)
        fitting = self._fitting.get(like)
        if fitting is None:
            capabilities, tracks, region, agent_type, _ = known.skills
            own = Profile(
                command.agent,
                frozenset(msgspec.json.decode(capabilities)),
                region,
                tuple(msgspec.json.decode(tracks)),
                agent_type,
            )
            profile = profile_for(own, command)
            fitting = [k for k, queue in enumerate(self.queues) if fits(profile, queue.lane)]
            self._fitting[like] = fitting
        before = self.at.copy() if n > 1 else self.at
        taken: list[str] = []
        while len(taken) < n and (best := self._best(fitting)) is not None:
            place, lane = best
            if not place.plain:
                self.at = before
                return None
            self.at[lane] += 1
            taken.append(place.id)
        return taken

    def _best(self, fitting: list[int]) -> tuple[LanePosition, int] | None:
        heads = [
            (queue.places[at], k)
            for k in fitting
            if (at := self.at[k]) < len((queue := self.queues[k]).places) or queue.has_entry(at)
        ]
        return min(heads) if len(heads) > 1 else heads[0] if heads else None


class _Claims:
    """A run of claims being built. It ends with the first that needs the slow path."""

    def __init__(self, work: UnitOfWork, run: Run) -> None:
        self.work = work
        self.asked: list[_FastClaim] = []
        self.nothing: Outcome | None = None  # if there is no task for the first
        self._expected: dict[str, int] = {}
        self._lane_cursors: dict[str, _LaneCursor] = {}
        self._allowed = Allowed(work)
        self._leases: dict[tuple[str, float | str | None], int] = {}
        self._requests: set[str] = set()  # a repeated request is answered from its stored row
        self._known: dict[int, Known] = {}
        self._models = Models(work.tables.tiers)
        for command, _, _ in run:
            self._expected[command.project] = self._expected.get(command.project, 0) + command.n
        self._read_claimants([command for command, _, _ in run])

    def _read_claimants(self, run: list[commands.ClaimNext]) -> None:
        """Most claimants are known and were heard from recently. For the others, read what their claims will need."""
        work = self.work
        tx: FastPath = work.tx  # type: ignore[assignment]  # the store declares it
        for project, numbers in claimants_of(run).items():
            found = tx.known(project, list(numbers.values()), MOST_NAMED)
            self._known |= {n: found[k] for k, n in enumerate(numbers) if k in found}
        others = [command for n, command in enumerate(run) if n not in self._known or not self._is_fresh(n)]
        if others:
            work.tx.expect(lambda tx: read_claimers(UnitOfWork(tx, NO_RANDOM), others))
            read_claimers(work, others)

    def _is_fresh(self, number: int) -> bool:
        """Whether it was heard from so recently that no sign of life needs to be written."""
        known = self._known[number]
        return min(known.agent_seen, known.session_seen) > self.work.now - team.PRESENCE

    def take(self, number: int, command: commands.ClaimNext, principal: Principal, sent: Sent | None) -> bool:
        """Add a claim; False where it ends the run, on which it then leaves no trace."""
        work = self.work
        bookmark = work.bookmark()
        found = self._fast_claim(number, command, principal, sent)
        # The event of a returning agent comes before its own claim, and not before another's.
        if found is None or (self.asked and work.bookmark()[1] > bookmark[1]):
            work.undo_to(bookmark)
            return False
        if not found.tasks:
            if not self.asked:
                names = tuple(key for _, key in found.held)
                self.nothing = nothing(work, command.project, command.agent, names, {})
            return False
        self.asked.append(found)
        if found.sent.id is not None:
            self._requests.add(found.sent.id)
        return True

    def _fast_claim(
        self, number: int, command: commands.ClaimNext, principal: Principal, sent: Sent | None
    ) -> _FastClaim | None:
        known = self._known.get(number)
        if known is None or sent is None or sent.id in self._requests:
            return None
        project = self._allowed.project(command, principal)
        if project is None or project.stopped or project.limited or "max_concurrent_claims" in project.limits:
            return None
        if project.funded or project.set_aside:  # affordability needs the slow path
            return None
        if principal.agent not in (None, command.agent) or principal.session not in (None, command.session):
            return None
        self.work.begin_command(principal, command.trace_id)
        try:
            lease = self._lease(command, project)
            if not self._is_fresh(number):
                Claimant(self.work, command)
        except TenureError:
            return None
        lane_cursor = self._lane_cursors.get(command.project)
        if lane_cursor is None:
            lane_cursor = _LaneCursor(self.work, command.project, self._expected[command.project])
            self._lane_cursors[command.project] = lane_cursor
        tasks = lane_cursor.take(command, known)
        if tasks is None:
            return None
        user = agents.user_of(self.work, command.user)
        model = self._models.of(project, *known.skills[3:])
        return _FastClaim(command, principal, user, lease, sent, known.held, tasks, model)

    def _lease(self, command: commands.ClaimNext, project: Project) -> int:
        asked = (command.project, command.lease)
        if asked not in self._leases:
            self._leases[asked] = inputs.lease_of(command.lease, project)
        return self._leases[asked]


def claim(work: UnitOfWork, run: Run, is_rest: bool) -> list[Reply]:
    """`is_rest`: the batch has nothing after this run."""
    some = run[: work.fast_path_tries.claims_at_once]
    claims = _Claims(work, some)
    for number, asked in enumerate(some):
        if not claims.take(number, *asked):
            break
    # What ends a run at its first claim often ends the next one too: that run then starts with few claims, or all
    # claimants would be examined again for each.
    work.fast_path_tries.claims_at_once = 8 * len(some) if len(claims.asked) == len(some) else max(1, len(claims.asked))
    if not claims.asked:
        if claims.nothing is not None:
            return [claims.nothing]
        if work.fast_path_tries.claims_at_once < len(run):
            _read_ahead(work, [command for command, _, _ in run])
        return []
    work.flush()
    tx: FastPath = work.tx  # type: ignore[assignment]  # the store declares it
    grants = [grant for asked in claims.asked for grant in _grants(work, asked)]
    last = is_rest and len(claims.asked) == len(run) and may_be_last(work, grants)
    granted = tx.grant(grants, last=last)
    work.forget(Task, Claim)
    told = _Outcomes(work, claims.asked, grants, granted)
    if granted.is_usual:
        return [Deferred(partial(told.outcome, n)) for n in range(len(claims.asked))]
    return [told.outcome(n) for n in range(len(claims.asked))]


def _read_ahead(work: UnitOfWork, asking: list[commands.ClaimNext]) -> None:
    """Read what the slow path will need for all of these, in one round trip, unless it is known."""
    if not work.fast_path_tries.knows_claimants:
        work.fast_path_tries.knows_claimants = True
        work.tx.expect(lambda tx: read_claimers(UnitOfWork(tx, NO_RANDOM), asking))
        read_claimers(work, asking)


def _grants(work: UnitOfWork, asked: _FastClaim) -> Iterable[Grant]:
    command, principal, user, lease, sent, _, tasks, _ = asked
    work.begin_command(principal, command.trace_id)
    for task in tasks:
        nonce = work.random.token(NONCE_BYTES)
        event = work.new_id("evt")
        yield Grant(
            command.project,
            task,
            command.agent,
            command.session,
            user,
            lease,
            nonce,
            sent.process,
            sent.id,
            sent.digest,
            event,
            work.command_id,
            command.trace_id,
            principal.user,
            principal.address,
            principal.key,
        )


# Fields with a fixed value in the view of a task before its first claim.
_BY_DEFAULT = {
    f.name: f.default
    for f in msgspec.structs.fields(Task)
    if f.name in SHOWN and f.name not in TOLD and f.default not in (msgspec.NODEFAULT, None, ())
}
_BRIEF = len(TOLD)
_SELDOM = frozenset({"parent", "tags", "not_before", "ready_at"})  # left out of a view where they are missing
_always = itemgetter(*(n for n, name in enumerate(TOLD) if name not in _SELDOM))
_ALWAYS = tuple(name for name in TOLD if name not in _SELDOM)
_seldom = itemgetter(*(n for n, name in enumerate(TOLD) if name in _SELDOM))
_RARE = tuple(name for name in TOLD if name in _SELDOM)
_REF, _PRIORITY, _TYPE, _TAGS = (TOLD.index(name) for name in ("ref", "priority", "type", "tags"))
_CONSTRAINTS = _BRIEF + TOLD_OF_BRIEF.index("constraints")


class _Outcomes:
    """The outcomes of a run, built when the first is needed: after the commit, unless they need another query."""

    def __init__(self, work: UnitOfWork, asked: list[_FastClaim], grants: list[Grant], granted: Granted) -> None:
        self._work, self._asked, self._grants, self._granted = work, asked, grants, granted
        self._outcomes: list[Outcome] = []

    def outcome(self, number: int) -> Outcome:
        if not self._outcomes:
            self._outcomes = list(self._made())
        return self._outcomes[number]

    def _made(self) -> Iterable[Outcome]:
        make = self._from_values() if self._granted.is_usual else self._from_rows()
        held: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for command, _, _, _, _, had, tasks, _ in self._asked:
            mine = [next(make) for _ in tasks]
            others = held.setdefault((command.project, command.session), list(had))
            if others:
                names = tuple(key for _, key in sorted(others)[:MOST_NAMED])
                mine[0] = replace(mine[0], unfinished=names)
            others += [(o.task["id"], o.task["key"]) for o in mine if o.task]
            yield several(mine, command.n)

    def _from_values(self) -> Iterator[Outcome]:
        now, epoch = self._work.now, self._work.epoch
        same = _BY_DEFAULT | {"state": lifecycle.CLAIMED, "generation": 1, "attempts": 1}
        same |= {"claimed_at": now, "updated_at": now}
        models = (asked.model for asked in self._asked for _ in asked.tasks)
        for grant, row, model in zip(self._grants, self._granted.rows(), models, strict=True):
            until = now + grant.lease
            view: Any = {"title": row[_BRIEF], **same, **dict(zip(_ALWAYS, _always(row), strict=True))}
            view["agent"], view["session"], view["lease_until"] = grant.agent, grant.session, until
            view["tier"] = tier_of(row[_PRIORITY])
            for name, value in zip(_RARE, _seldom(row), strict=True):
                if value is not None and value != ():
                    view[name] = value
            for name, value in zip(TOLD_OF_BRIEF[1:], row[_BRIEF + 1 :], strict=True):
                if value:
                    view[name] = value
            receipt = str(Receipt(row[_REF], 1, epoch, grant.nonce))
            of_model = model(row[_PRIORITY], row[_TYPE], row[_TAGS], row[_CONSTRAINTS])
            yield granted_as(view, 1, 1, receipt, until, now, **of_model)

    def _from_rows(self) -> Iterator[Outcome]:
        """Whether bodies and the outputs of other tasks go into the answer too."""
        work = self._work
        for project in {grant.project for grant in self._grants}:
            ids = [grant.task for grant in self._grants if grant.project == project]
            work.get_many(Task, project, ids)
            work.get_many(Brief, project, ids)
            work.get_many(Agent, project, [grant.agent for grant in self._grants if grant.project == project])
        for grant in self._grants:
            task = work.require(Task, grant.project, grant.task)
            receipt = str(Receipt(task.ref, task.generation, work.epoch, grant.nonce))
            yield granted_outcome(work, task, task.generation, task.attempts, receipt, grant.agent)
