"""Tasks moved on the board: by dragging, by keys; a move that is not allowed says why."""

from __future__ import annotations

from playwright.sync_api import expect

from tenure.client import Client
from tests.server.dashboard.conftest import PROJECT
from tests.server.dashboard.tab import Tab

P = f"/projects/{PROJECT}"


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
