"""What each screen says of a result that waits to be landed: the commit, its branch, and what is in the way."""

from __future__ import annotations

import pytest

from tenure.client import Client
from tenure.core.land_request import LandRequest
from tests.cli.conftest import Tenure

COMMIT = "0123456789ab" + "c" * 28
TEXT = "commit 0123456789ab waits to be landed on main: lib.py is changed"
WAY = "`tenure run`, `tenure daemon` or `tenure land A-001` in a checkout of the repository lands it"


@pytest.fixture
def waiting(tenure: Tenure) -> Tenure:
    """A task whose result has passed its review, and whose landing is blocked."""
    assert tenure("add", "Make it", "--validate", "review").code == 0
    with opened(tenure) as client:
        receipt = str(client.claim("A-001").receipt)
        client.submit(receipt, None, "made", land=LandRequest(commit=COMMIT, onto="main"))
    return tenure


def opened(tenure: Tenure, agent: str = "ann") -> Client:
    return Client(str(tenure.folder / ".tenure" / "tenure.db"), "default", agent=agent, session=f"{agent}-s")


def blocked(tenure: Tenure) -> Tenure:
    assert tenure("approve", "A-001").code == 0
    with opened(tenure, "lee") as client:
        taken = client.take_landing("A-001")
        client.undecided(str(taken.receipt), "lib.py is changed", 3600, blocked=True)
    return tenure


def test_approve_says_that_it_waits_to_be_landed(waiting: Tenure) -> None:
    said = waiting("approve", "A-001", "--json").json
    assert (said["state"], said["hint"]) == ("validating", WAY)


def test_every_screen_names_the_commit_its_branch_and_what_is_in_the_way(waiting: Tenure) -> None:
    said = blocked(waiting)
    why = said("why", "A-001").out
    assert TEXT in why
    assert "tried again in" in why
    assert WAY in why
    assert f"A-001-make-it: {TEXT}" in said("status").out
    assert "to be landed: 1 waiting" in said("status").out
    assert TEXT in said("show", "A-001").out
    assert TEXT in said("history", "A-001").out
    assert "validating (to land on main)" in said("list").out
    doctor = said("doctor").out
    assert TEXT in doctor
    assert WAY in doctor


def test_todo_offers_land_and_reject_until_the_landing_has_begun(waiting: Tenure) -> None:
    (one,) = blocked(waiting)("todo", "--json").json
    assert (one["what"], one["text"], one["do"]) == ("landing", TEXT, ["land", "reject"])
    assert 'tenure land A-001 | tenure reject A-001 -m "…"' in waiting("todo").out
    with opened(waiting, "lee") as client:
        receipt = str(client.take_landing("A-001", lease=1).receipt)
        client.land(receipt, "main", "1" * 40, "2" * 40)
        assert client.todo() == []  # somebody lands it now
        assert client.validations()[0]["phase"] == "landing"
    assert "lee lands commit" not in waiting("todo").out


def test_what_waits_for_its_verdict_is_not_said_to_wait_for_its_landing(waiting: Tenure) -> None:
    assert "waiting for a review" in waiting("why", "A-001").out
    assert "to be landed" not in waiting("status").out
    assert [one["what"] for one in waiting("todo", "--json").json] == ["review"]
