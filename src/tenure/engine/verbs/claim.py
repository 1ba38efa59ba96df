"""Claims: a named task, or the best task that an agent may take."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from tenure.core import claims, commands, inputs, lifecycle, limits, moves, priority, reservations
from tenure.core.errors import InvalidInput
from tenure.core.ids import NONCE_BYTES
from tenure.core.outcomes import Outcome
from tenure.core.priority import Lane, Profile
from tenure.core.records import Agent, Brief, Claim, LastError, Project, Reservation, Row, Task, replace
from tenure.core.safe_text import shell_word
from tenure.engine.models.model_choice import Cooling, route_for, tried, user_of
from tenure.engine.reads import task_view
from tenure.engine.runtime.batch_reads import Lanes
from tenure.engine.runtime.effects import spread
from tenure.engine.runtime.rows import brief_of, current_claim, fields_of, project_of, task_named
from tenure.engine.runtime.unit_of_work import Handlers, UnitOfWork
from tenure.engine.verbs import agents
from tenure.engine.verbs.grant_answer import Sent, granted_again, outcome_of, sending, several
from tenure.engine.verbs.lease_length import leases_of
from tenure.engine.verbs.track_router import Assignments, assignments_for
from tenure.engine.verbs.track_router import claimed as claimed_on_track
from tenure.engine.verbs.track_router import denied as denied_by_track

if TYPE_CHECKING:
    from tenure.core.budgets import Short

C = TypeVar("C", commands.ClaimTask, commands.ClaimNext)
MOST_AT_ONCE = limits.CLAIMS_AT_ONCE
MOST_GENERATIONS = limits.GENERATIONS
MOST_UNPAID = limits.UNPAID


class Claimant:
    """Who wants to claim, and for how long; the same for every candidate task."""

    def __init__(
        self, work: UnitOfWork, cmd: commands.ClaimTask | commands.ClaimNext, sent: Sent | None = None
    ) -> None:
        self._work = work
        self.project: Project = project_of(work, cmd.project)
        self.leases = leases_of(work, self.project, cmd.lease)
        self.agent: Agent = agents.known_agent(work, cmd.project, cmd.agent, cmd.agent_type)
        self.user = agents.user_of(work, cmd.user)
        self.session = agents.known_session(work, self.project, cmd.session, cmd.agent, self.user)
        self.sent = sent or Sent()
        self.metadata = cmd.metadata
        self.causes = deque(cmd.caused_by)
        for cause in cmd.caused_by:
            inputs.check_text(cause, "caused_by", 200)
        if self.metadata:
            inputs.check_size(self.metadata, "metadata", inputs.LARGEST_CLAIM_METADATA)

    @property
    def profile(self) -> Profile:
        """What it declares that it can do."""
        taken = self.assignments.taken if self.project.router else None
        return priority.profile_of(self.agent, self.project.stopped, taken)

    @cached_property
    def assignments(self) -> Assignments:
        """The tracks that are closed to it, where claims assign them."""
        return assignments_for(self._work, self.project, self.agent.id)

    @property
    def cooling(self) -> Cooling:
        return Cooling(self._work, self.project)

    def waits(self, task: Task) -> bool:
        """Whether all models that it could use for the task are rate limited."""
        return bool(self.project.limited) and self.cooling.waits(task, user_of(self.agent))


def claim(work: UnitOfWork, cmd: commands.ClaimTask) -> Outcome:
    sent, repeated = sending(work, cmd)
    if repeated:
        return granted_again(work, repeated[0], sent.process)
    return _claimed(work, cmd, sent) if cmd.spawn is None else _of_spawn(work, cmd, partial(_claimed, sent=sent))


def _claimed(work: UnitOfWork, cmd: commands.ClaimTask, sent: Sent) -> Outcome:
    claimant = Claimant(work, cmd, sent)
    task = task_named(work, cmd.project, cmd.task)
    denial = (
        denied_by_agent(claimant)
        or _denied_by_runner(work, claimant, task)
        or _denied_by_state(work, task, claimant)
        or _denied_by_line(task, claimant)
        or _denied_by_offer(work, task, claimant)
        or _denied_by_skill(task, claimant)
        or (denied_by_track(work, task, claimant.agent.id) if claimant.project.router else None)
        or denied_by_limit(work, claimant)
        or _denied_by_generations(work, task, claimant)
        or _denied_by_conflict(work, task, claimant)
        or _denied_by_budget(work, task, claimant)
    )
    return denial or _grant(work, task, claimant)


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
    claimant = Claimant(work, cmd, sent)
    denial = denied_by_agent(claimant) or _denied_by_runner(work, claimant, None) or denied_by_limit(work, claimant)
    if denial:
        return denial
    cooling = claimant.agent.cool_until
    if cooling is not None and cooling > work.now:
        troubles = f"{claimant.agent.troubles} failures in a row"
        message = f"agent {claimant.agent.id} is cooling off after {troubles}"
        return Outcome(outcome="NO_TASK", **work.retry_at(cooling), message=message)
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
        if (denial := denied_by_limit(work, claimant)) is not None:
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


# --- denials ------------------------------------------------------------------------------------------------


UNREADABLE = "give this process the master key of its secrets, or set them again; the task stays ready"


def _denied_by_state(work: UnitOfWork, task: Task, claimant: Claimant) -> Outcome | None:
    code = claims.denial_by_state(task)
    if code is None:
        return None
    if code == "DENIED_ACTIVE_CLAIM":
        yours = task.session == claimant.session.id
        message = f"{task.key}: generation {task.generation} is held by agent {task.agent}"
        return Outcome(
            outcome=code,
            holder=task.agent,
            yours=yours,
            **work.leased_until(task.lease_until),
            **fields_of(task, "generation state"),
            message=f"{message}{' in this session' if yours else ''}; its lease ends {_when(work, task.lease_until)}",
            hint="use the receipt of that claim" if yours else "take another task, or wait for the lease to end",
        )
    state_text = f"{task.key} is {lifecycle.spoken(task.state)}"
    if code == "DENIED_NOT_READY":
        waits = task_view.waits_for(work, task)
        message = state_text + (f", waiting for {', '.join(waits[:5])}" if waits else "")
        at = max((at for at in (task.retry_at, task.not_before) if at is not None and at > work.now), default=None)
        message += f"; it may be ready {_when(work, at)}" if at is not None else ""
        return Outcome(outcome=code, state=task.state, waits_for=waits, **work.retry_at(at), message=message)
    because = f": {task.reason}" if task.reason else ""
    ends = [pause.until for pause in task.pauses] if task.state == lifecycle.PAUSED else []
    at = max((end for end in ends if end is not None), default=None) if None not in ends else None
    because += f"; it resumes {_when(work, at)}" if at is not None else ""
    return Outcome(outcome=code, state=task.state, **work.retry_at(at), message=state_text + because)


def _when(work: UnitOfWork, at: int | None) -> str:
    """When something ends, from now on."""
    from tenure.core.instants import lasting  # of denials alone; keeps startup fast

    left = work.seconds_to(at)
    return "at an unknown time" if left is None else f"in {lasting(left)}"


def _denied_by_line(task: Task, claimant: Claimant) -> Outcome | None:
    stop = priority.stop_of(claimant.profile, *priority.scopes_of(task, claimant.agent.id))
    if stop is None:
        return None
    return Outcome(outcome="DENIED_PAUSED", state=task.state, message=stop.sentence, hint=priority.GO)


def _denied_by_offer(work: UnitOfWork, task: Task, claimant: Claimant) -> Outcome | None:
    if task.offer_to is None or task.offer_to == claimant.agent.id:
        return None
    message = f"{task.key} is offered to agent {task.offer_to}; the offer ends {_when(work, task.offer_until)}"
    again = work.retry_at(task.offer_until)
    return Outcome(outcome="DENIED_OFFERED", holder=task.offer_to, **again, state=task.state, message=message)


def _denied_by_skill(task: Task, claimant: Claimant) -> Outcome | None:
    lack = priority.lacks_skill(claimant.profile, priority.lane_of_task(task))
    if lack is None:
        return None
    message = f"{task.key} is not for agent {claimant.agent.id}, which {lack.sentence}"
    return Outcome(outcome="DENIED_CAPABILITY", state=task.state, message=message)


def denied_by_agent(claimant: Claimant) -> Outcome | None:
    agent = claimant.agent
    if agent.terminated_at is None:
        return None
    hint = f"stop here; a person can reinstate it with `tenure agent resume {shell_word(agent.id)}`"
    return Outcome(outcome="DENIED_AGENT", directive=agents.TERMINATED, message=agents.ended_text(agent), hint=hint)


def _denied_by_runner(work: UnitOfWork, claimant: Claimant, task: Task | None) -> Outcome | None:
    if claimant.agent.max_concurrent_tasks is None:  # the agent of a runner has a limit
        return None
    from tenure.engine.verbs import runner_claims  # few agents have one; keeps startup fast

    return runner_claims.denied(work, claimant.project.id, claimant.session.id, task)


def denied_by_limit(work: UnitOfWork, claimant: Claimant) -> Outcome | None:
    agent, limits = claimant.agent, work.limits_of(claimant.project)
    if agent.draining:
        return Outcome(outcome="DENIED_LIMIT", message=f"agent {agent.id} is draining and claims no more tasks")
    allowed = agent.max_concurrent_tasks
    if priority.is_half_open(agent):
        allowed = 1
    if allowed is not None:
        holds = work.tally(Task, {"project": agent.project, "agent": agent.id}, allowed)
        if holds >= allowed:
            return Outcome(
                outcome="DENIED_LIMIT",
                message=f"agent {agent.id} holds {holds} tasks; max_concurrent_tasks is {allowed}",
                hint="finish one, or register the agent with a higher max_concurrent_tasks",
            )
    most = limits.get("max_concurrent_claims")
    if most is not None and work.tally(Task, {"project": agent.project, "state": lifecycle.HELD}, most) >= most:
        return Outcome(
            outcome="DENIED_LIMIT",
            message=f"project {agent.project} has {most} live claims, its max_concurrent_claims limit",
            hint="an admin can raise the limit max_concurrent_claims",
        )
    if not work.tenant_limits:
        return None
    from tenure.engine.verbs.claim_shares import denied_by_tenant  # most tenants have no limits; keeps startup fast

    return denied_by_tenant(work, agent.project)


def _denied_by_generations(work: UnitOfWork, task: Task, claimant: Claimant) -> Outcome | None:
    """Dead-letter a task that may not be claimed again, so that it does not block its lane."""
    if not task.generation:
        return None
    message = _used_up(work, task, claimant)
    if message is None:
        return None
    error = LastError(error_class="limit", message=message, generation=task.generation, at=work.now)
    dead = replace(moves.dead_lettered(task, work.now), last_error=error, failed_at=work.now)
    work.record("task.failed", task=dead, level="error", message=message)
    spread(work)
    hint = "a person can retry the task; an admin can raise the limit first"
    message = f"{task.key}: {message}; it is now a dead letter"
    return Outcome(outcome="DENIED_LIMIT", state=lifecycle.DEAD_LETTERED, message=message, hint=hint)


def _used_up(work: UnitOfWork, task: Task, claimant: Claimant) -> str | None:
    """Why there is no claim left in its run."""
    who, is_last = (claimant.agent.id, claimant.session.id), task.attempts >= task.max_attempts  # by an earlier edit
    if is_last and not claims.is_continued(task, current_claim(work, task), *who):
        return f"has used all of its attempts in this run: max_attempts is {task.max_attempts}"
    most = work.limits_of(claimant.project).get("max_generations_per_task", MOST_GENERATIONS)
    of_run = {"project": task.project, "task": task.id, "run": task.run}
    if task.generation < most or work.tally(Claim, of_run, most) < most:
        return None
    return f"claimed {most} times in this run without a result, its max_generations_per_task limit"


def patterns_of(brief: Brief) -> tuple[str, ...]:
    needs = brief.constraints.get("needs", ())
    return tuple(reservations.normalised(p) for p in (*brief.touches, *needs))


def in_the_way(work: UnitOfWork, task: Task, session: str) -> Reservation | None:
    """A reservation that keeps this session from claiming the task."""
    if not task.guarded:
        return None
    from tenure.engine.verbs.reserve import living  # few tasks reserve anything; keeps startup fast

    held = living(work, work.find(Reservation, {"project": task.project}))
    patterns = patterns_of(brief_of(work, task))
    return reservations.in_the_way(patterns, "exclusive", held, task=task.id, session=session, now=work.now)


def _denied_by_conflict(work: UnitOfWork, task: Task, claimant: Claimant) -> Outcome | None:
    other = in_the_way(work, task, claimant.session.id)
    if other is None:
        return None
    holder = work.get(Task, task.project, other.task) if other.task else None
    name = holder.key if holder else other.id
    until = holder.lease_until if holder else other.until
    message = f"{task.key} would overlap {other.pattern}, held by {other.agent} for {name}"
    message += f"; that lease ends {_when(work, until)}" if until is not None else ""
    again = work.retry_at(until)
    return Outcome(
        outcome="DENIED_CONFLICT", conflict=name, holder=other.agent, state=task.state, **again, message=message
    )


def _counts(task: Task, claimant: Claimant) -> bool:
    """Whether any budget may apply to it."""
    return bool(claimant.project.funded) or task.capped


def _denied_by_budget(work: UnitOfWork, task: Task, claimant: Claimant) -> Outcome | None:
    if not _counts(task, claimant):
        return None
    from tenure.engine.budgets import budget_guard  # most projects have none; keeps startup fast

    short = budget_guard.short_of(work, claimant.project, task, claimant.agent.id)
    return None if short is None else budget_guard.denied(work, task, short)


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
        if _denied_by_generations(self.work, task, self.claimant) is not None:
            return "limit"
        if task.sealed and self._is_unreadable(task):
            return "unreadable"
        other = in_the_way(self.work, task, self.claimant.session.id)
        if other is None:
            return "unaffordable" if _counts(task, self.claimant) and self._cannot_pay(task) else None
        if other.task is not None:
            self.work.put(replace(task, set_aside_for=other.task))  # skipped until that claim ends
        return "conflicting"

    def _is_unreadable(self, task: Task) -> bool:
        """Whether this process cannot open its secrets: another may, so the task stays where it is."""
        from tenure.engine.secrets.open_secrets import why_unreadable  # few tasks have any; keeps startup fast

        why = why_unreadable(self.work, task)
        self._unreadable = self._unreadable or (why and f"{task.key}: {why}")
        return why is not None

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


def _grant(work: UnitOfWork, task: Task, claimant: Claimant) -> Outcome:
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
    if _counts(task, claimant):
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
        claimed_on_track(work, held, claimant.agent.id)
    spread(work)
    return outcome_of(work, kept, new)


def _with_model(work: UnitOfWork, task: Task, claim: Claim, claimant: Claimant) -> Claim:
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
