"""The past by the SDK, on every kind of store and over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tenure import AsyncClient, Client
from tenure.client.times import as_datetime
from tenure.core.errors import InvalidInput
from tests.sampling import places
from tests.servers.postgres import url_of
from tests.servers.tenure import TenureServer


@pytest.fixture(params=places("memory", "sqlite", "postgresql", "http"))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    store = str(tmp_path / "store.db")
    if request.param == "postgresql":
        request.getfixturevalue("postgres")
        store = url_of(tmp_path)
    if request.param == "memory":
        store = f"memory://{tmp_path.name}"
    with Client(store, "shop", create=True):
        if request.param != "http":
            yield store
            return
        with TenureServer(store) as served:
            yield served.url


def test_every_query_with_at_answers_as_it_did(url: str) -> None:
    with Client(url, "shop", agent="mia") as mia:
        mia.set_budget("project", usd="10", default_estimate="1")
        key = mia.add("Sweep").task["key"]
        grant = mia.claim(key).check()
        event = mia.log()[-1]
        at: list[int | str | datetime] = [event["sequence"], str(event["sequence"]), as_datetime(event["time"])]
        at.append(as_datetime(event["time"]).isoformat().replace("+00:00", "Z"))
        mia.submit(grant.receipt, {"done": True}).check()
        mia.add("Mop")
        for moment in at:
            assert [task["state"] for task in mia.tasks(at=moment)] == ["claimed"]
            assert (mia.show(key, at=moment)["agent"], "result" in mia.show(key, at=moment)) == ("mia", False)
            assert mia.status(at=moment)["tasks"] == {"claimed": 1}
            assert [entry["release_reason"] for entry in mia.history(key, at=moment)] == [None]
            assert mia.budget(at=moment)["reserved"] == "1.00"
            assert [budget["reserved"] for budget in mia.budgets(at=moment)] == ["1.00"]
            assert mia.briefing(key, at=moment)["task"]["state"] == "claimed"
        assert mia.budget()["reserved"] == "0.00"
        with pytest.raises(InvalidInput, match="in the future"):
            mia.tasks(at=datetime.now(UTC) + timedelta(days=1))
        with pytest.raises(InvalidInput, match="before project shop"):
            mia.status(at=datetime(2020, 1, 1, tzinfo=UTC))
        with pytest.raises(InvalidInput, match="time zone"):
            mia.show(key, at=datetime(2020, 1, 1))  # noqa: DTZ001 - the mistake
        with pytest.raises(InvalidInput, match="not a time"):
            mia.history(key, at="then")


def test_a_page_goes_on_in_the_same_past(url: str) -> None:
    with Client(url, "shop", agent="mia") as mia:
        for n in range(5):
            mia.add(f"Task {n}")
        then = mia.log()[-1]["sequence"]
        mia.add("later")
        first = mia.tasks(at=then, limit=3)
        rest = mia.tasks(at=then, limit=3, after=(first[-1]["created_at"], first[-1]["id"]))
        assert [task["title"] for task in (*first, *rest)] == [f"Task {n}" for n in range(5)]


async def _asked(url: str, at: int) -> list[str]:
    async with AsyncClient(url, "shop", agent="mia") as mia:
        return [task["title"] for task in await mia.tasks(at=at)]


def test_the_async_client_too(url: str) -> None:
    import asyncio

    with Client(url, "shop", agent="mia") as mia:
        mia.add("one")
        then = mia.log()[-1]["sequence"]
        mia.add("two")
    assert asyncio.run(_asked(url, then)) == ["one"]
