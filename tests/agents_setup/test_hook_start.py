"""A hook runs with every tool call of every agent: it imports nothing that it does not need."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.cli.conftest import Tenure
from tests.test_startup import HEAVY, PATH

SESSION = "abcd-1234"
# Beyond what costs everybody too much: what only setting up needs, and what reads settings that are not there.
NOT_FOR_HOOKS = HEAVY | {
    "difflib", "json", "pathlib", "ruamel", "shutil", "tempfile", "tomlkit", "tomllib", "traceback",
    "tenure.agents.recipes", "tenure.plans",
}  # fmt: skip


def loaded(tenure: Tenure, payload: dict[str, object]) -> set[str]:
    script = f"""
import io, os, sys
sys.stdin = io.StringIO({json.dumps({"session_id": SESSION, "cwd": str(tenure.folder), **payload})!r})
from tenure.cli.main import main
code = main(["-C", {str(tenure.folder)!r}, "hook"])
sys.stderr.write("\\n".join(sys.modules))
sys.exit(code)
"""
    run = subprocess.run(
        [sys.executable, "-S", "-c", PATH + script],
        capture_output=True,
        text=True,
        check=True,
        env=tenure.environ | {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": SESSION},
    )
    return set(run.stderr.split())


@pytest.mark.parametrize(
    "payload",
    [
        {"hook_event_name": "SessionStart", "source": "startup"},
        {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": "t1"},
        {"hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_use_id": "t2", "tool_input": {"file_path": "a"}},
        {"hook_event_name": "Stop"},
        {"hook_event_name": "SessionEnd", "reason": "other"},
    ],
    ids=lambda payload: str(payload["hook_event_name"]),
)
def test_a_hook_imports_nothing_heavy(tenure: Tenure, payload: dict[str, object]) -> None:
    modules = loaded(tenure, payload)
    assert "tenure.agents.hooks" in modules
    assert {name for name in modules if name in NOT_FOR_HOOKS or name.split(".")[0] in NOT_FOR_HOOKS} == set()
    if payload["hook_event_name"] in ("PostToolUse", "SessionStart"):
        assert "tenure.client" in modules
    else:  # nothing is asked of the store
        assert payload["hook_event_name"] == "SessionEnd" or "apsw" not in modules


def test_a_tool_call_soon_after_another_does_not_even_open_the_store(tenure: Tenure) -> None:
    loaded(tenure, {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": "first"})
    modules = loaded(tenure, {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": "second"})
    assert "apsw" not in modules
    assert "tenure.client" not in modules
