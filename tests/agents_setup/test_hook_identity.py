"""A command in an agent's shell and a hook of that agent are one session, whatever variables each of them has.

The environments and payloads are those that Claude Code 2.1, Codex 0.166, Gemini CLI 0.61, OpenCode 1.18 and Copilot
CLI 1.0 were seen to give; the agent itself is a small program of that name, so that the process tree is real.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tenure.agents import dialects
from tests.cli.conftest import Tenure

ID = "01a1dfb1-2121-7521-89f2-6e4a50bf935b"

# What the stand-in does: runs each command of its first argument, with that environment and that input.
AGENT = f"""#!{sys.executable}
import json, os, subprocess, sys
for step in json.loads(sys.argv[1]):
    done = subprocess.run(step["command"], input=step["input"], env=os.environ | step["environ"],
                          capture_output=True, text=True, start_new_session=True)
    print(json.dumps([done.returncode, done.stdout, done.stderr]))
"""


class Case(NamedTuple):
    program: str
    shell: dict[str, str]
    hook: dict[str, str]
    words: tuple[str, ...]
    payload: dict[str, Any]


def pascal(event: str, **more: Any) -> dict[str, Any]:
    return {"session_id": ID, "hook_event_name": event, "tool_name": "Bash", "tool_use_id": "call_0", **more}


CASES = {
    "claude": Case(
        "claude", {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": ID}, {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": ID},
        (), pascal("PostToolUse"),
    ),
    "codex": Case(
        "codex", {"CODEX_SESSION_ID": ID, "CODEX_THREAD_ID": ID, "CODEX_CI": "1"}, {"CODEX_MANAGED_BY_NPM": "1"},
        ("--from", "codex"), pascal("PostToolUse", turn_id="t"),
    ),
    "gemini": Case(
        "gemini", {"GEMINI_CLI": "1"}, {"GEMINI_SESSION_ID": ID, "CLAUDE_PROJECT_DIR": "/x"},
        ("--from", "gemini"), pascal("AfterTool", timestamp="2026-11-15T14:53:57.126Z", tool_use_id=""),
    ),
    "opencode": Case("opencode", {"OPENCODE": "1", "AGENT": "1"}, {}, ("--from", "opencode"), pascal("PostToolUse")),
    "copilot": Case(
        "copilot", {"COPILOT_CLI": "1", "COPILOT_AGENT_SESSION_ID": ID},
        {"COPILOT_CLI": "1", "CLAUDE_PROJECT_DIR": "/x"}, ("postToolUse", "--from", "copilot"),
        {"sessionId": ID, "timestamp": 1794754981745, "toolName": "bash", "toolArgs": {"command": "x"}},
    ),
    "copilot, by Claude Code's settings": Case(
        "copilot", {"COPILOT_CLI": "1", "COPILOT_AGENT_SESSION_ID": ID},
        {"COPILOT_CLI": "1", "CLAUDE_PROJECT_DIR": "/x"}, (),
        pascal("PostToolUse", timestamp="2026-11-15T15:03:01.745Z", tool_use_id=""),
    ),
}  # fmt: skip


@pytest.fixture
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bin")
    for name in {case.program for case in CASES.values()}:
        (folder / name).write_text(AGENT)
        (folder / name).chmod(0o755)
    return folder


def step(tenure: Tenure, *words: str, given: str = "", **environ: str) -> dict[str, Any]:
    return {"command": tenure.command(*words), "input": given, "environ": environ}


def run_agent(tenure: Tenure, program: Path, steps: list[dict[str, Any]]) -> list[str]:
    """What each of the steps printed; all must have gone well."""
    done = subprocess.run(
        [program, json.dumps(steps)], capture_output=True, text=True, check=True, cwd=tenure.folder, env=tenure.environ
    )
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(code, err) for code, _, err in results] == [(0, "")] * len(steps)
    return [out for _, out, _ in results]


def shell_and_hook(tenure: Tenure, case: Case) -> list[dict[str, Any]]:
    payload = json.dumps({"cwd": str(tenure.folder), **case.payload})
    return [
        step(tenure, "claim", "--json", **case.shell),
        step(tenure, "hook", *case.words, given=payload, **case.hook),
        step(tenure, "whoami", "--json", **case.shell),
    ]


def sessions(tenure: Tenure, kind: str) -> list[str]:
    if kind == "hooks":
        return sorted(path.name for path in (tenure.folder / ".tenure" / "hooks").iterdir())
    return sorted(path.name for path in Path(tenure.environ["HOME"]).rglob("receipts/*"))


@pytest.mark.parametrize("name", CASES)
def test_shell_and_hook_are_one_session(tenure: Tenure, add: Any, programs: Path, name: str) -> None:
    case = CASES[name]
    add("one")
    claimed, _, who = run_agent(tenure, programs / case.program, shell_and_hook(tenure, case))

    assert json.loads(claimed)["outcome"] == "GRANTED"
    assert json.loads(who)["type"] == case.program
    assert sessions(tenure, "hooks") == sessions(tenure, "receipts")
    kept = json.loads((tenure.folder / ".tenure/hooks" / sessions(tenure, "hooks")[0]).read_text())
    assert kept["told"] == {"A-001@1": "RENEWEDcontinue "}
    assert tenure("history", "A-001", "--json").json[0]["renewals"] == 1


@pytest.mark.parametrize(("outer", "inner"), [("claude", "codex"), ("codex", "opencode"), ("gemini", "claude")])
def test_an_agent_inside_another_has_its_own_session(
    tenure: Tenure, add: Any, programs: Path, outer: str, inner: str
) -> None:
    """Variables are inherited; the nearest process says whose shell it is."""
    case = CASES[inner]
    around = {name: value.replace(ID, "of-the-outer-one") for name, value in CASES[outer].shell.items()}
    add("one")
    add("two")
    steps = [
        step(tenure, "claim", "A-001", "--json", **around),
        {
            "command": [str(programs / inner), json.dumps(shell_and_hook(tenure, case))], "input": "",
            "environ": around,
        },
    ]  # fmt: skip
    _, output = run_agent(tenure, programs / outer, steps)

    assert len(sessions(tenure, "receipts")) == 2
    assert len(sessions(tenure, "hooks")) == 1
    renewals = {key: tenure("history", key, "--json").json[0]["renewals"] for key in ("A-001", "A-002")}
    assert renewals == {"A-001": 0, "A-002": 1}
    assert json.loads(json.loads(output.splitlines()[2])[1])["type"] == inner


def test_two_agents_of_one_kind_do_not_renew_each_others_claims(tenure: Tenure, add: Any, programs: Path) -> None:
    add("one")
    case = CASES["gemini"]
    first, second = shell_and_hook(tenure, case)[:1], shell_and_hook(tenure, case)[1:2]
    run_agent(tenure, programs / "gemini", first)
    run_agent(tenure, programs / "gemini", second)
    assert tenure("history", "A-001", "--json").json[0]["renewals"] == 0


def test_a_hook_whose_agent_has_just_ended_does_nothing(tenure: Tenure) -> None:
    """Above it is whatever adopted it, which is not its session."""
    payload = json.dumps({"hook_event_name": "Stop", "cwd": str(tenure.folder), "session_id": ID})
    assert tenure.process("hook", "--from", "opencode", stdin=payload).out == ""
    assert not (tenure.folder / ".tenure/hooks").exists()


def test_one_event_has_one_id_in_both_spellings_of_its_instant() -> None:
    number = dialects.read(b'{"sessionId": "x", "timestamp": 1794754981745}', "postToolUse")
    text = dialects.read(b'{"session_id": "x", "timestamp": "2026-11-15T15:03:01.745Z"}', "PostToolUse")
    assert number.id == text.id == "1794754981745"
