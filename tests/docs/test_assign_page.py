"""The how-to page about assigning work: its sessions run as written."""

from __future__ import annotations

from pathlib import Path

from tests.docs import sessions

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "assign-work.md").read_text()


def test_the_sessions_run_as_written(tmp_path: Path) -> None:
    steps = sessions.steps_of(PAGE)
    assert len(steps) >= 15
    folder = tmp_path / "shop"
    folder.mkdir()
    environ = sessions.environment(tmp_path / "home")
    sessions.play(steps, folder, environ)
