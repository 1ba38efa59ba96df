"""Claims: a named task, or the best task that an agent may take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from tenure.core import claims, commands, inputs, lifecycle, limits, priority
from tenure.core.errors import InvalidInput
from tenure.core.ids import NONCE_BYTES
from tenure.core.outcomes import Outcome
from tenure.core.priority import Lane, Profile
from tenure.core.records import Claim, Reservation, Row, Task, replace
from tenure.engine.models.model_choice import route_for, tried, user_of
from tenure.engine.runtime.batch_reads import Lanes
from tenure.engine.runtime.effects import spread
from tenure.engine.runtime.rows import brief_of, current_claim, task_named
from tenure.engine.runtime.unit_of_work import Handlers, UnitOfWork
from tenure.engine.verbs.claim_rules import (
    BY_NAME,
    denied_by_agent,
    denied_by_cool_off,
    denied_by_generations,
    denied_by_limit,
    denied_by_runner,
    in_the_way,
    is_paid,
    patterns_of,
    why_unreadable,
)
from tenure.engine.verbs.claimant import Claimant, CommandClaimant
from tenure.engine.verbs.grant_answer import Sent, granted_again, outcome_of, sending, several

if TYPE_CHECKING:
    from tenure.core.budgets import Short

C = TypeVar("C", commands.ClaimTask, commands.ClaimNext)
MOST_AT_ONCE = limits.CLAIMS_AT_ONCE
MOST_UNPAID = limits.UNPAID
UNREADABLE = "give this process the master key of its secrets, or set them again; the task stays ready"


def claim(work: UnitOfWork, cmd: commands.ClaimTask) -> Outcome:
    sent, repeated = sending(work, cmd)
    if repeated:
        return granted_again(work, repeated[0], sent.process)
    return _claimed(work, cmd, sent) if cmd.spawn is None else _of_spawn(work, cmd, partial(_claimed, sent=sent))


def _claimed(work: UnitOfWork, cmd: commands.ClaimTask, sent: Sent) -> Outcome:
    claimant = CommandClaimant(work, cmd, sent)
    task = task_named(work, cmd.project, cmd.task)
    for rule in BY_NAME:
        denial = rule(claimant, task)
        if denial is not None:
            return denial
    return _grant(work, task, claimant)


def claim_next(work: UnitOfWork, cmd: commands.ClaimNext) -> Outcome:
    sent, repeated = sending(work, cmd)
    if repeated:
        return several([granted_again(work, c, sent.process) for c in repeated], cmd.n)
    if not 1 <= cmd.n <= MOST_AT_ONCE:
        raise InvalidInput(f"n must be from 1 to {MOST_AT_ONCE} (got {cmd.n})")
    if cmd.capabilities:
        inputs.check_list(cmd.capabilities, "capability")
    if cmd.without:
        inputs.check_list(cmd.without, "without")
    if cmd.spawn is None:
        return _next_claimed(work, cmd, sent)
    return _of_spawn(work, cmd, partial(_next_claimed, sent=sent))


def _of_spawn(work: UnitOfWork, cmd: C, decide: Callable[[UnitOfWork, C], Outcome]) -> Outcome:
    from tenure.engine.fleet.spawned_claims import judged  # few claims come from a pool; keeps startup fast

    return judged(work, cmd, decide)


def _next_claimed(work: UnitOfWork, cmd: commands.ClaimNext, sent: Sent) -> Outcome:
    claimant = CommandClaimant(work, cmd, sent)
    denial = denied_by_agent(claimant) or denied_by_runner(claimant, None) or denied_by_limit(claimant)
    denial = denial or denied_by_cool_off(claimant)
    if denial:
        return denial
    unfinished: tuple[str, ...] = ()
    if not work.has_none(Task, cmd.project, "session", cmd.session):
        held = work.find(Task, {"project": cmd.project, "session": cmd.session}, limit=claims.MOST_NAMED)
        unfinished = tuple(t.key for t in held if claims.is_held(t))
    search = Search(work, cmd, claimant)
    if (claimant.project.funded or claimant.project.set_aside) and search.is_closed():
        return search.nothing(unfinished)
    granted = []
    for task in _found(search, cmd):
        granted.append(_grant(work, task, claimant))
        if len(granted) == cmd.n:
            break
        if (denial := denied_by_limit(claimant)) is not None:
            break
    if not granted:
        return search.nothing(unfinished)
    if unfinished:
        granted[0] = replace(granted[0], unfinished=unfinished)
    return several(granted, cmd.n)


def _found(search: Search, cmd: commands.ClaimNext) -> Iterator[Task]:
    """The tasks to grant, best first; with `like` only those of the first one's type and track."""
    if not cmd.like:
        yield from search
        return
    first = next(iter(search), None)
    if first is None:
        return
    yield first
    yield from Search(search.work, replace(cmd, types=(first.type,), tracks=(first.track,)), search.claimant)


