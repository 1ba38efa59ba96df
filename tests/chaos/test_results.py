"""A recorded run of a harness leaves a file of its figures, from which the table of RELIABILITY.md is generated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.reliability import __main__ as harnesses
from tests.reliability import results


def test_the_file_has_the_figures_that_were_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results.tell("model", {"histories": 20, "divergences": 0})
    file = results.write("model", ["--histories", "20"], held=True, folder=tmp_path)
    assert capsys.readouterr().out == "model: histories=20 divergences=0\n"
    kept = json.loads(file.read_text())
    assert file.name == "model.json"
    assert set(kept) == {"harness", "command", "commit", "date", "figures", "verdict"}
    assert kept["command"] == "./x reliability model --histories 20"
    assert kept["figures"] == {"histories": 20, "divergences": 0}
    assert kept["verdict"] == "held"


def test_a_variant_has_a_file_of_its_own_and_each_part_its_own_names(tmp_path: Path) -> None:
    results.tell("failover", {"lost": 1}, part="synchronous", variant="postgres")
    results.tell("failover", {"lost": 0}, part="asynchronous", variant="postgres")
    file = results.write("failover", [], held=False, folder=tmp_path)
    assert file.name == "failover-postgres.json"
    kept = json.loads(file.read_text())
    assert kept["figures"] == {"synchronous_lost": 1, "asynchronous_lost": 0}
    assert kept["verdict"] == "failed"


def test_one_run_leaves_nothing_to_the_next(tmp_path: Path) -> None:
    results.tell("storm", {"lost": 0}, variant="postgres")
    results.write("storm", [], held=True, folder=tmp_path)
    assert results.write("model", [], held=True, folder=tmp_path).name == "model.json"
    assert json.loads((tmp_path / "model.json").read_text())["figures"] == {}


def test_only_a_recorded_run_replaces_the_published_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One history of the model, run again by its seed, once took the place of 20,000."""
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    monkeypatch.delenv(results.ELSEWHERE, raising=False)
    results.tell("model", {"histories": 20_000})
    assert results.end("model", [], held=True, is_recorded=True) == tmp_path / "model.json"
    results.tell("model", {"histories": 1}, variant="postgres")
    assert results.end("model", ["--seed", "3"], held=True, is_recorded=False) is None
    assert [file.name for file in tmp_path.iterdir()] == ["model.json"]
    assert json.loads((tmp_path / "model.json").read_text())["figures"] == {"histories": 20_000}
    results.tell("storm", {"lost": 0})
    results.end("storm", [], held=True, is_recorded=True)
    assert json.loads((tmp_path / "storm.json").read_text())["figures"] == {"lost": 0}


def test_every_harness_takes_the_option_that_records_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    monkeypatch.delenv(results.ELSEWHERE, raising=False)
    given: list[list[str]] = []

    def run(argv: list[str]) -> int:
        given.append(argv)
        return 0

    monkeypatch.setattr("tests.reliability.leaders.main", run)
    assert harnesses.main(["leaders", "--kills", "1"]) == 0
    assert list(tmp_path.iterdir()) == []
    assert harnesses.main(["leaders", "--record", "--kills", "1"]) == 0
    assert json.loads((tmp_path / "leaders.json").read_text())["command"] == "./x reliability leaders --kills 1"
    assert given == [["--kills", "1"]] * 2
