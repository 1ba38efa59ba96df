"""Wrong words on the command line: which argument, what it may be, and what to type instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Tenure


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("tenan list", "tenant list"),
        ("tenan", "tenant"),
        ("adit head", "audit head"),
        ("lst", "list"),
        ("nope", "note"),
    ],
)
def test_a_misspelt_verb_is_answered_with_the_nearest(tenure: Tenure, typed: str, meant: str) -> None:
    said = tenure(*typed.split())
    assert (said.code, f"did you mean {meant}?" in said.err) == (2, True), said.err


def test_a_group_without_its_verb_lists_its_verbs_also_in_json(tenure: Tenure) -> None:
    said = tenure("tenant", "--json")
    assert (said.code, said.json["error"]["message"].startswith("tenant wants one of: add, list")) == (2, True)


def test_json_without_a_verb_is_one_error(tenure: Tenure) -> None:
    said = tenure("--json")
    assert (said.code, said.json["error"]["code"], said.err) == (2, "USAGE", "")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("usage --limit x", "usage: --limit must be a whole number (got 'x')"),
        ("project set --boost x", "project set: --boost must be a number (got 'x')"),
        ("tenant limits", "tenant limits: the following arguments are required: TENANT\n"),
        ("add x --at 1h", "add: --at is not known here\n"),
        ("list --sttus ready", "list: --sttus is not known here; did you mean --status?"),
        ("add x --retry 2", "'2' is not a way to retry; --max-attempts 2 limits the attempts"),
        ("serve --port 70000", "'70000' is not a port from 0 to 65535"),
    ],
)
def test_an_error_names_the_argument_and_what_it_may_be(tenure: Tenure, typed: str, said: str) -> None:
    answer = tenure(*typed.split())
    assert (answer.code, said in answer.err) == (2, True), answer.err


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("show A-001 --project nope", "`tenure project list`"),
        ("tenant show acme", "`tenure tenant list`"),
        ("member role ann viewer", "`tenure member list`"),
        ("add x --track QQ", "`tenure track list`"),
        ("project set --default-track QQ", "`tenure track list`"),
        ("trigger watch --track QQ", "`tenure track list`"),
        ("add x --tenant acme", "PostgreSQL, MariaDB, Valkey"),
        ("list --at 2099-01-01", "Z now"),
    ],
)
def test_an_unknown_name_is_answered_with_the_verb_that_lists_them(tenure: Tenure, typed: str, hint: str) -> None:
    said = tenure(*typed.split())
    assert (said.code in (4, 8), hint in said.err) == (True, True), said.err


@pytest.mark.parametrize("typed", ["audit verify {}", "join -n ann --key {}"])
def test_a_folder_is_not_taken_for_a_file(tenure: Tenure, tmp_path: Path, typed: str) -> None:
    said = tenure(*typed.format(tmp_path).split())
    assert (said.code in (2, 8), "is not a file" in said.err) == (True, True), said.err


def test_a_join_whose_key_cannot_be_read_leaves_the_caller_as_it_was(tenure: Tenure, tmp_path: Path) -> None:
    before = tenure("whoami", "--json").json
    assert tenure("join", "-n", "ann", "--key", str(tmp_path)).code == 8
    assert tenure("whoami", "--json").json == before


def test_why_names_only_the_parts_of_the_order_that_count(tenure: Tenure, add: Callable[..., str]) -> None:
    first = add("first")
    assert "\n  no agent is known yet\n  order: 50 (normal)" in tenure("why", first).out
    add("second", "--after", first)
    urgent = add("third", "--deadline", "30m", "-p", "high")
    assert "order: 50 (normal) - 2.0 for what waits for it = 4" in tenure("why", first).out
    assert " for its deadline = " in tenure("why", urgent).out
    tenure("project", "set", "--order", "shortest")
    short = add("short", "--estimate", "5m")
    assert "order: normal, shortest first: 5 min expected, 0 min old" in tenure("why", short).out


def test_limits_are_typed_and_shown_as_durations(tenure: Tenure) -> None:
    said = tenure("limits", "set", "max_lease=2h", "history_retention=2w", "max_concurrent_claims=5")
    assert said.out == "UPDATED: max_lease 2h, history_retention 14d, max_concurrent_claims 5\n"
    listed = {row.split()[0]: row.split()[1] for row in tenure("limits").out.splitlines()}
    assert (listed["max_lease"], listed["history_retention"], listed["archive_after"]) == ("2h", "14d", "90d")
    assert tenure("project", "show", "--json").json["limits"]["max_lease"] == 7200
    for wrong in ("max_lease=1.5s", "history_retention=1h", "max_concurrent_claims=2h", "max_lease=-1", "max_lease=²"):
        refused = tenure("limits", "set", wrong)
        assert (refused.code, "or default" in refused.err) == (2, True), refused.err
    assert tenure("limits", "set", "archive_after=0s").code == 0
    assert "archive_after             0s" in tenure("limits").out


def test_a_preset_says_what_it_does_to_the_retention(tenure: Tenure) -> None:
    tenure("limits", "set", "history_retention=30")
    assert "history_retention is raised to 365 days" in tenure("limits", "set", "--compliance", "soc2").out
    assert "is now below the 365 days of soc2" in tenure("limits", "set", "history_retention=40").out


def test_project_set_says_what_it_changed(tenure: Tenure) -> None:
    assert tenure("project", "set", "--lead", "off", "--router", "on").out == "UPDATED: lead off, router on\n"
    shown = tenure("project", "show").out
    assert "None" not in shown
    tenure("audit", "on")
    assert tenure("project", "show").out.count(":") == 2  # the time of day since which its log is sealed


def test_init_of_another_project_says_that_it_made_it(tenure: Tenure) -> None:
    assert tenure("init", "--project", "other").out.startswith("Created project other in ")
    assert tenure("init", "--project", "other").out.startswith("Already here: ")