# --- the best task that an agent may take ---------------------------------------------------------------------


class Search:
    """Tasks that the claimant may take, best first: its offers, then the lanes it fits."""

    def __init__(self, work: UnitOfWork, cmd: commands.ClaimNext, claimant: Claimant) -> None:
        self.work, self.cmd, self.claimant = work, cmd, claimant
        self.profile = profile_for(claimant.profile, cmd)
        self.passed_over: dict[str, int] = {}
        self.next_at: int | None = None  # when the first temporary obstacle ends
        self._unpaid = self._left_there = 0  # unaffordable tasks, and those of them that could not be set aside
        self._has_more = False  # affordable tasks set aside that are not back in their lanes yet
        self._unreadable: str | None = None  # why the secrets of the first such task cannot be opened
        self._short: Short | None = None  # the budget that blocks every task for this agent

    def is_closed(self) -> bool:
        """Whether nothing here is affordable. Otherwise affordable tasks go back to their lanes."""
        from tenure.engine.budgets import unaffordable

        self._short = unaffordable.closed(self.work, self.claimant.project, self.claimant.agent.id)
        if self._short is None and self.claimant.project.set_aside:
            self._has_more = unaffordable.put_back(self.work, self.cmd.project)
        return self._short is not None

    def __iter__(self) -> Iterator[Task]:
        project, agent = self.cmd.project, self.claimant.agent.id
        if not self.work.has_none(Task, project, "offer_to", agent):
            offers = self.work.find(Task, {"project": project, "offer_to": agent, "state": lifecycle.READY})
            offers.sort(key=lambda t: priority.place(t, self.work.now))
            yield from (t for t in offers if self.fits(priority.lane_of_task(t)) and self._may_take(t))
        for task in self._lanes().offer(self.fits, lambda lane: priority.set_back(self.profile, lane)):
            if self._may_take(task):
                yield task
            elif self._unpaid >= MOST_UNPAID:
                return

    def _lanes(self) -> Lanes:
        lanes: Lanes | None = self.work.lanes.get(self.cmd.project)
        if lanes is None:
            lanes = self.work.lanes[self.cmd.project] = Lanes(self.work, self.cmd.project, self.work.expected_claims)
        return lanes

    def fits(self, lane: Lane) -> bool:
        return fits(self.profile, lane)

    def _may_take(self, task: Task) -> bool:
        for obstacle in priority.task_obstacles(self.profile, task, self.work.now, self.claimant.waits):
            why: str | None = obstacle.word
            self._note_end(task, obstacle.word)
            break
        else:
            why = self._taken_back(task)
        if why is not None:
            self.passed_over[why] = self.passed_over.get(why, 0) + 1
        return why is None

    def _taken_back(self, task: Task) -> str | None:
        """Take a task out of the lanes: generations used up, a conflicting claim, or no budget that covers it."""
        if denied_by_generations(self.claimant, task) is not None:
            return "limit"
        if (unreadable := why_unreadable(self.work, task)) is not None:
            self._unreadable = self._unreadable or f"{task.key}: {unreadable}"
            return "unreadable"
        other = in_the_way(self.work, task, self.claimant.session.id)
        if other is None:
            return "unaffordable" if is_paid(self.claimant, task) and self._cannot_pay(task) else None
        if other.task is not None:
            self.work.put(replace(task, set_aside_for=other.task))  # skipped until that claim ends
        return "conflicting"

    def _cannot_pay(self, task: Task) -> bool:
        """Count a task set aside with the others of its kind; it is examined again when the budget can pay."""
        from tenure.engine.budgets import budget_guard, unaffordable

        short = budget_guard.short_of(self.work, self.claimant.project, task, self.claimant.agent.id)
        if short is None:
            return False
        self._unpaid += 1
        if unaffordable.set_aside(self.work, self.cmd.project, task, short):
            self._has_more |= self._unpaid >= MOST_UNPAID
        else:
            self._left_there += 1
        return True

    def _note_end(self, task: Task, why: str) -> None:
        """Note when a cool-off that blocks the claimant ends: no event would wake a waiter then."""
        at = task.cool_offs.get(self.claimant.agent.id) if why == "cooling" else None
        if why == "model_cooling":
            at = self.claimant.cooling.next_at()
        if at is not None:
            self.next_at = at if self.next_at is None else min(at, self.next_at)

    def nothing(self, unfinished: tuple[str, ...]) -> Outcome:
        from tenure.engine.verbs.no_task import no_task  # a claim that finds a task does without it

        self._count_assigned(limits.PASSED_OVER)
        found = no_task(
            self.work, self.cmd.project, self.claimant.agent.id, unfinished, self.passed_over, next_at=self.next_at
        )
        if self._unreadable is not None:
            found = replace(found, message=f"{found.message}; {self._unreadable}", hint=found.hint or UNREADABLE)
        if not (self._short or self._unpaid or self.claimant.project.set_aside):
            return found
        from tenure.engine.budgets import unaffordable

        self.work.is_unfinished = self._has_more
        return unaffordable.explained(self.work, self.cmd.project, found, self._short, self._left_there)

    def _count_assigned(self, most: int) -> None:
        """Count the ready tasks of tracks that are assigned to other agents, and note when one of these may open."""
        wanted = self.profile.tracks
        closed = tuple(track for track in self.profile.taken if not wanted or track in wanted)
        if not closed:
            return
        there = {"project": self.cmd.project, "state": lifecycle.READY, "track": closed}
        count = self.work.tally(Task, there, most)
        if count:
            self.passed_over[priority.OTHER_AGENTS] = count
            ends = [at for at in (self.next_at, self.claimant.assignments.next_end) if at is not None]
            self.next_at = min(ends, default=None)


