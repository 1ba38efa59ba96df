"""The table of RELIABILITY.md has the figures that the harnesses wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.docs import generate, reliability_table

FIELDS = {"harness", "command", "commit", "date", "figures", "verdict"}


def test_the_page_has_the_results_as_they_lie_in_the_folder() -> None:
    assert reliability_table.PAGE.read_text() == reliability_table.page()
    assert any(make is reliability_table.page for make in generate.WITHOUT_NOTICE.values())


def test_every_result_has_its_fields_and_an_unambiguous_verdict() -> None:
    found = reliability_table.results()
    assert [run["harness"] for run in found if set(run) - {"typed"} != FIELDS] == []
    assert {run["verdict"] for run in found} <= {"held", "failed"}


def test_every_harness_has_a_result() -> None:
    assert set(reliability_table.HARNESSES) <= {run["harness"] for run in reliability_table.results()}


def test_a_new_result_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    run = {"harness": "storm", "command": "./x reliability storm", "commit": "abc", "date": "2026-11-16"}
    (tmp_path / "storm.json").write_text(
        json.dumps(run | {"figures": {"kills": 2000, "in_limbo": 0}, "verdict": "held"})
    )
    (tmp_path / "unknown.json").write_text(json.dumps(run | {"harness": "unknown", "figures": {}, "verdict": "failed"}))
    text = f"before\n{reliability_table.BEGIN}old\n{reliability_table.END}after\n"
    page = reliability_table.page(text, tmp_path)
    assert "| kills 2,000, in limbo 0 | held | 2026-11-16 · abc |" in page
    assert page.index("**storm**") < page.index("**unknown**: unknown")
    assert "old" not in page
    assert page.startswith("before\n")
    assert page.endswith("after\n")


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(SystemExit, match="has no marks"):
        reliability_table.page("# Reliability\n")
