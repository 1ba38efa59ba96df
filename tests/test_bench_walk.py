"""The walk of a claim is counted on both sides of HTTP, and imports are not counted."""

from __future__ import annotations

import json

import pytest

from bench import walk


def test_a_walk_names_the_files_of_a_claim(capsys: pytest.CaptureFixture[str]) -> None:
    assert walk.main(["--list", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    figures = [json.loads(line) for line in lines if line.startswith("{")]
    assert [figure["name"] for figure in figures] == [
        "claim, command line: files", "claim, command line: functions",
        "claim, HTTP, client and server: files", "claim, HTTP, client and server: functions",
    ]  # fmt: skip
    listed = [line.split()[1] for line in lines if line and not line.startswith("{")]
    assert {"__main__.py", "stores/sqlite/transaction.py", "client/transports/http.py", "server/app.py"} <= set(listed)
    assert len(listed) == figures[0]["value"] + figures[2]["value"]
    assert "stores/port.py" not in listed, "it only holds classes"