def profile_for(own: Profile, cmd: commands.ClaimNext) -> Profile:
    """What the claimant declares, apart from what this command adds."""
    return replace(
        own, capabilities=own.capabilities if cmd.capabilities is None else frozenset(cmd.capabilities),
        region=cmd.region or own.region, tracks=cmd.tracks or own.tracks, types=cmd.types, tags=cmd.tags,
        without=cmd.without,
    )  # fmt: skip


def fits(profile: Profile, lane: Lane) -> bool:
    return not any(True for _ in priority.lane_obstacles(profile, lane))


# --- granting -----------------------------------------------------------------------------------------------


def _grant(work: UnitOfWork, task: Task, claimant: CommandClaimant) -> Outcome:
    lease = claimant.leases(task)
    last = current_claim(work, task) if task.generation else None
    held, new = claims.granted(
        task, last, agent=claimant.agent.id, session=claimant.session.id, user=claimant.user, lease=lease.length,
        now=work.now, nonce=work.random.token(NONCE_BYTES), epoch=work.epoch, process=claimant.sent.process,
        request_id=claimant.sent.id, request_hash=claimant.sent.digest, metadata=claimant.metadata,
        key=work.principal.key,
    )  # fmt: skip
    if lease.why is not None or task.offer_term is not None:
        new = replace(new, lease_why=lease.why, term=task.offer_term)
    new = _with_model(work, task, new, claimant)
    reserved = _reserve(work, held) if task.guarded else []
    rows: list[Row] = [*reserved]
    if reserved or claimant.session.public_key is not None:  # its submit must be signed: see engine/checks/signatures
        held = replace(held, reserved=True)
    if new.metadata:
        from tenure.engine.verbs import runner_claims  # few claims have any; keeps startup fast

        held = runner_claims.marked(work, held, new, rows)
    later: dict[str, int] = {}
    if is_paid(claimant, task):
        from tenure.engine.budgets.budget_guard import next_claims, reserve

        held, new = reserve(work, claimant.project, held, new)
        later = next_claims(work, claimant.project, new)
    details: dict[str, Any] = {"lease_until": held.lease_until, "attempt": held.attempts}
    details["previous_generation"] = task.generation
    if new.term is not None:
        details["term"] = new.term
    if new.funds:
        details["funds"] = new.funds  # the log has no other trace of the reservation
    if later:
        details["next_claims"] = later
    if claimant.causes:
        details["caused_by"] = claimant.causes.popleft()
    kept = work.record("task.claimed", new, *rows, task=held, details=details)
    if claimant.project.router:
        from tenure.engine.verbs.track_router import claimed as claimed_on_track  # few projects route

        claimed_on_track(work, held, claimant.agent.id)
    spread(work)
    return outcome_of(work, kept, new)


def _with_model(work: UnitOfWork, task: Task, claim: Claim, claimant: CommandClaimant) -> Claim:
    """The claim with the model recommended to its holder, stored only where it matters later."""
    project = claimant.project
    if not (project.limited or task.models or task.fallback_models):
        return claim
    brief, user = brief_of(work, task), user_of(claimant.agent)
    found = route_for(work, project, task, brief, user, claim.attempt, claimant.cooling.is_limited)
    if found is None or found.model is None:
        return claim
    if project.limited:
        tried(work, project, claim, found.model)
    return replace(claim, model=found.model)


def _reserve(work: UnitOfWork, task: Task) -> list[Reservation]:
    from tenure.engine.verbs.reserve import drop_left_over, reserved_for

    drop_left_over(work, task.project)
    return reserved_for(work, task, patterns_of(brief_of(work, task)))


HANDLERS: Handlers = {commands.ClaimTask: claim, commands.ClaimNext: claim_next}
