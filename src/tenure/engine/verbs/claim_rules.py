"""Who may claim which task: each rule once, for a claim by name, for the search for the next task, and for `why`.

A rule is a function that returns the denial, or None. Rules of the agent come first: they are asked once a command.
Most rules only read. A rule with a consequence has two forms, which judge by the same function: `denied_by_tenant` may
move a share and take locks where `refused_by_tenant` only looks, and `denied_by_generations` makes a dead letter.

BY_NAME is the order in which a claim by name asks. The search asks for the agent, then lane by lane and task by task
(`core/priority.py`), then for what needs other rows. By name an agent may also claim what the search passes over on
purpose: while it cools off, of another track than its own, with a model that is rate limited. `obstacles` asks
everything that either would, without locks and without consequences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tenure.core import claims, lifecycle, limits, moves, priority
from tenure.core.outcomes import Outcome
from tenure.core.priority import Obstacle
from tenure.core.records import Brief, Claim, LastError, Reservation, Task, replace
from tenure.core.safe_text import shell_word
from tenure.engine.reads import task_view
from tenure.engine.runtime.effects import spread
from tenure.engine.runtime.rows import brief_of, current_claim, fields_of
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.verbs import agents
from tenure.engine.verbs.claimant import Claimant, KnownClaimant

Rule = Callable[[Claimant, Task], Outcome | None]
MOST_GENERATIONS = limits.GENERATIONS


# --- of the agent: the same for every task --------------------------------------------------------------------


def denied_by_agent(claimant: Claimant) -> Outcome | None:
    agent = claimant.agent
    if agent.terminated_at is None:
        return None
    hint = f"stop here; a person can reinstate it with `tenure agent resume {shell_word(agent.id)}`"
    return Outcome(outcome="DENIED_AGENT", directive=agents.TERMINATED, message=agents.ended_text(agent), hint=hint)


def denied_by_runner(claimant: Claimant, task: Task | None) -> Outcome | None:
    """None: of any task."""
    if claimant.agent.max_concurrent_tasks is None:  # the agent of a runner has a limit
        return None
    from tenure.engine.verbs import runner_claims  # few agents have one; keeps startup fast

    return runner_claims.denied(claimant.work, claimant.project.id, claimant.session.id, task)


def denied_by_cool_off(claimant: Claimant) -> Outcome | None:
    """The search finds nothing for an agent that cools off; by name it may claim."""
    agent, work = claimant.agent, claimant.work
    if agent.cool_until is None or agent.cool_until <= work.now:
        return None
    message = f"agent {agent.id} is cooling off after {agent.troubles} failures in a row"
    return Outcome(outcome="NO_TASK", **work.retry_at(agent.cool_until), message=message)


def denied_by_limit(claimant: Claimant) -> Outcome | None:
    """A limit is reached: the agent's, the project's, or the tenant's; a share may move to the project."""
    denial = denied_by_own_limits(claimant)
    if denial is not None or not claimant.work.tenant_limits:
        return denial
    from tenure.engine.verbs.claim_shares import denied_by_tenant  # most tenants have no limits; keeps startup fast

    return denied_by_tenant(claimant.work, claimant.project.id)


def denied_by_own_limits(claimant: Claimant) -> Outcome | None:
    agent, work = claimant.agent, claimant.work
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
    most = work.limits_of(claimant.project).get("max_concurrent_claims")
    if most is not None and work.tally(Task, {"project": agent.project, "state": lifecycle.HELD}, most) >= most:
        return Outcome(
            outcome="DENIED_LIMIT",
            message=f"project {agent.project} has {most} live claims, its max_concurrent_claims limit",
            hint="an admin can raise the limit max_concurrent_claims",
        )
    return None


# --- of the task ----------------------------------------------------------------------------------------------


def _denied_by_state(claimant: Claimant, task: Task) -> Outcome | None:
    work, code = claimant.work, claims.denial_by_state(task)
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


def _denied_by_stop(claimant: Claimant, task: Task) -> Outcome | None:
    stop = priority.stop_of(claimant.profile, *priority.scopes_of(task, claimant.agent.id))
    if stop is None:
        return None
    return Outcome(outcome="DENIED_PAUSED", state=task.state, message=stop.sentence, hint=priority.GO)


