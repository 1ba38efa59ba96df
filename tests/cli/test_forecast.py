"""`tenure forecast` and the health of agents on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tenure.client import Client
from tenure.core import limits
from tests.cli.conftest import Tenure

PLAN = """
name: release
tasks:
  - {name: api, title: Write the API, constraints: {estimated_duration: 3600}}
  - {name: page, title: Write the page, depends_on: [api]}
"""


def test_open_tasks_are_forecast_with_their_path_and_what_is_guessed(tenure: Tenure, add: Callable[..., str]) -> None:
    assert tenure("forecast").out == "no open tasks\n"
    key = add("Write the parser")
    said = tenure("forecast", "-n", "2")
    assert said.code == 0
    for text in ("1 open task, 2 agents", "half of the runs (p50)", "the path that decides", key, "100% of the work"):
        assert text in said.out
    again = [tenure("forecast", "--seed", "5", "--json").json["finish"]["p50"] for _ in range(2)]
    assert again[0] == again[1]


def test_a_plan_file_is_forecast_and_not_applied(tenure: Tenure) -> None:
    folder = tenure.folder
    folder.joinpath("plan.yaml").write_text(PLAN)
    found = tenure("forecast", "plan.yaml", "-n", "1", "--json").json
    assert (found["tasks"], found["sources"]) == (2, {"estimate": 1, "nothing": 1})
    assert tenure("list", "--json").json == []
    folder.joinpath("plan.yaml").write_text(PLAN.replace("[api]", "[nobody]"))
    bad = tenure("forecast", "plan.yaml")
    assert bad.code == 8
    assert "nobody" in bad.err


def test_what_cannot_be_forecast_is_named(tenure: Tenure) -> None:
    assert "no dag or plan 'nope'" in tenure("forecast", "nope").err
    assert "no pool 'nope'" in tenure("forecast", "--pool", "nope").err
    assert tenure("forecast", "-n", "0").code == 8


def test_agents_show_step_memory_and_cpu(tenure: Tenure, add: Callable[..., str]) -> None:
    key = add("Measure")
    assert tenure("claim", key, "--agent", "bo", "--session", "s").code == 0
    with Client(f"sqlite://{tenure.folder}/.tenure/tenure.db", "default", agent="bo", session="s") as client:
        client.register(type="claude", managed=True)
        client.heartbeat(task=key, step="tests", percent=40, memory_mb=812, cpu_percent=7, metadata={"rack": "9"})
    listed = tenure("agents", "--managed").out
    for text in ("bo", "tests 40%", "812 MB", "7%"):
        assert text in listed
    assert tenure("agents", "--unmanaged").out == "no agents yet\n"
    shown = tenure("agent", "show", "bo").out
    for text in ("claude, managed, active", "next heartbeat in", "A-001-measure  tests 40%", "rack", "812 MB"):
        assert text in shown
    assert len(json.loads(tenure("agent", "show", "bo", "--json").out)["minutes"]) == 1


def test_a_read_of_a_known_agent_is_a_sign_of_life(
    tenure: Tenure, add: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    add("One")
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "abcd")
    assert tenure("list").code == 0
    assert tenure("agents", "--json").json == []  # a read makes no agent
    assert tenure("claim").code == 0

    def last_seen() -> str:
        return str(tenure("agents", "--json").json[0]["last_seen"])

    first = last_seen()
    assert tenure("list").code == 0
    assert last_seen() == first  # at most one a minute
    monkeypatch.setattr(limits, "PRESENCE_OF_READERS", 0)
    assert tenure("list").code == 0
    assert last_seen() > first


def test_a_persons_claim_is_not_an_agents(tenure: Tenure, add: Callable[..., str]) -> None:
    add("One")
    assert tenure("claim").code == 0
    (ann,) = tenure("agents", "--json").json
    assert (ann["type"], ann["managed"], ann["next_heartbeat_at"]) == ("human", False, None)
