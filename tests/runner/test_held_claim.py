"""Leases that are kept, lost, taken again; and orders that are obeyed."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from tenure.agents.receipts import Receipts
from tenure.agents.runner import conclusion
from tenure.agents.runner.agent_output import ClaimUsage
from tenure.agents.runner.held_claim import HeldClaim, OwnEnding, Stop
from tenure.config import Home
from tenure.core.commands import ClaimTask, Gone, Process
from tenure.process_table import described
from tests.runner.conftest import Stage, until


def expire(stage: Stage, key: str) -> None:
    """End the claim as a proof of its process's end would, although the process runs."""
    (holder,) = [p for p in stage.client.processes() if key in p["tasks"]]
    del holder["tasks"]
    assert stage.client.gone([msgspec.convert(holder, Process)]).changed == (key,)


def test_a_lease_is_renewed_as_long_as_the_agent_works(stage: Stage) -> None:
    key = stage.add("Long")
    stage.run("--lease", "1", "--once")
    stage.started(key)

    until(lambda: stage.client.history(key)[0]["renewals"] >= 5, "more renewals than fit into one lease")
    stage.go()

    assert stage.is_completed(key)
    assert stage.lineage(key) == [(1, "COMPLETED", True)]


def test_the_lease_auto_is_the_task_s_and_the_runner_renews_by_it(stage: Stage) -> None:
    short = stage.add("Short", constraints={"estimated_duration": 1.0})
    long = stage.add("Long", constraints={"estimated_duration": 1200.0})
    stage.run("--lease", "auto", "-n", "2", "--until-empty")
    stage.started(short)
    stage.started(long)

    until(lambda: stage.client.history(short)[0]["renewals"] >= 4, "more renewals than fit into one lease")
    held = stage.client.show(long)
    assert held["lease_until"] - held["claimed_at"] >= 1200e6
    assert stage.client.history(long)[0]["renewals"] <= 1  # its end, not its lease, may ask once
    stage.go()

    assert stage.is_completed(short)
    assert stage.is_completed(long)
    assert stage.lineage(short) == stage.lineage(long) == [(1, "COMPLETED", True)]


def test_a_lost_lease_is_taken_again_and_the_agent_works_on(stage: Stage) -> None:
    key = stage.add("Lapsed")
    stage.do(tenure=[["progress", "still there"]])
    runner = stage.run("--once")
    stage.started(key)

    expire(stage, key)
    runner.says("claimed again as generation 2")
    stage.go()

    assert stage.is_completed(key)
    runner.ends()
    assert stage.lineage(key) == [(1, "EXPIRED", None), (2, "COMPLETED", True)]
    assert [c["attempt"] for c in stage.client.history(key)] == [1, 2]
    # the agent's own commands find the new receipt
    assert (stage.control / "calls" / key).read_text().startswith("0 ")
    folder = stage.home / "transcripts" / "default" / key
    assert (folder / "gen-2.jsonl").resolve() == folder / "gen-1.jsonl"


def test_what_the_runner_can_do_counts_when_a_task_is_taken_again(stage: Stage) -> None:
    key = stage.add("Skilled", constraints={"required_capabilities": ["gpu"]})
    runner = stage.run("--once", "--cap", "gpu")
    stage.started(key)

    expire(stage, key)
    runner.says("claimed again as generation 2")
    stage.go()

    runner.ends()
    assert stage.state(key) == "completed"


def test_a_task_is_not_taken_again_for_an_agent_whose_supervisor_is_dead(stage: Stage) -> None:
    key = stage.add("Dead")
    granted = stage.client.claim(key, process=described(os.getpid()))
    stops: list[Stop] = []
    claim = HeldClaim(
        stage.client,
        granted,
        lease=300.0,
        process=lambda: None,
        stopped=stops.append,
        settled=print,
        moved=print,
        receipts=Receipts(Home(str(stage.home), str(stage.home / "tenure.db")), "default", "s", "me"),
        renewed=lambda: None,
        say=print,
    )
    expire(stage, key)

    claim.look()

    assert [stop.directive for stop in stops] == ["abort"]
    assert stage.lineage(key) == [(1, "EXPIRED", None)]


def test_the_runner_s_own_submit_is_not_taken_for_the_agent_s(stage: Stage) -> None:
    key = stage.add("Mine")
    granted = stage.client.claim(key, process=described(os.getpid()))
    settled: list[OwnEnding] = []
    claim = HeldClaim(
        stage.client,
        granted,
        lease=300.0,
        process=lambda: described(os.getpid()),
        stopped=print,
        settled=settled.append,
        moved=print,
        receipts=Receipts(Home(str(stage.home), str(stage.home / "tenure.db")), "default", "s", "me"),
        renewed=lambda: None,
        say=print,
    )
    shared = SimpleNamespace(outbox=stage.box, process=None)
    attempt: Any = SimpleNamespace(
        word=None,
        client=stage.client,
        claim=claim,
        key=key,
        shared=shared,
        usage=tuple,
        claim_usage=ClaimUsage(),
        say=print,
    )
    claim.start()
    with claim.mutex:
        claim.noticed({"state": "completed"})  # its thread waits for the mutex, to look
        sent = conclusion.report(attempt, what="submit", data="done", summary="")
    claim._thread.join(30)
    assert (sent.outcome if sent else None, settled) == ("ACCEPTED", [])


