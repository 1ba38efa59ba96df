"""Sinks, webhooks and notices on the dashboard."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tenure.client import Client
from tenure.client.caller import SystemRandom
from tenure.core import queries as q
from tenure.core.commands import CreateKey, PauseWebhook, RemoveRelay, SetWebhook
from tenure.core.records import Delivery, Sink, Webhook, replace
from tenure.engine import Engine
from tenure.engine.reads.query_table import read_query
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.stores.open_store import open_store
from tenure.stores.port import Change
from tenure.testing.factories import SECRETS
from tests.server.dashboard.scene import HOSTILE
from tests.server.dashboard.tab import DESK, PHONE, Tab
from tests.servers.tenure import TenureServer
from tests.sinks.receivers import Receiver

URL = "https://receiver.invalid/hook"
MASTER_KEY = {"TENURE_MASTER_KEY": "5a" * 32}  # as SECRETS has it
# Receivers of these tests are on this machine.
LOCAL = {"TENURE_WEBHOOKS_ALLOW_HTTP": "true", "TENURE_WEBHOOKS_NETWORKS": "127.0.0.0/8"}
HOUR = 3600 * 1_000_000
HTTP_ERROR = "the receiver answered 500 Internal Server Error"


class Office:
    """The store beside the server: projects, webhooks and sinks with a past."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.engine = Engine(open_store(str(path)), SystemRandom(), SECRETS)
        self.clients: list[Client] = []

    def project(self, name: str) -> Client:
        self.clients.append(Client(str(self.path), name, agent="ann", session="ann-beside", create=True))
        self.clients[-1].init()
        return self.clients[-1]

    def webhook(self, project: str, name: str = "ci", **fields: Any) -> None:
        """A webhook with some fields of its row set."""
        self.engine.do(SetWebhook(project=project, webhook=name, url=URL, kinds=("task.completed",)))
        with self.engine.store.begin(self.engine.tenant, write=True) as tx:
            (row,) = tx.load(Webhook, ((project, name),))
            tx.save([Change(row, replace(row, **fields))])

    def delivery(self, project: str, number: int, state: str, **fields: Any) -> None:
        with self.engine.store.begin(self.engine.tenant, write=True) as tx:
            row = Delivery(
                project=project, id=f"ci:m{number}", webhook="ci", message=f"m{number}", event=f"e{number}",
                sequence=number, kind="task.completed", state=state, at=tx.now - HOUR, tries=1, tried_at=tx.now - HOUR,
                body=b"{}",
            )  # fmt: skip
            if state == "parked":
                row = replace(row, next_at=tx.now + HOUR, first_at=tx.now - HOUR, parked_at=tx.now - HOUR)
            tx.save([Change(None, replace(row, **fields))])

    def sink(self, name: str, **fields: Any) -> None:
        with self.engine.store.begin(self.engine.tenant, write=True) as tx:
            row = Sink(project="", id=name, sequence=2, url=f"nats://{name}:4222", sent=1234, created_at=tx.now)
            tx.save([Change(None, replace(row, **fields))])

    def sinks(self) -> dict[str, Any]:
        return {sink["name"]: sink for sink in read_query(self.engine, q.Relays(project=""))}

    def shown(self, project: str, name: str = "ci") -> Any:
        return read_query(self.engine, q.ShowWebhook(project=project, webhook=name))

    def log(self, project: str) -> dict[str, str]:
        found: Any = read_query(self.engine, q.Deliveries(project=project, webhook="ci"))
        return {one["message"]: one["state"] for one in found}

    def close(self) -> None:
        for client in self.clients:
            client.close()
        self.engine.store.close()


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    made = Office(tmp_path_factory.mktemp("delivery") / "tenure.db")
    made.project("post")
    yield made
    made.close()


@pytest.fixture(scope="module")
def server(office: Office) -> Iterator[TenureServer]:
    with TenureServer(str(office.path), settings=MASTER_KEY | LOCAL) as running:
        yield running


