"""A URL that names no store: commands say so, and create nothing."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Tenure


def test_a_command_creates_no_store_but_init(tenure: Tenure, tmp_path: Path) -> None:
    place = tmp_path / "typo"
    for words in (("add", "One"), ("list",), ("serve", "--port", "0"), ("daemon",), ("plan", "check", "x.yaml")):
        (tenure.folder / "x.yaml").write_text("tasks: [One]\n")
        refused = tenure.process(*words, TENURE_URL=str(place / "tenure.db"))
        assert (refused.code, "there is no store at" in refused.err, "tenure init" in refused.err) == (1, True, True)
    assert not place.exists()
