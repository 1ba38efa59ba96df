"""What a person does on the dashboard, and what comes of it in the store."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tenure.client import Client
from tenure.core.commands import ClaimNext, NewTask, Register
from tests.server.dashboard.conftest import PROJECT
from tests.server.dashboard.tab import Tab

P = f"/projects/{PROJECT}"


def added(client: Client, title: str, **fields: object) -> str:
    return str((client.add(title, **{"track": "D", **fields}).task or {})["key"])


def buried(client: Client, title: str) -> str:
    key = added(client, title, max_attempts=1)
    client.fail(str(client.claim(key).receipt), f"{title}: it broke")
    return key


def test_a_dead_letter_is_given_another_run(tab: Tab, client: Client) -> None:
    key = buried(client, "Post the letter")
    tab.go(f"{P}/dead-letters")
    letter = tab.find(f'.dead-letter[data-key="{key}"]')
    expect(letter).to_contain_text("it broke")
    letter.get_by_role("button", name="Retry", exact=True).click()
    expect(letter).to_have_count(0)
    assert (client.show(key)["state"], client.show(key)["run"]) == ("ready", 2)
    expect(tab.find(".toast")).to_contain_text(key)
    tab.find(".toast").get_by_role("button", name="Undo").click()
    expect(letter).to_have_count(1)
    assert client.show(key)["state"] == "dead_lettered"


def test_a_dead_letter_is_retried_with_a_note_for_the_next_holder(tab: Tab, client: Client) -> None:
    key = buried(client, "Post it again")
    tab.go(f"{P}/dead-letters")
    letter = tab.find(f'.dead-letter[data-key="{key}"]')
    letter.get_by_role("button", name="Retry with a note").click()
    tab.page.get_by_label("Note for the next attempt").fill("the stamp was missing")
    tab.find("dialog").get_by_role("button", name="Retry").click()
    expect(letter).to_have_count(0)
    noted = [one for one in client.dead_letters(resolved=True) if one["key"] == key]
    assert noted[0]["note"] == "the stamp was missing"


def test_ten_tasks_are_filtered_and_cancelled_at_once(tab: Tab, client: Client) -> None:
    keys = {added(client, f"Sweep room {n}", tags=("sweep",)) for n in range(10)}
    added(client, "Lock the door")
    posts: list[str] = []
    tab.page.on("request", lambda request: posts.append(request.url) if request.method == "POST" else None)
    tab.go(f"{P}/tasks")
    tab.page.get_by_label("Tag").fill("sweep")
    rows = tab.find(".tasks-table tbody tr")
    expect(rows).to_have_count(10)
    assert "tag=sweep" in tab.page.url
    tab.page.get_by_label("Select all shown").check()
    expect(tab.find(".batch")).to_contain_text("10 tasks selected")
    tab.find(".batch").get_by_role("button", name="Cancel").click()
    tab.page.get_by_label("Reason").fill("the house is sold")
    tab.find("dialog").get_by_role("button", name="Cancel 10").click()
    outcomes = tab.find(".outcomes tbody tr")
    expect(outcomes).to_have_count(10)
    assert set(outcomes.locator("a").all_inner_texts()) == keys
    assert tab.find(".outcomes tr.good").count() == 10
    tab.find("dialog").get_by_role("button", name="Close").click()
    expect(tab.find(".tasks-table .s-cancelled")).to_have_count(10)
    assert {client.show(key)["state"] for key in keys} == {"cancelled"}
    assert [url.rpartition("/")[2] for url in posts] == ["batch"]


@pytest.mark.nightly
def test_a_refusal_is_told_beside_what_was_done(tab: Tab, client: Client) -> None:
    paused, ready = added(client, "Halt one", tags=("halt",)), added(client, "Halt two", tags=("halt",))
    client.pause(paused)
    tab.go(f"{P}/tasks?tag=halt")
    tab.page.get_by_label("Select all shown").check()
    tab.find(".batch").get_by_role("button", name="Resume").click()
    expect(tab.find("dialog")).to_contain_text("1 of 2 done")
    expect(tab.find(".outcomes tr.bad")).to_contain_text(ready)


def test_a_question_is_answered(tab: Tab, client: Client) -> None:
    key = added(client, "Paint the door")
    client.ask(str(client.claim(key).receipt), "Which colour?")
    tab.go(f"{P}/tasks/{key}")
    expect(tab.find(".cause")).to_contain_text("Which colour?")
    tab.page.get_by_role("button", name="Answer").click()
    tab.find("dialog textarea").fill("green, as the window")
    tab.find("dialog").get_by_role("button", name="Answer").click()
    expect(tab.find(".task-line")).to_contain_text("ready")
    expect(tab.find(".answer")).to_contain_text("green, as the window")


@pytest.mark.nightly
def test_each_cause_of_a_pause_is_shown_with_its_own_way_on(tab: Tab, client: Client) -> None:
    key = added(client, "Choose the paper")
    client.fail(str(client.claim(key).receipt), "more than was planned", "budget_exceeded")
    client.pause(key, "until Monday")
    asked = added(client, "Choose the ink")
    client.ask(str(client.claim(asked).receipt), "Blue or black?")
    client.pause(asked, "the shop is closed")
    tab.go(f"{P}/tasks/{asked}")
    causes = tab.find(".cause")
    expect(causes).to_have_count(2)
    expect(causes.filter(has_text="A question")).to_contain_text("Blue or black?")
    causes.filter(has_text="A person").get_by_role("button", name="Resume").click()
    expect(causes).to_have_count(1)
    assert client.show(asked)["state"] == "paused"
    causes.get_by_role("button", name="Answer").click()
    tab.find("dialog textarea").fill("blue")
    tab.find("dialog").get_by_role("button", name="Answer").click()
    expect(tab.find(".task-line")).to_contain_text("ready")
    tab.go(f"{P}/tasks/{key}")
    expect(causes.filter(has_text="A person")).to_contain_text("until Monday")
    causes.filter(has_text="A budget").get_by_role("button", name="Resume despite the budget").click()
    tab.find("dialog").get_by_role("button", name="Resume despite the budget").click()
    expect(tab.find(".task-line")).to_contain_text("ready")
    assert client.show(key).get("pauses", ()) == ()


@pytest.mark.nightly
def test_a_drain_is_taken_back_while_its_holder_works(tab: Tab, client: Client) -> None:
    key = added(client, "Print the page")
    receipt = str(client.claim(key).receipt)
    client.pause(key, "after this one", drain=True)
    tab.go(f"{P}/tasks/{key}")
    expect(tab.find(".cause")).to_contain_text("A drain")
    tab.find(".cause").get_by_role("button", name="Cancel the drain").click()
    expect(tab.find(".cause")).to_have_count(0)
    assert client.renew(receipt).directive == "continue"


def test_an_agent_is_terminated_with_a_reason_and_resumed(tab: Tab, client: Client) -> None:
    client.do(Register(project=PROJECT, agent="wild"))
    wild = ClaimNext(project=PROJECT, agent="wild", session="wild", lease=1)
    tab.go(f"{P}/agents")
    card = tab.find(".agent").filter(has_text="wild")
    card.get_by_role("button", name="Drain").click()
    expect(card).to_contain_text("draining")
    card.get_by_role("button", name="Resume").click()
    expect(card).to_contain_text("idle")
    card.get_by_role("button", name="Terminate").click()
    tab.page.get_by_label("Reason").fill("it runs wild")
    tab.find("dialog").get_by_role("button", name="Terminate").click()
    expect(card).to_contain_text("Terminated")
    expect(card).to_contain_text("it runs wild")
    assert client.do(wild).outcome == "DENIED_AGENT"
    card.get_by_role("button", name="Resume").click()
    expect(card.get_by_role("button", name="Resume")).to_have_count(0)
    assert client.do(wild).outcome != "DENIED_AGENT"


@pytest.mark.nightly
def test_what_is_done_is_put_down_to_whoever_said_a_name(tab: Tab, client: Client) -> None:
    key = added(client, "Sign the book")
    tab.go(f"{P}/tasks/{key}")
    tab.page.get_by_role("button", name="Your name").click()
    tab.page.get_by_label("Name", exact=True).fill("Zoë")
    tab.find("dialog").get_by_role("button", name="Save").click()
    tab.page.get_by_role("button", name="Note").click()
    tab.find("dialog textarea").fill("seen")
    tab.find("dialog").get_by_role("button", name="Note").click()
    expect(tab.find(".event").first).to_contain_text("Zoë adds a note to it: seen")


@pytest.mark.nightly
def test_a_message_is_sent_and_shown(tab: Tab, client: Client) -> None:
    tab.go(f"{P}/messages")
    tab.page.get_by_role("combobox", name="To").fill("cy")
    tab.page.get_by_label("Message").fill("Where is the key to the shed?")
    tab.page.get_by_role("button", name="Send").click()
    expect(tab.find(".letter").first).to_contain_text("Where is the key to the shed?")
    assert client.messages(limit=1)[0]["to"] == "cy"


def test_filters_order_and_view_stand_in_the_address(tab: Tab, client: Client) -> None:
    for n in range(3):
        added(client, f"Stack crate {n}", priority=10 * n + 5)
    tab.go(f"{P}/tasks?text=stack+crate&order=-priority")
    titles = tab.find(".title-link")
    expect(titles).to_have_text(["Stack crate 2", "Stack crate 1", "Stack crate 0"])
    tab.page.get_by_role("button", name="Priority").click()
    expect(titles).to_have_text(["Stack crate 0", "Stack crate 1", "Stack crate 2"])
    tab.page.get_by_role("button", name="Board").click()
    expect(tab.find(".column", has_text="Ready").locator(".ticket")).to_have_count(3)
    tab.page.reload()
    expect(tab.find(".column", has_text="Ready").locator(".ticket")).to_have_count(3)
    tab.page.get_by_role("button", name="Clear filters").click()
    assert "text=" not in tab.page.url


@pytest.mark.nightly
def test_more_than_a_page_of_tasks_can_be_shown(tab: Tab, client: Client) -> None:
    client.plan([NewTask(title=f"Pull weed {n}", name=f"weed-{n}", track="D") for n in range(60)])
    tab.go(f"{P}/tasks?text=pull+weed")
    rows = tab.find(".tasks-table tbody tr")
    expect(rows).to_have_count(50)
    tab.page.get_by_role("button", name="Show more").click()
    expect(rows).to_have_count(60)
