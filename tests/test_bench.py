"""The measurements run, say what they promise to say, and notice a wrong answer. Never how fast."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from bench import __main__ as bench
from bench import cli, engine
from bench.ground import Pitch, WrongAnswer, read_scripts
from bench.postgres.goals import GOALS

SMALL = ["--quick", "--sizes", "20,40", "--rounds", "2", "--count", "3", "--batch", "5"]


def test_every_measurement_has_a_name_and_a_line_of_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main([]) == 0
    told = capsys.readouterr().out
    for name, line in bench.measurements().items():
        assert line
        assert f"  {name}" in told
    assert bench.main(["nothing-of-this-name"]) == 2


def test_the_lab_notes_have_the_goals_of_the_bench() -> None:
    notes = (bench.FOLDER / "README.md").read_text(encoding="utf-8")
    _, _, rest = notes.partition("### Where it stands")
    table, _, _ = rest.partition("\n### ")
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| ([^|,]*)(?:, \w+)? \|$", table, re.MULTILINE))
    assert rows == GOALS


def test_the_engine_bench_prints_one_object_a_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = ["--folder", str(tmp_path)]
    assert engine.main([*SMALL, *folder, "--processes", "2", "--seconds", "0.2", "--json"]) == 0
    figures: dict[str, Any] = {}
    for line in capsys.readouterr().out.splitlines():
        figure = json.loads(line)
        assert {"name", "value", "unit", "baseline", "ratio"} <= figure.keys()
        figures[figure["name"]] = figure
    for size in (20, 40):
        for verb in ("claims", "submits", "pairs"):
            figure = figures[f"{verb}, one at a time, {size} ready"]
            assert figure["value"] > 0
            assert figure["baseline"] > 0
            assert figure["ratio"] > 0
        assert figures[f"claims, 5 a batch, {size} ready"]["unit"] == "1/s"
    assert "cost of a claim, 40 ready / 20 ready" in figures
    assert figures["least / most pairs of 2 processes"]["goal"] == "≥ 0.3"
    assert not list(tmp_path.iterdir()), "what was made is removed"


def test_the_engine_bench_prints_a_table_otherwise(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert engine.main([*SMALL, "--folder", str(tmp_path), "--processes", "0"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["figure", "value", "unit", "baseline", "ratio", "goal"]
    assert any(row.startswith("claims, one at a time, 20 ready") for row in rows)


def test_the_raw_side_writes_what_ours_writes(tmp_path: Path) -> None:
    pitch = Pitch(tmp_path, 10, "engine", read_scripts(tmp_path))
    pitch.submit_ours(pitch.claim_ours(3, 1), 1)
    pitch.submit_raw(pitch.claim_raw(3, 1), 1)
    pitch.verify()
    raw = dict(pitch.raw.ask("SELECT state, count(*) FROM task GROUP BY state"))
    events = pitch.raw.ask(
        "SELECT kind, count(*), count(DISTINCT task) FROM event WHERE task IS NOT NULL GROUP BY kind"
    )
    names = pitch.raw.ask("SELECT task, patch FROM event WHERE kind IN ('task.claimed', 'task.completed')")
    pitch.close()
    assert raw == {"ready": 7, "completed": 3}
    assert {kind: (n, tasks) for kind, n, tasks in events} == {
        "task.created": (10, 10),
        "task.claimed": (3, 3),
        "task.completed": (3, 3),
    }
    assert all(task in patch for task, patch in names)


def test_a_lost_result_ends_the_bench(tmp_path: Path) -> None:
    pitch = Pitch(tmp_path, 10, "rows", read_scripts(tmp_path))
    receipts = pitch.claim_ours(3, 3)
    pitch.submit_ours(receipts[:2], 1)
    with pytest.raises(WrongAnswer, match="3 claims, 2 accepted"):
        pitch.verify()
    pitch.close()


def test_the_bench_of_the_command_line_starts_real_commands(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    cli.main(["--sizes", "20", "--rounds", "2", "--processes", "3", "--folder", str(tmp_path), "--json"])
    figures = {figure["name"]: figure for figure in map(json.loads, capsys.readouterr().out.splitlines())}
    sizes = {"install size", "packages installed"}
    verbs = ("tenure claim, 20 tasks", "tenure done, 20 tasks")
    timed = {*verbs, "slowest of 3 claims at once, 20 tasks"}
    assert set(figures) == timed | sizes | {f"processor time of {verb}" for verb in verbs}
    assert all(figure["value"] > 0 for figure in figures.values())
    assert all(figures[name]["ratio"] > 0 for name in timed)
