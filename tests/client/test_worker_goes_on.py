"""A worker goes on where another was killed, hands on files, and heeds that its task was taken for hung."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tenure import AsyncContext, Client, Context, Worker
from tenure.client.worker.failures import Cancelled
from tenure.client.worker.held_claim import HeldClaim
from tenure.core import commands as c
from tenure.core.errors import StoreUnavailable
from tenure.core.outcomes import Outcome
from tenure.core.records import RetryPolicy
from tenure.testing import FakeClock
from tests.client.conftest import Place
from tests.client.test_worker import PATIENCE, running, until

MINUTE = 60.0

STEPS = """
import os, signal, sys
from tenure import Worker

url, dies_at = sys.argv[1], int(sys.argv[2])
worker = Worker(url, "shop", agent=f"w{dies_at}", lease=1.0)

@worker.task("t")
def work(ctx):
    saved = ctx.saved or {"done": []}
    print("from", len(saved["done"]), ctx.saved_by, flush=True)
    for step in range(len(saved["done"]), 5):
        if step == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        ctx.artifact(f"step-{step}.txt", f"step {step} by {os.getpid()}".encode())
        saved["done"].append(os.getpid())
        ctx.checkpoint(saved)
    return {"done": saved["done"], "found": sorted(one["name"] for one in ctx.artifacts)}