def _denied_by_offer(claimant: Claimant, task: Task) -> Outcome | None:
    if priority.offered_elsewhere(claimant.agent.id, task) is None:
        return None
    work = claimant.work
    message = f"{task.key} is offered to agent {task.offer_to}; the offer ends {_when(work, task.offer_until)}"
    again = work.retry_at(task.offer_until)
    return Outcome(outcome="DENIED_OFFERED", holder=task.offer_to, **again, state=task.state, message=message)


def _denied_by_skill(claimant: Claimant, task: Task) -> Outcome | None:
    lack = priority.lacks_skill(claimant.profile, priority.lane_of_task(task))
    if lack is None:
        return None
    message = f"{task.key} is not for agent {claimant.agent.id}, which {lack.sentence}"
    return Outcome(outcome="DENIED_CAPABILITY", state=task.state, message=message)


def _denied_by_track(claimant: Claimant, task: Task) -> Outcome | None:
    if not claimant.project.router:
        return None
    from tenure.engine.verbs import track_router  # few projects route; keeps startup fast

    return track_router.denied(claimant.work, task, claimant.agent.id)


def denied_by_generations(claimant: Claimant, task: Task) -> Outcome | None:
    """Dead-letter a task that may not be claimed again, so that it does not block its lane."""
    message = used_up(claimant, task)
    if message is None:
        return None
    work = claimant.work
    error = LastError(error_class="limit", message=message, generation=task.generation, at=work.now)
    dead = replace(moves.dead_lettered(task, work.now), last_error=error, failed_at=work.now)
    work.record("task.failed", task=dead, level="error", message=message)
    spread(work)
    hint = "a person can retry the task; an admin can raise the limit first"
    message = f"{task.key}: {message}; it is now a dead letter"
    return Outcome(outcome="DENIED_LIMIT", state=lifecycle.DEAD_LETTERED, message=message, hint=hint)


def used_up(claimant: Claimant, task: Task) -> str | None:
    """Why there is no claim left in its run."""
    if not task.generation:
        return None
    work = claimant.work
    who, is_last = (claimant.agent.id, claimant.session.id), task.attempts >= task.max_attempts  # by an earlier edit
    if is_last and not claims.is_continued(task, current_claim(work, task), *who):
        return f"has used all of its attempts in this run: max_attempts is {task.max_attempts}"
    most = work.limits_of(claimant.project).get("max_generations_per_task", MOST_GENERATIONS)
    of_run = {"project": task.project, "task": task.id, "run": task.run}
    if task.generation < most or work.tally(Claim, of_run, most) < most:
        return None
    return f"claimed {most} times in this run without a result, its max_generations_per_task limit"


def why_unreadable(work: UnitOfWork, task: Task) -> str | None:
    """Why this process cannot open its secrets; another may, so the task stays where it is."""
    if not task.sealed:
        return None
    from tenure.engine.secrets import open_secrets  # few tasks have any; keeps startup fast

    return open_secrets.why_unreadable(work, task)


def patterns_of(brief: Brief) -> tuple[str, ...]:
    from tenure.core import reservations  # few tasks reserve anything; keeps startup fast

    needs = brief.constraints.get("needs", ())
    return tuple(reservations.normalised(p) for p in (*brief.touches, *needs))


def in_the_way(work: UnitOfWork, task: Task, session: str) -> Reservation | None:
    """A reservation that keeps this session from claiming the task."""
    if not task.guarded:
        return None
    from tenure.core import reservations  # as above
    from tenure.engine.verbs.reserve import living

    held = living(work, work.find(Reservation, {"project": task.project}))
    patterns = patterns_of(brief_of(work, task))
    return reservations.in_the_way(patterns, "exclusive", held, task=task.id, session=session, now=work.now)


def _denied_by_conflict(claimant: Claimant, task: Task) -> Outcome | None:
    work = claimant.work
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


def is_paid(claimant: Claimant, task: Task) -> bool:
    """Whether any budget may apply to it."""
    return bool(claimant.project.funded) or task.capped


