"""Signed submissions by the SDK and by workers, on every kind of store and over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure import AsyncClient, Client, Worker
from tenure.client.signed_submits import signed
from tenure.core import commands as c
from tenure.core.commands.holder_commands import ResultSignature
from tenure.core.ids import parse_receipt
from tenure.core.records import replace
from tenure.sealing.signing import SigningKey
from tests.sampling import places
from tests.servers.postgres import url_of
from tests.servers.tenure import TenureServer

KEY, OTHER = SigningKey(b"\x01" * 32), SigningKey(b"\x02" * 32)


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENURE_STATE", str(tmp_path / "state"))


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


def test_a_client_with_a_key_signs_what_it_submits(url: str) -> None:
    with Client(url, "shop", agent="mia") as mia:
        mia.signing_key = KEY
        mia.register(capabilities=["python"])
        first, second = mia.add("Sweep").task["key"], mia.add("Mop").task["key"]
        grant = mia.claim(first).check()
        assert mia.submit(grant.receipt, {"b": 1, "a": [None, 2.5]}, "done").outcome == "ACCEPTED"
        (entry,) = mia.history(first)
        assert entry["signatures"][0]["public_key"] == KEY.public
        large = mia.claim(second).check()
        assert mia.submit(large.receipt, "x" * 200_000).outcome == "ACCEPTED"


def test_forged_stripped_replayed_and_foreign_signatures_are_refused(url: str) -> None:
    with Client(url, "shop", agent="mia") as mia:
        mia.register(public_key=KEY.public)
        one, two = (mia.claim(mia.add(title).task["key"]).check().receipt for title in ("one", "two"))

        def of(receipt: str, key: SigningKey = KEY, tenant: str = "local") -> c.Submit:
            command = c.Submit(project="shop", receipt=receipt, data="x", request_id="r")
            return signed(command, parse_receipt(receipt), tenant, {}, key)

        for bad in (
            replace(of(one), signature=None),
            replace(of(one), signature=ResultSignature(value="00" * 64)),
            replace(of(one), signature=of(two).signature),
            replace(of(one), data="y"),
            of(one, OTHER),
            of(one, tenant="another"),
        ):
            answer = mia.do(bad)
            assert (answer.outcome, mia.show("A-001")["state"]) == ("BAD_SIGNATURE", "claimed"), bad
        assert mia.do(of(one)).outcome == "ACCEPTED"
        answers = mia.batch([replace(of(two), signature=None), of(two)])
        assert [answer.outcome for answer in answers] == ["BAD_SIGNATURE", "ACCEPTED"]  # type: ignore[union-attr]


def test_results_in_a_batch_are_signed(url: str) -> None:
    with Client(url, "shop", agent="mia") as mia:
        mia.signing_key = KEY
        mia.register()
        keys = [mia.add(title).task["key"] for title in ("one", "two")]
        receipts = [mia.claim(key).check().receipt for key in keys]
        answers = mia.batch([c.Submit(project="shop", receipt=receipt, data={"ok": True}) for receipt in receipts])
        assert [answer.outcome for answer in answers] == ["ACCEPTED"] * 2  # type: ignore[union-attr]
        assert all(len(entry["signatures"]) == 1 for key in keys for entry in mia.history(key))

    async def more() -> list[str]:
        async with AsyncClient(url, "shop", agent="mia", session="other") as mia:
            mia.signing_key = KEY
            await mia.register()
            await mia.add("three")
            receipt = (await mia.claim()).check().receipt
            answers = await mia.batch([c.Submit(project="shop", receipt=receipt, data=1)])
            return [answer.outcome for answer in answers]  # type: ignore[union-attr]

    assert asyncio.run(more()) == ["ACCEPTED"]


def test_the_async_client_signs_too(url: str) -> None:
    async def work() -> str:
        async with AsyncClient(url, "shop", agent="mia") as mia:
            mia.signing_key = KEY
            await mia.register()
            await mia.add("Sweep")
            grant = (await mia.claim()).check()
            return (await mia.submit(grant.receipt, {"ok": True})).outcome

    assert asyncio.run(work()) == "ACCEPTED"


def test_a_worker_signs_with_the_users_key(url: str) -> None:
    worker = Worker(url, "shop", agent="wo", sign=True)

    @worker.task()
    def anything(context: object) -> dict[str, bool]:
        return {"ok": True}

    with Client(url, "shop", agent="mia") as mia:
        key = mia.add("Sweep").task["key"]
        worker.run(until_empty=True)
        (entry,) = mia.history(key)
        assert (entry["result_accepted"], len(entry["signatures"])) == (True, 1)
    worker.close()
