"""What agents do and use, and what is ahead, as the dashboard shows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tenure.client import Client
from tenure.core.commands import ClaimNext, Heartbeat, Register
from tests.server.dashboard.conftest import PROJECT
from tests.server.dashboard.tab import Tab

P = f"/projects/{PROJECT}"


def test_an_agents_card_shows_its_step_memory_cpu_and_next_heartbeat(tab: Tab, client: Client) -> None:
    key = str((client.add("Measure the load", track="D").task or {})["key"])
    client.do(Register(project=PROJECT, agent="meter", type="claude", managed=True))
    granted = client.do(ClaimNext(project=PROJECT, agent="meter", session="meter", tracks=("D",), lease=600))
    held = str((granted.task or {})["key"])
    client.do(
        Heartbeat(project=PROJECT, agent="meter", task=held, step="tests", percent=40, memory_mb=812, cpu_percent=7)
    )
    tab.go(f"{P}/agents")
    card = tab.find(".agent").filter(has_text="meter")
    for text in ("claude, managed", held, "40 %", "812 MB", "7 % CPU", "Next heartbeat"):
        expect(card).to_contain_text(text)
    expect(card.locator("svg[aria-label^='Memory in the last hour: at most 812']")).to_have_count(1)
    client.cancel(key)


def test_shells_of_people_stand_apart_and_are_not_counted(tab: Tab, client: Client) -> None:
    client.do(ClaimNext(project=PROJECT, agent="mia-shell", session="tty", types=("none",), agent_type="human"))
    tab.go(f"{P}/agents")
    section = tab.find("h2", has_text="Shells of people").locator("xpath=following-sibling::ul[1]")
    expect(section).to_contain_text("mia-shell")
    count = sum(agent["type"] != "human" for agent in client.agents())
    expect(tab.find(".page-head")).to_contain_text(f"of {count}")


def test_the_forecast_is_played_again_for_another_number_of_agents(tab: Tab, client: Client) -> None:
    client.add("Something to forecast", track="D")
    client.add("Not decided yet", track="D", draft=True)
    tab.go(f"{P}/forecast")
    expect(tab.find(".banner")).to_contain_text(re.compile(r"The figures are of \d+ of \d+ open tasks\..*drafts: \d"))
    expect(tab.find(".tiles")).to_contain_text("9 of 10 runs end within")
    tab.page.get_by_label("Agents", exact=True).fill("7")
    tab.page.get_by_role("button", name="Forecast").click()
    expect(tab.find("main")).to_contain_text("7 agents (as chosen)")
    expect(tab.find(".tiles")).to_contain_text("One agent more (8)")
    assert tab.page.url.endswith("agents=7")


@pytest.mark.nightly
def test_an_owner_seals_the_log_and_checks_it(tab: Tab, store: Path) -> None:
    with Client(str(store), "sealed") as client:
        client.init()
        client.add("Count the spoons")
    tab.go("/projects/sealed/coordinator")
    tab.page.get_by_role("button", name="Seal the log").click()
    tab.find("dialog").get_by_role("button", name="Seal").click()
    head = tab.find(".sealed").first
    expect(head).to_contain_text("Last seal")
    head.get_by_role("button", name="Check").click()
    expect(head).to_contain_text("unchanged")
