"""axe finds nothing on any page, with and without content, at a desk and on a phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import axe_playwright_python
import pytest

from tenure.client import Client
from tests.server.dashboard.conftest import PROJECT
from tests.server.dashboard.scene import wide_dag
from tests.server.dashboard.tab import DESK, PHONE, Tab

P = f"/projects/{PROJECT}"
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")
RUN = """async () => (await axe.run(document, {resultTypes: ['violations']})).violations
    .map((one) => [one.id, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200))])"""
PAGES = (
    "", "/todo", "/tasks", "/tasks?view=board", "/tasks?view=checks", "/tasks/C-001", "/dags", "/forecast", "/agents",
    "/pools", "/dead-letters", "/messages", "/events", "/budgets", "/usage", "/schedules", "/delivery", "/coordinator",
    "/limits",
)  # fmt: skip

PARTS = 6


def violations(tab: Tab) -> list[Any]:
    if not tab.page.evaluate("typeof axe !== 'undefined'"):
        tab.page.evaluate(AXE)
    found: list[Any] = tab.page.evaluate(RUN)
    return found


def looked_at(tab: Tab, path: str) -> None:
    tab.go(path)
    tab.page.emulate_media(reduced_motion="reduce")
    assert violations(tab) == [], path
    tab.page.set_viewport_size(PHONE)
    assert violations(tab) == [], f"{path} on a phone"
    assert not tab.is_too_wide(), path
    tab.page.set_viewport_size(DESK)


@pytest.mark.sampled
@pytest.mark.parametrize("part", range(PARTS))
def test_no_page_has_a_violation(tab: Tab, client: Client, part: int) -> None:
    if part == 0:
        looked_at(tab, f"{P}/dags/{wide_dag(client, width=4, depth=3, track='Z')}")
    for path in PAGES[part::PARTS]:
        looked_at(tab, f"{P}{path}")


def test_no_form_has_a_violation(tab: Tab) -> None:
    forms = {"/tasks": "New task", "/dags": "Upload a plan", "/schedules": "New trigger"}
    for path, button in forms.items():
        tab.go(f"{P}{path}")
        tab.page.get_by_role("button", name=button).click()
        tab.find("dialog").wait_for()
        assert violations(tab) == [], button
        tab.press("Escape")


@pytest.mark.nightly
def test_no_page_has_a_violation_in_the_dark(tab: Tab) -> None:
    tab.page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    for path in PAGES:
        tab.go(f"{P}{path}")
        assert violations(tab) == [], path
