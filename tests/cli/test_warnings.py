"""A budget's warning reaches the text of every interface, with what to do about it."""

from __future__ import annotations

import logging

import pytest

from tenure.client.worker.held_claim import HeldClaim
from tenure.core.outcomes import Outcome
from tenure.mcp.replies import outcome_reply
from tests.cli.conftest import Tenure

TEXT = "budget project: 93 % used, 930 tokens of 1,000 tokens: finish soon, or save a checkpoint"


def test_the_text_of_a_holder_s_verbs_has_the_warning_and_the_pause(tenure: Tenure) -> None:
    tenure("budget", "set", "--tokens", 1000, "--default-estimate", 10)
    tenure("add", "One")
    assert tenure("claim", "A-001").code == 0
    verbs = (
        ("usage", "add", "--model", "m", "--in", 930), ("progress", "half"), ("renew",),
        ("checkpoint", "save", "--next-action", "go on"),
    )  # fmt: skip
    for verb in verbs:
        assert f"warn: {TEXT}" in tenure(*verb).out, verb
    paused = tenure("usage", "add", "--model", "m", "--in", 1200).out
    assert "directive: pause: budget project: 120 % used" in paused
    assert "nothing of 1,000 tokens left, and 200 tokens beyond it" in tenure("budget", "show").out
    assert "-200" not in tenure("budget", "list").out


def test_the_next_step_of_mcp_is_what_the_warning_asks() -> None:
    reply = outcome_reply(Outcome(outcome="RENEWED", directive="warn", directive_text=TEXT))
    assert reply.value["next"] == f"B{TEXT[1:]}."
    assert "Report your progress" not in reply.text


def test_a_worker_s_function_sees_the_last_warning_and_the_log_has_it_once(caplog: pytest.LogCaptureFixture) -> None:
    claim = HeldClaim.__new__(HeldClaim)
    claim.key, claim.version, claim.warning = "A-001", 0, None
    with caplog.at_level(logging.WARNING, logger="tenure.worker"):
        for _ in range(2):
            claim.heed(Outcome(outcome="RENEWED", directive="warn", directive_text=TEXT))
    assert claim.warning == TEXT
    assert caplog.text.count(TEXT) == 1
    claim.heed(Outcome(outcome="RENEWED", directive="continue"))
    assert claim.warning is None
