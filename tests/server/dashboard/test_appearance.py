"""Every page as it looks: by day, by night, on a phone; quiet, within its width, and unharmed by what tasks say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tenure.client import Client
from tenure.core.commands import CreateKey
from tenure.core.records import Project
from tenure.stores.port import Change
from tests.server.dashboard.conftest import PROJECT
from tests.server.dashboard.scene import HOSTILE, SNEAKY, hostile_work
from tests.server.dashboard.tab import DESK, PHONE, Tab
from tests.servers.tenure import TenureServer

P = f"/projects/{PROJECT}"
LOOKS = (("light", DESK, "light"), ("dark", DESK, "dark"), ("phone", PHONE, "light"))


@pytest.mark.sampled
@pytest.mark.parametrize("part", range(3))
def test_no_page_is_loud_nameless_too_wide_or_harmed_by_what_tasks_say(
    tab: Tab, store: Path, client: Client, artifacts: Path | None, part: int
) -> None:
    key = hostile_work(store, PROJECT)
    accounts = next(dag["id"] for dag in client.dags() if dag["title"] == "Accounts")
    hostile_dag = next(dag["id"] for dag in client.dags() if dag["title"] == HOSTILE)
    pages = {  # and what must stand there literally
        "overview": (P, SNEAKY),
        "tasks": (f"{P}/tasks", HOSTILE),
        "board": (f"{P}/tasks?view=board", HOSTILE),
        "task": (f"{P}/tasks/C-001", "Write the API"),
        "task-hostile": (f"{P}/tasks/{key}", HOSTILE),
        "dags": (f"{P}/dags", HOSTILE),
        "dag": (f"{P}/dags/{accounts}", "Accounts"),
        "dag-hostile": (f"{P}/dags/{hostile_dag}", HOSTILE),
        "forecast": (f"{P}/forecast", "The path that decides"),
        "agents": (f"{P}/agents", SNEAKY),
        "dead-letters": (f"{P}/dead-letters", HOSTILE),
        "messages": (f"{P}/messages", HOSTILE),
        "events": (f"{P}/events", SNEAKY),
        "usage": (f"{P}/usage", SNEAKY),
        "coordinator": (f"{P}/coordinator", "Leader of the store"),
    }
    for name, (path, text) in list(pages.items())[part::3]:
        tab.go(path)
        expect(tab.find("main")).to_contain_text(text)
        assert tab.nameless() == [], name
        for look, size, scheme in LOOKS[:1] if "hostile" in name else LOOKS:
            tab.page.set_viewport_size(size)
            tab.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            assert not tab.is_too_wide(), f"{name} in {look}"
            tab.picture(artifacts, f"{name}-{look}.png", full_page=look == "phone")
        tab.page.set_viewport_size(DESK)
    assert tab.find("img, script:not([src])").count() == 0


def test_a_stored_project_that_no_address_can_name_is_listed_without_one(tab: Tab, store: Path) -> None:
    """A browser takes `.` out of an address, so what it would ask for is the list."""
    planted = [Project(project=name, id=name, created_at=1) for name in (".", "..")]
    with Client(str(store), PROJECT) as client:
        with client.store.begin("local", write=True) as tx:
            tx.save([Change(None, row) for row in planted])
        tab.go("/")
        expect(tab.find(".card", has_text=PROJECT)).to_have_count(1)
        expect(tab.find(".card", has_text="use the command line")).to_have_count(2)
        with client.store.begin("local", write=True) as tx:
            tx.save([Change(row, None) for row in planted])


@pytest.mark.nightly
def test_an_empty_project_and_the_list_of_projects_are_drawn_too(tab: Tab, store: Path, artifacts: Path | None) -> None:
    with Client(str(store), "quiet", create=True) as quiet:
        quiet.init()
    empty = {"": "No tasks yet", "/tasks": "No tasks yet", "/dags": "No dags yet", "/agents": "No agents yet"}
    empty["/forecast"] = "No open tasks"
    empty |= {"/dead-letters": "No dead letters", "/messages": "No messages", "/usage": "No usage reported"}
    for page, said in empty.items():
        tab.go(f"/projects/quiet{page}")
        expect(tab.find("main")).to_contain_text(said)
    tab.picture(artifacts, "empty-light.png")
    tab.go("/")
    expect(tab.find(".card")).to_have_count(2)
    tab.picture(artifacts, "projects-light.png")
    tab.page.get_by_role("link", name=PROJECT).click()
    tab.page.get_by_label("Project").select_option("quiet")
    expect(tab.find("main")).to_contain_text("No tasks yet")


@pytest.mark.nightly
def test_what_is_not_there_is_said_to_be_missing(tab: Tab) -> None:
    tab.forgives = ("404",)
    for path in (f"{P}/tasks/Q-999", f"{P}/dags/none", "/projects/nowhere", f"{P}/nowhere"):
        tab.page.goto(tab.url + path)
        expect(tab.find(".notice-title")).to_contain_text("ot found")


@pytest.mark.nightly
def test_dark_is_as_the_system_has_it_or_as_it_was_chosen(tabs: Callable[..., Tab]) -> None:
    tab = tabs(color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    tab.go(P)
    dark = tab.page.evaluate(ground)
    tab.page.get_by_role("button", name="Theme: auto").click()
    tab.page.get_by_role("button", name="Theme: light").wait_for()
    light = tab.page.evaluate(ground)
    assert (dark, light) == ("rgb(15, 17, 21)", "rgb(246, 247, 249)")
    tab.page.reload()
    tab.page.get_by_role("button", name="Theme: light").wait_for()
    assert tab.page.evaluate(ground) == light


def test_on_a_phone_the_pages_are_behind_a_button(tabs: Callable[..., Tab]) -> None:
    tab = tabs(viewport=PHONE, has_touch=True, is_mobile=True)
    tab.go(P)
    agents = tab.find("#nav").get_by_role("link", name="Agents")
    expect(agents).not_to_be_visible()
    tab.page.get_by_role("button", name="Menu").tap()
    agents.tap()
    expect(tab.find("h1")).to_have_text("Agents")
    expect(agents).not_to_be_visible()


def test_who_may_only_look_signs_in_and_is_shown_no_verbs(
    tabs: Callable[..., Tab], store: Path, client: Client, artifacts: Path | None
) -> None:
    made = client.do(CreateKey(name="vera", role="viewer"))
    with TenureServer(str(store), settings={"TENURE_SERVE_AUTH": "required"}) as guarded:
        tab = tabs(url=guarded.url)
        tab.forgives = ("401",)
        tab.page.goto(f"{guarded.url}{P}/tasks/C-001")
        tab.page.get_by_label("Key").fill("tenure_nonsense")
        tab.page.get_by_role("button", name="Sign in").click()
        expect(tab.find(".problem")).to_contain_text("unknown, revoked or expired")
        tab.picture(artifacts, "login-light.png")
        tab.page.get_by_label("Key").fill(str(made.secret))
        tab.page.get_by_role("button", name="Sign in").click()
        expect(tab.find("h1")).to_have_text("Write the API")
        expect(tab.find(".live")).to_have_text("Live")
        expect(tab.find(".actions")).to_have_count(0)
        tab.page.get_by_role("button", name="Your name").click()
        expect(tab.find("dialog")).to_contain_text("viewer")
        tab.find("dialog").get_by_role("button", name="Sign out").click()
        expect(tab.page.get_by_label("Key")).to_be_visible()
