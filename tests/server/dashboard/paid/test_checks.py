"""What is checked: a person approves or rejects, sees what was said of each generation, and takes its files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tenure.client import Client
from tests.server.dashboard.paid.scene import PRESS, TESTS, asked_for_review
from tests.server.dashboard.tab import Tab

Projects = Callable[[str], Client]


def test_a_review_is_rejected_with_a_text_tried_again_and_approved(tab: Tab, project: Projects) -> None:
    client = project("school")
    key = asked_for_review(client, "Write the essay", retry={"strategy": "immediate"})
    tab.go("/projects/school")
    tab.page.get_by_role("link", name="Validating").first.click()
    check = tab.find(f'.check-card[data-key="{key}"]')
    expect(check).to_contain_text("Waiting for review")
    check.get_by_role("link", name=key).click()
    expect(tab.find(".why")).to_contain_text("approve or reject")
    expect(tab.find(".result")).to_contain_text("waiting for validation")
    tab.page.get_by_role("button", name="Reject").click()
    tab.find("dialog textarea").fill("It has no ending.\nAnd no middle.")
    tab.find("dialog").get_by_role("button", name="Reject").click()
    expect(tab.find(".verdict.bad")).to_contain_text("It has no ending.")
    expect(tab.find(".task-line .state")).to_contain_text("ready", timeout=20_000)
    again = client.claim(key)
    assert "It has no ending." in str(again.task)
    client.submit(str(again.receipt), {"draft": "with an ending"}, "now it ends")
    expect(tab.find(".generation")).to_have_count(2)
    tab.page.get_by_role("button", name="Approve").click()
    expect(tab.find(".task-line .state")).to_contain_text("completed")
    expect(tab.find(".verdict.good")).to_contain_text("Passed")
    assert client.show(key)["result"]["summary"] == "now it ends"


@pytest.mark.nightly
def test_what_waits_for_validators_is_told_with_its_tries(tab: Tab, project: Projects) -> None:
    client = project("lab")
    key = str((client.add("Weigh it", output=TESTS).task or {})["key"])
    client.submit(str(client.claim(key).receipt), {"grams": 3}, "weighed")
    tab.go("/projects/lab/tasks?view=checks")
    check = tab.find(f'.check-card[data-key="{key}"]')
    expect(check).to_contain_text("test-pass")
    check.get_by_role("button", name="Approve").click()
    expect(tab.find("main")).to_contain_text("No results wait for validation")
    assert client.show(key)["state"] == "completed"


def test_an_artifact_is_downloaded_as_a_file(tab: Tab, tmp_path: Path) -> None:
    tab.go(f"/projects/{PRESS}/tasks/A-001")
    link = tab.find(".artifacts").get_by_role("link", name="sources/list.csv")
    expect(tab.find(".artifacts")).to_contain_text("7.9 kB, text/plain")
    with tab.page.expect_download() as download:
        link.click()
    assert download.value.suggested_filename == "list.csv"
    download.value.save_as(tmp_path / "kept")
    assert (tmp_path / "kept").read_text() == "title,year\nAtlas,1595\n"
    expect(tab.find("h1")).to_have_text("Gather the sources")  # the page stayed
