"""`Worker(lease="auto")`: the store chooses each claim's lease, and the worker renews by it. On every store."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure import Client, Context, Worker
from tenure.client.worker.attempt import Attempt
from tenure.client.worker.functions import handler_of
from tenure.client.worker.held_claim import HeldClaim
from tenure.core import commands as c
from tenure.core.errors import InvalidInput
from tests.client.test_worker import PATIENCE, running, until
from tests.sampling import places
from tests.servers.postgres import url_of
from tests.servers.tenure import TenureServer


@pytest.fixture(params=places("memory", "sqlite", "postgresql", "http"))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    store = "memory://auto-leases" if request.param == "memory" else str(tmp_path / "store.db")
    if request.param == "postgresql":
        request.getfixturevalue("postgres")
        store = url_of(tmp_path)
    with Client(store, "shop", create=True) as client:  # a store in memory lasts while a client is open
        client.init()
        if request.param != "http":
            yield store
            return
        with TenureServer(store) as served:
            yield served.url


@pytest.mark.sampled
def test_each_claim_has_the_lease_of_its_task_and_is_renewed_by_it(url: str) -> None:
    with Client(url, "shop", agent="mia") as mia:
        mia.add("Short", type="t", constraints={"estimated_duration": 1.0})
        mia.add("Long", type="t", constraints={"estimated_duration": 1200.0})
        worker = Worker(url, "shop", lease="auto", concurrency=2)
        let_go = threading.Event()

        @worker.task("t")
        def work(ctx: Context) -> int:
            assert let_go.wait(PATIENCE)
            return ctx.generation

        with running(worker):
            until(mia, lambda: len(mia.history("A-002")) == 1)
            long = mia.show("A-002")
            # More renewals than fit into one lease of a second: they come at 40 % of the lease that was granted.
            until(mia, lambda: mia.history("A-001")[0]["renewals"] >= 3)
            assert mia.history("A-002")[0]["renewals"] == 0
            let_go.set()
            until(mia, lambda: {mia.show(key)["state"] for key in ("A-001", "A-002")} == {"completed"})
        assert long["lease_until"] - long["claimed_at"] >= 1200e6
        assert [mia.show(key)["result"]["data"] for key in ("A-001", "A-002")] == [1, 1]


def test_a_claim_that_is_lost_is_claimed_again_with_the_lease_of_the_moment(tmp_path: Path) -> None:
    with Client(str(tmp_path / "store.db"), "shop", agent="mia", session="s-mia", create=True) as mia:
        mia.init()
        mia.add("Work", constraints={"estimated_duration": 100.0})
        granted = mia.claim("A-001", lease="auto")
        held = HeldClaim(mia, granted, "auto", lambda: None)
        assert held.lease == 100.0
        mia.recover("A-001", "its receipt was lost")
        mia.update("A-001", constraints={"estimated_duration": 500.0})
        refused = mia.renew(str(granted.receipt))
        held.lost(str(granted.receipt), refused)
        assert (held.generation, held.lease) == (2, 500.0)


@pytest.mark.parametrize("lease", ["automatic", "soon"])
def test_another_word_is_refused_when_the_worker_is_made(lease: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is not a duration"):
        Worker(str(tmp_path / "store.db"), "shop", lease=lease)


@pytest.mark.parametrize("ends", ["returns", "fails", "asks"])
def test_a_renewal_that_overtakes_the_answer_to_the_end_of_its_claim_stops_nothing(
    ends: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The renewal is sent after the store has accepted the result, and before the worker knows that."""
    with Client(str(tmp_path / "store.db"), "shop", agent="mia", create=True) as mia:
        mia.init()
        mia.add("Work")
        attempt = Attempt(mia, mia.claim("A-001"), 300.0, (), None, threading.Event())
        do = mia.do

        def overtaken(command: c.Command, **more: Any) -> Any:
            outcome = do(command, **more)
            if isinstance(command, (c.Submit, c.Fail, c.Ask)):
                receipt = attempt.claim.receipt
                attempt.claim.renewed(receipt, do(c.Renew(project="shop", receipt=receipt)))
            return outcome

        def work(ctx: Context) -> int:
            if ends == "fails":
                raise ValueError("broken")
            if ends == "asks":
                ctx.ask("which one?")
            return 1

        monkeypatch.setattr(mia, "do", overtaken)
        attempt.run(handler_of(work))
        assert not attempt.claim.is_cancelled
        assert "stop" not in caplog.text


def test_a_claim_that_its_holder_ended_elsewhere_stops_the_function(tmp_path: Path) -> None:
    with Client(str(tmp_path / "store.db"), "shop", agent="mia", create=True) as mia:
        mia.init()
        mia.add("Work")
        held = HeldClaim(mia, mia.claim("A-001"), 300.0, lambda: None)
        mia.submit(held.receipt, "by hand")
        held.renewed(held.receipt, mia.do(c.Renew(project="shop", receipt=held.receipt)))
        assert held.is_cancelled
