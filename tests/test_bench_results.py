"""Figures that are recorded, compared with older ones, and shown on one page."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from bench import __main__ as bench
from bench import cli, history, page, recorded
from bench.report import Figure

FIGURES = [
    Figure("claims", 900.0, "1/s", 1000.0, 0.9, "≥ 0.6"),
    Figure("start", 60.0, "ms", 25.0, 2.4, "≤ 2"),
    Figure("memory", 300.0, "MB"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(recorded, "FOLDER", tmp_path)
    monkeypatch.setattr(recorded.write, "__defaults__", (tmp_path,))
    monkeypatch.setattr(recorded.here, "__defaults__", (tmp_path,))
    return tmp_path


def test_a_record_is_read_as_it_was_written(folder: Path) -> None:
    recorded.write("some", ["--rounds", "3"], FIGURES)
    (found,) = recorded.here()
    assert (found.name, found.command, found.figures) == ("some", "./x bench some --rounds 3", FIGURES)
    assert found.commit
    assert "cores" in found.machine


def test_only_record_writes_and_only_what_was_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["page", "--folder", str(folder), "--record"]) == 2
    assert "nothing is recorded" in capsys.readouterr().err
    assert not list(folder.iterdir())


def test_a_figure_is_compared_by_its_ratio_and_in_its_own_direction() -> None:
    now = [
        Figure("claims", 500.0, "1/s", 1000.0, 0.5, "≥ 0.6"),
        Figure("start", 50.0, "ms", 26.0, 1.9, "≤ 2"),
        Figure("memory", 310.0, "MB"),
        Figure("more", 1.0, "ms"),
    ]
    found = {change.name: (change.then, change.now, change.verdict) for change in history.compared(FIGURES, now)}
    assert found == {
        "claims": (0.9, 0.5, "WORSE"), "start": (2.4, 1.9, "better"), "memory": (300.0, 310.0, ""),
        "more": (None, 1.0, "new"),
    }  # fmt: skip
    assert [change.verdict for change in history.compared(FIGURES, [])] == ["gone"] * 3


def test_more_megabytes_and_milliseconds_are_worse_without_a_goal_too() -> None:
    for unit, verdict in (("MB", "WORSE"), ("ms", "WORSE"), ("1/s", "better"), ("jobs/s", "better")):
        (change,) = history.compared([Figure("x", 1.0, unit)], [Figure("x", 2.0, unit)])
        assert change.verdict == verdict


def test_history_compares_a_run_with_what_is_recorded(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert history.main([]) == 2
    older = recorded.Record("some", "", "abc", "2026-01-01", "", FIGURES)
    monkeypatch.setattr(recorded, "last_release", lambda: "v1")
    monkeypatch.setattr(recorded, "at", lambda ref, name: older if ref == "v1" else None)
    run = folder / "run"
    run.write_text("".join(json.dumps({**f._asdict(), "met": f.is_met}) + "\n" for f in FIGURES))
    assert history.main(["some", "--now", str(run)]) == 0
    slower = FIGURES[0]._replace(ratio=0.3)
    run.write_text(json.dumps(slower._asdict()) + "\n")
    assert history.main(["some", "--now", str(run)]) == 1
    said = capsys.readouterr().out
    assert "abc 2026-01-01" in said
    assert "-67%" in said


def test_without_a_release_the_record_before_is_found_in_the_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded, "ROOT", tmp_path)
    results = tmp_path / "bench" / "results"
    recorded.git("init", "-q")
    for value in (1.0, 2.0):
        recorded.write("some", [], [Figure("x", value, "ms")], results)
        recorded.git("add", "-A")
        recorded.git("-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x")
    assert recorded.last_release() is None
    found = recorded.before("some")
    assert found is not None
    assert [figure.value for figure in found.figures] == [1.0]
    recorded.write("some", [], [Figure("x", 3.0, "ms")], results)
    found = recorded.before("some")
    assert found is not None
    assert [figure.value for figure in found.figures] == [2.0]


def test_the_page_has_every_figure_and_the_chart_every_goal(folder: Path) -> None:
    recorded.write("some", [], FIGURES)
    assert page.main(["--write", "--folder", str(folder)]) == 0
    text = (folder / "README.md").read_text()
    assert "1 of 2 goals are met" in text
    for figure in FIGURES:
        assert f"| {figure.name} |" in text
    drawn = ElementTree.fromstring((folder / "goals.svg").read_text())
    bars = [bar for bar in drawn.iter("{http://www.w3.org/2000/svg}rect") if bar.get("rx")]
    assert [bar.get("class") for bar in bars] == ["yes", "no"]


@pytest.mark.parametrize(
    ("figure", "part"),
    [
        (Figure("x", 9.0, "1/s", 1.0, 1.2, "≥ 0.6"), 2.0), (Figure("x", 4.0, "ms", goal="≤ 2"), 0.5),
        (Figure("x", 0.0, "ms", goal="≤ 2"), page.MOST), (Figure("x", 1e9, "ms", goal="< 2"), 1 / page.MOST),
    ],
)  # fmt: skip
def test_a_bar_is_as_long_as_the_distance_from_the_goal(figure: Figure, part: float) -> None:
    assert page.part_of_goal(figure) == pytest.approx(part)


def test_the_size_of_an_installation_counts_what_the_base_package_brings() -> None:
    size, packages = cli.installed("tenure")
    (alone,) = [one.value for one in cli.installed("msgspec")[:1]]
    assert 5 < size.value < 200
    assert packages.value > 10
    assert 0.1 < alone < size.value / 2