@pytest.fixture(autouse=True)
def _without_sinks_of_other_tests(office: Office) -> Iterator[None]:
    """Sinks belong to the store, not to a test's project."""
    yield
    for name in office.sinks():
        if name != "webhooks":  # it stays as long as there is a webhook
            office.engine.do(RemoveRelay(project="", sink=name))


def card(tab: Tab, name: str) -> Locator:
    return tab.find(f'.source[data-name="{name}"]')


def press(where: Locator, name: str) -> None:
    where.get_by_role("button", name=name, exact=True).click()


def buried(client: Client, title: str) -> str:
    key = str((client.add(title, max_attempts=1).task or {})["key"])
    client.fail(str(client.claim(key).receipt), f"{title}: it broke")
    return key


# --- sinks ---


def test_a_sink_is_shown_with_its_place_lag_and_error_and_is_paused_and_resumed(tab: Tab, office: Office) -> None:
    office.sink("broker", error="connection refused")
    tab.go("/projects/post/delivery")
    broker = card(tab, "broker")
    for text in ("failing", "nats://broker:4222", "1,234 messages", "after event 2", "of at most 7 d", "refused"):
        expect(broker).to_contain_text(text)
    press(broker, "Pause")
    assert office.sinks()["broker"]["paused_at"] is None  # not before it is confirmed
    press(tab.find("dialog"), "Pause")
    expect(broker).to_contain_text("paused")
    assert office.sinks()["broker"]["paused_at"] is not None
    press(broker, "Resume")
    press(tab.find("dialog"), "Resume")
    expect(broker).to_contain_text("failing")
    assert office.sinks()["broker"]["paused_at"] is None


@pytest.mark.nightly
def test_a_sink_is_rewound_to_an_event_or_a_time_and_a_wrong_one_is_explained(tab: Tab, office: Office) -> None:
    office.sink("stream", sequence=3)
    tab.go("/projects/post/delivery")
    stream = card(tab, "stream")
    press(stream, "Rewind")
    tab.page.get_by_label("Send again").select_option("sequence")
    place = tab.page.get_by_label("Sequence of the event")
    place.fill("999999")
    tab.forgives = ("400", "422")
    press(tab.find("dialog"), "Rewind")
    expect(tab.find("dialog")).to_contain_text("the end of the log")
    place.fill("1")
    press(tab.find("dialog"), "Rewind")
    expect(stream).to_contain_text("after event 1")
    press(stream, "Rewind")
    tab.page.get_by_label("Time").fill("2020-01-01T00:00")
    press(tab.find("dialog"), "Rewind")
    expect(stream).to_contain_text("after event 0")


@pytest.mark.nightly
def test_a_sink_that_is_no_longer_used_is_removed(tab: Tab, office: Office) -> None:
    office.sink("old")
    tab.go("/projects/post/delivery")
    press(card(tab, "old"), "Remove")
    press(tab.find("dialog"), "Remove")
    expect(card(tab, "old")).to_have_count(0)
    assert "old" not in office.sinks()


# --- webhooks ---


def test_a_webhook_is_created_and_its_secret_is_shown_once(tab: Tab, office: Office) -> None:
    office.project("fresh")
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.forgives = ("400", "422")
    tab.go("/projects/fresh/delivery")
    expect(tab.find("main")).to_contain_text("No webhooks yet")
    press(tab.find("main"), "New webhook")
    dialog = tab.find("dialog")
    dialog.get_by_label("Name").fill("deploy")
    dialog.get_by_label("URL").fill(URL)
    dialog.get_by_label("Kinds of events").fill("task.completed, nothing.at_all")
    press(dialog, "Create")
    expect(dialog.get_by_role("alert")).to_contain_text("matches no kind of event")
    dialog.get_by_label("Kinds of events").fill("task.completed dag.*")
    dialog.get_by_label("Filter").fill("[1]")
    press(dialog, "Create")
    expect(dialog.get_by_role("alert")).to_contain_text("JSON object")
    dialog.get_by_label("Filter").fill('{"task.type": "review"}')
    press(dialog, "Create")
    secret = tab.page.get_by_label("Secret", exact=True)
    expect(secret).to_have_value(re.compile("^whsec_"))
    expect(dialog).to_contain_text("it is not shown again")
    shown = secret.input_value()
    press(dialog, "Copy")
    expect(dialog).to_contain_text("Copied.")
    assert tab.page.evaluate("navigator.clipboard.readText()") == shown
    press(dialog, "Close")
    expect(card(tab, "deploy")).to_contain_text("task.completed, dag.*")
    assert shown not in tab.page.content() + tab.page.evaluate("JSON.stringify([localStorage, sessionStorage])")
    assert office.shown("fresh", "deploy")["filter"] == {"task.type": "review"}


