"""A budget in dollars sees what an agent costs, or the agent is refused before it spends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tenure.agents.runner.clis import cli_for
from tenure.agents.runner.clis.cli import Start
from tenure.agents.runner.prices import NoPrice, check_priced
from tenure.engine.models.tables import price_table
from tests.runner.conftest import Stage

AT = 1_790_000_000_000_000
IN_DOLLARS = {"budgets": [{"budget": "project", "currency": "usd"}]}
IN_TOKENS = {"budgets": [{"budget": "project", "currency": "tokens"}]}


def start(folder: Path, *extra: str, model: str | None = None, **environ: str) -> Start:
    environ = {"HOME": str(folder / "home")} | environ
    return Start("", str(folder / "work"), str(folder / "gen-1."), model=model, extra=extra, environ=environ)


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize(
    ("extra", "model", "found"),
    [
        ((), None, "gpt-of-user"),
        ((), "gpt-asked", "gpt-asked"),
        (("--model", "gpt-word"), None, "gpt-word"),
        (("-m=gpt-word",), None, "gpt-word"),
        (("-c", 'model="gpt-override"'), None, "gpt-override"),
        (("--profile", "deep"), None, "gpt-deep"),
    ],
)
def test_the_model_of_codex_is_read_from_its_settings(
    tmp_path: Path, extra: tuple[str, ...], model: str | None, found: str
) -> None:
    cli, _ = cli_for("codex")
    assert cli.own_model(start(tmp_path, *extra, model=model)) in (model, *(w.partition("=")[2] for w in extra), found)
    write(tmp_path / "home/.codex/config.toml", 'model = "gpt-of-user"\n[profiles.deep]\nmodel = "gpt-deep"\n')
    assert cli.own_model(start(tmp_path, *extra, model=model)) == found


def test_a_folder_s_settings_go_before_the_user_s_and_broken_ones_are_passed_over(tmp_path: Path) -> None:
    codex, opencode = cli_for("codex")[0], cli_for("opencode")[0]
    write(tmp_path / "home/.codex/config.toml", 'model = "gpt-of-user"\n')
    write(tmp_path / "work/.codex/config.toml", 'model = "gpt-of-folder"\n')
    write(tmp_path / "home/.config/opencode/opencode.json", '{"model": "acme/user"}')
    write(tmp_path / "work/opencode.json", '{"model": "acme/folder"}')
    assert codex.own_model(start(tmp_path)) == "gpt-of-folder"
    assert opencode.own_model(start(tmp_path)) == "acme/folder"
    write(tmp_path / "work/.codex/config.toml", "model = [")
    write(tmp_path / "work/opencode.json", "{")
    assert codex.own_model(start(tmp_path)) == "gpt-of-user"
    assert opencode.own_model(start(tmp_path)) == "acme/user"
    assert cli_for("gemini")[0].own_model(start(tmp_path, GEMINI_MODEL="gemini-x")) == "gemini-x"


def test_usage_of_codex_is_booked_under_the_model_of_its_own_record(tmp_path: Path) -> None:
    cli, _ = cli_for("codex")
    record = tmp_path / "home/.codex/sessions/2026/11/20/rollout-2026-11-20T00-00-00-thread-1.jsonl"
    write(record, '{"type":"turn_context","payload":{"model":"gpt-6.1-terra"}}\nbroken\n')
    reader = cli.reader(start(tmp_path))
    reader.feed('{"type":"thread.started","thread_id":"thread-1"}')
    reader.feed('{"type":"turn.completed","usage":{"input_tokens":100,"output_tokens":10}}')
    assert [(one.model, one.fresh) for one in reader.usage()] == [("gpt-6.1-terra", 100)]


@pytest.mark.parametrize(
    ("agent", "model", "headroom", "is_refused"),
    [
        ("codex", None, IN_DOLLARS, True),
        ("codex", "of-a-house", IN_DOLLARS, True),
        ("codex", "gpt-6.1-terra", IN_DOLLARS, False),
        ("codex", None, IN_TOKENS, False),
        ("gemini", None, IN_DOLLARS, False),  # its output names the models
        ("gemini", "of-a-house", IN_DOLLARS, True),
        ("copilot", "of-a-house", IN_DOLLARS, True),
        ("claude", "of-a-house", IN_DOLLARS, False),  # it reports dollars
        ("opencode", None, IN_DOLLARS, False),
        ("sh -c true", None, IN_DOLLARS, False),
    ],
)
def test_a_run_whose_cost_no_budget_would_see_is_refused(
    agent: str, model: str | None, headroom: dict[str, Any], is_refused: bool
) -> None:
    cli, _ = cli_for(agent)

    def check() -> None:
        check_priced(cli, model, headroom, price_table(), AT, command="tenure run")

    if not is_refused:
        check()
        return
    with pytest.raises(NoPrice) as refused:
        check()
    assert "budget project, in dollars, would not see what it costs" in refused.value.message
    for way in ("--model NAME", "in tokens", "--unpriced"):
        assert way in (refused.value.hint or "")


CODEX = """#!/bin/sh
cat > /dev/null
echo ran >> "$FAKE_LOG"
echo '{"type":"thread.started","thread_id":"t"}'
echo '{"type":"item.completed","item":{"type":"agent_message","text":"done"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1000000,"output_tokens":10}}'
"""


def test_an_agent_without_a_price_does_not_start_under_a_budget_in_dollars(stage: Stage, tmp_path: Path) -> None:
    write(tmp_path / "bin/codex", CODEX)
    (tmp_path / "bin/codex").chmod(0o755)
    log = tmp_path / "starts"
    environ = {"PATH": f"{tmp_path}/bin:{stage.environ['PATH']}", "FAKE_LOG": str(log), "HOME": str(tmp_path / "home")}
    key = stage.add("work")
    stage.client.set_budget("project", usd="50")
    refused = stage.run("--once", agent="codex", **environ).ends(11)
    assert "the model of codex is not known, so budget project, in dollars, would not see what it costs" in refused
    assert not log.exists()
    assert stage.client.show(key)["state"] == "ready"
    write(tmp_path / "home/.codex/config.toml", 'model = "gpt-6.1-terra"\n')
    stage.run("--once", agent="codex", **environ).ends()
    assert float(stage.client.budget()["consumed"]) > 0
    write(tmp_path / "home/.codex/config.toml", "")
    stage.add("more")
    stage.run("--once", "--unpriced", agent="codex", **environ).ends()
    assert log.read_text() == "ran\nran\n"


def test_a_budget_of_the_task_counts_too(stage: Stage, tmp_path: Path) -> None:
    write(tmp_path / "bin/codex", CODEX)
    (tmp_path / "bin/codex").chmod(0o755)
    environ = {"PATH": f"{tmp_path}/bin:{stage.environ['PATH']}", "FAKE_LOG": str(tmp_path / "starts")}
    key = stage.add("dear", constraints={"max_cost_usd": "1"})
    said = stage.run("--once", agent="codex", HOME=str(tmp_path / "home"), **environ).ends(None)
    assert f"budget task:{stage.client.show(key)['id']}, in dollars, would not see what it costs" in said
    assert not (tmp_path / "starts").exists()
