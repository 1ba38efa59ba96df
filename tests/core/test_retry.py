"""Delays, cool-offs, what counts, and what a dead letter tells."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core import models, priority, retry
from tenure.core.records import Agent, Claim, Model, RetryPolicy, Task, replace
from tenure.core.retry import MINUTE
from tenure.testing.samples import row_of

AGENT = row_of(Agent)
CLAIM = row_of(Claim)
MODEL = row_of(Model)
TASK = row_of(Task)
policies = st.builds(
    RetryPolicy,
    strategy=st.sampled_from(retry.STRATEGIES),
    initial_delay=st.floats(0, 1000),
    multiplier=st.floats(1, 100),
    cap=st.floats(0, 30 * 24 * 3600),
    jitter=st.floats(0, 1),
)
fractions = st.floats(0, 1, exclude_max=True)


@given(policies, st.integers(1, 1000), fractions)
def test_a_delay_stays_in_its_bounds(policy: RetryPolicy, attempt: int, fraction: float) -> None:
    wait = retry.delay(policy, attempt, fraction)
    assert 0 <= wait <= policy.cap * 10**6 * (1 + policy.jitter) + 1
    if policy.strategy == "immediate":
        assert wait == 0


@given(policies, st.integers(1, 100))
def test_without_jitter_delays_never_shrink(policy: RetryPolicy, attempt: int) -> None:
    steady = RetryPolicy(strategy=policy.strategy, initial_delay=policy.initial_delay, cap=policy.cap, jitter=0.0)
    assert retry.delay(steady, attempt, 0.9) <= retry.delay(steady, attempt + 1, 0.1)


@given(policies, st.integers(1, 50), fractions, fractions)
def test_chance_moves_a_delay_by_its_jitter_and_no_more(
    policy: RetryPolicy, attempt: int, low: float, high: float
) -> None:
    middle = retry.delay(policy, attempt, 0.5)
    for fraction in (low, high):
        assert abs(retry.delay(policy, attempt, fraction) - middle) <= middle * policy.jitter + 2


def test_the_default_policy_is_the_specs() -> None:
    waits = [retry.delay(RetryPolicy(), n, 0.5) // 10**6 for n in range(1, 8)]
    assert waits == [10, 20, 40, 80, 160, 300, 300]
    assert [retry.delay(RetryPolicy(), 1, f) // 10**5 for f in (0.0, 0.999)] == [50, 149]


@given(st.integers(1, 10_000))
def test_cool_offs_double_up_to_half_an_hour(troubles: int) -> None:
    assert retry.cool_off(troubles) == min(30 * MINUTE, MINUTE * 2 ** (troubles - 1))


def test_the_third_trouble_in_a_row_cools_and_a_success_clears() -> None:
    agent = replace(AGENT, troubles=0, cool_until=None)
    untils = []
    for _ in range(5):
        agent = retry.agent_troubled(agent, 0)
        untils.append(agent.cool_until)
        assert priority.is_half_open(agent) == (agent.troubles >= 3)
    assert untils == [None, None, MINUTE, 2 * MINUTE, 4 * MINUTE]
    fine = retry.agent_succeeded(agent)
    assert (fine.troubles, fine.cool_until) == (0, None)


def test_a_first_trouble_ends_no_cool_off_that_is_under_way() -> None:
    cooling = replace(AGENT, troubles=0, cool_until=5 * MINUTE)
    assert retry.agent_troubled(cooling, MINUTE).cool_until == 5 * MINUTE


def test_a_model_cools_as_long_as_it_said_and_never_less_than_before() -> None:
    model = models.model_limited(MODEL, 0, 5 * MINUTE)
    assert model.cool_until == 5 * MINUTE
    again = models.model_limited(model, 0, MINUTE)
    assert again.cool_until == 5 * MINUTE
    assert models.model_limited(MODEL, 0, None).cool_until == MINUTE


def test_classes_fall_into_the_three_kinds_of_the_spec() -> None:
    assert retry.COUNTING == ("task", "crash", "timeout", "lease_expired", "invalid_output", "permanent")
    assert set(retry.AGENT_TROUBLE) == {"environment", "auth_failure", "upstream_timeout"}
    assert set(retry.CLASSES) == {*retry.COUNTING, *retry.AGENT_TROUBLE, "rate_limit", "budget_exceeded"}


@pytest.mark.parametrize(
    ("on", "never", "retried"),
    [
        ((), (), True),
        (("crash",), (), False),
        (("task",), (), True),
        ((), ("task",), False),
        (("task",), ("task",), False),
    ],
)
def test_what_is_retried(on: tuple[str, ...], never: tuple[str, ...], retried: bool) -> None:
    assert retry.is_retried(RetryPolicy(retry_on=on, no_retry_on=never), "task") is retried


def test_three_different_agents_make_it_the_tasks_trouble() -> None:
    task = replace(TASK, troubled=("ann", "bo"))
    assert not retry.counts_after_all(task, "ann")
    assert retry.counts_after_all(task, "cy")


def test_cool_offs_that_are_over_are_forgotten() -> None:
    task = replace(TASK, cool_offs={"old": 99, "new": 101})
    assert retry.cooled(task, "ann", 100, 50) == {"new": 101, "ann": 150}


def test_three_failures_by_two_agents_are_poison() -> None:
    policy = RetryPolicy()
    assert not retry.is_poison(policy, ("ann", "bo"))
    assert not retry.is_poison(policy, ("ann", "ann", "ann", "ann"))
    assert retry.is_poison(policy, ("ann", "ann", "bo"))
    assert not retry.is_poison(RetryPolicy(poison=0), ("ann", "bo") * 5)
    assert not retry.is_poison(RetryPolicy(poison=4), ("ann", "bo", "cy"))


def test_the_fallbacks_take_over_after_two_attempts() -> None:
    task = replace(TASK, models=("opus",), fallback_models=("haiku",))
    assert [models.models_for(task, n) for n in (1, 2, 3, 4)] == [("opus",), ("opus",), ("haiku",), ("haiku",)]
    assert models.models_for(replace(TASK, models=("opus",), fallback_models=()), 3) == ("opus",)