worker.run(until_empty=True)
"""


def started(place: Place, dies_at: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", STEPS, place.url, str(dies_at)], stdout=subprocess.PIPE, text=True,
        cwd=Path(place.store).parent,
    )  # fmt: skip


@pytest.mark.sampled
def test_a_killed_workers_task_goes_on_from_its_checkpoint(place: Place) -> None:
    with place.client() as mia:
        mia.add("In steps", type="t", max_attempts=9, retry=RetryPolicy(strategy="immediate"))
        pids = []
        for dies_at in (2, 3, 9):
            with started(place, dies_at) as process:
                pids.append(process.pid)
                assert process.stdout is not None
                said = process.stdout.readline()
                assert process.wait(PATIENCE) == (-signal.SIGKILL if dies_at < 5 else 0)
            assert said == {2: "from 0 None\n", 3: "from 2 w2\n", 9: "from 3 w3\n"}[dies_at]
            # Its lease was to be over a second later; whoever is next stays until then.
            until(mia, lambda: mia.show("A-001")["state"] in ("ready", "completed"))
        done = mia.show("A-001")["result"]["data"]
        assert done["done"] == [pids[0], pids[0], pids[1], pids[2], pids[2]]  # no step was done twice
        assert done["found"] == ["step-0.txt", "step-1.txt", "step-2.txt"]
        text = mia.get_artifact("A-001", "step-3.txt").read().decode()
        assert text == f"step 3 by {pids[2]}"
        assert [entry["release_reason"] for entry in mia.history("A-001")] == ["EXPIRED", "EXPIRED", "COMPLETED"]


def test_files_go_from_function_to_function(place: Place, tmp_path: Path) -> None:
    with place.client() as mia:
        mia.add("Make", type="make")
        mia.add("Use", type="use", after=["A-001"])
        worker = Worker(place.url, "shop", lease=300.0)
        (tmp_path / "table.csv").write_text("a,b\n1,2\n")

        @worker.task("make")
        def make(ctx: Context) -> str:
            assert ctx.artifact("data/table.csv", tmp_path / "table.csv").ok
            return "made"

        @worker.task("use")
        async def use(ctx: AsyncContext) -> dict[str, str]:
            ((key, handed),) = ctx.inputs.items()
            (entry,) = handed["artifacts"]
            await ctx.artifact("copy.csv", await ctx.fetch(entry["name"], key))
            return {"type": entry["type"], "text": (await ctx.fetch("copy.csv")).decode()}

        with running(worker):
            until(mia, lambda: mia.show("A-002")["state"] == "completed")
        assert mia.show("A-002")["result"]["data"] == {"type": "text/csv", "text": "a,b\n1,2\n"}


def test_a_large_result_of_a_function_is_put_and_referred_to(place: Place) -> None:
    with place.client() as mia:
        mia.add("Large", type="t")
        worker = Worker(place.url, "shop", lease=300.0)

        @worker.task("t")
        def work(ctx: Context) -> str:
            return "x" * (2 << 20)

        with running(worker):
            until(mia, lambda: mia.show("A-001")["state"] == "completed")
        assert mia.show("A-001")["result"]["data"]["$artifact"] == "result.json"


# --- hung ---


def held(client: Client, **fields: object) -> tuple[HeldClaim, list[str]]:
    client.init()
    client.add("Hangs", retry=RetryPolicy(strategy="immediate"), **fields)
    cancelled: list[str] = []
    claim = HeldClaim(
        client, client.claim("A-001", lease=24 * 3600.0), 24 * 3600.0, lambda: cancelled.append("cancelled")
    )
    return claim, cancelled


def renew(claim: HeldClaim) -> None:
    """As the keeper does it."""
    receipt = claim.receipt
    (answer,) = claim.client.batch([c.Renew(project=claim.client.project, receipt=receipt, lease=claim.lease)])
    claim.renewed(receipt, answer)


def test_a_hung_function_is_warned_then_cancelled_and_its_task_not_taken_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FakeClock()
    with Client(str(tmp_path / "store.db"), "shop", clock=clock, create=True) as client:
        claim, cancelled = held(client)
        client.progress(claim.receipt, step="almost", done_in=10 * MINUTE)
        clock.advance(seconds=41 * MINUTE)
        renew(claim)
        assert "warned: no sign of progress" in caplog.text
        assert cancelled == []
        clock.advance(seconds=11 * MINUTE)
        renew(claim)
        assert cancelled == ["cancelled"]
        with pytest.raises(Cancelled):
            claim.present(lambda receipt: c.Progress(project="shop", receipt=receipt, percent=50))
        assert [entry["release_reason"] for entry in client.history("A-001")] == ["SUPERSEDED"]
        assert client.show("A-001")["state"] == "ready"


def test_a_function_over_its_time_is_cancelled(tmp_path: Path) -> None:
    clock = FakeClock()
    with Client(str(tmp_path / "store.db"), "shop", clock=clock, create=True) as client:
        claim, cancelled = held(client, constraints={"max_duration": 20 * MINUTE})
        clock.advance(seconds=21 * MINUTE)
        renew(claim)
        assert cancelled == ["cancelled"]
        assert len(client.history("A-001")) == 1


def test_a_claim_whose_answer_was_lost_is_sent_again_unchanged(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a task has ended meanwhile, and the worker could take one more than it asked for."""
    worker = Worker(place.url, "shop", concurrency=2)
    first_may_end, has_lost = threading.Event(), threading.Event()
    sent: list[c.ClaimNext] = []
    claim_or_wait = worker.client.transport.claim_or_wait

    def losing(command: c.ClaimNext, *more: Any) -> Outcome:
        outcome = claim_or_wait(command, *more)
        sent.append(command)
        if command.n == 1 and outcome.ok and not has_lost.is_set():
            first_may_end.set()
            with worker._changed:
                assert worker._changed.wait_for(lambda: not worker._attempts, PATIENCE)
            has_lost.set()
            raise StoreUnavailable("the connection was lost")
        return outcome

    monkeypatch.setattr(worker.client.transport, "claim_or_wait", losing)

    @worker.task("t")
    def work(ctx: Context) -> str:
        assert ctx.task["title"] != "One" or first_may_end.wait(PATIENCE)
        return str(ctx.task["title"])

    with place.client() as mia:
        mia.add("One", type="t")
        with running(worker):
            until(mia, lambda: mia.status()["tasks"].get("ready", 0) == 0)
            mia.add("Two", type="t")
            until(mia, lambda: mia.status()["tasks"] == {"completed": 2})
        lost = next(number for number, command in enumerate(sent) if command.n == 1)
        assert sent[lost + 1] == sent[lost]
        assert [len(mia.history(task["key"])) for task in mia.tasks()] == [1, 1]
