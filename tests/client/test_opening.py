"""Which store a client opens: one that is there. Only `create=True`, `tenure init` and `memory://` make one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenure import AsyncClient, Client, NewTask, Worker
from tenure.core.errors import InvalidInput, NoStore
from tests.sampling import places
from tests.servers.store_servers import SERVERS

HINT = "create=True"


def opened(url: Any) -> None:
    Client(url).close()


def awaited(url: Any) -> None:
    async def ask() -> None:
        async with AsyncClient(url) as client:
            await client.status()

    asyncio.run(ask())


def worked(url: Any) -> None:
    worker = Worker(url)
    worker.task("any")(lambda ctx: None)
    worker.run(until_empty=True)


@pytest.mark.parametrize("opens", [opened, awaited, worked])
@pytest.mark.parametrize("written", ["{}/typo/tenure.db", "sqlite://{}/typo.db", "{}"])
def test_a_missing_store_is_not_created(opens: Callable[[Any], None], written: str, tmp_path: Path) -> None:
    with pytest.raises(NoStore) as refused:
        opens(written.format(tmp_path))
    assert str(tmp_path) in refused.value.message
    assert refused.value.hint in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.sampled
@pytest.mark.parametrize("kind", places("postgres", "mariadb", "valkey"))
def test_a_missing_store_on_a_server_is_not_created(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue(kind)
    url = SERVERS[kind].url_of(tmp_path)
    for note in tmp_path.iterdir():  # a place that was emptied for this test has a store: take one that nobody had
        url = url.replace(note.read_text(), f"missing_{os.getpid()}")
    for _ in range(2):  # the first has left nothing behind
        with pytest.raises(NoStore, match=HINT):
            Client(url, "shop")
    with Client(url, "shop", create=True) as client:
        client.add("One")
    with Client(url, "shop") as client:
        assert len(client.tasks()) == 1


def test_a_store_is_created_where_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "new" / "tenure.db"
    with Client(path, "shop", create=True) as client:  # a Path does as well as a text
        client.add("One")
    with Client(f"sqlite://{path}", "shop") as client:
        assert len(client.tasks()) == 1
    with Client("memory://opening", "shop") as client:
        client.init()


# --- values of queries --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "wrong"),
    [
        ("tasks", {"state": 5}), ("tasks", {"limit": "5"}), ("tasks", {"agent": 3}), ("tasks", {"text": 3}),
        ("tasks", {"priority_min": "high"}), ("log", {"after": "first"}), ("forecast", {"runs": "many"}),
        ("todo", {"limit": None}), ("show", {"task": 7}), ("forecast", {"tasks": [NewTask(title=3)]}),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_refused_by_name(method: str, wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with (
        Client("memory://typed-values", "shop", create=True) as client,
        pytest.raises(InvalidInput, match=rf"Expected .*, got .* - at `\$\.{name}"),
    ):
        getattr(client, method)(**wrong)


@pytest.mark.parametrize(("method", "wrong"), [("tasks", "stat"), ("log", "levl"), ("add", "priorty")])
def test_an_unknown_argument_is_refused_by_name(method: str, wrong: str) -> None:
    with (
        Client("memory://typed-names", "shop", create=True) as client,
        pytest.raises((InvalidInput, TypeError), match=wrong),
    ):
        getattr(client, method)(*(["x"] if method == "add" else []), **{wrong: "x"})
