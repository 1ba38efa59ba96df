"""The same verbs and looks give the same on a store and over a server, blocking and awaited."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.client import AsyncClient, Client
from tenure.core.commands import Process
from tenure.core.errors import NotAllowed
from tenure.stores.open_store import open_store
from tests.client.parity import VERBS, told_by
from tests.servers.tenure import TenureServer

WAYS = ("server", "async, store", "async, server")


def empty(path: Path) -> str:
    """A store without a project."""
    open_store(str(path)).close()
    return str(path)


@pytest.fixture(scope="module")
def as_local(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, object]]:
    return told_by(Client(empty(tmp_path_factory.mktemp("local") / "store.db"), "shop", session="s"))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TenureServer]:
    with TenureServer(empty(tmp_path / "served.db")) as server:
        yield server


def test_the_story_has_every_verb_and_every_look(as_local: list[tuple[str, object]]) -> None:
    assert VERBS - {name for name, _ in as_local} == {"gone", "signing_key"}


def test_a_server_takes_nobodys_word_for_the_end_of_a_process(server: TenureServer) -> None:
    with Client(server.url, "shop") as ann:
        ann.init()
        with pytest.raises(NotAllowed, match="on the same host"):
            ann.gone([Process(host="h", boot="b", pid=1, start=1)])


@pytest.mark.parametrize("way", WAYS)
def test_every_answer_is_the_same_whichever_way_it_comes(
    way: str, as_local: list[tuple[str, object]], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if way == "async, store":
        told = told_by(AsyncClient(empty(tmp_path / "store.db"), "shop", session="s"))
    else:
        kind = Client if way == "server" else AsyncClient
        told = told_by(kind(request.getfixturevalue("server").url, "shop", session="s"))
    different = [(here[0], n) for n, (here, there) in enumerate(zip(as_local, told, strict=True)) if here != there]
    for name, number in different[:1]:
        assert told[number] == as_local[number], f"answer {number}, of {name}; {len(different)} differ: {different}"
