"""The runner passes the model that the claim names to the agent that it starts, unless a person named one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tenure.agents.runner.clis import KNOWN, cli_for
from tenure.core.commands import Register, SetPool
from tenure.core.errors import InvalidInput
from tests.runner.conftest import Stage

# Says what it was started with, as Claude Code says it; a model that it does not have it refuses as that does.
FAKE = """#!/bin/sh
cat > /dev/null
echo "$* TIER=$TENURE_TIER" >> "$FAKE_LOG"
case " $* " in *" --model $FAKE_LACKS "*)
    echo '{"type":"result","is_error":true,"terminal_reason":"api_error","api_error_status":404,"result":"no model"}'
    exit 1;;
esac
echo '{"type":"result","subtype":"success","is_error":false,"result":"done"}'
"""


@pytest.fixture
def claude(stage: Stage, tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "claude").write_text(FAKE)
    (folder / "claude").chmod(0o755)
    path = f"{folder}:{stage.environ['PATH']}"
    return {"PATH": path, "FAKE_LOG": str(tmp_path / "starts"), "FAKE_LACKS": "nothing"}


def starts(claude: dict[str, str]) -> list[tuple[str | None, str]]:
    """(model, tier) of each start."""
    found = []
    for line in Path(claude["FAKE_LOG"]).read_text().splitlines():
        words, _, tier = line.partition(" TIER=")
        parts = words.split()
        found.append((parts[parts.index("--model") + 1] if "--model" in parts else None, tier))
    return found


def test_each_task_gets_its_model(stage: Stage, claude: dict[str, str]) -> None:
    stage.add("stub", type="boilerplate")
    stage.add("feature")
    stage.add("design", constraints={"complexity": 9})
    stage.add("named", constraints={"model_preferences": ["gpt-5", "claude-opus-4-6"]})
    stage.run("--until-empty", "--route", agent="claude", **claude).ends()
    assert starts(claude) == [("haiku", "small"), ("sonnet", "middle"), ("opus", "top"), ("claude-opus-4-6", "top")]


def test_the_agents_own_setting_counts_unless_routing_is_asked_for(stage: Stage, claude: dict[str, str]) -> None:
    stage.add("stub", type="boilerplate")
    stage.add("named", constraints={"model_preferences": ["claude-opus-4-6"]})
    stage.run("--until-empty", agent="claude", **claude).ends()
    assert [model for model, _ in starts(claude)] == [None, "claude-opus-4-6"]
    stage.add("stub", type="boilerplate")
    stage.run("--until-empty", agent="claude", TENURE_RUN_ROUTE="true", **claude).ends()
    assert starts(claude)[-1] == ("haiku", "small")


def test_an_agent_that_did_nothing_has_not_completed_its_task(stage: Stage, claude: dict[str, str]) -> None:
    """Exit code 0, no message, no tokens: as some end when they do not know their model."""
    program = Path(claude["PATH"].partition(":")[0], "codex")
    program.write_text('#!/bin/sh\ncat > /dev/null\necho \'{"type":"thread.started","thread_id":"1"}\'\n')
    program.chmod(0o755)
    stage.add("stub")
    said = stage.run("--once", agent="codex", **claude).ends()
    assert "failed (environment): codex ended without a message" in said
    (task,) = stage.client.tasks()
    assert (task["state"], task["attempts"]) == ("ready", 0)


@pytest.mark.parametrize(
    ("words", "agent", "model"),
    [(("--model", "fable"), "claude", "fable"), ((), "claude --model opus", "opus")],
)
def test_a_person_has_the_last_word(
    stage: Stage, claude: dict[str, str], words: tuple[str, ...], agent: str, model: str
) -> None:
    stage.add("stub", type="boilerplate")
    stage.run("--until-empty", "--route", *words, agent=agent, **claude).ends()
    assert [found for found, _ in starts(claude)] == [model]


def test_a_model_in_the_agents_own_variable_is_a_persons_word(stage: Stage, claude: dict[str, str]) -> None:
    stage.add("stub", type="boilerplate")
    stage.run("--until-empty", "--route", agent="claude", ANTHROPIC_MODEL="claude-sonnet-4-5", **claude).ends()
    assert [found for found, _ in starts(claude)] == [None]


def test_an_agent_that_lacks_a_model_chooses_its_own_from_then_on(stage: Stage, claude: dict[str, str]) -> None:
    """What the account does not have must not keep the runner from its work."""
    for n in range(3):
        stage.add(f"stub {n}", type="boilerplate")
    runs = stage.run("--max-tasks", 3, "--route", agent="claude", **claude | {"FAKE_LACKS": "haiku"})
    said = runs.ends()
    assert "claude does not know haiku" in said
    assert [found for found, _ in starts(claude)] == ["haiku", None, None]
    assert [task["state"] for task in stage.client.tasks(order="key")] == ["ready", "completed", "completed"]


def test_any_command_reads_tier_and_model_from_its_environment(stage: Stage, tmp_path: Path) -> None:
    stage.add("stub", type="boilerplate", constraints={"model_preferences": ["our-own"]})
    program = tmp_path / "agent.sh"
    program.write_text('#!/bin/sh\ncat > /dev/null\necho "{\\"result\\": \\"$TENURE_MODEL\\"}"\n')
    program.chmod(0o755)
    stage.run("--until-empty", agent=str(program)).ends()
    (task,) = stage.client.tasks()
    assert json.dumps(stage.client.results(task["key"])[0]["data"]) == '"our-own"'


@pytest.mark.parametrize("words", [*KNOWN, "./my-agent"])
@pytest.mark.parametrize("name", ["--yolo/x", "-c", "--claude", "-gpt", "claude\nx", "a/b\0c"])
def test_no_option_is_taken_for_a_model(words: str, name: str) -> None:
    """Stores of before may have one, and OpenCode's names are any with a slash."""
    assert not cli_for(words)[0].may_take(name)


@pytest.mark.parametrize("name", ["--yolo/x", "-c", "a\x1bb"])
def test_no_task_agent_or_pool_names_an_option_as_its_model(stage: Stage, name: str) -> None:
    for field in ("model_preferences", "fallback_models"):
        with pytest.raises(InvalidInput, match=rf"constraints\.{field} .* is not the name of a model"):
            stage.client.add("x", constraints={field: [name]})
    with pytest.raises(InvalidInput, match=r"models? .* is not the name of a model"):
        stage.client.do(Register(project="default", agent="a", models=(name,)))
    with pytest.raises(InvalidInput, match=r"models? .* is not the name of a model"):
        stage.client.do(SetPool(project="default", pool="coders", program="claude", models=(name,)))
