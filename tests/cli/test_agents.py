"""`tenure agent`: what people decide about one agent; and an archive that waits for triggers."""

from __future__ import annotations

from collections.abc import Callable

from tests.cli.conftest import Tenure


def test_an_agent_is_drained_terminated_and_resumed(tenure: Tenure, add: Callable[..., str]) -> None:
    add("One")
    assert tenure("join", "-n", "bo", "--session", "s-bo").code == 0
    assert tenure("agent", "drain", "bo").code == 0
    assert "drained" in tenure("agent", "show", "bo").out
    ended = tenure("agent", "terminate", "bo", "-m", "runs wild", "--json").json
    assert (ended["outcome"], ended["agent"]["status"], ended["agent"]["terminated_for"]) == (
        "UPDATED", "offline", "runs wild",
    )  # fmt: skip
    denied = tenure("claim", "--agent", "bo", "--session", "s-bo", "--json")
    assert (denied.code, denied.json["outcome"], denied.json["directive"]) == (9, "DENIED_AGENT", "terminated")
    assert "runs wild" in tenure("agent", "show", "bo").out
    assert [a["name"] for a in tenure("agent", "list", "--json").json] == ["bo"]
    assert tenure("agent", "resume", "bo").code == 0
    assert tenure("claim", "--agent", "bo", "--session", "s-bo").code == 0
    assert tenure("agent", "terminate", "bo", "--now", "--json").json["changed"] == ["A-001-one"]


def test_an_unknown_agent_is_not_found(tenure: Tenure) -> None:
    for verb in ("show", "drain", "terminate", "resume"):
        said = tenure("agent", verb, "nobody")
        assert said.code == 4
        assert "nobody" in said.err


def test_a_trigger_still_fires_where_everything_was_archived_first(tenure: Tenure, add: Callable[..., str]) -> None:
    assert tenure("trigger", "add", "look", "--on", "task.completed", "Look at {event.key}").code == 0
    add("One")
    assert tenure("claim").code == 0
    assert tenure("done").code == 0
    ahead = tenure("db", "archive", "--older-than", 0, "--dry-run")
    assert ahead.out == "0 tasks would be moved, 1 more once every reader of the log has passed their events\n"
    said = tenure("db", "archive", "--older-than", 0, "--json")
    assert (said.code, said.json["moved"], said.json["held_back"]) == (0, 1, 0)
    assert [t["title"] for t in tenure("list", "--json").json] == ["Look at A-001-one"]
