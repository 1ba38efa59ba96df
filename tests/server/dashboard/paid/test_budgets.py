"""Budgets on the dashboard: set by a person, moved by the work, raised where they stop it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from tenure.client import Client
from tenure.core.commands import Totals
from tests.server.dashboard.tab import Tab

Projects = Callable[[str], Client]


def added(client: Client, title: str, **fields: object) -> str:
    return str((client.add(title, **fields).task or {})["key"])


def card(tab: Tab, budget: str) -> Locator:
    return tab.find(f'.budget[data-budget="{budget}"]')


def test_a_budget_is_set_and_its_bar_moves_as_a_claim_reserves_and_spends(tab: Tab, project: Projects) -> None:
    client = project("mill")
    key = added(client, "Grind the corn", constraints={"max_cost_usd": "3"})
    tab.go("/projects/mill/budgets")
    expect(tab.find("main")).to_contain_text("No budgets yet")
    expect(tab.find("main")).to_contain_text("tenure budget set --usd 20")
    tab.page.get_by_role("button", name="Set a budget").click()
    tab.page.get_by_label("Amount").fill("12.50")
    tab.find("dialog").get_by_role("button", name="Set", exact=True).click()
    bar = card(tab, "project").get_by_role("img")
    expect(bar).to_have_attribute("aria-label", "$0 spent, $0 reserved, $12.50 left")
    receipt = str(client.claim(key).receipt)
    expect(bar).to_have_attribute("aria-label", "$0 spent, $3.00 reserved, $9.50 left")
    client.submit(receipt, "flour", usage=[Totals(model="claude-haiku-5-5", fresh=1000, output=100, cost_usd="1.00")])
    expect(bar).to_have_attribute("aria-label", "$1.00 spent, $0 reserved, $11.50 left")
    expect(card(tab, "project")).to_contain_text("8 % spent")
    expect(card(tab, "project").locator(".chart canvas")).to_have_count(1)
    expect(card(tab, "project")).to_contain_text("none")


def test_a_task_over_its_budget_pauses_and_goes_on_when_that_is_raised(tab: Tab, project: Projects) -> None:
    client = project("forge")
    client.set_budget("project", usd="2")
    key = added(client, "Cast the bell")
    receipt = str(client.claim(key).receipt)
    tab.go("/projects/forge/budgets")
    client.usage(receipt, "claude-opus-5-5", fresh=1_000_000, cost_usd="2.40")
    expect(card(tab, "project")).to_contain_text("120 % spent")
    expect(card(tab, "project")).to_contain_text("100 % reached")
    expect(tab.find("#nav").get_by_role("link", name="Budgets").locator(".badge")).to_have_text("1")
    tab.go(f"/projects/forge/tasks/{key}")
    expect(tab.find(".task-line .state")).to_contain_text("paused")
    expect(tab.find(".cause")).to_contain_text("budget")
    tab.page.get_by_role("link", name="Project 120 %").click()
    card(tab, "project").get_by_role("button", name="Raise").click()
    tab.page.get_by_label("New total").fill("10")
    tab.find("dialog").get_by_role("button", name="Raise").click()
    expect(card(tab, "project")).to_contain_text("24 % spent")
    expect(card(tab, "project").locator(".alerts")).to_have_count(0)
    tab.go(f"/projects/forge/tasks/{key}")
    expect(tab.find(".task-line .state")).to_contain_text("ready")
    assert client.show(key)["state"] == "ready"


@pytest.mark.nightly
def test_a_part_is_moved_to_another_scope_and_a_budget_removed(tab: Tab, project: Projects) -> None:
    client = project("dock")
    client.register()
    client.set_budget("project", usd="20", period="day", zone="Europe/Berlin")
    client.set_budget("agent:bo", usd="1", period="day")
    tab.go("/projects/dock/budgets")
    expect(card(tab, "agent:bo")).to_be_visible()
    expect(card(tab, "project").get_by_role("button", name="Move", exact=True)).to_have_count(0)  # another zone
    client.remove_budget("agent:bo")
    tab.page.get_by_role("button", name="Set a budget").click()
    tab.page.get_by_label("For", exact=True).select_option("agent")
    tab.page.get_by_label("Name", exact=True).fill("ann")
    tab.page.get_by_label("Amount").fill("5")
    tab.page.get_by_label("Repeats").select_option("day")
    tab.page.get_by_label("Time zone").fill("Europe/Berlin")
    tab.find("dialog").get_by_role("button", name="Set", exact=True).click()
    expect(card(tab, "agent:ann")).to_contain_text("each day (Europe/Berlin)")
    card(tab, "project").get_by_role("button", name="Move", exact=True).click()
    tab.page.get_by_label("Amount").fill("7.25")
    tab.find("dialog").get_by_role("button", name="Move", exact=True).click()
    expect(card(tab, "agent:ann")).to_contain_text("left $12.25 of $12.25")
    expect(card(tab, "project")).to_contain_text("left $12.75 of $12.75")
    card(tab, "agent:ann").get_by_role("button", name="Remove").click()
    tab.find("dialog").get_by_role("button", name="Remove").click()
    expect(card(tab, "agent:ann")).to_have_count(0)
    assert [budget["id"] for budget in client.budgets()] == ["project"]


@pytest.mark.nightly
def test_more_than_there_is_cannot_be_moved_and_that_is_said(tab: Tab, project: Projects) -> None:
    client = project("quay")
    client.set_budget("project", usd="2")
    client.set_budget("agent:ann", usd="2")
    tab.forgives = ("409", "400", "422")
    tab.go("/projects/quay/budgets")
    card(tab, "project").get_by_role("button", name="Move", exact=True).click()
    tab.page.get_by_label("Amount").fill("3")
    tab.find("dialog").get_by_role("button", name="Move", exact=True).click()
    expect(tab.find(".toast")).to_contain_text("project")
    assert {budget["id"]: budget["allocated"] for budget in client.budgets()} == {
        "project": "2.00",
        "agent:ann": "2.00",
    }


@pytest.mark.nightly
def test_a_throttled_budget_says_when_the_next_claim_is_granted(tab: Tab, project: Projects) -> None:
    client = project("oven")
    client.set_budget("project", usd="4", default_estimate="0.5", throttle=True)
    added(client, "Bake the loaf")
    added(client, "Bake the bun")
    receipt = str(client.claim().receipt)
    client.submit(receipt, "a loaf", usage=[Totals(model="claude-haiku-5-5", fresh=10, cost_usd="2")])
    client.claim()
    tab.go("/projects/oven/budgets")
    expect(card(tab, "project")).to_contain_text("the next is granted in")
    expect(card(tab, "project")).to_contain_text("THROTTLE")


@pytest.mark.nightly
def test_what_open_tasks_will_miss_is_said(tab: Tab, project: Projects) -> None:
    client = project("barn")
    client.set_budget("project", usd="4", default_estimate="3")
    for stall in range(3):
        added(client, f"Clean stall {stall}")
    tab.go("/projects/barn/budgets")
    expect(card(tab, "project").locator(".bad-text")).to_have_text("$5.00 missing")
