"""Tasks moved on the board: by dragging, by keys; a move that is not allowed says why."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Request, expect

from tenure.client import Client
from tests.server.dashboard.conftest import PROJECT
from tests.server.dashboard.tab import Tab

P = f"/projects/{PROJECT}"


# Every 15 seconds the page asks for everything, since leases expire without an event.
WITHOUT_TICK = "const real = setInterval; window.setInterval = (call, ms) => (ms === 15000 ? 0 : real(call, ms));"


def added(client: Client, title: str, **fields: object) -> str:
    return str((client.add(title, track="D", **fields).task or {})["key"])


def test_a_task_is_dragged_to_a_column_that_its_state_allows(tab: Tab, client: Client) -> None:
    key = added(client, "Drag the crate")
    tab.go(f"{P}/tasks?view=board&text=drag+crate")
    ticket = tab.find(f'.ticket[data-key="{key}"]')
    ticket.drag_to(tab.page.get_by_role("region", name="In progress"))
    expect(tab.find(".toast")).to_contain_text("Only the claim of an agent moves a task here")
    ticket.drag_to(tab.page.get_by_role("region", name="Needs a person"))
    tab.find("dialog").get_by_role("button", name="Pause").click()
    needs = tab.page.get_by_role("region", name="Needs a person")
    expect(needs.locator(".ticket")).to_have_count(1)
    assert client.show(key)["state"] == "paused"
    ticket.drag_to(tab.page.get_by_role("region", name="Ready"))
    expect(tab.page.get_by_role("region", name="Ready").locator(".ticket")).to_have_count(1)
    assert client.show(key)["state"] == "ready"


def test_a_task_is_moved_by_keys(tab: Tab, client: Client) -> None:
    key = added(client, "Carry the crate", draft=True)
    tab.go(f"{P}/tasks?view=board&text=carry+crate")
    move = tab.page.get_by_role("button", name=f"Move {key[:5]}")
    move.press("Enter")
    dialog = tab.find("dialog")
    expect(dialog.get_by_role("button", name="In progress")).to_be_disabled()
    expect(dialog).to_contain_text("Only the claim of an agent")
    dialog.get_by_role("button", name="Ready").press("Enter")
    expect(tab.page.get_by_role("region", name="Ready").locator(".ticket")).to_have_count(1)
    assert client.show(key)["state"] == "ready"


@pytest.mark.nightly
def test_a_column_is_asked_again_only_after_events_of_its_own_tasks(tabs: Callable[..., Tab], client: Client) -> None:
    tab = tabs()
    tab.page.add_init_script(WITHOUT_TICK)
    asked: list[str] = []

    def seen(count: int) -> list[str]:
        for _ in range(600):  # a column pauses for at most 20 s
            if len(asked) >= count:
                break
            tab.page.wait_for_timeout(50)  # lets the page work
        return sorted(asked)

    def note(request: Request) -> None:
        if "/api/" in request.url and "/tasks?" in request.url:
            asked.append(parse_qs(urlsplit(request.url).query)["state"][0])

    tab.page.on("request", note)
    tab.go(f"{P}/tasks?view=board&text=first+brick")
    first = ["claimed", "completed", "created", "paused", "ready"]
    assert seen(10) == sorted(first * 2)  # at once, and when the stream of events has begun
    asked.clear()
    key = added(client, "Lay the first brick")
    assert seen(1) == ["ready"]
    expect(tab.page.get_by_role("region", name="Ready").locator(".ticket")).to_have_count(1)
    asked.clear()
    client.claim(key)
    assert seen(2) == ["claimed", "ready"]
    expect(tab.page.get_by_role("region", name="In progress").locator(".ticket")).to_have_count(1)


def test_ones_own_move_is_shown_without_a_pause(tab: Tab, client: Client) -> None:
    key = added(client, "Hoist the crate")
    tab.go(f"{P}/tasks?view=board&text=hoist+crate")
    ticket = tab.find(f'.ticket[data-key="{key}"]')
    ticket.wait_for()
    tab.page.wait_for_timeout(1500)  # the columns pause now, for four seconds and more
    ticket.drag_to(tab.page.get_by_role("region", name="Needs a person"))
    tab.find("dialog").get_by_role("button", name="Pause").click()
    needs = tab.page.get_by_role("region", name="Needs a person")
    expect(needs.locator(".ticket")).to_have_count(1, timeout=2500)
