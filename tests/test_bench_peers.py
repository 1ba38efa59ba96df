"""The benches beside other tools run, count every job once, and tell a fence from none. Never how fast."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import ExitStack
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bench.peers import chart, install, measuring, roster
from bench.peers.measuring import Places, WrongAnswer, check
from bench.zombies import roster as zombies
from bench.zombies import telling
from bench.zombies.referee import AFTER, DURING, judged
from tests.servers.postgres import PostgresServer
from tests.servers.processes import Unavailable

TINY = 0.002
BENCH = Path(measuring.__file__).parents[1]


@pytest.fixture(scope="module")
def places() -> Iterator[Places]:
    """Servers for the peers, started once; skips where the peers' packages are not there."""
    if not install.is_installed():
        pytest.skip("the peers are not installed; `./x bench peers` installs them into .x/peers")
    with ExitStack() as stack:
        yield Places(stack, install.PYTHON, valkey_is_durable=False)


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "ROUNDS", 1)
    monkeypatch.setattr(measuring, "IDLE", 0.05)
    monkeypatch.setattr(measuring, "GAP", (0.001, 0.005))


def need(places: Places, store: str) -> None:
    if store in places.missing:
        pytest.skip(places.missing[store])


@pytest.mark.nightly
@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("peer", roster.ROSTER, ids=roster.title)
def test_a_peer_executes_each_job_once(peer: roster.Peer, places: Places) -> None:
    need(places, peer.store)
    played = measuring.play(places, peer, TINY)
    assert played.drain > 0
    assert played.single > 0
    assert len(played.pick_ups) == 10
    assert all(0 < seconds < 60 for seconds in played.pick_ups)


