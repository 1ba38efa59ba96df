"""What holders report through the client: usage, landings, and processes that are gone."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from tenure.client import Client
from tenure.core.commands import Process, Totals
from tenure.core.errors import NotAllowed
from tenure.testing.clock import FakeClock

HERE = Process(host="build-7", boot="b1", pid=4711, start=99)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def ann(tmp_path: Path, clock: FakeClock) -> Iterator[Client]:
    with Client(f"sqlite:///{tmp_path}/store.db", agent="ann", session="s-ann", clock=clock, create=True) as client:
        client.init()
        yield client
        assert client.verify() == []


def test_what_was_spent_is_reported_and_added_up(ann: Client) -> None:
    ann.add("work")
    receipt = ann.claim().receipt or ""
    ann.usage(receipt, "opus", fresh=10, output=3, cost_usd=Decimal("0.25"))
    ann.usage(receipt, "haiku", cached=7, written=1, cost_usd=1.5e-05, duration=2.5)
    done = ann.submit(receipt, "done", usage=[Totals(model="opus", fresh=12, cost_usd="0.30")])
    assert (done.outcome, (done.usage or {})["cost_usd"]) == ("ACCEPTED", "0.300015")
    spent = ann.show("A-001")["usage"]
    assert (spent["fresh"], spent["cached"], spent["written"], spent["output"]) == (12, 7, 1, 3)
    assert ann.status()["usage"]["cost_usd"] == "0.300015"
    assert [(s["model"], s["cost_usd"]) for s in ann.spent("model")] == [("opus", "0.30"), ("haiku", "0.000015")]
    assert [s["task"] for s in ann.spent(limit=5)] == ["A-001-work"]
    assert ann.history("A-001")[0]["usage"]["duration"] == 2.5


def test_an_operation_is_a_part_of_what_a_model_used(ann: Client) -> None:
    ann.add("work")
    grant = ann.claim().check()
    ann.usage(grant.receipt, "opus", fresh=10, cost_usd="0.25").check()
    ann.usage(grant.receipt, "opus", fresh=4, cost_usd="0.10", operation="review").check()
    ann.submit(grant.receipt, usage=[Totals(model="haiku", fresh=1, cost_usd="1", operation="review")]).check()
    assert {s["operation"]: s["cost_usd"] for s in ann.spent("operation")} == {"review": "1.10", "": "0.15"}
    assert ann.show("A-001")["usage"]["operations"] == ["review"]


def test_a_landing_is_recorded_and_shown(ann: Client) -> None:
    ann.add("work")
    receipt = ann.claim().receipt or ""
    assert ann.land(receipt, "main", "a" * 40, "b" * 40).landings == ()
    assert ann.show("A-001")["landings"][0]["new"] == "b" * 40
    assert ann.submit(receipt, {"branch": "main", "commit": "b" * 40}).outcome == "ACCEPTED"


def test_the_claims_of_a_process_that_is_gone_end(ann: Client) -> None:
    ann.add("one")
    ann.add("two")
    ann.claim("A-001", process=HERE)
    ann.claim(process=HERE)
    (held,) = ann.processes()
    assert held.pop("tasks") == ["A-001-one", "A-002-two"]
    assert ann.gone([Process(**held)]).changed == ("A-001-one", "A-002-two")
    assert ann.processes() == []
    assert ann.gone([HERE]).outcome == "UNCHANGED"


def test_a_viewer_cannot_say_that_a_process_is_gone(tmp_path: Path, clock: FakeClock, ann: Client) -> None:
    ann.add("one")
    ann.claim(process=HERE)
    with Client(f"sqlite:///{tmp_path}/store.db", role="viewer", clock=clock) as viewer, pytest.raises(NotAllowed):
        viewer.gone([HERE])
    assert len(ann.processes()) == 1
