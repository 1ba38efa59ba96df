"""The dashboard's files: served as they should be, and made as they must."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import re
from pathlib import Path
from typing import Any

import pytest

import tenure.server.dashboard
from tenure.cli import text_format
from tenure.client.routes import COMMANDS, T
from tenure.core import lifecycle, notices
from tenure.core.commands.webhook_commands import WEBHOOK
from tenure.core.events import KINDS
from tenure.server.dashboard import Dashboard

STATIC = Path(tenure.server.dashboard.__file__).parent / "static"
OURS = [path for path in STATIC.rglob("*") if path.is_file() and "vendor" not in path.parts]
DASHBOARD = Dashboard()


class Answered:
    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self.status: int = messages[0]["status"]
        self.headers = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
        self.body: bytes = messages[1]["body"]


def get(path: str, method: str = "GET", **headers: str) -> Answered:
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    asked = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    asyncio.run(DASHBOARD({"method": method, "path": path, "headers": asked}, receive, send))
    return Answered(sent)


def script(name: str) -> str:
    return (STATIC / "js" / name).read_text()


# --- over HTTP ---


def test_every_address_of_the_dashboard_is_the_one_page() -> None:
    for path in ("/", "/projects/shop", "/projects/shop/tasks/B-003-x", "/projects/a%20b/dags/d"):
        page = get(path)
        assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert page.body == get("/").body
    for path in ("/nowhere", "/api/v1/nothing", "/static/js/main.js", "/static/../pages.py"):
        assert get(path).status == 404


def test_all_that_the_page_names_is_there() -> None:
    page = get("/").body.decode()
    named = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert len(named) > 20
    kinds = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    for path in named:
        file = get(path)
        assert file.status == 200, path
        assert file.headers["content-type"].startswith(kinds[path.rpartition(".")[2]])
        assert "immutable" in file.headers["cache-control"]


def test_nothing_leads_out_of_the_folder() -> None:
    prefix = f"/static/{DASHBOARD.version}/"
    for name in ("../pages.py", "js/../../pages.py", "%2e%2e/pages.py", "//etc/passwd", "js", "", "index.html"):
        assert get(prefix + name).status == 404


def test_what_a_browser_has_is_not_sent_again() -> None:
    page = get("/")
    assert page.headers["cache-control"] == "no-cache"
    again = get("/", if_none_match=page.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    assert get("/", if_none_match='"other"').status == 200


def test_files_are_packed_for_those_who_can_unpack() -> None:
    packed = get("/", accept_encoding="gzip, br")
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == get("/").body
    assert "content-encoding" not in get("/").headers


def test_a_head_has_no_body_and_nothing_can_be_written() -> None:
    assert (get("/", "HEAD").status, get("/", "HEAD").body) == (200, b"")
    for method in ("POST", "PUT", "DELETE"):
        assert get("/", method).status == 405


@pytest.mark.parametrize("path", ["/", "/nowhere", f"/static/{DASHBOARD.version}/js/main.js"])
def test_every_answer_is_guarded(path: str) -> None:
    headers = get(path).headers
    policy = dict(part.strip().partition(" ")[::2] for part in headers["content-security-policy"].split(";"))
    assert (policy["default-src"], policy["script-src"], policy["style-src"]) == ("'none'", "'self'", "'self'")
    assert (policy["connect-src"], policy["frame-ancestors"], policy["base-uri"]) == ("'self'", "'none'", "'none'")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


# --- as they are written ---


def test_no_file_names_another_host() -> None:
    for path in OURS:
        found = set(re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}", path.read_text()))
        assert found <= {"http://www.w3.org"}, path


def test_nothing_makes_markup_or_code_out_of_data() -> None:
    risky = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySet|document\.write|\beval\(|new Function")
    for path in OURS:
        assert not risky.search(path.read_text()), path
    page = (STATIC / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*src=)|<style|\son\w+=|\sstyle=", page)


def test_what_others_wrote_is_as_the_notice_says() -> None:
    vendor = STATIC / "vendor"
    notice = (vendor / "NOTICE.md").read_text()
    told = dict(re.findall(r"^\| `([^`]+)` .*?`([0-9a-f]{64})`", notice, re.MULTILINE))
    there = {path.name: path for path in vendor.iterdir() if path.suffix in (".js", ".css")}
    assert told == {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in there.items()}
    for licence in set(re.findall(r"`(\w+\.LICENSE\.txt)`", notice)):
        assert (vendor / licence).read_text().strip()


def test_modules_stay_small_enough_to_read() -> None:
    for path in OURS:
        assert len(path.read_text().splitlines()) <= 400, path


def test_states_are_all_known_with_the_command_line_s_signs() -> None:
    told = script("format.js").partition("MARKS = {")[2].partition("}")[0]
    signs = dict(re.findall(r'(\w+): "(.)"', told))
    assert tuple(signs) == lifecycle.STATES
    assert {state: sign for state, sign in signs.items() if sign != text_format.MARKS[state].sign} == {"cancelled": "–"}


def test_every_event_with_a_colour_is_known() -> None:
    kinds = re.findall(r'"(\w+\.\w+)"', script("tones.js"))
    assert len(kinds) > 20
    assert set(kinds) <= set(KINDS)


def test_the_kinds_of_notices_are_those_of_the_rule() -> None:
    kinds = re.findall(r'"(\w+\.\w+)"', script("bell.js").partition("KINDS = [")[2].partition("]")[0])
    assert set(kinds) == set(notices.EVENTS)


def test_every_verb_of_a_webhook_or_sink_is_a_route() -> None:
    routes = {route.path for route in COMMANDS}
    sent = set(re.findall(r'send\(project, (?:webhook\.)?name, "(\w+)"', script("pages/webhook-actions.js")))
    assert len(sent) == 6
    assert {f"{WEBHOOK}/{verb}" for verb in sent} | {WEBHOOK} <= routes
    relays = set(re.findall(r'(?:confirming\(|send\(sink, )"(\w+)"', script("pages/sinks.js")))
    assert {f"/relays/{{sink}}/{verb}" for verb in relays} == {path for path in routes if "/relays/" in path}


def test_every_verb_of_a_button_is_a_route() -> None:
    verbs = set(re.findall(r'\bverb: "(\w+)"', script("pages/task-actions.js")))
    assert len(verbs) > 8
    routes = {route.path.removeprefix(f"{T}/") for route in COMMANDS if route.path.startswith(f"{T}/")}
    assert verbs - {"publish", "edit"} <= routes  # PATCH of the task, and of the project
