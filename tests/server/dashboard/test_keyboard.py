"""The dashboard by keys alone."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.server.dashboard.conftest import PROJECT
from tests.server.dashboard.tab import Tab

P = f"/projects/{PROJECT}"


def test_pages_are_reached_and_tasks_opened_by_keys(tab: Tab) -> None:
    tab.go(P)
    tab.press("g", "t")
    expect(tab.find("h1")).to_have_text("Tasks")
    expect(tab.find(".tasks-table tbody tr").nth(2)).to_be_visible()
    tab.press("j", "j", "j", "k", "x")
    current = tab.find("tr.current")
    expect(current).to_have_attribute("aria-current", "true")
    key = current.get_attribute("data-key")
    assert tab.find(".tasks-table tbody tr").nth(1).get_attribute("data-key") == key
    expect(tab.find(".batch")).to_contain_text("1 task selected")
    tab.press("Enter")
    expect(tab.find(".crumbs")).to_contain_text(str(key))
    tab.press("g", "a")
    expect(tab.find("h1")).to_have_text("Agents")


def test_a_task_is_found_with_a_slash(tab: Tab) -> None:
    tab.go(P)
    tab.press("/")
    tab.page.keyboard.type("C-001")
    tab.press("Enter")
    expect(tab.find("h1")).to_have_text("Write the API")
    tab.press("/")
    tab.page.keyboard.type("gt sign-in")  # keys that are typed are no commands
    tab.press("Enter")
    expect(tab.find("h1")).to_have_text("Tasks")
    assert "text=gt+sign-in" in tab.page.url


@pytest.mark.nightly
def test_keys_are_explained_and_the_focus_shows(tab: Tab) -> None:
    tab.go(P)
    tab.press("?")
    expect(tab.find("dialog")).to_contain_text("find a task")
    tab.press("Escape")
    expect(tab.find("dialog")).to_have_count(0)
    tab.press("Tab")
    skip = tab.page.get_by_role("link", name="Skip to content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    tab.press("Enter")
    expect(tab.find("main")).to_be_focused()
    tab.press("Tab")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert tab.page.evaluate(outline) == "solid"
