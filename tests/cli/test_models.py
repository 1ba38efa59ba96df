"""`model …`, and what `claim` prints of the model to use."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Tenure

CLAUDE = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "abcd"}


def test_an_agent_is_told_its_model_and_a_person_is_not(tenure: Tenure) -> None:
    tenure("add", "Fix a typo", "--tag", "typo")
    tenure("add", "Design it", "--complexity", "9")
    tenure("add", "Anything")
    said = tenure.process("claim", **CLAUDE)
    assert "model    haiku (small tier: tagged `typo`)" in said.out
    assert tenure.process("claim", "--json", **CLAUDE).json["model"] == "opus"
    person = tenure("claim", "--json").json
    assert (person.get("model"), person["tier"]) == (None, "middle")


def test_a_task_may_name_its_models(tenure: Tenure) -> None:
    added = tenure("add", "It", "--model", "opus", "--fallback-model", "haiku", "--tokens", "900", "--json").json
    assert added["constraints"] == {
        "estimated_tokens": 900, "model_preferences": ["opus"], "fallback_models": ["haiku"]
    }  # fmt: skip
    assert "model    opus (preferred by the task)" in tenure.process("claim", **CLAUDE).out


def test_routing_can_be_turned_off(tenure: Tenure) -> None:
    tenure("add", "Anything")
    assert tenure("model", "routing", "off").out.strip() == "routing is off"
    assert "routing is off in this project" in tenure("model", "list").out
    assert "model " not in tenure.process("claim", **CLAUDE).out


def test_models_are_listed_with_prices_and_what_cools_down(tenure: Tenure) -> None:
    tenure("add", "Anything")
    tenure.process("claim", **CLAUDE)
    tenure.process("fail", "--class", "rate_limit", "--retry-after", "90", "-m", "slow down", **CLAUDE)
    said = tenure("model", "list").out
    assert "anthropic  claude-sonnet-5-5  $2.00" in said
    assert "sonnet was rate limited 1 time in a row; it cools down for 1 min" in said
    assert tenure("model", "list", "--json").json["limited"][0]["cool_until"].endswith("Z")


def test_savings_and_estimates_say_when_there_is_nothing(tenure: Tenure) -> None:
    assert tenure("model", "savings").out.strip() == "no usage was reported"
    assert tenure("model", "estimates").out.strip() == "no finished task has reported its usage"
    assert tenure("model", "savings", "--json").json["saved"] is None


def test_a_users_own_tiers_are_used_and_looked_for_beside_the_settings(tenure: Tenure) -> None:
    (tenure.folder / "tenure.toml").write_text('tiers = "ours.toml"\n')
    (tenure.folder / "ours.toml").write_text(
        '[rules]\nboilerplate = ["chores"]\n[families.anthropic.small]\ncalled = {claude = "claude-haiku-4-5"}\n'
    )
    tenure("add", "Sweep", "--type", "chores")
    assert "model    claude-haiku-4-5 (small tier: tagged `chores`)" in tenure.process("claim", **CLAUDE).out


@pytest.mark.parametrize(
    ("text", "says"),
    [("[rulez]\n", "rulez"), ("[rules", "at the end"), (None, "No such file")],
)
def test_a_file_of_tiers_that_is_wrong_is_named(tenure: Tenure, text: str | None, says: str) -> None:
    tenure("add", "Anything")
    path = tenure.folder / "ours.toml"
    if text is not None:
        path.write_text(text)
    said = tenure.process("claim", "--json", TENURE_TIERS=str(path))
    assert said.code == 8
    assert "ours.toml" in said.json["error"]["message"]
    assert says in said.json["error"]["message"]


def test_a_wrong_file_of_tiers_keeps_no_holder_from_its_last_word(tenure: Tenure) -> None:
    (tenure.folder / "ours.toml").write_text("[rulez]")
    wrong = {**CLAUDE, "TENURE_TIERS": str(tenure.folder / "ours.toml")}
    for title in ("One", "Two"):
        tenure("add", title, "--model", "opus")
        tenure.process("claim", **CLAUDE)
    assert tenure.process("fail", "A-001", "--class", "rate_limit", "-m", "slow", **wrong).code == 0
    assert tenure.process("done", "A-002", **wrong).code == 0
    assert tenure("model", "list", "--json").json["limited"] == []