def _denied_by_budget(claimant: Claimant, task: Task) -> Outcome | None:
    if not is_paid(claimant, task):
        return None
    from tenure.engine.budgets import budget_guard  # most projects have none; keeps startup fast

    short = budget_guard.short_of(claimant.work, claimant.project, task, claimant.agent.id)
    return None if short is None else budget_guard.denied(claimant.work, task, short)


BY_NAME: tuple[Rule, ...] = (
    lambda claimant, _: denied_by_agent(claimant),
    denied_by_runner,
    _denied_by_state,
    _denied_by_stop,
    _denied_by_offer,
    _denied_by_skill,
    _denied_by_track,
    lambda claimant, _: denied_by_limit(claimant),
    denied_by_generations,
    _denied_by_conflict,
    _denied_by_budget,
)


# --- what `why` collects --------------------------------------------------------------------------------------


def obstacles(claimant: KnownClaimant, task: Task) -> Iterator[Obstacle]:
    """What keeps the agent from claiming a ready task, by name or as its next one. Writes nothing that is saved."""
    profile, now = claimant.profile, claimant.work.now
    yield from priority.lane_obstacles(profile, priority.lane_of_task(task))
    yield from priority.task_obstacles(profile, task, now, claimant.waits)
    for word, refusal in (*_OF_AGENT.items(), *_OF_TASK.items()):
        message = refusal(claimant, task)
        if message is not None:
            of_agent = message.removeprefix(f"agent {claimant.agent.id} ")
            yield Obstacle(word, of_agent.removeprefix(task.key).removeprefix(":").strip())


def _message(denial: Outcome | None) -> str | None:
    return None if denial is None else denial.message


def _session_limit(claimant: KnownClaimant, _: Task) -> str | None:
    if not claimant.is_new:
        return None
    refusal = agents.refused_session(claimant.work, claimant.project)
    return None if refusal is None else f"would need a new session: {refusal.message}"


def _at_limit(claimant: Claimant, _: Task) -> str | None:
    denial = denied_by_own_limits(claimant)
    if denial is None and claimant.work.tenant_limits:
        from tenure.engine.verbs.claim_shares import refused_by_tenant

        denial = refused_by_tenant(claimant.work, claimant.project.id)
    return _message(denial)


def _works_for_a_runner(claimant: Claimant, _: Task) -> str | None:
    message = _message(denied_by_runner(claimant, None))
    return None if message is None else message.replace("this session", "its session", 1)


def _is_aside(claimant: Claimant, task: Task) -> str | None:
    """The search does not see a task set aside; a claim by name judges it as it stands now."""
    if task.set_aside_for is None or task.offer_to is not None or _denied_by_conflict(claimant, task):
        return None
    from tenure.engine.budgets import budget_guard, unaffordable

    work = claimant.work
    if not task.set_aside_for.startswith(unaffordable.MARK):
        other = work.get(Task, task.project, task.set_aside_for)
        return f"would overlap the claim of {other.key if other else task.set_aside_for}"
    short = unaffordable.kept_aside(work, claimant.project, task)
    return None if short is None else budget_guard.reason(work, short)


_OF_AGENT: dict[str, Callable[[KnownClaimant, Task], str | None]] = {
    "terminated": lambda claimant, _: _message(denied_by_agent(claimant)),
    "cooling_off": lambda claimant, _: _message(denied_by_cool_off(claimant)),
    "runner": _works_for_a_runner,
}
# By their words: what may keep a task from every agent.
_OF_TASK: dict[str, Callable[[KnownClaimant, Task], str | None]] = {
    "limit": _at_limit,
    "sessions": _session_limit,
    "generations": used_up,
    "unreadable": lambda claimant, task: why_unreadable(claimant.work, task),
    "conflicting": lambda claimant, task: _message(_denied_by_conflict(claimant, task)),
    "unaffordable": lambda claimant, task: _message(_denied_by_budget(claimant, task)),
    "set_aside": _is_aside,
}
OF_TASK = frozenset(_OF_TASK) - {"conflicting"}