@pytest.mark.nightly
def test_a_webhook_gets_a_new_secret_beside_the_old_one(tab: Tab, office: Office) -> None:
    office.project("keys")
    office.webhook("keys")
    tab.go("/projects/keys/delivery")
    press(card(tab, "ci"), "New secret")
    dialog = tab.find("dialog")
    dialog.get_by_label("Hours until the old secret ends").fill("2")
    press(dialog, "Rotate")
    expect(tab.page.get_by_label("Secret", exact=True)).to_have_value(re.compile("^whsec_"))
    press(dialog, "Close")
    expect(card(tab, "ci")).to_contain_text("also signs until in 1 h 59 min")


def test_a_webhook_is_edited_tested_paused_resumed_and_removed(tab: Tab, office: Office) -> None:
    client = office.project("bench")
    office.webhook("bench")
    tab.go("/projects/bench/delivery")
    ci = card(tab, "ci")
    press(ci, "Edit")
    tab.page.get_by_label("Kinds of events").fill("task.*")
    press(tab.find("dialog"), "Save")
    expect(ci).to_contain_text("task.*")
    press(ci, "Test")
    expect(tab.find(".toast")).to_contain_text(["Test message on its way: ci"])
    assert "webhook.test" in [event["kind"] for event in client.log()]
    press(ci, "Pause")
    tab.page.get_by_label("Reason").fill("the receiver moves")
    press(tab.find("dialog"), "Pause")
    expect(ci).to_contain_text("the receiver moves")
    assert office.shown("bench")["enabled"] is False
    press(ci, "Resume")
    expect(ci.get_by_role("button", name="Pause")).to_be_visible()
    assert office.shown("bench")["enabled"] is True
    press(ci, "Remove")
    press(tab.find("dialog"), "Remove")
    expect(tab.find("main")).to_contain_text("No webhooks yet")


@pytest.mark.nightly
def test_deliveries_are_filtered_by_state_and_replayed(tab: Tab, office: Office) -> None:
    office.project("mail")
    office.webhook("mail", delivered=1, failed=2, parked=1)
    office.delivery("mail", 1, "delivered", status=200, duration=120_000)
    office.delivery("mail", 2, "failed", status=500, error=HTTP_ERROR)
    office.delivery("mail", 3, "failed", error="no answer within 10 s")
    office.delivery("mail", 4, "parked", status=503, error="the receiver answered 503")
    tab.go("/projects/mail/delivery")
    expect(card(tab, "ci")).to_contain_text("1 · 1 · 2")
    tab.page.get_by_role("link", name="Deliveries of ci").click()
    lines = tab.find(".delivery")
    expect(lines).to_have_count(4)
    expect(lines.nth(0)).to_contain_text("next in 59 min")
    press(tab.find("main"), "Failed")
    expect(lines).to_have_count(2)
    assert "state=failed" in tab.page.url
    expect(lines.nth(1)).to_contain_text(HTTP_ERROR)
    press(lines.nth(1), "Replay: task.completed, event 2")
    expect(lines).to_have_count(1)
    assert office.log("mail") == {"m1": "delivered", "m2": "parked", "m3": "failed", "m4": "parked"}
    press(tab.find("main"), "Replay")
    press(tab.find("dialog"), "Replay")
    expect(tab.find("main")).to_contain_text("No delivery has this state")
    assert office.log("mail")["m3"] == "parked"


