"""Bad reports of usage, landings and processes: a typed error that names the field, and not a byte stored."""

from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core.commands import Process, Totals
from tenure.testing.factories import PROJECT, Scene
from tests.engine.test_bad_input import refused

HUGE = (2**63, 2**64, 10**40)
PROCESS: dict[str, Any] = {"host": "h", "boot": "b", "pid": 1, "start": 0}


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"model": ""}, "model"),
        ({"model": "a|b"}, "model"),
        ({"fresh": -1}, "fresh"),
        ({"cached": 10**13}, "cached"),
        ({"written": -(10**9)}, "written"),
        ({"output": 1.5}, "output"),
        ({"output": "3"}, "output"),
        ({"fresh": True}, "fresh"),
        ({"duration": -0.1}, "duration"),
        ({"duration": float("nan")}, "duration"),
        ({"duration": float("inf")}, "duration"),
        ({"cost_usd": "-1"}, "cost_usd"),
        ({"cost_usd": "1,5"}, "cost_usd"),
        ({"cost_usd": "nan"}, "cost_usd"),
        ({"cost_usd": ""}, "cost_usd"),
        ({"cost_usd": 0.5}, "cost_usd"),
        ({"cost_usd": "100000.01"}, "cost_usd"),
        *(({"fresh": n}, "fresh") for n in HUGE),
    ],
)
def test_usage_that_cannot_be_is_refused(scene: Scene, fields: dict[str, Any], word: str) -> None:
    receipt = scene.take("A-001")
    said: dict[str, Any] = {"model": "opus", **fields}
    refused(scene, c.ReportUsage(project=PROJECT, receipt=receipt, **said), "INVALID_INPUT", word)
    totals = (Totals(model="fine", fresh=1), Totals(**said))
    refused(scene, c.Submit(project=PROJECT, receipt=receipt, data=1, usage=totals), "INVALID_INPUT", word)


def test_usage_of_too_long_a_model_or_too_many_is_refused(scene: Scene) -> None:
    receipt = scene.take("A-001")
    refused(scene, c.ReportUsage(project=PROJECT, receipt=receipt, model="x" * 300), "TOO_LARGE", "model")
    many = tuple(Totals(model=f"m{n}") for n in range(101))
    refused(scene, c.Submit(project=PROJECT, receipt=receipt, data=1, usage=many), "TOO_LARGE", "(got 101)")


@pytest.mark.parametrize("receipt", ["", "A-001", "A-001@1:!!", "A-001@x:AAAA"])
def test_a_malformed_receipt_reports_nothing(scene: Scene, receipt: str) -> None:
    refused(scene, c.ReportUsage(project=PROJECT, receipt=receipt, model="opus"), "INVALID_INPUT", "receipt")
    refused(scene, c.Land(project=PROJECT, receipt=receipt, branch="main", old="a" * 40, new="b" * 40), "INVALID_INPUT")


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"branch": ""}, "branch"),
        ({"branch": "-f"}, "branch"),
        ({"branch": "../main"}, "branch"),
        ({"branch": "refs/heads/main"}, "branch"),
        ({"branch": "a b"}, "branch"),
        ({"old": "HEAD"}, "old"),
        ({"new": "b" * 39}, "new"),
        ({"new": "B" * 40}, "new"),
        ({"new": "0" * 40}, "new"),
        ({"new": "a" * 40}, "nothing to land"),
        ({"new": "b" * 64}, "digits"),
        ({"new": None}, "new"),
    ],
)
def test_a_landing_that_cannot_be_is_refused(scene: Scene, fields: dict[str, Any], word: str) -> None:
    receipt = scene.take("A-001")
    said: dict[str, Any] = {"branch": "main", "old": "a" * 40, "new": "b" * 40, **fields}
    refused(scene, c.Land(project=PROJECT, receipt=receipt, **said), "INVALID_INPUT", word)


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"host": ""}, "host"),
        ({"host": "a|b"}, "host"),
        ({"boot": "a\tb"}, "boot"),
        ({"pid": 0}, "pid"),
        ({"pid": 1.5}, "pid"),
        ({"start": -1}, "start"),
        *(({"start": n}, "start") for n in HUGE),
    ],
)
def test_a_process_that_cannot_be_is_refused(scene: Scene, fields: dict[str, Any], word: str) -> None:
    process = Process(**{**PROCESS, **fields})
    refused(scene, c.Gone(project=PROJECT, processes=(process,)), "INVALID_INPUT", word)
    claim: dict[str, Any] = {"project": PROJECT, "agent": "ann", "session": "s", "process": process}
    refused(scene, c.ClaimTask(task="A-001", **claim), "INVALID_INPUT", word)
    refused(scene, c.ClaimNext(**claim), "INVALID_INPUT", word)


def test_too_many_processes_and_too_long_a_host_are_refused(scene: Scene) -> None:
    many = tuple(Process(**{**PROCESS, "pid": n}) for n in range(1, 1002))
    refused(scene, c.Gone(project=PROJECT, processes=many), "TOO_LARGE", "(got 1001)")
    long = Process(**{**PROCESS, "host": "x" * 300})
    refused(scene, c.Gone(project=PROJECT, processes=(long,)), "TOO_LARGE", "host")
