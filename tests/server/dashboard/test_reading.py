"""What a person reads and finds: Markdown, transcripts, stack traces, search, saved views, what waits for a person."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tenure.client import Client
from tenure.sealing.signing import SigningKey
from tenure.user_state import store_states
from tests.server.dashboard.conftest import PROJECT
from tests.server.dashboard.tab import PHONE, Tab
from tests.servers.tenure import TenureServer

P = f"/projects/{PROJECT}"
HOSTILE = """# Steps
1. **Open** the `lid`
2. read [the page](https://example.org/a?b=1)

[not this](javascript:alert(1)) ![nor this](https://example.org/x.png) [nor](data:text/html,x)

<script>alert(4)</script> <b onclick="alert(5)">bold</b>

```
<img src=x onerror=alert(6)>
```

| part | size |
| --- | --- |
| lid | 3 |
"""


def added(client: Client, title: str, **fields: object) -> str:
    return str((client.add(title, track="D", **fields).task or {})["key"])


def line(text: str) -> str:
    return json.dumps({"at": 1.0, "from": "agent", "text": text}) + "\n"


def test_markdown_is_shown_and_none_of_its_markup_is_run(tab: Tab, client: Client) -> None:
    key = added(client, "Close the lid", description=HOSTILE)
    tab.go(f"{P}/tasks/{key}")
    text = tab.find(".markdown").first
    expect(text.locator(".heading")).to_have_text("Steps")
    expect(text.locator("ol li")).to_have_count(2)
    expect(text.locator("strong")).to_have_text("Open")
    expect(text.locator("td")).to_have_text(["lid", "3"])
    expect(text.locator("pre")).to_have_text("<img src=x onerror=alert(6)>")
    expect(text).to_contain_text('<b onclick="alert(5)">bold</b>')
    links = [link.get_attribute("href") for link in text.locator("a").all()]
    assert links == ["https://example.org/a?b=1", "https://example.org/x.png"]
    assert tab.find(".markdown img, .markdown script, .markdown b").count() == 0


def test_the_lineage_names_the_key_that_signed_a_result(tab: Tab, server: TenureServer, client: Client) -> None:
    key = added(client, "Sign for the lid")
    with Client(server.url, PROJECT, agent="signer") as signer:
        signer.signing_key = SigningKey(b"\x01" * 32)
        signer.register()
        signer.submit(str(signer.claim(key).receipt), "closed").check()
    tab.go(f"{P}/tasks/{key}")
    expect(tab.find(".generation").first).to_contain_text("signed by the key 34750f98bd59fcfc")


def test_a_transcript_grows_while_the_agent_works_and_a_failure_has_its_stack_trace(
    tab: Tab, server: TenureServer, client: Client
) -> None:
    key = added(client, "Sweep the hall", max_attempts=3)
    first = str(client.claim(key).receipt)
    client.fail(
        first, "no broom", trace=f"Traceback:\n  File hall.py, line 3\nNoBroom: {'no broom, ' * 9}", retry_after=0
    )
    receipt = str(client.claim(key).receipt)
    states, *_ = store_states({"HOME": str(server.folder)}, server.store)
    folder = Path(states) / "transcripts" / PROJECT / key
    folder.mkdir(parents=True)
    with (folder / "gen-2.jsonl").open("w", buffering=1) as transcript:
        transcript.write(line("I look for a broom."))
        tab.go(f"{P}/tasks/{key}")
        lines = tab.find(".transcript li")
        expect(lines).to_have_text(["I look for a broom."])
        expect(tab.find(".transcript-head")).to_contain_text("live")
        transcript.write(line("<b>Found one.</b>"))
        expect(lines.nth(1)).to_have_text("<b>Found one.</b>")
        tab.find(".trace summary").click()
        expect(tab.find(".trace pre")).to_contain_text("File hall.py, line 3")
        tab.page.set_viewport_size(PHONE)
        assert not tab.is_too_wide()
        transcript.write(line("Done."))
        client.submit(receipt, "swept")
        expect(lines).to_have_count(3)
        expect(tab.find(".transcript-head")).to_contain_text("ended")


def test_a_search_suggests_tasks_by_any_word_and_opens_them_by_keys(tab: Tab, client: Client) -> None:
    key = added(client, "Feed the cat", description="The bowl is in the pantry, behind the flour.")
    tab.go(P)
    tab.press("/")
    tab.page.keyboard.type("flour pantry")
    option = tab.find(".found li")
    expect(option).to_have_count(1)
    expect(option).to_contain_text("Feed the cat")
    tab.press("ArrowDown")
    expect(option).to_have_attribute("aria-selected", "true")
    tab.press("Enter")
    expect(tab.find(".crumbs")).to_contain_text(key)


@pytest.mark.nightly
def test_a_view_is_saved_and_opened_again(tab: Tab, client: Client) -> None:
    added(client, "Sand the table", tags=("wood",), priority="critical")
    added(client, "Wax the table", tags=("wood",), priority="low")
    tab.go(f"{P}/tasks?tag=wood")
    tab.page.get_by_label("Priority").select_option("critical")
    expect(tab.find(".title-link")).to_have_text(["Sand the table"])
    tab.page.get_by_role("button", name="Save this view").click()
    tab.find("dialog").get_by_label("Name").fill("urgent wood")
    tab.find("dialog").get_by_role("button", name="Save").click()
    tab.go(f"{P}/tasks")
    tab.page.get_by_role("link", name="urgent wood").click()
    expect(tab.find(".title-link")).to_have_text(["Sand the table"])
    tab.page.get_by_role("button", name="Remove the view urgent wood").click()
    expect(tab.page.get_by_role("link", name="urgent wood")).to_have_count(0)


def test_what_waits_for_a_person_is_on_one_page_with_its_actions(tab: Tab, client: Client) -> None:
    asked = added(client, "Choose a name")
    client.ask(str(client.claim(asked).receipt), "Short or long?")
    review = added(client, "Write the poem", output={"validation": "review"})
    client.submit(str(client.claim(review).receipt), "roses", "a poem")
    tab.go(f"{P}/todo")
    question = tab.find(f'.waits[data-key="{asked}"]')
    expect(question).to_contain_text("Short or long?")
    question.get_by_role("button", name="Answer").click()
    tab.find("dialog textarea").fill("short")
    tab.find("dialog").get_by_role("button", name="Answer").click()
    expect(question).to_have_count(0)
    waits = tab.find(f'.waits[data-key="{review}"]')
    waits.get_by_role("button", name="Approve").click()
    expect(waits).to_have_count(0)
    assert client.show(review)["state"] == "completed"
    assert json.dumps(client.todo(), default=str).count(asked) == 0
