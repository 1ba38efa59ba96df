"""What follows a failed attempt: failure classes, delays, cool-offs, dead letters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tenure.core import limits
from tenure.core.errors import InvalidInput
from tenure.core.records import Agent, Claim, RetryPolicy, Task, replace

SECOND = 1_000_000
MINUTE = 60 * SECOND

# Failures of the task: count an attempt.
COUNTING = ("task", "crash", "timeout", "lease_expired", "invalid_output", "permanent")
LEASE_EXPIRED = "lease_expired"  # nobody reports it: the holder was lost
PERMANENT = "permanent"  # no retry can help, whatever the policy: a dead letter at once
# Failures of the agent or its environment: the attempt is given back, the agent cools off.
AGENT_TROUBLE = ("environment", "auth_failure", "upstream_timeout")
RATE_LIMIT = "rate_limit"
BUDGET = "budget_exceeded"
CLASSES = (*COUNTING, *AGENT_TROUBLE, RATE_LIMIT, BUDGET)

STRATEGIES = ("exponential", "fixed", "immediate")
POISONED_AGENTS = 2  # different agents that must fail before it is the task's fault
TROUBLED_AGENTS = 3  # different agents in trouble: then it is the task's fault
TROUBLES_IN_A_ROW = 3  # own failures after which an agent cools off
AGENT_TASK_COOL_OFF = limits.COOL_OFF_OF_TASK
RELEASE_COOL_OFF = limits.COOL_OFF_AFTER_RELEASE
LONGEST_COOL_OFF = limits.COOL_OFF_MAX
RATE_LIMIT_DELAY = MINUTE
MOST_FAILURES = limits.FAILURES_KEPT


# Terms of other queues, and ours.
ALIASES = {"initial_delay_sec": "initial_delay", "backoff_multiplier": "multiplier", "max_delay_sec": "cap"}
CLASS_ALIASES = {"cancelled": PERMANENT}  # a cancelled task is not retried


def in_our_words(given: RetryPolicy) -> RetryPolicy:
    """The policy as stored; raises where two fields contradict each other."""
    usual = RetryPolicy()
    values: dict[str, Any] = {name: getattr(given, name) for name in RetryPolicy.__struct_fields__}
    for alias, name in ALIASES.items():
        value = getattr(given, alias, None)
        if value is None:
            continue
        if values[name] not in (value, getattr(usual, name)):
            raise InvalidInput(f"retry: {alias} and {name} mean the same and differ", f"give only {name}")
        values[name] = value
    if isinstance(given.jitter, bool):
        values["jitter"] = usual.jitter if given.jitter else 0.0
    for name in ("retry_on", "no_retry_on"):
        values[name] = tuple(dict.fromkeys(CLASS_ALIASES.get(kind, kind) for kind in values[name]))
    return RetryPolicy(**values)


def differing(policy: RetryPolicy) -> dict[str, Any]:
    """The fields that differ from the default policy."""
    usual = RetryPolicy()
    fields = {name: getattr(policy, name) for name in RetryPolicy.__struct_fields__}
    return {name: value for name, value in fields.items() if value != getattr(usual, name)}


def delay(policy: RetryPolicy, attempt: int, fraction: float) -> int:
    """Microseconds until the next attempt after the `attempt`-th failed; `fraction` in [0, 1) is an argument."""
    if policy.strategy == "immediate":
        return 0
    if policy.strategy == "fixed":
        wait = policy.initial_delay
    else:
        # the exponent is bounded: past the cap a larger one changes nothing but could overflow
        wait = min(policy.cap, policy.initial_delay * policy.multiplier ** min(attempt - 1, 64))
    return int(min(wait, policy.cap) * SECOND * (1 + policy.jitter * (2 * fraction - 1)))


def is_retried(policy: RetryPolicy, error_class: str) -> bool:
    if error_class == PERMANENT or error_class in policy.no_retry_on:
        return False
    return not policy.retry_on or error_class in policy.retry_on


def counts_after_all(task: Task, agent: str) -> bool:
    """An agent's failure counts as the task's once enough different agents have failed in this run."""
    return len({*task.troubled, agent}) >= TROUBLED_AGENTS


def cool_off(troubles: int) -> int:
    """1, 2, 4 … 30 minutes, from the first trouble that cools."""
    return min(LONGEST_COOL_OFF, MINUTE << min(troubles - 1, 10))


def agent_troubled(agent: Agent, now: int) -> Agent:
    troubles = agent.troubles + 1
    until = now + cool_off(troubles - TROUBLES_IN_A_ROW + 1) if troubles >= TROUBLES_IN_A_ROW else agent.cool_until
    return replace(agent, troubles=troubles, cool_until=until)


def agent_succeeded(agent: Agent) -> Agent:
    return replace(agent, troubles=0, cool_until=None)


def cooled(task: Task, agent: str, now: int, seconds: int) -> dict[str, int]:
    """The task's cool-offs with this agent's added and expired ones removed."""
    return {a: until for a, until in task.cool_offs.items() if until > now} | {agent: now + seconds}


LOST = "lease_expired"  # the error class of a lost claim


def how_lost(claim: Claim) -> str:
    """How a claim ended that its holder did not end."""
    return claim.error or "its lease ran out"


def failure_history(claims: Iterable[Claim]) -> tuple[dict[str, Any], ...]:
    """What a dead letter shows of each attempt, oldest first."""
    return tuple(
        {
            "generation": c.generation,
            "attempt": c.attempt,
            "agent": c.agent,
            "session": c.session,
            "reason": c.reason,
            "error_class": c.error_class or (LOST if c.reason == "EXPIRED" else None),
            "error": how_lost(c) if c.reason == "EXPIRED" else c.error,
            "counted": c.counted,
            "duration": ((c.released_at or c.acquired_at) - c.acquired_at) / SECOND,
        }
        for c in claims
    )


def is_poison(policy: RetryPolicy, failures: Sequence[str]) -> bool:
    """Whether this run has so many counted failures, by at least two agents, that no retry is worthwhile."""
    return 0 < policy.poison <= len(failures) and len(set(failures)) >= POISONED_AGENTS
