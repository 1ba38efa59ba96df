"""Schedules, triggers and the watch on the dashboard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tenure.client import Client
from tenure.core.commands import CreateKey, NewTask
from tests.server.dashboard.tab import Tab
from tests.servers.tenure import TenureServer

Projects = Callable[[str], Client]
YEARLY = "0 0 1 1 *"


def test_a_schedule_is_run_now_paused_resumed_and_removed(tab: Tab, project: Projects) -> None:
    client = project("farm")
    client.set_schedule("harvest", YEARLY, NewTask(title="Cut the hay"))
    tab.go("/projects/farm/schedules")
    card = tab.find('.source[data-name="harvest"]')
    expect(card).to_contain_text("nothing yet")
    card.get_by_text("Next runs").click()
    expect(card.locator(".ticks li")).to_have_count(5)
    card.get_by_role("button", name="Run now").click()
    expect(tab.find(".toast")).to_contain_text("Ran: harvest")
    assert [(task["title"], task["state"]) for task in client.tasks()] == [("Cut the hay", "ready")]
    tab.find(".toast").get_by_role("button", name="Undo").click()
    expect(tab.find(".toast")).to_contain_text(["Undone"])
    assert [task["state"] for task in client.tasks()] == ["cancelled"]
    card.get_by_role("button", name="Pause").click()
    expect(card).to_contain_text("paused")
    assert client.schedule("harvest")["enabled"] is False
    card.get_by_role("button", name="Resume").click()
    expect(card).not_to_contain_text("paused")  # nor does the part below, which is read again
    tab.forgives = ("404",)  # the part below may be on its way to be read when its schedule goes
    card.get_by_role("button", name="Remove").click()
    tab.find("dialog").get_by_role("button", name="Remove").click()
    expect(tab.find("main")).to_contain_text("No schedules yet")
    assert client.schedules() == []


@pytest.mark.nightly
def test_a_trigger_counts_what_it_made_as_it_happens(tab: Tab, project: Projects) -> None:
    client = project("clinic")
    client.set_trigger("look", "task.noted", NewTask(title="Look at {event.key}"))
    tab.go("/projects/clinic/schedules")
    card = tab.find('.source[data-name="look"]')
    expect(card).to_contain_text("0 · 0 · 0")
    key = str((client.add("Feel the pulse").task or {})["key"])
    client.note(key, "it is fast")
    expect(card).to_contain_text("1 · 0 · 0", timeout=20_000)
    made = str(client.trigger("look")["last_made"])
    card.get_by_role("link", name=made).click()
    expect(tab.find("h1")).to_contain_text(key)


@pytest.mark.nightly
def test_the_watch_is_turned_on_and_off(tab: Tab, project: Projects) -> None:
    client = project("tower")
    key = str((client.add("Light the lamp", max_attempts=1).task or {})["key"])
    client.fail(str(client.claim(key).receipt), "no oil", "task")
    tab.go("/projects/tower/schedules")
    watch = tab.find(".panel", has_text="Failure watch")
    expect(watch).to_contain_text("1 of 1 failed")
    watch.get_by_role("button", name="Turn on").click()
    expect(watch.get_by_role("button", name="Turn off")).to_be_visible()
    assert client.watched()["on"] is True
    assert client.watched()["window"] == 24 * 3600
    watch.get_by_role("button", name="Turn off").click()
    expect(watch.get_by_role("button", name="Turn on")).to_be_visible()
    assert client.watched()["on"] is False


@pytest.mark.nightly
def test_who_may_only_look_sees_all_of_it_and_no_button(
    tabs: Callable[..., Tab], store: Path, project: Projects
) -> None:
    client = project("museum")
    client.set_budget("project", usd="5")
    client.set_schedule("dust", YEARLY, NewTask(title="Dust the vases"))
    secrets = {role: str(client.do(CreateKey(name=role, role=role)).secret) for role in ("viewer", "member")}
    with TenureServer(str(store), settings={"TENURE_SERVE_AUTH": "required"}) as guarded:
        for secret in secrets.values():  # a member works, and sets no budgets
            tab = tabs(url=guarded.url)
            tab.forgives = ("401", "ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING")
            tab.page.goto(f"{guarded.url}/projects/museum/budgets")
            tab.page.get_by_label("Key").fill(secret)
            tab.page.get_by_role("button", name="Sign in").click()
            expect(tab.find(".budget")).to_contain_text("left $5.00 of $5.00")
            expect(tab.find("main .card-actions")).to_have_count(0)
            expect(tab.page.get_by_role("button", name="Set a budget")).to_have_count(0)
            tab.press("g", "s")
            expect(tab.find(".source")).to_contain_text("Dust the vases")
            expect(tab.find("main .card-actions")).to_have_count(0)
