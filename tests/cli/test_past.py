"""`--at` from a shell."""

from __future__ import annotations

from collections.abc import Callable

from tests.cli.conftest import Tenure


def test_list_show_status_history_and_budget_as_they_were(tenure: Tenure, add: Callable[..., str]) -> None:
    key = add("first")
    tenure("budget", "set", "--usd", "5", "--default-estimate", "2")
    tenure("claim", key)
    then = str(tenure("log", "--json").json[-1]["sequence"])
    tenure("done", "--summary", "ready")
    add("second")
    assert [task["state"] for task in tenure("list", "--at", then, "--json").json] == ["claimed"]
    assert "second" not in tenure("list", "--at", then).out
    shown = tenure("show", key, "--at", then)
    assert ("held by" in shown.out, "done by" in shown.out) == (True, False)
    assert tenure("status", "--at", then, "--json").json["tasks"] == {"claimed": 1}
    assert "1 claimed" in tenure("status", "--at", then).out
    assert [entry["release_reason"] for entry in tenure("history", key, "--at", then, "--json").json] == [None]
    assert "holds it" in tenure("history", key, "--at", then).out
    assert tenure("budget", "list", "--at", then, "--json").json[0]["reserved"] == "2.00"
    assert "$2.00 reserved" in tenure("budget", "show", "--at", then).out
    assert "$0.00 reserved" in tenure("budget", "show").out


def test_a_page_of_the_past_names_the_next(tenure: Tenure, add: Callable[..., str]) -> None:
    for n in range(3):
        add(f"task {n}")
    then = str(tenure("log", "--json").json[-1]["sequence"])
    add("later")
    said = tenure("list", "--at", then, "--limit", "2").out
    assert said.endswith(f"… more: add --after A-002 --at {then}\n")
    assert [task["title"] for task in tenure("list", "--after", "A-002", "--at", then, "--json").json] == ["task 2"]


def test_a_moment_that_cannot_be_shown_is_refused(tenure: Tenure, add: Callable[..., str]) -> None:
    add("one")
    for when, why in (
        ("2020-01-01T00:00Z", "is before project"),
        ("2100-01-01T00:00Z", "is in the future"),
        ("999999", "no event has that sequence yet"),
    ):
        said = tenure("list", "--at", when)
        assert (said.code, why in said.err) == (8, True), said
    assert tenure("list", "--at", "then").code == 2
    assert tenure("status", "--at", "1", "--all-projects").code == 2
    assert "is before project" in tenure("status", "--at", "1h").err
