"""`status`: one screen, piped and on a terminal, and its JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import astuple

from tenure.cli.status import FORGOTTEN, paid, present
from tenure.cli.text_format import MARKS, shares
from tenure.core import lifecycle
from tests.cli.conftest import Tenure
from tests.cli.shop import Shop, busy_shop, just_now
from tests.cli.terminal import Terminal


@pytest.fixture
def shop(bare: Tenure) -> Iterator[Shop]:
    shop = busy_shop(bare.folder / ".tenure" / "tenure.db", just_now())
    yield shop
    shop.close()


def test_status_shows_leader_agents_tracks_and_tasks(bare: Tenure, shop: Shop) -> None:
    said = bare("status", "--project", "shop")
    assert said.code == 0
    assert "leader ann (term 1, since " in said.out
    assert "Stopped  track F: the test machine is down" in said.out
    rows = {line.split()[0]: line.split() for line in said.out.splitlines() if line}
    assert rows["ann"][1:4] == ["claude", "stale", "D-001-build-the-sign-in-page"]
    assert rows["cy"][4:6] == ["75", "%"]
    assert rows["B"] == ["B", "Data", "1", "0", "2"]
    assert rows["C"] == ["C", "API", "0", "1", "1"]
    assert "● 2 running" in said.out
    assert "✗ 1 dead letter" in said.out
    assert "\x1b" not in said.out


def test_status_as_json_has_what_scripts_read(bare: Tenure, shop: Shop) -> None:
    said = bare("status", "--project", "shop", "--json").json
    assert said["leader"]["holder"] == "ann"
    assert said["leader"]["term"] == 1
    assert said["leader"]["since"].endswith("Z")
    assert said["tasks"]["running"] == 2
    assert {agent["name"]: list(agent["tasks"]) for agent in said["agents"]}["cy"] == ["C-001-write-the-api"]
    assert said["tracks"]["B"] == {"completed": 1, "in_progress": 0, "pending": 2}
    assert said["stopped"] == {"track:F": "the test machine is down"}


def test_status_of_all_projects_shows_each(bare: Tenure, shop: Shop) -> None:
    other = Shop(shop.path, shop.clock, "attic")
    other.mia.add("Sweep the floor")
    other.close()
    said = bare("status", "--all-projects")
    assert said.out.index("attic") < said.out.index("shop")
    assert "1 ready" in said.out
    listed = bare("status", "--all-projects", "--json").json
    assert [one["project"] for one in listed] == ["attic", "shop"]
    assert listed[0]["tasks"] == {"ready": 1}


def test_an_empty_project_says_what_to_do(tenure: Tenure) -> None:
    said = tenure("status")
    assert said.code == 0
    assert "no agent has worked here yet" in said.out
    assert "`tenure add` creates one" in said.out


def test_on_a_terminal_status_has_bars_and_colour(bare: Tenure, shop: Shop) -> None:
    with Terminal(bare.command("-C", bare.folder, "status", "--project", "shop"), environ=coloured(bare)) as terminal:
        assert terminal.ended() == 0
    assert "█" in terminal.text
    assert "░" in terminal.text
    assert "\x1b[32m" in terminal.raw


def test_no_color_keeps_a_terminal_plain(bare: Tenure, shop: Shop) -> None:
    with Terminal(bare.command("-C", bare.folder, "status", "--project", "shop"), environ=bare.environ) as terminal:
        assert terminal.ended() == 0
    assert "Frontend" in terminal.text
    assert "\x1b[" not in terminal.raw


def test_what_agents_write_cannot_steer_the_terminal(bare: Tenure) -> None:
    shop = Shop(bare.folder / ".tenure" / "tenure.db", just_now(5))
    shop.mia.add("Read \x1b]0;owned\x07 and \x1b[2Jwipe")
    shop.client("eve").register(type="x\x1b[2J")
    shop.mia.stop_line("project:", "because \x1b[8mhidden")
    shop.close()
    for words in (("status",), ("watch",), ("doctor",), ("history", "A-001")):
        said = bare(*words, "--project", "shop")
        assert "\x1b" not in said.out, words
        assert "\x07" not in said.out, words


def test_agents_that_were_long_silent_are_only_counted() -> None:
    def agent(name: str, status: str, seen: int, *tasks: str) -> dict[str, object]:
        return {"name": name, "status": status, "last_seen": seen, "tasks": tasks}

    now = 10 * FORGOTTEN
    told = {
        "now": now,
        "agents": [
            agent("idle", "idle", now),
            agent("old", "stale", now - FORGOTTEN),
            agent("busy", "active", now, "A-001"),
            agent("gone", "offline", now),
            agent("holding", "stale", 0, "A-002"),
        ],
    }
    shown, others = present(told)
    assert [one["name"] for one in shown] == ["busy", "idle", "holding"]
    assert others == 2


def test_every_state_has_a_mark() -> None:
    assert set(MARKS) == set(lifecycle.STATES)
    assert len({mark.sign for mark in MARKS.values()}) == len(MARKS)


@pytest.mark.parametrize(
    ("counts", "cells"),
    [
        ((0, 0, 0), (0, 0, 10)),
        ((5, 0, 5), (5, 0, 5)),
        ((999, 0, 1), (9, 0, 1)),
        ((1, 0, 999), (1, 0, 9)),
        ((998, 1, 1), (8, 1, 1)),
        ((3, 0, 0), (10, 0, 0)),
    ],
)
def test_a_bar_is_full_only_when_all_is_done(counts: tuple[int, int, int], cells: tuple[int, int, int]) -> None:
    assert astuple(shares(*counts, 10)) == cells


def test_usage_is_one_line_and_nothing_without_any() -> None:
    usage = {
        "fresh": 12_000,
        "cached": 340_000,
        "written": 0,
        "output": 5600,
        "cost_usd": "1.25",
        "unpriced": 1,
        "duration": 63.0,
    }
    assert paid(usage) == "$1.25 (1 unpriced), 352.0 k tokens in (340.0 k from cache), 5.6 k out, 1 min 3 s of compute"
    assert paid(None) == ""


def coloured(tenure: Tenure) -> dict[str, str]:
    return {name: value for name, value in tenure.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm-256color"}


def test_a_store_that_is_not_there_is_said_so(bare: Tenure, tmp_path: Path) -> None:
    said = bare("status")
    assert said.code == 1
    assert "tenure init" in said.err