def test_a_lost_lease_that_another_has_taken_stops_the_agent(stage: Stage) -> None:
    key = stage.add("Lost")
    stage.do(brood=True)
    runner = stage.run("--once", "--grace", "0.3")
    stage.started(key)

    take_over(stage, key)

    log = runner.ends()
    assert "1 stopped" in log
    assert stage.nothing_left()
    assert stage.lineage(key) == [(1, "EXPIRED", None), (2, None, None)]


def test_what_was_finished_is_handed_in_although_another_holds_the_task(stage: Stage) -> None:
    key = stage.add("Too late")
    stage.do(whole=True)
    runner = stage.run("--once")
    stage.started(key)

    take_over(stage, key)

    assert "1 refused" in runner.ends(8)
    (refused,) = stage.client.history(key)[0]["refused"]
    assert (refused["reason"], refused["summary"]) == ("STALE_GENERATION", "in time")
    assert stage.outbox() == []


def take_over(stage: Stage, key: str) -> None:
    """Another takes the task before its holder can, in one transaction."""
    (holder,) = [p for p in stage.client.processes() if key in p["tasks"]]
    del holder["tasks"]
    gone, claim = stage.client.batch(
        [
            Gone(project="default", processes=(msgspec.convert(holder, Process),)),
            ClaimTask(project="default", task=key, agent="bo", session="bo-1"),
        ]
    )
    assert (gone.outcome, claim.outcome) == ("OK", "GRANTED")  # type: ignore[union-attr]


def test_a_cancelled_task_ends_its_agent_at_once(stage: Stage) -> None:
    key = stage.add("Called off")
    stage.do(brood=True)
    runner = stage.run("--once", "--lease", "300")
    stage.started(key)
    began = time.monotonic()

    stage.client.cancel(key, "no longer wanted")

    runner.ends()
    assert stage.nothing_left()
    assert time.monotonic() - began < 60  # and not at the next renewal, after two minutes
    assert stage.client.results(key) == []
    assert stage.state(key) == "cancelled"


def test_a_paused_task_keeps_what_its_agent_had_said(stage: Stage) -> None:
    key = stage.add("On hold")
    runner = stage.run("--once", agent="sh -c 'echo half of it; sleep 1000'")
    until(lambda: stage.state(key) == "running", "the agent to work")
    file = stage.home / "transcripts" / "default" / key / "gen-1.jsonl"
    until(lambda: "half of it" in file.read_text(), "the agent to speak")

    stage.client.pause(key, "wait")

    runner.ends()
    assert stage.state(key) == "paused"
    checkpoint = stage.client.show(key)["checkpoint"]
    assert checkpoint["generation"] == 1
    assert checkpoint["data"]["notes"]["last_words"] == "half of it"
    assert stage.nothing_left()


def test_a_checkpoint_of_the_agent_is_not_written_over(stage: Stage) -> None:
    key = stage.add("On hold")
    runner = stage.run("--once")
    stage.started(key)
    (receipt,) = _receipts(stage)
    stage.client.checkpoint(receipt, {"next_action": "my own"})

    stage.client.pause(key, "wait")

    runner.ends()
    assert stage.client.show(key)["checkpoint"]["data"] == {"next_action": "my own"}


def _receipts(stage: Stage) -> list[str]:
    kept = [p for p in Path(stage.environ["HOME"]).rglob("receipts/**/*@*") if p.is_file()]
    return [json.loads(p.read_text())["receipt"] for p in kept]


def test_a_task_that_is_drained_is_given_back_at_the_next_renewal(stage: Stage) -> None:
    key = stage.add("Drained")
    runner = stage.run("--once", "--lease", "1")
    stage.started(key)

    stage.client.pause(key, "soon", drain=True)

    runner.ends()
    assert stage.state(key) == "paused"
    assert stage.client.history(key)[0]["attempt"] == 1
    assert stage.client.show(key)["attempts"] == 0


def test_no_receipt_is_left_behind(stage: Stage) -> None:
    stage.add("One")
    stage.add("Two")
    stage.go()

    stage.run("--until-empty").ends()

    assert _receipts(stage) == []
    assert list(Path(stage.environ["HOME"]).rglob("receipts/*")) == []
