"""What the five CLIs really print, read into one shape. The samples are recorded from them; see tests/agents."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tenure.agents.runner.agent_output import AgentOutput, Exit, class_of, failed, retry_after_of
from tenure.agents.runner.clis import KNOWN, cli_for
from tenure.agents.runner.clis.cli import Start
from tenure.agents.runner.clis.command_cli import CommandReader
from tenure.core.commands import Totals

SAMPLES = Path(__file__).parents[1] / "agents" / "samples"


def read(agent: str, sample: str, tmp_path: Path) -> tuple[AgentOutput, tuple[Totals, ...]]:
    cli, _ = cli_for(agent)
    reader = cli.reader(Start(prompt="", folder="/w", beside=f"{tmp_path}/gen-1.", model="asked-for"))
    folder = SAMPLES / agent
    usage = folder / f"{sample}.usage.json"
    if usage.exists():
        shutil.copy(usage, tmp_path / "gen-1.copilot-usage.json")
    lines = folder / f"{sample}.jsonl"
    for line in lines.read_text().splitlines() if lines.exists() else ():
        reader.feed(line)
    errors = folder / f"{sample}.stderr"
    code = json.loads((folder / "exits.json").read_text())[sample]
    reading = reader.finish(Exit(code, errors.read_text() if errors.exists() else ""))
    return reading, reader.usage()


@pytest.mark.parametrize("agent", KNOWN)
def test_kinds_of_tokens_are_separate_and_counted_once(agent: str, tmp_path: Path) -> None:
    """The model answered twice: 100 fresh, 40 cached, 20 out each time, whatever the CLI makes of it."""
    reading, usage = read(agent, "done", tmp_path)

    assert reading.failure is None
    assert reading.text == "All done."
    assert reading.is_whole
    assert reading.session
    (totals,) = usage
    assert (totals.fresh, totals.cached, totals.written, totals.output) == (200, 80, 0, 40)


@pytest.mark.parametrize(
    ("agent", "cost"),
    [("claude", "0.001224"), ("opencode", "0.001224"), ("codex", None), ("gemini", None), ("copilot", None)],
)
def test_costs_are_reported_where_the_agent_reports_them(agent: str, cost: str | None, tmp_path: Path) -> None:
    _, (totals,) = read(agent, "done", tmp_path)
    assert totals.cost_usd == cost
    assert (totals.duration > 0) is (agent in ("claude", "gemini", "copilot"))


@pytest.mark.parametrize("agent", KNOWN)
@pytest.mark.parametrize(
    ("sample", "expected"),
    [("unauthorised", "auth_failure"), ("rate-limited", "rate_limit"), ("unavailable", "upstream_timeout")],
)
def test_failures_outside_of_the_task_have_their_class(agent: str, sample: str, expected: str, tmp_path: Path) -> None:
    reading, usage = read(agent, sample, tmp_path)
    assert reading.failure is not None
    assert reading.failure.error_class == expected
    assert reading.failure.message
    assert usage == ()


def test_a_rate_limit_names_its_model_and_how_long(tmp_path: Path) -> None:
    reading, _ = read("opencode", "rate-limited", tmp_path)
    assert reading.failure is not None
    assert (reading.failure.retry_after, reading.failure.model) == (1.0, "asked-for")
    reading, _ = read("claude", "rate-limited", tmp_path)
    assert reading.failure is not None
    assert reading.failure.model == "claude-sonnet-4-5"


@pytest.mark.parametrize("agent", sorted(set(KNOWN) - {"gemini"}))
def test_a_retried_error_is_not_a_failure(agent: str, tmp_path: Path) -> None:
    reading, usage = read(agent, "recovered", tmp_path)
    assert reading.failure is None
    assert reading.text
    assert usage


@pytest.mark.parametrize(
    ("agent", "note"), [("claude", "tools that were denied: Bash"), ("copilot", "1 calls of tools")]
)
def test_denied_tools_are_reported_after_a_success(agent: str, note: str, tmp_path: Path) -> None:
    reading, _ = read(agent, "denied", tmp_path)
    assert reading.failure is None
    assert note in reading.notes[0]


def test_a_spent_budget_has_its_own_class_and_is_booked(tmp_path: Path) -> None:
    reading, (totals,) = read("claude", "over-budget", tmp_path)
    assert reading.failure is not None
    assert reading.failure.error_class == "budget_exceeded"
    assert totals.cost_usd == "0.000612"


def test_too_many_turns_are_the_tasks_own_failure(tmp_path: Path) -> None:
    reading, _ = read("claude", "too-many-turns", tmp_path)
    assert reading.failure is not None
    assert reading.failure.error_class == "task"


def test_text_about_the_task_is_not_taken_for_an_error_of_the_agent(tmp_path: Path) -> None:
    reader = cli_for("claude")[0].reader(Start(prompt="", folder="/w", beside=f"{tmp_path}/gen-1."))
    reader.feed(
        '{"type": "result", "subtype": "error_during_execution", "is_error": true, "result": "401 Unauthorized"}'
    )
    failure = reader.finish(Exit(1, "")).failure
    assert failure is not None
    assert failure.error_class == "task"


def test_a_folder_that_gemini_does_not_trust_is_the_surroundings_fault(tmp_path: Path) -> None:
    reading, _ = read("gemini", "untrusted", tmp_path)
    assert reading.failure is not None
    assert reading.failure.error_class == "environment"
    assert "trusted" in reading.failure.message


@pytest.mark.parametrize("agent", KNOWN)
def test_an_agent_that_ends_at_once_failed_by_its_surroundings(agent: str, tmp_path: Path) -> None:
    cli, _ = cli_for(agent)
    reader = cli.reader(Start(prompt="", folder="/w", beside=f"{tmp_path}/gen-1."))
    reader.feed("some words that are no JSON")
    failure = reader.finish(Exit(1, "cannot find module 'x'\n")).failure
    assert failure is not None
    assert failure.error_class == "environment"
    assert "cannot find module" in failure.message


@pytest.mark.parametrize("agent", KNOWN)
@pytest.mark.parametrize("line", ["{", "[]", "null", '{"type": 3}', "{}", '{"type": "result"}', "\x00", "x" * 100])
def test_no_line_is_so_odd_that_a_reader_breaks(agent: str, line: str, tmp_path: Path) -> None:
    cli, _ = cli_for(agent)
    reader = cli.reader(Start(prompt="", folder="/w", beside=f"{tmp_path}/gen-1."))
    reader.feed(line)
    reader.finish(Exit(0, ""))
    reader.usage()


# --- starting them ---


def words(agent: str, **fields: object) -> list[str]:
    cli, extra = cli_for(agent)
    start = Start(prompt="/p", folder="/w", beside="/s/gen-1.", extra=extra, writable=("/h",), **fields)  # type: ignore[arg-type]
    return cli.command("/bin/it", start)


def test_each_agent_is_started_without_a_terminal() -> None:
    assert words("claude", model="m", budget="2.5")[1:10] == [
        "-p",
        "--output-format",
        "stream-json",
        "--verbose",
        "--model",
        "m",
        "--max-budget-usd",
        "2.5",
        "--allowedTools",
    ]
    codex = words("codex", model="m")
    assert codex[1:4] == ["exec", "--json", "-C"]
    assert 'sandbox_workspace_write.writable_roots=["/h"]' in codex
    assert codex[-1] == "-"
    assert words("gemini", model="m")[1:] == ["-o", "stream-json", "-m", "m", "--approval-mode", "yolo"]
    assert words("opencode", model="a/m")[1:] == ["run", "--format", "json", "-m", "a/m"]
    assert words("copilot")[1:5] == ["--output-format", "json", "--usage-output-file", "/s/gen-1.copilot-usage.json"]


def test_words_of_the_user_are_passed_on_and_win() -> None:
    claude = words("claude --permission-mode plan")
    assert claude[-2:] == ["--permission-mode", "plan"]
    assert "--allowedTools" not in claude
    assert words("codex --sandbox read-only").count("-s") == 0
    assert words("codex --sandbox read-only")[-1] == "-"
    assert "yolo" not in words("gemini --approval-mode=default")
    assert words("./script --flag 'two words'")[1:] == ["--flag", "two words"]


@pytest.mark.parametrize(
    ("agent", "model", "takes"),
    [
        ("claude", "claude-sonnet-4-5", True), ("claude", "gpt-5", False), ("codex", "gpt-5", True),
        ("gemini", "gemini-2.5-pro", True), ("gemini", "opus", False), ("opencode", "mock/m1", True),
        ("opencode", "m1", False), ("copilot", "claude-sonnet-4-5", True), ("python x.py", "anything", True),
    ],
)  # fmt: skip
def test_an_agent_does_not_get_a_model_of_another_vendor(agent: str, model: str, takes: bool) -> None:
    assert cli_for(agent)[0].takes(model) is takes


# --- any command ---


def command(*lines: str, code: int = 0, errors: str = "") -> tuple[AgentOutput, tuple[Totals, ...]]:
    reader = CommandReader()
    for line in lines:
        reader.feed(line)
    return reader.finish(Exit(code, errors)), reader.usage()


def test_what_a_command_prints_is_its_result() -> None:
    reading, _ = command("one", "", "two")
    assert (reading.text, reading.data, reading.failure) == ("one\ntwo", None, None)


def test_a_last_line_of_json_says_it_all() -> None:
    reading, _ = command("noise", '{"result": [1, 2], "summary": "two numbers"}')
    assert (reading.data, reading.summary, reading.is_whole) == ([1, 2], "two numbers", True)
    reading, _ = command('{"result": 1}', "an afterthought")
    assert reading.data is None
    reading, _ = command('{"other": 1}')
    assert (reading.data, reading.text) == (None, '{"other": 1}')


def test_a_command_may_fail_with_a_class_of_its_choice() -> None:
    said = {"fail": {"class": "rate_limit", "message": "wait", "retry_after": 30, "model": "m1"}}
    assert command(json.dumps(said))[0].failure == ("rate_limit", "wait", 30.0, "m1")
    odd = {"fail": {"class": "no-such-class", "retry_after": "soon"}}
    assert command(json.dumps(odd), errors="why")[0].failure == ("task", "why", None, None)
    assert command('{"fail": "just so"}')[0].failure == ("task", "just so", None, None)


def test_usage_of_a_command_is_its_last_report_per_model() -> None:
    _, usage = command(
        '{"usage": {"model": "m1", "fresh": 1}}',
        '{"usage": [{"model": "m1", "fresh": 5}, {"model": "m 2", "output": 2}]}',
        "done",
    )
    assert usage == (Totals(model="m1", fresh=5), Totals(model="m-2", output=2))
    reading, usage = command('{"usage": {"fresh": "many"}}', "done")
    assert usage == ()
    assert "not understood" in reading.notes[0]
    assert reading.text == "done"


def test_only_the_end_of_long_output_is_kept() -> None:
    reading, _ = command(*(f"{n} {'x' * 1000}" for n in range(1000)))
    assert len(reading.text) <= 256 << 10
    assert reading.text.splitlines()[-1].startswith("999 ")


# --- classes ---


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("unexpected status 401 Unauthorized", "auth_failure"),
        ("Please log in first", "auth_failure"),
        ("Credit balance is too low", "auth_failure"),
        ("exceeded retry limit, last status: 429 Too Many Requests", "rate_limit"),
        ("Error: 529 overloaded_error", "rate_limit"),
        ("You exceeded your current quota", "rate_limit"),
        ("API Error: 503 nothing here", "upstream_timeout"),
        ("fetch failed: ECONNREFUSED 127.0.0.1", "upstream_timeout"),
        ("Reached maximum budget ($1)", "budget_exceeded"),
        ("The model `gpt-99` does not exist", "environment"),
        ("API Error: 404 not_found_error: model: x", "environment"),
        ("the tests fail in 401 places", "task"),
        ("AssertionError: 1 != 2", "task"),
    ],
)
def test_a_message_determines_the_error_class(message: str, expected: str) -> None:
    assert class_of(message) == expected


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Retry-After: 30", 30.0),
        ("please retry in 2m5s", 125.0),
        ("try again in 1h2m", 3720.0),
        ("try again in 1.5s.", 1.5),
        ("retry in 500ms", 0.5),
        ("Claude AI usage limit reached|1800000060", 60.0),
        ("Claude AI usage limit reached|1700000000", 0.0),
        ("nothing of the kind", None),
        ("retried 5 times (total retry wait time: 5.64 seconds)", None),
    ],
)
def test_a_message_may_say_how_long_to_wait(message: str, seconds: float | None) -> None:
    assert retry_after_of(message, now=1_800_000_000.0) == seconds


def test_a_status_weighs_more_than_words() -> None:
    assert failed("quota and other words", status=401).error_class == "auth_failure"
    assert failed("rate limit", status=429, model="m").model == "m"
    assert failed("no key", status=401, model="m").model is None
