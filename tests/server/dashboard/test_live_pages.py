"""What a person sees without touching anything: the work goes on, and the page with it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Route, expect

from tenure.client import Client
from tenure.core.commands import NewTask
from tests.server.dashboard.conftest import PROJECT
from tests.server.dashboard.scene import wide_dag
from tests.server.dashboard.tab import PHONE, Tab
from tests.servers.tenure import TenureServer

P = f"/projects/{PROJECT}"


def added(client: Client, title: str, **fields: object) -> str:
    return str((client.add(title, track="D", **fields).task or {})["key"])


def test_a_task_is_seen_through_claim_loss_take_over_and_completion(tab: Tab, store: Path, client: Client) -> None:
    key = added(client, "Mend the till")
    tab.go(f"{P}/tasks/{key}")
    state, lineage = tab.find(".task-line .state"), tab.find(".generation")
    expect(state).to_contain_text("ready")
    with Client(str(store), PROJECT, agent="bo", session="bo-beside") as bo:
        lost = bo.claim(key, lease=6)  # long enough for a busy machine to show it held
        expect(state).to_contain_text("claimed")
        expect(lineage.first).to_contain_text("bo holds it")
        expect(lineage.first).to_contain_text("bo lost its lease", timeout=30_000)
        expect(state).to_contain_text("ready")
        taken = client.claim(key)
        client.progress(str(taken.receipt), 60, "the drawer opens")
        expect(state).to_contain_text("running")
        expect(tab.find(".task-line")).to_contain_text("60 %")
        bo.submit(str(lost.receipt), {"mine": True}, "what bo had")
        expect(tab.find(".refused")).to_contain_text("STALE_GENERATION")
    client.submit(str(taken.receipt), {"drawer": "open"}, "it opens again")
    expect(state).to_contain_text("completed")
    expect(lineage).to_have_count(2)
    expect(lineage.first).to_contain_text("ann completed it")
    expect(tab.find(".result.good")).to_contain_text("it opens again")
    expect(tab.find(".refused")).to_contain_text("what bo had")


def test_the_overview_counts_what_happens(tab: Tab, client: Client) -> None:
    tab.go(P)
    held = tab.find(".tile", has_text="In progress").locator(".tile-value")
    before = int(held.inner_text())
    claim = client.claim(added(client, "Count the coins"))
    expect(held).to_have_text(str(before + 1))
    client.submit(str(claim.receipt), "counted")
    expect(held).to_have_text(str(before))
    expect(tab.find(".chart canvas")).to_have_count(2)


def test_the_overview_names_the_time_that_its_figures_are_of(tab: Tab) -> None:
    def shorter(route: Route) -> None:
        flow = route.fetch().json()
        since = (datetime.fromisoformat(flow["now"]) - timedelta(minutes=11)).isoformat()
        route.fulfill(json={**flow, "is_whole": False, "since": since})

    tab.page.route("**/overview?*", shorter)
    tab.go(f"{P}?minutes=360")
    expect(tab.find(".banner").last).to_contain_text("The figures are of the last 11 min, not of 6 hours.")
    expect(tab.find(".tile", has_text="Completed")).to_contain_text("in the last 11 min")
    tab.go(f"{P}/agents")
    expect(tab.find(".agent").first).to_contain_text("Busy in the last 11 min")


@pytest.mark.parametrize(
    ("exhausted", "until", "line"),
    [
        (None, None, [[1000, 60, None]]),  # nothing is projected
        (4000, None, [[1000, 60, 60], [4000, None, 0]]),
        (4000, 2000, [[1000, 60, 60], [2000, None, 40]]),  # its period ends before
    ],
)
def test_the_line_of_a_budget_ends_where_the_projection_says(
    tab: Tab, exhausted: int | None, until: int | None, line: list[Any]
) -> None:
    tab.go(P)
    budget = {"allocated": "100", "consumed": "40", "until": iso(until)}
    static = str(tab.find("script[type=module][src]").first.get_attribute("src")).rpartition("/")[0]
    drawn = "async ([js, budget, led]) => (await import(js + '/parts/burn-down.js')).ahead(budget, led, 1000)"
    assert tab.page.evaluate(drawn, [static, budget, {"exhausted_at": iso(exhausted)}]) == line


def iso(seconds: int | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()


@pytest.mark.nightly
def test_an_expensive_list_is_asked_for_less_often(tab: Tab, client: Client) -> None:
    asked: list[str] = []

    def costly(route: Route) -> None:
        asked.append(route.request.url)
        answer = route.fetch()
        route.fulfill(response=answer, headers={**answer.headers, "server-timing": "cpu;dur=60"})

    tab.page.route("**/tasks?*", costly)
    tab.go(f"{P}/tasks")
    for n in range(3):
        with tab.page.expect_response(lambda answer: answer.url.endswith(f"/projects/{PROJECT}")):
            added(client, f"Count coin {n}")
    assert len(asked) == 1


def test_events_come_in_and_can_be_held_still(tab: Tab, client: Client) -> None:
    tab.go(f"{P}/events")
    first = added(client, "Ring the bell")
    expect(tab.find(".event").first).to_contain_text(first)
    tab.page.get_by_role("button", name="Pause").click()
    second = added(client, "Ring it again")
    beside = tab.page.request.get(f"{tab.url}/api/v1{P}/events?limit=1").json()
    assert beside["items"][0]["key"] == second
    expect(tab.find(".event").first).to_contain_text(first)
    tab.page.get_by_role("button", name="Resume").click()
    expect(tab.find(".event").first).to_contain_text(second)
    tab.page.get_by_label("Text").fill("bell")
    expect(tab.find(".event")).to_have_count(1)


@pytest.mark.nightly
def test_a_dag_of_300_tasks_is_drawn_and_lives(tab: Tab, client: Client) -> None:
    dag = wide_dag(client, track="Z")
    tab.go(f"{P}/dags/{dag}")
    nodes = tab.find(".graph .node")
    expect(nodes).to_have_count(300)
    assert tab.find(".node.critical").count() == 15
    first = tab.find('.graph .node[data-state="ready"]').first
    key = str(first.get_attribute("data-key"))
    claim = client.claim(key)
    expect(tab.find(f'.graph .node[data-key="{key}"]')).to_have_attribute("data-state", "claimed")
    client.submit(str(claim.receipt), "done")
    expect(tab.find(f'.graph .node[data-key="{key}"]')).to_have_attribute("data-state", "completed")
    expect(tab.find(".dag-line")).to_contain_text("1 of 300")
    before = tab.find(".graph > g").get_attribute("transform")
    tab.page.get_by_role("button", name="Zoom in").click()
    assert tab.find(".graph > g").get_attribute("transform") != before
    tab.find(f'.graph .node[data-key="{key}"]').dispatch_event("click")
    expect(tab.find(".crumbs")).to_contain_text(key)


SEEN = """() => {
  const box = document.querySelector('.canvas').getBoundingClientRect();
  return [...document.querySelectorAll('.graph .node')].filter((node) => {
    const { left, right, top, bottom } = node.querySelector('.box').getBoundingClientRect();
    return left >= box.left - 1 && right <= box.right + 1 && top >= box.top - 1 && bottom <= box.bottom + 1;
  }).length;
}"""
LETTERS = """(look) => {
  const text = document.querySelector(`.graph .${look}`);
  return parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a;
}"""


def test_a_graph_of_400_tasks_opens_with_readable_nodes_and_fits(
    tab: Tab, client: Client, artifacts: Path | None
) -> None:
    dag = wide_dag(client, width=20, depth=20, track="Z")
    tab.go(f"{P}/dags/{dag}")
    nodes = tab.find(".graph .node")
    expect(nodes).to_have_count(400)
    assert tab.page.evaluate(SEEN) >= 15
    assert tab.page.evaluate(LETTERS, "node-title") >= 9
    tab.picture(artifacts, "dag-400.png")
    tab.page.get_by_role("button", name="Fit").click()
    expect(tab.find(".graph.far")).to_have_count(1)
    assert tab.page.evaluate(SEEN) == 400
    tab.picture(artifacts, "dag-400-fit.png")
    for _ in range(3):
        tab.page.get_by_role("button", name="Zoom in").click()
    assert tab.page.evaluate(LETTERS, "node-far") >= 9
    tab.page.get_by_role("button", name="Levels").click()
    expect(nodes).to_have_count(20)
    nodes.first.dispatch_event("click")
    expect(nodes).to_have_count(39)


@pytest.mark.nightly
def test_a_long_chain_with_edges_across_it_is_drawn(tab: Tab, client: Client) -> None:
    needs = {n: sorted({n - 1, n - 7, n // 2} & set(range(n))) for n in range(400)}
    tasks = [
        NewTask(title=f"Link {n}", name=f"link{n}", track="D", depends_on=tuple(f"link{m}" for m in needs[n]))
        for n in range(400)
    ]
    dag = str((client.plan(tasks, title="A chain").tasks or ())[0]["dag"])
    tab.go(f"{P}/dags/{dag}")
    expect(tab.find(".graph .node").first).to_be_visible()
    assert tab.find(".graph .edge").count() == sum(map(len, needs.values()))


def test_on_a_phone_the_map_of_a_dag_leaves_room_for_its_buttons(tabs: Callable[..., Tab], client: Client) -> None:
    dag = wide_dag(client, width=20, depth=6, track="Z")
    tab = tabs(viewport=PHONE)
    tab.go(f"{P}/dags/{dag}")
    map, tools = tab.find(".canvas-map").bounding_box(), tab.find(".canvas-tools").bounding_box()
    assert map is not None
    assert tools is not None
    assert map["y"] + map["height"] <= tools["y"]


def test_a_dag_too_large_to_draw_is_drawn_in_groups(tab: Tab, client: Client) -> None:
    dag = wide_dag(client, width=60, depth=9, track="Z")
    tab.go(f"{P}/dags/{dag}")
    expect(tab.find(".graph .node")).to_have_count(9)
    expect(tab.find('.graph .node[aria-label="60 tasks, ready"]')).to_have_count(1)
    expect(tab.find(".banner")).to_contain_text("540 tasks are too many")


def test_a_server_that_goes_away_is_missed_and_found_again(
    tabs: Callable[..., Tab], store: Path, client: Client
) -> None:
    key = added(client, "Outlive the server")
    with TenureServer(str(store)) as mortal:
        tab = tabs(url=mortal.url)
        tab.forgives = (
            "ERR_CONNECTION_REFUSED",
            "ERR_INCOMPLETE_CHUNKED_ENCODING",
            "ERR_CONNECTION_RESET",
            "ERR_SOCKET_NOT_CONNECTED",
        )
        tab.go(f"{P}/tasks/{key}")
        expect(tab.find(".live")).to_have_text("Live")
        mortal.kill()
        expect(tab.find(".live")).to_have_text("Offline")
        expect(tab.find("h1")).to_have_text("Outlive the server")  # what was seen stays
        client.pause(key, "meanwhile")
        mortal.start()
        expect(tab.find(".live")).to_have_text("Live", timeout=20_000)
        expect(tab.find(".task-line .state")).to_contain_text("paused")
