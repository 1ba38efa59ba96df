"""The pages of money, checks and repeated work, by day, by night and on a phone; unharmed by what is said there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tenure.client import Client
from tests.server.dashboard.paid.scene import MASKED, PRESS, hostile_money
from tests.server.dashboard.scene import HOSTILE, SNEAKY
from tests.server.dashboard.tab import DESK, PHONE, Tab

P = f"/projects/{PRESS}"
LOOKS = (("light", DESK, "light"), ("dark", DESK, "dark"), ("phone", PHONE, "light"))


@pytest.mark.sampled
@pytest.mark.parametrize("part", range(3))
def test_no_page_is_loud_nameless_or_too_wide(tab: Tab, artifacts: Path | None, part: int) -> None:
    pages = {  # and what must stand there
        "money": (P, "Cost by model"),
        "budgets": (f"{P}/budgets", "The atlas"),
        "budgets-of-tasks": (f"{P}/budgets?scope=task", "C-002-colour-the-maps"),
        "usage-saved": (f"{P}/usage", "The choice of models saved"),
        "checks": (f"{P}/tasks?view=checks", "Waiting for review"),
        "task-reviewed": (f"{P}/tasks/B-001", "The river is missing"),
        "task-paid": (f"{P}/tasks/C-002", "left of $2.50"),
        "schedules": (f"{P}/schedules", "Failure watch"),
    }
    for name, (path, text) in list(pages.items())[part::3]:
        tab.go(path)
        expect(tab.find("main")).to_contain_text(text)
        assert tab.nameless() == [], name
        for look, size, scheme in LOOKS:
            tab.page.set_viewport_size(size)
            tab.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            assert not tab.is_too_wide(), f"{name} in {look}"
            tab.picture(artifacts, f"{name}-{look}.png", full_page=True)
        tab.page.set_viewport_size(DESK)


@pytest.mark.sampled
@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_what_names_reasons_and_files_say_harms_nobody(tab: Tab, store: Path, size: dict[str, int]) -> None:
    project = f"hostile-{size['width']}"
    key = hostile_money(store, project)
    here = f"/projects/{project}"
    pages = {
        here: SNEAKY, f"{here}/budgets": HOSTILE, f"{here}/budgets?scope=task": key, f"{here}/usage": SNEAKY,
        f"{here}/tasks/{key}": MASKED, f"{here}/tasks?view=checks": "No results wait", f"{here}/schedules": HOSTILE,
        f"{here}/events?noun=schedule": "pauses schedule h",
    }  # fmt: skip
    for path, text in pages.items():
        tab.page.set_viewport_size(size)
        tab.go(path)
        expect(tab.find("main")).to_contain_text(text)
        assert tab.find("img, script:not([src])").count() == 0, path
        assert not tab.is_too_wide(), path
    tab.go(f"{here}/tasks/{key}")
    expect(tab.find(".verdict.bad")).to_contain_text(HOSTILE)
    with tab.page.expect_download() as download:
        tab.find(".artifacts").get_by_role("link", name=MASKED).click()
    assert Path(download.value.path()).read_bytes() == b"<script>alert(5)</script>"
    # Asked for as a page it is a file too, and would have no right to run.
    sent = tab.page.request.get(f"{tab.url}/api/v1{here}/tasks/{key}/artifacts/{quote(MASKED, safe='')}")
    assert sent.headers["content-disposition"].startswith("attachment")
    assert sent.headers["content-security-policy"].startswith("sandbox")


@pytest.mark.nightly
def test_an_empty_project_says_what_each_is_for(tab: Tab, project: Callable[[str], Client]) -> None:
    project("empty")
    for page, said in {
        "budgets": "tenure budget set --usd 20",
        "budgets?scope=task": "tenure budget set task:B-003",
        "tasks?view=checks": "--validate review",
        "schedules": "tenure schedule add nightly",
    }.items():
        tab.go(f"/projects/empty/{page}")
        expect(tab.find("main .terminal").first).to_contain_text(said)


@pytest.mark.nightly
def test_the_new_pages_are_reached_by_keys_and_their_dialogs_left_with_escape(tab: Tab) -> None:
    tab.go(P)
    tab.press("g", "b")
    expect(tab.find("h1")).to_have_text("Budgets")
    tab.page.get_by_role("button", name="Set a budget").press("Enter")
    expect(tab.page.get_by_label("For", exact=True)).to_be_focused()
    tab.press("Escape")
    expect(tab.find("dialog")).to_have_count(0)
    tab.press("g", "s")
    expect(tab.find("h1")).to_have_text("Schedules and triggers")


@pytest.mark.nightly
def test_a_look_that_fails_is_said_and_can_be_tried_again(tab: Tab) -> None:
    tab.forgives = ("500",)
    broken = [True]

    def answer(route: object) -> None:
        if broken[0]:
            route.fulfill(status=500, json={"code": "BUG", "detail": "the till is stuck"})  # type: ignore[attr-defined]
        else:
            route.continue_()  # type: ignore[attr-defined]

    tab.page.route("**/budgets?limit=200", answer)
    tab.go(f"{P}/budgets")
    expect(tab.find(".notice.bad")).to_contain_text("the till is stuck")
    broken[0] = False
    tab.page.get_by_role("button", name="Try again").click()
    expect(tab.find(".budget").first).to_contain_text("The whole project")
