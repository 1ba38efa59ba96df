"""A look at the machine that fails is reported, and the thread looks again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenure.agents import ended_processes, git
from tenure.agents.ended_processes import EndedProcesses
from tenure.agents.file_watch import FileWatch
from tenure.client import Client
from tenure.core import commands as c


def test_a_look_for_ended_processes_that_fails_does_not_end_the_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EndedProcesses, "every", 0.02)
    look = Look()
    monkeypatch.setattr(ended_processes, "ended_here", look)
    reports = looked_again(
        tmp_path, look, lambda engine, leading, report: EndedProcesses(engine, leading, failed=report)
    )
    assert reports == ["ending the claims of ended processes: OSError: too many open files"]


def test_a_look_at_files_that_fails_does_not_end_the_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    look = Look()
    monkeypatch.setattr(git, "paths", look)
    reports = looked_again(
        tmp_path, look, lambda engine, leading, report: FileWatch(engine, "p", str(tmp_path), leading, failed=report)
    )
    assert reports == ["watching files: OSError: too many open files"]


class Look:
    """Fails once, then finds nothing."""

    def __init__(self) -> None:
        self.count = 0
        self.is_again = threading.Event()

    def __call__(self, *_: object) -> list[Any]:
        self.count += 1
        if self.count == 1:
            raise OSError("too many open files")
        self.is_again.set()
        return []


def looked_again(folder: Path, look: Look, make: Callable[..., EndedProcesses | FileWatch]) -> list[str]:
    """What the thread reports until it has looked again."""
    reports: list[str] = []
    with Client(str(folder / "tenure.db"), "p", create=True) as client:
        client.init()
        template = c.Template(tasks=(c.NewTask(title="look at it"),))
        client.do(c.SetTrigger(project="p", trigger="files", on="source.files_changed", template=template))
        thread = make(client.engine, object, reports.append)
        thread.start()
        try:
            assert look.is_again.wait(30)
        finally:
            thread.stop()
    return reports
