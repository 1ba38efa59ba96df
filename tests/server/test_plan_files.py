"""A plan file over HTTP: read into bodies of the plan command, or into findings with their lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tenure.client import Client
from tests.servers.tenure import TenureServer

PLAN = """
name: release
tasks:
  - {name: parser, title: Write the parser, priority: high, retry: {max_attempts: 5}}
  - {name: tests, title: Test it, depends_on: [parser], deadline: 3d}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TenureServer]:
    store = tmp_path_factory.mktemp("plans") / "tenure.db"
    with Client(str(store), "shop", create=True) as client:
        client.init()
    with TenureServer(str(store)) as running:
        yield running


def post(server: TenureServer, path: str, body: dict[str, Any]) -> dict[str, Any]:
    url = f"{server.url}/api/v1/projects/shop/{path}"
    request = Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(request) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def test_what_was_read_is_what_the_plan_command_takes(server: TenureServer) -> None:
    text = PLAN.replace(", retry: {max_attempts: 5}", "")
    read = post(server, "plan-files", {"text": text, "path": "release.yaml"})
    assert read["findings"] == []
    (plan,) = read["plans"]
    assert plan["tasks"][0] == {"name": "parser", "title": "Write the parser", "priority": "high"}
    made = post(server, "dags", plan)
    assert [task["title"] for task in made["tasks"]] == ["Write the parser", "Test it"]
    again = post(server, "plan-files", {"text": text, "path": "release.yaml"})
    assert post(server, "dags", again["plans"][0])["outcome"] == "UNCHANGED"  # 3d counts from the task's creation


def test_findings_have_their_lines(server: TenureServer) -> None:
    read = post(server, "plan-files", {"text": "tasks:\n  - title: a\n    depend_on: [b]\n"})
    assert read["plans"] == []
    assert [(one["line"], one["level"]) for one in read["findings"]] == [(3, "error")]
    assert "depend_on" in read["findings"][0]["message"]


def test_reading_creates_nothing(server: TenureServer) -> None:
    post(server, "plan-files", {"text": "tasks: [{title: ghost}]", "path": "ghost.yaml"})
    with urlopen(f"{server.url}/api/v1/projects/shop/tasks?text=ghost") as answer:
        assert json.load(answer)["items"] == []
