"""The how-to's session is what happens."""

from __future__ import annotations

from pathlib import Path

from tests.docs import sessions

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "validate-output.md"


def test_the_how_to_s_session_runs_as_written(tmp_path: Path) -> None:
    steps = sessions.steps_of(PAGE.read_text())
    assert len(steps) >= 15
    environ = sessions.environment(tmp_path / "home")
    folder = tmp_path / "shop"
    folder.mkdir()
    sessions.play(steps, folder, environ)