@pytest.mark.nightly
def test_who_may_only_look_sees_deliveries_and_no_buttons(tabs: Callable[..., Tab], office: Office) -> None:
    client = office.project("hall")
    office.webhook("hall")
    office.delivery("hall", 1, "failed", error=HTTP_ERROR)
    office.sink("seen")
    viewer = client.do(CreateKey(name="vera", role="viewer"))
    bounded = client.do(CreateKey(name="bob", role="admin", projects=("hall",)))
    settings = {"TENURE_SERVE_AUTH": "required", **MASTER_KEY}
    with TenureServer(str(office.path), settings=settings) as guarded:
        for made, buttons in ((viewer, 0), (bounded, 1)):
            tab = tabs(url=guarded.url)
            tab.forgives = ("401",)
            tab.page.goto(f"{guarded.url}/projects/hall/delivery")
            tab.page.get_by_label("Key").fill(str(made.secret))
            tab.page.get_by_role("button", name="Sign in").click()
            expect(card(tab, "ci")).to_contain_text(URL)
            expect(card(tab, "ci").get_by_role("button", name="Edit")).to_have_count(buttons)
            expect(tab.page.get_by_role("button", name="New webhook")).to_have_count(buttons)
            expect(card(tab, "seen")).to_have_count(1 - buttons)  # sinks concern all projects
            expect(card(tab, "seen").get_by_role("button")).to_have_count(0)
            tab.page.get_by_role("link", name="Deliveries of ci").click()
            expect(tab.find(".delivery")).to_contain_text(HTTP_ERROR)
            expect(tab.find(".delivery").get_by_role("button")).to_have_count(buttons)
            tab.page.goto("about:blank")  # before the server ends


def test_a_test_message_is_delivered_and_its_line_appears(tab: Tab, office: Office) -> None:
    office.project("line")
    with Receiver() as receiver:
        tab.go("/projects/line/delivery")
        press(tab.find("main"), "New webhook")
        dialog = tab.find("dialog")
        dialog.get_by_label("Name").fill("ci")
        dialog.get_by_label("URL").fill(f"http://127.0.0.1:{receiver.port}/hook")
        press(dialog, "Create")
        press(dialog, "Close")
        tab.page.get_by_role("link", name="Deliveries of ci").click()
        press(tab.find("main"), "Test")
        expect(tab.find(".delivery")).to_contain_text("webhook.test")
        expect(tab.find(".delivery")).to_contain_text("HTTP 200 1 try")
        expect(tab.find(".webhook")).to_contain_text("1 · 0 · 0")
        assert len(receiver.requests) == 1


def test_changes_by_others_are_shown_at_once(tab: Tab, office: Office) -> None:
    office.project("shed")
    tab.go("/projects/shed/delivery")
    expect(tab.find(".live")).to_have_text("Live")
    office.webhook("shed")
    expect(card(tab, "ci")).to_contain_text("ok")
    office.engine.do(PauseWebhook(project="shed", webhook="ci", reason="at lunch"))
    expect(card(tab, "ci")).to_contain_text("at lunch")


# --- notices ---


