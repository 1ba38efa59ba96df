"""What scripts may rely on: names in the JSON, exit codes, one value on stdout in every case."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tenure.cli.answers import EXITS, OF_ERROR, OF_KIND
from tenure.cli.main import function_of
from tenure.cli.verbs import ALIASES, VERBS
from tenure.core.errors import TenureError
from tenure.core.outcomes import CODES
from tests.cli.conftest import Tenure


def test_add_answers_with_the_task(tenure: Tenure) -> None:
    said = tenure("add", "Write the parser", "--json")
    assert said.code == 0
    assert said.json["id"].startswith("task_")
    assert said.json["key"] == "A-001-write-the-parser"
    assert said.json["state"] == "ready"


def test_a_claim_tells_all_that_a_script_needs(tenure: Tenure, add: Callable[..., str]) -> None:
    add("Write the parser")
    said = tenure("claim", "--agent", "ann", "--session", "s1", "--lease", 60, "--json")
    assert said.code == 0
    claim = said.json
    assert claim["outcome"] == "GRANTED"
    assert claim["task"]["key"] == "A-001-write-the-parser"
    assert claim["generation"] == 1
    assert claim["receipt"].startswith("A-001@1:")
    assert claim["lease_until"].endswith("Z")
    assert claim["lease"] == 60
    assert claim["took_ms"] > 0
    assert tenure("claim", "--agent", "bo", "--session", "s2", "--json").code == 3
    denied = tenure("claim", "A-001", "--agent", "bo", "--session", "s2", "--json")
    assert (denied.code, denied.json["outcome"], denied.json["holder"]) == (5, "DENIED_ACTIVE_CLAIM", "ann")


def test_done_says_whether_the_work_counts(tenure: Tenure, add: Callable[..., str]) -> None:
    add("Write the parser")
    receipt = tenure("claim", "--agent", "ann", "--session", "s1", "--json").json["receipt"]
    said = tenure("done", "A-001", "--receipt", receipt, "--result", '{"tests": 12}', "--json")
    assert said.code == 0
    assert said.json["outcome"] == "ACCEPTED"
    assert said.json["current_generation"] == 1
    assert said.json["work_lost"] is False
    assert tenure("show", "A-001", "--json").json["result"]["data"] == {"tests": 12}


def test_a_stale_receipt_is_told_so(tenure: Tenure, add: Callable[..., str]) -> None:
    add("Write the parser")
    first = tenure("claim", "--agent", "ann", "--session", "s1", "--json").json["receipt"]
    assert tenure("recover", "A-001", "-m", "ann is gone").code == 0
    second = tenure("claim", "--agent", "bo", "--session", "s2", "--json").json["receipt"]
    assert tenure("done", "--receipt", second, "--result", "2", "--json").json["outcome"] == "ACCEPTED"
    said = tenure("done", "--receipt", first, "--result", "1", "--json")
    assert said.code == 6
    assert said.json["outcome"] == "STALE_GENERATION"
    assert said.json["current_generation"] == 2
    assert said.json["work_lost"] is True
    entries = tenure("history", "A-001", "--json").json
    assert [(e["generation"], e["session"], e["release_reason"], e["result_accepted"]) for e in entries] == [
        (1, "s1", "SUPERSEDED", False),
        (2, "s2", "COMPLETED", True),
    ]


def test_lists_are_arrays_and_status_has_its_parts(tenure: Tenure, add: Callable[..., str]) -> None:
    add("Write the parser")
    assert [task["ref"] for task in tenure("list", "--json").json] == ["A-001"]
    assert {"leader", "agents", "tasks"} <= set(tenure("status", "--json").json)


@pytest.mark.parametrize(
    ("words", "code", "name"),
    [
        (("donee",), 2, "USAGE"),
        (("done", "--sumary", "x"), 2, "USAGE"),
        (("plan",), 2, "USAGE"),
        (("add",), 2, "USAGE"),
        (("claim", "--lease", "soon"), 2, "USAGE"),
        (("show", "Z-999"), 4, "NOT_FOUND"),
        (("done", "--receipt", "nonsense"), 8, "INVALID_INPUT"),
        (("done",), 6, "NO_RECEIPT"),
        (("add", "x", "--after", "Z-999"), 8, "INVALID_INPUT"),
        (("add", "x" * 300), 8, "INVALID_INPUT"),
        (("config", "lease.x"), 2, "USAGE"),
    ],
)
def test_every_error_is_one_json_value_with_a_code(
    tenure: Tenure, words: tuple[str, ...], code: int, name: str
) -> None:
    said = tenure(*words, "--json")
    assert (said.code, said.json["error"]["code"]) == (code, name)
    assert said.json["error"]["message"]
    assert said.err == ""
    plain = tenure(*words)
    assert plain.code == code
    assert plain.out == ""
    assert plain.err.startswith("tenure: ")
    assert "Traceback" not in plain.err


def test_without_a_store_every_verb_says_what_to_do(bare: Tenure) -> None:
    for words in (("claim",), ("list",), ("add", "x"), ("status",)):
        said = bare(*words)
        assert said.code == 1
        assert "tenure init" in said.err


def test_a_bug_is_one_sentence_and_a_file(tenure: Tenure, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the sky fell")

    monkeypatch.setattr("tenure.client.Client.show", broken)
    said = tenure("show", "A-001", "--json")
    assert said.code == 70
    assert "the sky fell" in said.json["error"]["message"]
    assert "Traceback" not in said.out + said.err


def test_misspelt_verbs_and_options_get_a_suggestion(tenure: Tenure) -> None:
    assert "did you mean done?" in tenure("donee").err
    assert "did you mean --summary?" in tenure("done", "--sumary", "x").err
    assert "did you mean show?" in tenure("checkpoint", "shwo").err


def test_shared_options_may_stand_before_the_verb_and_after(tenure: Tenure) -> None:
    assert json.loads(tenure("--json", "list").out) == []
    assert json.loads(tenure("--project=default", "list", "--json").out) == []
    assert tenure("list", "--project", "other").code == 4


@pytest.mark.parametrize("name", [*VERBS, *ALIASES])
def test_every_verb_has_help(tenure: Tenure, name: str) -> None:
    said = tenure(*name.split(), "-h")
    assert said.code == 0
    assert "usage: tenure" in said.out
    assert function_of(VERBS[ALIASES.get(name, name)].where).__doc__


def test_help_lists_every_verb(bare: Tenure) -> None:
    said = bare("help", "--all").out
    assert [name for name in VERBS if f"\n  {name} " not in said] == []
    assert bare("--version").out.startswith("tenure ")


def test_every_outcome_and_every_error_has_an_exit_code() -> None:
    assert {code.kind for code in CODES.values()} == set(OF_KIND)
    assert set(OF_KIND.values()) | set(OF_ERROR.values()) <= set(EXITS)

    def tree(kind: type[TenureError]) -> set[str]:
        return {kind.code}.union(*(tree(sub) for sub in kind.__subclasses__()))

    ours = tree(TenureError) - {"ERROR", "INTERRUPTED"}
    assert ours <= set(OF_ERROR), ours - set(OF_ERROR)