@pytest.mark.nightly
@pytest.mark.usefixtures("hurried")
def test_a_peer_that_fails_is_told_with_its_reason(
    places: Places, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    need(places, "PostgreSQL")
    broken = roster.Peer("Broken", "no_such_tool", "PostgreSQL", 10)
    loop = next(p for p in roster.ROSTER if p.module == "skip_locked")
    raw = next(p for p in roster.ROSTER if p.name == roster.RAW)
    monkeypatch.setattr(measuring, "chosen", lambda _: (raw, broken, loop))
    assert measuring.main(["--scale", str(TINY), "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    by_name = {line["name"]: line for line in lines}
    for line in lines:
        assert {"name", "value", "unit", "baseline", "ratio"} <= line.keys()
    assert by_name["drain, raw limit"]["ratio"] == 1
    assert by_name["drain, SKIP LOCKED loop (PostgreSQL)"]["ratio"] > 0
    assert by_name["drain, SKIP LOCKED loop (PostgreSQL)"]["baseline"] == by_name["drain, raw limit"]["value"]
    assert "no_such_tool" in by_name["drain, Broken (PostgreSQL)"]["failed"]


@pytest.mark.parametrize(
    ("executed", "told"),
    [([1, 2, 2, 3], "1 executed again"), ([1, 3], "1 never"), ([1, 2, 3, 4], "1 that were never enqueued")],
    ids=["twice", "never", "strange"],
)
def test_a_job_that_ran_twice_or_never_ends_the_round(executed: list[int], told: str) -> None:
    check([3, 1, 2], [1, 2, 3])
    with pytest.raises(WrongAnswer, match=told):
        check(executed, [1, 2, 3])


@pytest.mark.nightly
def test_servers_end_and_leave_nothing(tmp_path: Path) -> None:
    try:
        with PostgresServer.measured() as server:
            assert server.ask("SHOW fsync") == "on"
            assert server.ask("SHOW synchronous_commit") == "on"
            pid = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
            folder = server.folder
    except Unavailable as why:
        pytest.skip(str(why))
    assert not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


# --- zombies ---


@pytest.fixture
def short_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZOMBIE_LEASE", "1")


@pytest.mark.nightly
@pytest.mark.usefixtures("short_lease")
def test_a_zombie_is_refused_by_tenure_and_both_attempts_are_in_the_history(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert telling.main(["--only", "tenure (sqlite)", "--json"]) == 0
    (found,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert found["is_fenced"]
    for order in (AFTER, DURING):
        assert found[order]["takes_over"]
        assert found[order]["completion"] == "refused"
        assert "STALE_GENERATION" in found[order]["said"]
        assert found[order]["result"] == "B"
        last = found[order]["records"][-1]
        assert [(row["agent"], row["reason"]) for row in last["rows"]] == [("A", "EXPIRED"), ("B", "COMPLETED")]
        assert last["refused"] == [{"agent": "A", "reason": "STALE_GENERATION"}]


@pytest.mark.nightly
@pytest.mark.usefixtures("short_lease")
def test_a_zombie_is_accepted_where_nothing_fences(places: Places) -> None:
    """The scenario itself can be lost: a loop that completes by id takes what the zombie says."""
    need(places, "PostgreSQL")
    (case,) = zombies.chosen("skip locked")
    found = telling.played([case], install.PYTHON, lambda *_: None)[case]
    assert not isinstance(found, str), found
    assert not telling.is_fenced(found)
    assert found[AFTER].takes_over
    assert found[AFTER].completion == "accepted"
    assert found[AFTER].result == "A"
    assert telling.row_of(case, found)[1:4] == ("yes", "accepted", "accepted; then the other: accepted")


def test_a_completion_is_judged_by_the_tools_own_records() -> None:
    before: dict[str, Any] = {"is_finished": True, "result": "B", "rows": [{"state": "done"}], "own_result": "B"}
    assert judged(before, before | {"result": "A"}, "") == "accepted"
    assert judged(before, before | {"rows": [{"state": "done again"}]}, "it was refused") == "accepted"
    assert judged(before, dict(before), "it was refused") == "refused"
    assert judged(before, before | {"own_result": "A", "trace": "more"}, "") == "no effect"


def test_a_tool_that_cannot_be_played_is_told_with_its_reason() -> None:
    case = zombies.Case("Broken", "no_such_case", "SQLite", "", "", is_ours=True)
    answer = telling.played([case], None, lambda *_: None)[case]
    assert isinstance(answer, str)
    assert "no_such_case" in answer
    assert "NOT PLAYED" in telling.row_of(case, answer)[1]
    assert not telling.is_fenced(answer)


# --- what is written down ---


def test_every_peer_and_case_is_in_its_roster_and_pinned() -> None:
    tools = {path.stem for path in (BENCH / "peers" / "tools").glob("[a-z]*.py")}
    cases = {path.stem for path in (BENCH / "zombies" / "cases").glob("[a-z]*.py")}
    assert tools == {peer.module for peer in roster.ROSTER}
    assert cases == {case.module for case in zombies.ROSTER}
    pinned = install.versions()
    for one in (*roster.ROSTER, *zombies.ROSTER):
        assert one.is_ours or one.package in pinned


def test_the_peers_are_pinned_by_names_and_versions_only() -> None:
    lines = [line for line in install.WANTED.read_text().splitlines() if line and not line.startswith("#")]
    for line in lines:
        pinned, _, marker = line.partition(" ; ")
        name, _, version = pinned.partition("==")
        assert name.replace("-", "").replace("_", "").isalnum(), line
        assert not marker or marker.startswith("python_full_version <"), line
        assert version.replace(".", "").isalnum(), line


@pytest.mark.parametrize("python", ["3.11.2", "3.11.9", "3.12.3", "3.13.5", "3.14.0"])
def test_the_peers_have_all_that_they_need_on_each_python(python: str) -> None:
    if not install.is_installed():
        pytest.skip("the peers are not installed; `./x bench peers` installs them into .x/peers")
    environment = {"python_full_version": python, "python_version": python.rpartition(".")[0], "extra": ""}
    lines = [line for line in install.WANTED.read_text().splitlines() if "==" in line]
    pinned = {r.name.lower(): r for r in map(Requirement, lines) if r.marker is None or r.marker.evaluate(environment)}
    places = [str(path) for path in install.VENV.glob("lib/python*/site-packages")]
    for package in metadata.distributions(path=places):
        for text in package.requires or ():
            wanted = Requirement(text)
            if wanted.marker is None or wanted.marker.evaluate(environment):
                assert canonicalize_name(wanted.name) in pinned, f"{package.name} on {python} needs {text}"


ROWS = [
    {"name": "raw limit", "store": "PostgreSQL", "fenced": "–", "drain": 50_000.0},
    {"name": "One & two", "store": "Valkey", "fenced": "no", "drain": 900.0},
    {"name": "tenure", "store": "SQLite", "fenced": "yes", "drain": 4_000.0},
]
REST = {"version": "1.0", "single": 10.0, "bulk": None, "p50_ms": 1.0, "p99_ms": 2.0}


def test_the_chart_has_a_bar_for_each_rate_and_marks_the_fence() -> None:
    drawn = ElementTree.fromstring(chart.draw(ROWS))
    space = "{http://www.w3.org/2000/svg}"
    bars = [rect for rect in drawn.iter(f"{space}rect") if rect.get("rx")]
    assert [bar.get("class") for bar in bars] == ["raw", "yes", "no"]  # longest first
    widths = [float(bar.get("width", 0)) for bar in bars]
    assert widths == sorted(widths, reverse=True)
    words = [text.text for text in drawn.iter(f"{space}text")]
    assert "One & two (Valkey)" in words
    assert "50,000" in words
    with pytest.raises(ValueError, match="nothing"):
        chart.draw([])


def test_the_table_gives_ratios_to_the_raw_limit_and_names_who_is_missing() -> None:
    table = {"rows": [row | REST for row in ROWS], "failed": [{"name": "Broken", "reason": "no such thing"}]}
    told = chart.markdown(table)
    assert "| tenure (SQLite) | 1.0 | 4,000 | 0.08 |" in told
    assert "Broken was not measured: no such thing" in told