@pytest.mark.nightly
def test_notices_are_counted_live_since_the_user_last_looked(tab: Tab, office: Office) -> None:
    client = office.project("desk")
    key = buried(client, "Post the letter")
    tab.go("/projects/desk")
    bell = tab.find(".bell")
    expect(bell).to_have_accessible_name("Notices: 1 new")
    tab.press("n")
    dialog = tab.find("dialog")
    expect(dialog.locator("li")).to_have_count(1)
    expect(dialog.locator("li.new")).to_contain_text("dead letter")
    press(dialog, "Close")
    expect(bell).to_have_accessible_name("Notices")
    asking = str((client.add("Paint the door").task or {})["key"])
    client.ask(str(client.claim(asking).receipt), HOSTILE)
    client.pause(str((client.add("Wait").task or {})["key"]))  # by a person: not a notice
    expect(bell).to_have_accessible_name("Notices: 1 new")
    tab.page.reload()
    expect(bell).to_have_accessible_name("Notices: 1 new")
    bell.click()
    expect(dialog.locator("li.new")).to_contain_text(HOSTILE)
    expect(dialog.locator("li")).to_have_count(2)
    dialog.get_by_role("link").filter(has_text=key).click()
    expect(tab.find("h1")).to_have_text("Post the letter")
    expect(bell).to_have_accessible_name("Notices")
    tab.page.reload()
    expect(bell).to_have_accessible_name("Notices")


@pytest.mark.nightly
def test_a_disabled_webhook_and_a_sink_that_was_cut_off_are_notices(tab: Tab, office: Office) -> None:
    office.project("ward")
    office.webhook("ward")
    with office.engine.store.begin(office.engine.tenant, write=True) as tx:
        work = UnitOfWork(tx, office.engine.random, office.engine.context)
        work.record("webhook.disabled", project="ward", level="error", details={"webhook": "ci", "why": "410 Gone"})
        work.save()
    tab.go("/projects/ward")
    expect(tab.find(".bell")).to_have_accessible_name("Notices: 1 new")
    with office.engine.store.begin(office.engine.tenant, write=True) as tx:
        work = UnitOfWork(tx, office.engine.random, office.engine.context)
        work.record("sink.behind", project="", level="error", details={"sink": "lost", "after": 2})
        work.save()  # of no project: the stream brings it, for a key of all projects
    expect(tab.find(".bell")).to_have_accessible_name("Notices: 2 new")
    tab.find(".bell").click()
    expect(tab.find("dialog")).to_contain_text("sink lost is too far behind and is cut off")
    tab.find("dialog").get_by_role("link").filter(has_text="webhook ci is disabled").click()
    expect(tab.find("h1")).to_have_text("ci")


# --- as they look ---


def test_the_pages_are_named_within_their_width_and_unharmed_by_what_receivers_answer(
    tab: Tab, office: Office, artifacts: Path | None
) -> None:
    office.project("look")
    now = int(time.time() * 1e6)
    failing = {"failing_since": now, "failure_at": now, "down_since": now, "status": 500}
    office.webhook("look", error=f"{HOSTILE} " * 5, **failing)
    office.webhook("look", "archive", delivered=1520, status=204, success_at=now - HOUR)
    for number, state in enumerate(("delivered", "failed", "parked", "delivered"), 1):
        error = None if state == "delivered" else HOSTILE + "x" * 300
        office.delivery("look", number, state, error=error, status=200 if state == "delivered" else None)
    office.sink("events", error=HOSTILE * 4, url="nats://" + "a" * 120)
    buried(office.project("look"), HOSTILE)
    for name, path in {"delivery": "", "webhook": "/ci"}.items():
        tab.go(f"/projects/look/delivery{path}")
        expect(tab.find("main")).to_contain_text(HOSTILE)
        expect(tab.find("main")).not_to_contain_text("NaN")
        assert tab.nameless() == []
        for look, size, scheme in (("light", DESK, "light"), ("dark", DESK, "dark"), ("phone", PHONE, "light")):
            tab.page.set_viewport_size(size)
            tab.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            assert not tab.is_too_wide(), f"{name} in {look}"
            tab.picture(artifacts, f"{name}-{look}.png", full_page=look == "phone")
    tab.find(".bell").click()
    expect(tab.find("dialog")).to_contain_text(HOSTILE)
    tab.picture(artifacts, "notices-phone.png")
    tab.press("Escape")
    tab.page.set_viewport_size(DESK)
    tab.page.emulate_media(color_scheme="dark")
    tab.find(".bell").click()
    tab.picture(artifacts, "notices-dark.png")
    assert tab.find("img, script:not([src])").count() == 0
