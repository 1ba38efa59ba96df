"""The how-to's session is what happens."""

from __future__ import annotations

from pathlib import Path

from tests.docs import sessions

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "work-in-worktrees.md"


def test_the_how_to_s_session_runs_as_written(tmp_path: Path) -> None:
    steps = sessions.steps_of(PAGE.read_text())
    assert len(steps) >= 7
    environ = sessions.environment(tmp_path / "home")
    (tmp_path / "home" / ".gitconfig").write_text("[user]\n\tname = Ann\n\temail = ann@example.org\n")
    folder = tmp_path / "shop"
    folder.mkdir()
    sessions.play(steps, folder, environ)
