"""Tenants in the dashboard: a tab shows one, whatever other tabs are signed in to; people by role; the owner's list."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tenure import Client
from tenure.core import commands as c
from tenure.engine import Engine
from tenure.engine.runtime.tenancy import TenantEngines
from tests.server.dashboard.tab import Tab
from tests.server.dashboard.test_accessibility import violations
from tests.servers.postgres import PostgresServer
from tests.servers.tenure import TenureServer

P = "/projects/shop"


class Houses:
    """A server with the tenants `acme` and `zeta`: equal projects, equal task keys."""

    def __init__(self, url: str) -> None:
        self.home = Client(url, "home", create=True)
        self.home.add("Keep the deployment running")
        engines = TenantEngines(self.home.engine, lambda: 0.0)
        self.engines: dict[str, Engine] = {"local": self.home.engine}
        for name in ("acme", "zeta"):
            self.home.engine.do(c.AddTenant(tenant=name))
            engine = self.engines[name] = engines.find(name)
            for project in ("shop", "bakery"):
                engine.do(c.DefineProject(project=project))
            engine.do(c.Add(project="shop", task=c.NewTask(title=f"Task of {name}")))
        self.keys = {name: self._key(name, "owner") for name in self.engines}
        self.admin = self._key("acme", "admin")
        self.server = TenureServer(url, settings={"TENURE_SERVE_AUTH": "required"})

    def _key(self, tenant: str, role: str) -> str:
        made = self.engines[tenant].do(c.CreateKey(project="", name=f"{role} of {tenant}", role=role))
        return str(made.secret)


@pytest.fixture(scope="module")
def houses(postgres: PostgresServer) -> Iterator[Houses]:
    houses = Houses(postgres.create("houses"))
    with houses.server:
        yield houses
    houses.home.close()


def signed_in(tab: Tab, path: str, key: str) -> None:
    tab.forgives = ("400", "401", "404")
    tab.page.goto(tab.url + path)
    enter(tab, key)


def enter(tab: Tab, key: str) -> None:
    tab.page.get_by_label("Key").fill(key)
    tab.page.get_by_role("button", name="Sign in").click()


def test_a_tab_stays_in_its_tenant_while_another_signs_in(houses: Houses, tabs: Callable[..., Tab]) -> None:
    tab = tabs(url=houses.server.url)
    signed_in(tab, f"{P}/tasks", houses.keys["acme"])
    expect(tab.find("main")).to_contain_text("Task of acme")
    expect(tab.page).to_have_url(f"{tab.url}/t/acme{P}/tasks")
    beside = tab.context.new_page()
    beside.goto(f"{tab.url}/t/acme{P}/tasks")
    expect(beside.locator("main")).to_contain_text("Task of acme")
    tab.find(".top").get_by_label("Tenant").select_option("Sign in to another…")
    enter(tab, houses.keys["zeta"])
    expect(tab.page).to_have_url(f"{tab.url}/t/zeta/")
    tab.page.get_by_role("link", name="shop").click()
    tab.find("#nav").get_by_role("link", name="Tasks").click()
    expect(tab.find("main")).to_contain_text("Task of zeta")
    beside.get_by_role("button", name="New task").click()
    beside.get_by_label("Title").fill("Added beside")
    beside.get_by_role("button", name="Create").click()
    expect(beside.locator("main")).to_contain_text("Added beside")
    expect(tab.find("main")).not_to_contain_text("Added beside")
    tab.find(".top").get_by_label("Tenant").select_option("Sign in to another…")
    enter(tab, houses.keys["local"])
    expect(tab.page).to_have_url(f"{tab.url}/t/local/projects/home")
    for name, address in (("acme", "/t/acme/"), ("local", "/t/local/projects/home"), ("acme", "/t/acme/")):
        tab.find(".top").get_by_label("Tenant").select_option(name)
        expect(tab.page).to_have_url(f"{tab.url}{address}")
    tab.page.goto(f"{tab.url}/t/acme{P}/tasks")
    expect(tab.find("main")).to_contain_text("Added beside")


def test_a_tenant_of_others_looks_like_one_that_does_not_exist(houses: Houses, tabs: Callable[..., Tab]) -> None:
    tab = tabs(url=houses.server.url)
    signed_in(tab, "/", houses.keys["acme"])
    tab.page.wait_for_url(f"{tab.url}/t/acme/")
    expect(tab.find("h1")).to_have_text("Projects")
    said = []
    for name in ("zeta", "none"):
        tab.page.goto(f"{tab.url}/t/{name}{P}/tasks")
        expect(tab.find("h1")).to_have_text("Tenant not found")
        said.append(tab.find("main").inner_text().replace(name, "NAME"))
    assert said[0] == said[1]
    tab.page.goto(f"{tab.url}/t/zeta")
    tab.page.get_by_role("button", name="Sign in with another key").click()
    enter(tab, houses.keys["acme"])
    expect(tab.find(".problem")).to_have_text("The key does not open this tenant.")
    enter(tab, houses.keys["zeta"])
    expect(tab.find("h1")).to_have_text("Projects")


@pytest.mark.nightly
def test_members_are_invited_changed_and_removed_as_far_as_the_role_reaches(
    houses: Houses, tabs: Callable[..., Tab], artifacts: Path | None
) -> None:
    houses.engines["acme"].do(c.InviteMember(user="olga@acme", role="owner"))
    tab = tabs(url=houses.server.url)
    signed_in(tab, "/t/acme/members", houses.admin)
    expect(tab.find("tr[data-user='olga@acme']")).to_contain_text("invited")
    expect(tab.find("tr[data-user='olga@acme'] button")).to_have_count(0)
    tab.page.get_by_role("button", name="Invite").click()
    assert tab.find("dialog select option").all_inner_texts() == ["viewer", "member"]
    tab.page.get_by_label("Person").fill("bo@acme")
    tab.page.get_by_label("Projects").fill("shop")
    tab.find("dialog").get_by_role("button", name="Invite").click()
    bo = tab.find("tr[data-user='bo@acme']")
    expect(bo).to_contain_text("shop")
    bo.get_by_role("button", name="Change").click()
    tab.find("dialog").get_by_label("Role").select_option("viewer")
    tab.picture(artifacts, "members-change-light.png")
    tab.find("dialog").get_by_role("button", name="Save").click()
    expect(bo).to_contain_text("viewer")
    assert violations(tab) == []
    tab.picture(artifacts, "members-light.png")
    bo.get_by_role("button", name="Remove").click()
    tab.find("dialog").get_by_role("button", name="Remove").click()
    expect(bo).to_have_count(0)
    tab.page.get_by_role("button", name="Former too").click()
    expect(bo).to_contain_text("left")
    tab.go(f"/t/acme{P}/events?noun=member")
    expect(tab.find(".event-text").first).to_contain_text("bo@acme")


@pytest.mark.nightly
def test_the_deployments_owner_adds_limits_and_closes_tenants(
    houses: Houses, tabs: Callable[..., Tab], artifacts: Path | None
) -> None:
    tab = tabs(url=houses.server.url)
    signed_in(tab, "/tenants", houses.keys["local"])
    expect(tab.find("tr[data-name=acme]")).to_contain_text("default")
    tab.page.get_by_role("button", name="New tenant").click()
    tab.page.get_by_label("Name", exact=True).fill("omega")
    tab.find("dialog").get_by_role("button", name="Create").click()
    omega = tab.find("tr[data-name=omega]")
    omega.get_by_role("button", name="Limits").click()
    tab.page.get_by_label("max_concurrent_claims").fill("500")
    tab.page.get_by_label("history_retention").fill("30")
    expect(tab.find("dialog")).to_contain_text("days")
    tab.picture(artifacts, "tenant-limits-light.png")
    tab.find("dialog").get_by_role("button", name="Save").click()
    expect(omega).to_contain_text("max_concurrent_claims 500, history_retention 30 days")
    assert violations(tab) == []
    tab.picture(artifacts, "tenants-light.png")
    omega.get_by_role("button", name="Close").click()
    tab.page.get_by_label("Reason").fill("moved away")
    tab.find("dialog").get_by_role("button", name="Close it").click()
    expect(omega).to_have_count(0)
    tab.page.get_by_role("button", name="Closed too").click()
    expect(omega).to_contain_text("moved away")
    omega.get_by_role("button", name="Reopen").click()
    expect(omega).to_contain_text("open")


@pytest.mark.nightly
def test_a_limit_shows_its_value_its_source_and_its_use(houses: Houses, tabs: Callable[..., Tab]) -> None:
    tab = tabs(url=houses.server.url)
    signed_in(tab, f"/t/zeta{P}/limits", houses.keys["zeta"])
    claims = tab.find("tr[data-name=max_concurrent_claims]")
    expect(claims).to_contain_text("100")
    expect(claims).to_contain_text("tenant")
    longest = tab.find("tr[data-name=max_lease] .figures").first
    expect(longest).to_have_text("1 h")
    expect(longest).to_have_attribute("title", "3,600 seconds")
    with Client(houses.server.url, "shop", key=houses.keys["zeta"], agent="ann", session="ann-1") as ann:
        ann.claim()
    tab.page.reload()
    expect(claims.locator(".meter")).to_have_attribute("aria-label", "1 of 100 used")
    tab.page.get_by_role("button", name="Change").click()
    tab.page.get_by_label("max_concurrent_claims").fill("101")
    tab.page.get_by_role("button", name="Save").click()
    expect(tab.find("dialog .problem")).to_contain_text("must not be above the tenant's")
    tab.page.get_by_label("max_concurrent_claims").fill("7")
    tab.page.get_by_role("button", name="Save").click()
    expect(claims).to_contain_text("this project")
