"""Pools on the dashboard: live processes, and the buttons of an admin."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from tenure.client import Client
from tenure.core.records import Spawn, replace
from tests.server.dashboard.scene import HOSTILE
from tests.server.dashboard.tab import DESK, PHONE, Tab
from tests.servers.tenure import TenureServer


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A project with a pool whose spawner nobody has, so that nothing is started."""
    with Client(
        str(tmp_path_factory.mktemp("pools") / "tenure.db"), "p", agent="ann", session="s", create=True
    ) as client:
        client.init()
        key = str((client.add("Write the parser").task or {})["key"])
        client.set_pool("crew", "claude", spawner="none", size=3, types=["docs"])
        now = client.now()
        row = Spawn(
            project="p", id="spawn_1", pool="crew", place=1, agent="crew-1", task="t", task_key=key, spawner="none",
            state="running", session="s-1", handle="1:2", term=1, started_at=now, offer_until=now, running_at=now,
            claimed_at=now,
        )  # fmt: skip
        over = replace(row, id="spawn_2", agent="crew-2", place=2, state="ended", ended_at=now, why=HOSTILE)
        for one in (row, over):
            client.engine.transact(("p",), lambda work, one=one: work.put(one))
        yield client


@pytest.fixture(scope="module")
def server(client: Client) -> Iterator[TenureServer]:
    with TenureServer(client.store.url) as running:
        yield running


@pytest.mark.sampled
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_a_pool_is_shown_with_its_processes_and_paused_and_resumed(
    client: Client, tabs: Callable[..., Tab], size: dict[str, int]
) -> None:
    tab = tabs(viewport=size)
    tab.go("/projects/p/pools")
    card = tab.find('.source[data-name="crew"]')
    for text in ("claude", "1 · 0 · 3", "crew-1", "running", "docs"):
        expect(card).to_contain_text(text)
    expect(tab.find("table.spawns")).to_contain_text(HOSTILE)
    assert not tab.is_too_wide()
    card.get_by_role("button", name="Pause").click()
    tab.page.get_by_label("Reason").fill("lunch")
    tab.find("dialog").get_by_role("button", name="Pause").click()
    expect(card).to_contain_text("lunch")
    assert client.pool("crew")["state"] == "paused"
    card.get_by_role("button", name="Resume").click()
    expect(card).not_to_contain_text("lunch")
