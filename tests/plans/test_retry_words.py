"""A plan may say its retry policy in the words of other queues."""

from __future__ import annotations

from tenure.core.records import RetryPolicy
from tests.plans.conftest import findings, plan_of

PLAN = """\
name: shop
tasks:
  one:
    title: One
    retry: {initial_delay_sec: 5, backoff_multiplier: 3, max_delay_sec: 1m, jitter: %s, no_retry_on: [cancelled]}
"""


def test_other_words_are_read_as_ours() -> None:
    for jitter, ours in (("true", 0.5), ("false", 0.0), ("0.2", 0.2)):
        (task,) = plan_of(PLAN % jitter).tasks
        assert task.retry == RetryPolicy(
            initial_delay=5, multiplier=3, cap=60, jitter=ours, no_retry_on=("permanent",)
        )  # fmt: skip


def test_one_thing_said_in_two_ways_is_found_at_its_line() -> None:
    text = "name: shop\ntasks:\n  one:\n    title: One\n    retry: {cap: 7, max_delay_sec: 8}\n"
    (finding,) = findings(text)
    assert "max_delay_sec and cap mean the same" in str(finding)
