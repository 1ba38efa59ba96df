"""The how-to page about budgets: its session runs as written, and its code does what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tenure
from tests.docs import sessions

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "set-a-budget.md").read_text()


def test_the_session_runs_as_written(tmp_path: Path) -> None:
    steps = sessions.steps_of(PAGE)
    assert len(steps) >= 8
    folder = tmp_path / "shop"
    folder.mkdir()
    environ = sessions.environment(tmp_path / "home")
    sessions.play(steps, folder, environ)


def test_the_code_runs_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    url = str(tmp_path / "store.db")
    tenure.Client(url, "p", agent="bo", session="s", create=True).init()
    made = tenure.Client
    monkeypatch.setattr(tenure, "Client", lambda: made(url, "p", agent="bo", session="s"))
    exec(code, {})
    assert "'ok': True" in capsys.readouterr().out
    with made(url, "p", agent="bo", session="s") as client:
        assert client.budget("agent:bo")["period"] == "day"
