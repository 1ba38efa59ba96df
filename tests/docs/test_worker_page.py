"""The page on workers is a program that works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tenure

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "write-a-worker.md"


def test_the_worker_on_the_page_works_off_its_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    with tenure.Client(".tenure/tenure.db", "shop") as client:
        client.init()
        client.add("bees", type="research")
        client.add("Write it up", type="report", after=["A-001"])
        names: dict[str, object] = {"__name__": "worker"}
        exec(compile(program, str(PAGE), "exec"), names)
        worker = names["worker"]
        assert isinstance(worker, tenure.Worker)
        worker.run(until_empty=True)
        worker.close()
        assert client.show("A-002")["result"]["data"] == "about bees"
        assert client.show("A-001")["usage"]["cost_usd"] == "0.02"


def test_every_name_on_the_page_is_there() -> None:
    text = PAGE.read_text()
    for name in re.findall(r"tenure\.([A-Z]\w+)", text):
        assert hasattr(tenure, name), name
    for name in re.findall(r"^\| `(\w+)\(", text, re.MULTILINE):
        assert hasattr(tenure.Context, name), name
