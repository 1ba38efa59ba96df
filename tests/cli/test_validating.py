"""Checked results on the command line: `done` is the validator, others review, and nothing untrusted is run."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Tenure

TESTS = '[commands.unit]\nargv = ["test", "-f", "good"]\nsandbox = "never"\n'


@pytest.fixture
def checked(tenure: Tenure) -> Tenure:
    """A claimed task whose tests are trusted; they pass once there is a file `good`."""
    (tenure.folder / "tenure.toml").write_text(TESTS)
    assert tenure("trust").code == 0
    assert tenure("add", "Make it", "--validate", "test-pass=unit").code == 0
    assert tenure("claim", "A-001").code == 0
    return tenure


def test_done_is_the_validator_and_prints_the_verdict(checked: Tenure) -> None:
    refused = checked("done", "A-001", "--json")
    assert (refused.code, refused.json["outcome"], refused.json["state"]) == (8, "INVALID_OUTPUT", "retrying")
    assert refused.json["reasons"] == ["unit ended with 1"]
    assert "test-pass: refused by" in checked("history", "A-001").out
    shown = checked("show", "A-001", "--json").json
    assert (shown["last_error"]["error_class"], shown["validation"]["state"]) == ("invalid_output", "refused")
    assert checked("add", "Again", "--validate", "test-pass=unit").code == 0
    assert checked("claim", "A-002").code == 0
    (checked.folder / "good").touch()
    passed = checked("done", "A-002", "--json")
    assert (passed.code, passed.json["outcome"]) == (0, "ACCEPTED")
    assert checked("done", "A-002", "--json").json["again"]


def test_an_agent_is_told_who_runs_the_check_of_its_result(checked: Tenure) -> None:
    said = checked.process("done", "A-001", "--agent", "ann", TENURE_ROLE="agent", CLAUDECODE="1")
    assert said.code == 0
    assert said.out == (
        "VALIDATING: A-001-make-it: submitted; waiting for test-pass\n"
        "  `tenure run`, `daemon` or `serve` runs the check, or a person approves it; you hold it no longer\n"
    )


def test_no_wait_leaves_it_to_others_and_status_says_so(checked: Tenure) -> None:
    said = checked("done", "A-001", "--no-wait", "--json")
    assert (said.code, said.json["outcome"], said.json["validation"]["state"]) == (0, "VALIDATING", "waiting")
    assert "test-pass: 1 waiting" in checked("status").out
    assert checked("status", "--json").json["validations"] == {"test-pass": {"running": 0, "waiting": 1}}
    assert "waiting for a process that runs test-pass" in checked("why", "A-001").out
    assert checked("whoami", "--json").json.get("holds") in ([], None)


JUDGE = '[judges.default]\nargv = ["sh", "-c", "echo no key >&2; exit 3"]\n'


def test_a_judge_without_its_kind_is_not_trusted_and_stops_no_tests(tenure: Tenure) -> None:
    shared = tenure.folder / "tenure.toml"
    shared.write_text(TESTS + JUDGE)
    refused = tenure("trust", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (8, "INVALID_INPUT")
    assert "judges.default.kind is missing" in refused.json["error"]["message"]
    assert tenure("trust", "--list", "--json").json == {"trusted": []}
    shared.write_text(TESTS)
    assert tenure("trust").code == 0


def test_a_judge_that_cannot_decide_says_why_and_for_whom_the_result_waits(tenure: Tenure) -> None:
    (tenure.folder / "tenure.toml").write_text(JUDGE.replace("argv", 'kind = "command"\nargv'))
    assert tenure("trust").code == 0
    assert tenure("add", "Write it", "--validate", "llm-judge=It is friendly.").code == 0
    assert tenure("claim", "A-001").code == 0
    said = tenure("done", "A-001", "--result", '"hello"')
    assert said.out == (
        "VALIDATING: A-001-write-it: submitted; waiting for llm-judge\n"
        "  A-001-write-it still waits: llm-judge could not decide: the judge sh ended with 3: no key; "
        "try 2 of 5 is made by `run`, `daemon` or `serve`\n"
    )
    assert "no key" in tenure("why", "A-001").out


def test_a_cloned_repository_runs_nothing_until_it_is_trusted(tenure: Tenure) -> None:
    ran = tenure.folder / "ran"
    toml = tenure.folder / "tenure.toml"
    toml.write_text(f"[commands.unit]\nargv = {json.dumps(['touch', str(ran)])}\nsandbox = 'never'\n")
    for number in (1, 2):
        tenure("add", "Make it", "--validate", "test-pass=unit")
        tenure("claim", f"A-00{number}")
    said = tenure("done", "A-001", "--json")
    assert (said.code, said.json["outcome"]) == (0, "VALIDATING")
    assert "not allowed" in said.json["hint"]
    assert tenure("trust", "--show", "--json").json["trusted"] is False
    assert tenure("trust", "--json").json["trusted"] is True
    assert str(toml.resolve()) in tenure("trust", "--list", "--json").json["trusted"]
    toml.write_text(toml.read_text().replace("touch", "/usr/bin/touch"))
    assert "not what you allowed" in tenure("done", "A-002", "--json").json["hint"]
    assert tenure("trust", "--revoke", "--json").json["changed"] is True
    assert not ran.exists()


def test_an_agent_does_not_trust(checked: Tenure) -> None:
    said = checked.process("trust", TENURE_ROLE="agent", CLAUDECODE="1")
    assert said.code == 7
    assert checked.process("trust", "--show", TENURE_ROLE="agent", CLAUDECODE="1").code == 0


def test_where_there_is_nothing_to_trust_it_says_so(tenure: Tenure) -> None:
    assert tenure("trust").code == 4
    (tenure.folder / "tenure.toml").write_text("lease = 60.0\n")
    assert "has nothing that needs it" in tenure("trust").out
    assert tenure("trust", "--show", "--list").code == 2


def test_commands_stand_in_the_shared_file_alone(tenure: Tenure) -> None:
    (tenure.folder / ".tenure" / "config.toml").write_text(TESTS)
    said = tenure("status", "--json")
    assert (said.code, said.json["error"]["code"]) == (11, "BAD_CONFIG")
    assert "tenure.toml" in said.json["error"]["message"]


def test_a_review_is_for_a_person_and_not_for_an_agents_session(tenure: Tenure) -> None:
    for number in (1, 2):
        tenure("add", "Look at it", "--validate", "review")
        tenure("claim", f"A-00{number}", "--agent", "ann", "--session", "s")
        assert tenure("done", f"A-00{number}", "--agent", "ann", "--session", "s").code == 0
    for name in ("ann", "bo"):  # whatever an agent calls itself on this machine
        said = tenure.process(
            "approve", "A-001", "--agent", name, "--session", "t", CLAUDECODE="1", TENURE_ROLE="agent"
        )
        assert (said.code, "in which an agent works" in said.err) == (7, True)
    assert tenure("approve", "A-001").code == 0
    assert tenure("reject", "A-002").code == 2
    assert tenure("reject", "A-002", "-m", "say more", "--json").json["state"] == "retrying"


@pytest.mark.parametrize(
    ("how", "word"),
    [
        ("regex=(", "pattern"),
        ("json-schema={}x", "JSON"),
        ("test-pass", "command"),
        ("revieww", "review"),
        ("", "one of"),
    ],
)
def test_a_contract_that_cannot_be_is_refused(tenure: Tenure, how: str, word: str) -> None:
    said = tenure("add", "x", "--validate", how)
    assert said.code in (2, 8)
    assert word in said.err


def test_a_schema_may_come_from_a_file(tenure: Tenure, tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "object", "required": ["name"]}')
    assert tenure("add", "x", "--validate", f"json-schema=@{schema}").code == 0
    tenure("claim", "A-001")
    assert tenure("done", "A-001", "--result", "{}").code == 8
    assert tenure("edit", "A-001", "--validate", "none").code == 7
    assert tenure("done", "A-001", "--result", '{"name": 1}').code == 0


def test_run_checks_what_its_agents_hand_in_and_what_else_waits(checked: Tenure) -> None:
    """The worktree of a claim is where its tests run; a result that somebody left is checked too."""
    folder = checked.folder
    for words in (["init", "-q"], ["add", "tenure.toml"], ["commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder, check=True)
    # One attempt: `run` would wait for the next one, which has to back off.
    assert checked("edit", "A-001", "--max-attempts", "1").code == 0
    assert checked("done", "A-001", "--no-wait", "--json").json["outcome"] == "VALIDATING"
    assert checked("add", "In a worktree", "--validate", "test-pass=unit", "--max-attempts", "1").code == 0
    agent = "sh -c 'touch good; echo made'"
    said = checked.process(
        "run", "--agent", agent, "--worktree", "--until-empty", "--json", GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@b",
        GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@b",
    )  # fmt: skip
    assert said.code == 3, said.err  # the other one waits for a person
    assert checked("show", "A-002", "--json").json["state"] == "completed", said.err
    assert not (folder / "good").exists()
    history = checked("history", "A-001", "--json").json
    assert history[0]["validation"]["state"] == "refused", said.err  # in the repository itself there is no such file


def test_a_server_checks_what_it_can_and_leaves_the_rest(tenure: Tenure) -> None:
    """It has no folder of the project: tests wait for whoever has; a judge it can ask."""
    (tenure.folder / "tenure.toml").write_text(
        TESTS + '[judges.default]\nkind = "command"\nargv = ["echo", "{\\"score\\": 1, \\"reasons\\": []}"]\n'
    )
    assert tenure("trust").code == 0
    for project, how in (
        ("default", "llm-judge=Is it good?"),
        ("other", "llm-judge=Is it good?"),
        ("other", "test-pass=unit"),
    ):
        if project == "other" and how.startswith("llm"):
            assert tenure("init", "--project", "other").code == 0
        ref = tenure("add", "x", "--validate", how, "--project", project, "--json").json["ref"]
        tenure("claim", ref, "--project", project)
        assert tenure("done", ref, "--project", project, "--no-wait").code == 0
    serving = tenure.start("serve", "--port", "0")
    try:
        for project in ("default", "other"):
            said = tenure.process("wait", "A-001", "--project", project, "--timeout", "60")
            assert said.code == 0, (said.out, said.err)
    finally:
        serving.terminate()
        serving.communicate(timeout=30)
    assert tenure("show", "A-002", "--project", "other", "--json").json["state"] == "validating"
    assert "test-pass: 1 waiting" in tenure("status", "--project", "other").out
