"""The page on artifacts and checkpoints: its session runs as it is written, and so does its worker."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tenure
from tests.docs import sessions

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "keep-artifacts.md"


def test_the_session_runs_as_written(tmp_path: Path) -> None:
    steps = sessions.steps_of(PAGE.read_text())
    assert len(steps) >= 14
    environ = sessions.environment(tmp_path / "home")
    sessions.play(steps, tmp_path, environ)


def test_the_worker_goes_on_from_its_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    with tenure.Client(".tenure/tenure.db", "shop", create=True) as client:
        client.init()
        client.add("Digest", type="digest")
        client.add("Bind", type="bind", after=["A-001"])
        first = client.claim("A-001")  # an attempt that was given up after two pages
        for page in (1, 2):
            client.put_artifact(first.receipt or "", f"pages/{page}.txt", f"page {page}".encode())
        client.checkpoint(first.receipt or "", {"pages": 2})
        client.fail(first.receipt or "", "the power went", "crash", retry_after=0)
        names: dict[str, object] = {"__name__": "worker"}
        exec(compile(program, str(PAGE), "exec"), names)
        worker = names["worker"]
        assert isinstance(worker, tenure.Worker)
        worker.run(until_empty=True)
        worker.close()
        assert client.show("A-001")["result"]["data"] == {"pages": 3}
        assert client.show("A-002")["result"]["data"] == "page 1 page 2 page 3"
        assert {(entry["name"], entry["generation"]) for entry in client.artifacts("A-001")} == {
            ("pages/1.txt", 1), ("pages/2.txt", 1), ("pages/3.txt", 2)
        }  # fmt: skip
