"""Work made and changed in the page: tasks, plans, schedules, triggers; what is wrong is said beside its field."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tenure.client import Client
from tenure.core.commands import Edit
from tests.server.dashboard.conftest import PROJECT
from tests.server.dashboard.tab import Tab

P = f"/projects/{PROJECT}"


def added(client: Client, title: str, **fields: object) -> str:
    return str((client.add(title, track="D", **fields).task or {})["key"])


def test_a_task_is_created_and_a_wrong_field_says_so_beside_it(tab: Tab, client: Client) -> None:
    tab.forgives = ("400",)
    tab.go(f"{P}/tasks")
    tab.page.get_by_role("button", name="New task").click()
    dialog = tab.find("dialog")
    dialog.get_by_label("Title").fill("Paint the fence")
    dialog.get_by_label("Description").fill("Use **green** paint.")
    dialog.get_by_label("Track").fill("D")
    dialog.get_by_label("Tags").fill("garden urgent")
    dialog.get_by_label("Priority").fill("101")
    dialog.get_by_text("More fields").click()
    dialog.get_by_label("Constraints").fill("{max_duration}")
    dialog.get_by_role("button", name="Create").click()
    wrong = dialog.locator(".field", has=tab.page.get_by_label("Constraints"))
    expect(wrong.locator(".problem")).to_contain_text("not valid JSON")
    dialog.get_by_label("Constraints").fill('{"max_duration": 600}')
    dialog.get_by_role("button", name="Create").click()
    wrong = dialog.locator(".field", has=tab.page.get_by_label("Priority"))
    expect(wrong.locator(".problem")).to_contain_text("101")
    expect(dialog.get_by_label("Priority")).to_be_focused()
    dialog.get_by_label("Priority").fill("high")
    dialog.get_by_role("button", name="Create").click()
    expect(tab.find("h1")).to_have_text("Paint the fence")
    expect(tab.find(".markdown strong")).to_have_text("green")
    (made,) = client.tasks(text="paint fence green")
    assert (made["tags"], made["tier"], made["constraints"]) == (("garden", "urgent"), "high", {"max_duration": 600})


def test_a_task_is_edited_and_a_change_by_another_is_noticed(tab: Tab, client: Client) -> None:
    tab.forgives = ("409",)
    key = added(client, "Oil the hinge", description="with oil")
    tab.go(f"{P}/tasks/{key}")
    tab.page.get_by_role("button", name="Edit").click()
    dialog = tab.find("dialog")
    expect(dialog.get_by_label("Description")).to_have_value("with oil")
    dialog.get_by_label("Title").fill("Oil both hinges")
    client.do(Edit(project=PROJECT, task=key, changes={"tags": ["door"]}))
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.locator(".problem")).to_contain_text("is at version")
    dialog.get_by_role("button", name="Back").click()
    tab.page.get_by_role("button", name="Edit").click()
    expect(dialog.get_by_label("Tags")).to_have_value("door")
    dialog.get_by_label("Title").fill("Oil both hinges")
    dialog.get_by_role("button", name="Save").click()
    expect(tab.find("h1")).to_have_text("Oil both hinges")
    assert client.show(key)["description"] == "with oil"


def test_retries_and_what_follows_a_lost_holder_are_edited(tab: Tab, client: Client) -> None:
    tab.forgives = ("400",)
    key = added(client, "Grease the axle", on_lost="hold", retry={"strategy": "fixed"})
    tab.go(f"{P}/tasks/{key}")
    tab.page.get_by_role("button", name="Edit").click()
    dialog = tab.find("dialog")
    dialog.get_by_text("More fields").click()
    expect(dialog.get_by_label("If its holder is lost")).to_have_value("hold")
    expect(dialog.get_by_label("Retries")).to_have_value('{\n  "strategy": "fixed"\n}')
    dialog.get_by_label("Retries").fill('{"strategy": "sometimes"}')
    dialog.get_by_label("If its holder is lost").select_option("back_off")
    dialog.get_by_role("button", name="Save").click()
    wrong = dialog.locator(".field", has=tab.page.get_by_label("Retries"))
    expect(wrong.locator(".problem")).to_contain_text("sometimes")
    dialog.get_by_label("Retries").fill('{"initial_delay": 60, "no_retry_on": ["timeout"]}')
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    task = client.show(key)
    assert task["on_lost"] == "back_off"
    assert (task["retry"].get("initial_delay"), list(task["retry"].get("no_retry_on", ()))) == (60, ["timeout"])


def test_a_new_task_gets_the_projects_settings_for_empty_fields(tab: Tab, client: Client) -> None:
    tab.go(f"{P}/tasks")
    tab.page.get_by_role("button", name="New task").click()
    dialog = tab.find("dialog")
    dialog.get_by_label("Title").fill("Sweep the yard")
    dialog.get_by_role("button", name="Create").click()
    expect(tab.find("h1")).to_have_text("Sweep the yard")
    (made,) = client.tasks(text="sweep yard")
    whole = client.show(made["key"])
    assert (whole["priority"], whole["max_attempts"], whole["on_lost"], whole["retry"]) == (50, 3, "retry", {})


def test_a_dead_letter_is_changed_and_retried(tab: Tab, client: Client) -> None:
    key = added(client, "Weigh the crate", max_attempts=1)
    behind = added(client, "Ship the crate", after=(key,))
    client.fail(str(client.claim(key).receipt), "the scale is broken")
    tab.go(f"{P}/dead-letters")
    letter = tab.find(f'.dead-letter[data-key="{key}"]')
    expect(letter).to_contain_text("Weigh the crate")
    expect(letter.locator(".behind")).to_contain_text("1 task waits behind it")
    expect(letter.locator(".behind a")).to_have_attribute("title", behind)
    letter.get_by_role("button", name="Change and retry").click()
    dialog = tab.find("dialog")
    dialog.get_by_label("Note").fill("use the other scale")
    dialog.get_by_label("Description").fill("The other scale is in the hall.")
    dialog.get_by_label("Attempts").fill("2")
    dialog.get_by_role("button", name="Retry").click()
    expect(letter).to_have_count(0)
    task = client.show(key)
    assert (task["state"], task["max_attempts"]) == ("ready", 2)
    assert task["description"] == "The other scale is in the hall."


def test_a_plan_is_checked_line_by_line_and_applied(tab: Tab, client: Client) -> None:
    tab.go(f"{P}/dags")
    tab.page.get_by_role("button", name="Upload a plan").click()
    dialog = tab.find("dialog")
    tasks = "{name: pick, title: Pick apples}", "{name: press, title: Press them, depend_on: [pick]}"
    text = "\n".join(["name: harvest", "tasks:", *(f"  - {task}" for task in tasks), ""])
    file = {"name": "harvest.yaml", "mimeType": "application/yaml", "buffer": text.encode()}
    dialog.get_by_label("File").set_input_files(files=[file])  # type: ignore[list-item]
    dialog.get_by_role("button", name="Check").click()
    expect(dialog.locator(".findings")).to_contain_text("line 4")
    dialog.get_by_label("Plan").fill(text.replace("depend_on", "depends_on"))
    dialog.get_by_role("button", name="Check").click()
    expect(dialog.locator(".findings")).to_contain_text("2 created")
    assert client.tasks(text="pick apples") == []
    dialog.get_by_role("button", name="Apply").click()
    expect(tab.find(".graph .node")).to_have_count(2)
    assert client.tasks(text="press them")[0]["state"] == "pending"


@pytest.mark.nightly
def test_a_schedule_is_set_and_changed(tab: Tab, client: Client) -> None:
    tab.forgives = ("400",)
    tab.go(f"{P}/schedules")
    tab.page.get_by_role("button", name="New schedule").click()
    dialog = tab.find("dialog")
    dialog.get_by_label("Name").fill("nightly")
    dialog.get_by_label("When").fill("61 3 * * *")
    dialog.get_by_label("Time zone").fill("UTC")
    dialog.get_by_label("Title of its task").fill("Count the stock")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.locator(".field", has=tab.page.get_by_label("When")).locator(".problem")).to_be_visible()
    dialog.get_by_label("When").fill("0 3 * * *")
    dialog.get_by_role("button", name="Create").click()
    card = tab.find('.source[data-name="nightly"]')
    expect(card).to_contain_text("0 3 * * *")
    card.get_by_role("button", name="Edit").click()
    expect(dialog.get_by_label("Title of its task")).to_have_value("Count the stock")
    dialog.get_by_label("When").fill("0 4 * * *")
    dialog.get_by_role("button", name="Save").click()
    expect(card).to_contain_text("0 4 * * *")
    assert client.schedule("nightly")["template"]["tasks"][0]["title"] == "Count the stock"


@pytest.mark.nightly
def test_a_trigger_is_set_and_a_webhooks_secret_shown_once(tab: Tab, client: Client) -> None:
    tab.go(f"{P}/schedules")
    tab.page.get_by_role("button", name="New trigger").click()
    dialog = tab.find("dialog")
    dialog.get_by_label("Name").fill("orders")
    dialog.get_by_label("After").fill("webhook")
    dialog.get_by_label("Title of its task").fill("Pack the order")
    dialog.get_by_role("button", name="Create").click()
    expect(tab.page.get_by_label("Secret", exact=True)).to_have_value(re.compile("^whsec_"))
    dialog.get_by_role("button", name="Close").click()
    expect(tab.find('.source[data-name="orders"]')).to_contain_text("webhook")
    assert client.trigger("orders")["on"] == "webhook"
